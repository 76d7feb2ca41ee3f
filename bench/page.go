package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// The bench writes the part of the page between these lines. People write the rest.
const (
	pageBegin = "<!-- measured: begin -->\n"
	pageEnd   = "<!-- measured: end -->\n"
)

// writePage puts the tables into the page, in place of the ones of an earlier run, and draws the picture beside it.
func (b *bench) writePage(page, picture string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	before, rest, begins := bytes.Cut(text, []byte(pageBegin))
	_, after, ends := bytes.Cut(rest, []byte(pageEnd))
	if !begins || !ends {
		return errors.New("the page has no place for what is measured")
	}
	text = []byte(string(before) + pageBegin + b.markdown() + pageEnd + string(after))
	if err := os.WriteFile(page, text, 0o644); err != nil { //nolint:gosec // a page for everybody
		return fmt.Errorf("write the page: %w", err)
	}
	if err := os.WriteFile(picture, []byte(drawing(b.sheet.verdicts())), 0o644); err != nil { //nolint:gosec // likewise
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

// markdown returns the tables of print as Markdown.
func (b *bench) markdown() string {
	var out strings.Builder
	repeats := fmt.Sprintf("%d interleaved repeats", b.repeats)
	if b.quick {
		repeats = "one repeat of small sizes (`-quick`), not to be quoted"
	}
	fmt.Fprintf(&out, "\nMeasured on %s, %s, on:\n\n", time.Now().UTC().Format(time.DateOnly), repeats)
	for _, line := range b.machine.lines {
		fmt.Fprintf(&out, "- %s\n", line)
	}
	out.WriteString("\n## Targets\n\n![How far each bound is reached](benchmark.svg)\n\n| target | median | least to most | by processor time | bound | verdict |\n|---|---|---|---|---|---|\n")
	for _, v := range b.sheet.verdicts() {
		fmt.Fprintf(&out, "| %s | %s | %s to %s | %s | %s | %s |\n", v.name(), shown(v.median), shown(v.least), shown(v.most), v.byEffort(), v.bound(), v.word())
	}
	if rows := b.flatTable(); len(rows) > 0 {
		fmt.Fprintf(&out, "\n## Cost stays flat\n\nBeside the most pending messages a call may take at most %g times as long as beside the fewest.\n\n", flatMost)
		for i, row := range rows {
			fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				out.WriteString(strings.Repeat("|---", len(row)) + "|\n")
			}
		}
	}
	out.WriteString("\n## Figures\n\n| measured | median | least to most | unit |\n|---|---|---|---|\n")
	for _, f := range b.sheet.rows {
		if median, least, most, ok := spread(f.values); ok {
			fmt.Fprintf(&out, "| %s | %s | %s to %s | %s |\n", f.what, shown(median), shown(least), shown(most), f.unit)
		}
	}
	out.WriteString("\n")
	return out.String()
}
