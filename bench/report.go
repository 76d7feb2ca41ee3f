package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// say prints progress for the person who runs the bench. It prints no figures.
func (b *bench) say(format string, args ...any) { fmt.Fprintf(os.Stderr, "  "+format+"\n", args...) }

// count returns a number of messages in a short form, such as 1M.
func count(n int) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

// shown returns a figure with three significant digits.
func shown(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// print writes the tables as text.
func (b *bench) print(to io.Writer) error {
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, strings.Join(b.machine.lines, "\n"))
	fmt.Fprintln(out, "\ntarget\tmedian\tleast to most\tby processor time\tbound\tverdict")
	for _, v := range b.sheet.verdicts() {
		fmt.Fprintf(out, "%s\t%s\t%s to %s\t%s\t%s\t%s\n", v.name(), shown(v.median), shown(v.lowest), shown(v.highest), v.byEffort(), v.bound(), v.word())
	}
	if rows := b.flatTable(); len(rows) > 0 {
		fmt.Fprintf(out, "\ncost stays flat: at most %g times\n", maxFlat)
		for _, row := range rows {
			fmt.Fprintln(out, strings.Join(row, "\t"))
		}
	}
	fmt.Fprintln(out, "\nmeasured\tmedian\tleast to most\tunit")
	for _, f := range b.sheet.rows {
		if median, least, highest, ok := spread(f.values); ok {
			fmt.Fprintf(out, "%s\t%s\t%s to %s\t%s\n", f.name, shown(median), shown(least), shown(highest), f.unit)
		}
	}
	return out.Flush()
}
