package main

import (
	"cmp"
	"slices"
)

// maxFlat is the highest allowed ratio: a call's cost in the largest database, divided by the call's cost in the
// smallest one. In a full run, the largest database has a thousand times the messages of the smallest one. An index
// over a thousand times as many rows has one or two more levels. A call whose work grows with the rows would cost
// hundreds of times as much.
const maxFlat = 2.0

// flat contains the costs of one query in databases of different sizes.
type flat struct {
	name, engine string
	cost         map[int]float64 // medians in milliseconds, by number of pending messages
	ratio        float64         // the cost with the most pending messages divided by the cost with the fewest; median of the repeats
	met          bool
}

// sizesAsked returns the numbers of pending messages, the smallest first.
func (b *bench) sizesAsked() []int { return slices.Sorted(slices.Values(b.pending)) }

// flats compares the largest database with the smallest one, for each query that was measured on both.
func (b *bench) flats() (all []flat) {
	for _, engine := range []string{postgres, sqlite} {
		for _, q := range questions {
			f := flat{name: q.name, engine: engine, cost: map[int]float64{}}
			var sizes []int
			for _, pending := range b.sizesAsked() {
				if found := b.sheet.find(questionFigure(q.name, pending, engine)); found != nil {
					if median, _, _, ok := spread(found.values); ok {
						f.cost[pending], sizes = median, append(sizes, pending)
					}
				}
			}
			if len(sizes) < 2 {
				continue
			}
			var ok bool
			f.ratio, _, _, ok = b.sheet.ratio(questionFigure(q.name, slices.Max(sizes), engine), questionFigure(q.name, slices.Min(sizes), engine))
			f.met = ok && f.ratio <= maxFlat
			all = append(all, f)
		}
	}
	return all
}

// flatTable returns the rows of the table that shows the costs. The first row is the heading.
func (b *bench) flatTable() (rows [][]string) {
	all := b.flats()
	if len(all) == 0 {
		return nil
	}
	head := []string{"median of one call, ms"}
	for _, pending := range b.sizesAsked() {
		head = append(head, "beside "+count(pending))
	}
	rows = append(rows, append(head, "most ÷ fewest", "verdict"))
	for _, f := range all {
		row := []string{onEngine(f.name, f.engine)}
		for _, pending := range b.sizesAsked() {
			cell := ""
			if cost, ok := f.cost[pending]; ok {
				cell = shown(cost)
			}
			row = append(row, cmp.Or(cell, "–"))
		}
		verdict := "flat"
		if !f.met {
			verdict = "GROWS"
		}
		rows = append(rows, append(row, shown(f.ratio), verdict))
	}
	return rows
}
