package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The bench writes the part of a page between these two lines. People write the rest.
const (
	pageBegin = "<!-- measured: begin -->\n"
	pageEnd   = "<!-- measured: end -->\n"
)

// Files that the bench writes, from the folder of documents: the page that people read, its picture, and all figures.
const (
	resultsPage = "benchmark.md"
	resultsDraw = "benchmark.svg"
	figuresPage = "../bench/figures.txt"
)

// writePages replaces the tables in the page of a folder, draws the picture, and writes all figures.
func (b *bench) writePages(folder string) error {
	if err := writePage(filepath.Join(folder, resultsPage), b.results()); err != nil {
		return err
	}
	for name, content := range map[string]string{resultsDraw: drawing(b.sheet.verdicts()), figuresPage: b.figures()} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil { //nolint:gosec // a page for everybody
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// writePage replaces the text between the lines pageBegin and pageEnd of a page.
func writePage(page, measured string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	before, rest, begins := bytes.Cut(text, []byte(pageBegin))
	_, after, ends := bytes.Cut(rest, []byte(pageEnd))
	if !begins || !ends {
		return errors.New(page + " has no place for what is measured")
	}
	text = []byte(string(before) + pageBegin + measured + pageEnd + string(after))
	if err := os.WriteFile(page, text, 0o644); err != nil { //nolint:gosec // a page for everybody
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// measuredOn says when, how often and on which machine the bench was run.
func (b *bench) measuredOn() string {
	var out strings.Builder
	repeats := fmt.Sprintf("%d interleaved repeats", b.repeats)
	if b.quick {
		repeats = "one repeat of small sizes (`-quick`), not to be quoted"
	}
	fmt.Fprintf(&out, "\nMeasured on %s, %s, on:\n\n", time.Now().UTC().Format(time.DateOnly), repeats)
	for _, line := range b.machine.lines {
		fmt.Fprintf(&out, "- %s\n", line)
	}
	return out.String()
}

// rates names the figures, in messages a second, that the page for people shows.
var rates = []string{
	onEngine(ourDispatch, postgres), onEngine(ourDispatch, sqlite), riverImmediate, riverScheduled, asynqFast, asynqDurable,
	call(64, postgres), call(64, sqlite), onEngine(groupedInsert, postgres), copyInsert, riverInsert,
}

// results returns the text for people: rates, targets, and which calls cost more in a larger database.
func (b *bench) results() string {
	var out strings.Builder
	out.WriteString(b.measuredOn())
	out.WriteString("\n| rate | median, a second |\n|---|--:|\n")
	for _, name := range rates {
		if f := b.sheet.find(name); f != nil {
			median, _, _, _ := spread(f.values)
			fmt.Fprintf(&out, "| %s | %s |\n", shortName(name), shown(median))
		}
	}
	out.WriteString("\n![How far each bound is reached](" + resultsDraw + ")\n\n| target | median | bound | verdict |\n|---|--:|---|---|\n")
	for _, v := range b.sheet.verdicts() {
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", v.short(), shown(v.median), v.bound(), v.word())
	}
	if all := b.flats(); len(all) > 0 {
		var grows []string
		for _, f := range all {
			if !f.met {
				grows = append(grows, fmt.Sprintf("- %s: %s times\n", onEngine(f.name, f.engine), shown(f.ratio)))
			}
		}
		sizes := b.sizesAsked()
		fmt.Fprintf(&out, "\nBeside %s pending messages, %d of %d calls take at most %g times as long as beside %s. The others grow:\n\n%s",
			count(sizes[len(sizes)-1]), len(all)-len(grows), len(all), maxFlat, count(sizes[0]), strings.Join(grows, ""))
	}
	fmt.Fprintf(&out, "\n[All figures](%s)\n\n", figuresPage)
	return out.String()
}

// figures returns all tables that print prints, as Markdown tables.
func (b *bench) figures() string {
	var out strings.Builder
	out.WriteString(b.measuredOn())
	out.WriteString("\n## Targets\n\n| target | median | least to most | by processor time | bound | verdict |\n|---|---|---|---|---|---|\n")
	for _, v := range b.sheet.verdicts() {
		fmt.Fprintf(&out, "| %s | %s | %s to %s | %s | %s | %s |\n", v.name(), shown(v.median), shown(v.lowest), shown(v.highest), v.byEffort(), v.bound(), v.word())
	}
	if rows := b.flatTable(); len(rows) > 0 {
		fmt.Fprintf(&out, "\n## Cost stays flat\n\nBeside the most pending messages a call may take at most %g times as long as beside the fewest.\n\n", maxFlat)
		for i, row := range rows {
			fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				out.WriteString(strings.Repeat("|---", len(row)) + "|\n")
			}
		}
	}
	out.WriteString("\n## Figures\n\n| measured | median | least to most | unit |\n|---|---|---|---|\n")
	for _, f := range b.sheet.rows {
		if median, least, highest, ok := spread(f.values); ok {
			fmt.Fprintf(&out, "| %s | %s | %s to %s | %s |\n", f.name, shown(median), shown(least), shown(highest), f.unit)
		}
	}
	out.WriteString("\n")
	return out.String()
}
