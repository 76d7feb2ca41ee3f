package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Sizes in the picture, in pixels.
const (
	rowHeight  = 26
	labelWidth = 640
	barWidth   = 360
	maxBar     = 4.0 // length of the longest bar, in multiples of the bound; longer bars are cut off
	headHeight = 44
)

// drawing draws a bar for each target. The bar's length says how well the figure keeps its bound. The bar of a figure
// that equals its bound has the length 1. The bar of a figure that is twice as good has the length 2.
func drawing(all []verdict) string {
	var out strings.Builder
	var drawn []verdict
	for _, v := range all {
		if v.share() > 0 {
			drawn = append(drawn, v)
		}
	}
	width, height := labelWidth+barWidth+130, headHeight+rowHeight*len(drawn)+8
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" role="img" aria-label="How far each bound is reached">`+"\n", width, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	bound := labelWidth + barWidth/maxBar
	fmt.Fprintf(&out, `<text x="%.0f" y="36" text-anchor="middle" fill="#333333">the bound</text>`+"\n", bound)
	fmt.Fprintf(&out, `<text x="%d" y="16" text-anchor="end" fill="#333333">longer is better; beyond %.0f times the bound bars are cut</text>`+"\n", width-8, maxBar)
	for i, v := range drawn {
		y := headHeight + i*rowHeight
		length := barWidth * math.Min(v.share(), maxBar) / maxBar
		colour := "#1b7f3b"
		if !v.met {
			colour = "#b3261e"
		}
		fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end" fill="#111111">%s</text>`+"\n", labelWidth-8, y+14, html.EscapeString(v.short()))
		fmt.Fprintf(&out, `<rect x="%d" y="%d" width="%.1f" height="16" fill="%s"><title>%s: %s, %s</title></rect>`+"\n",
			labelWidth, y+2, length, colour, html.EscapeString(v.name()), v.word(), html.EscapeString(v.bound()))
		fmt.Fprintf(&out, `<text x="%.1f" y="%d" fill="#111111">%s</text>`+"\n", labelWidth+length+6, y+14, html.EscapeString(v.value()))
	}
	fmt.Fprintf(&out, `<line x1="%.0f" y1="%d" x2="%.0f" y2="%d" stroke="#333333" stroke-dasharray="3 3"/>`+"\n</svg>\n", bound, headHeight-4, bound, height-6)
	return out.String()
}

// short returns a name that fits beside a bar.
func (v verdict) short() string { return strings.ReplaceAll(shortName(v.name()), " ÷ ", " : ") }

// shortName abbreviates the name of a figure.
func shortName(name string) string {
	return strings.NewReplacer(
		"message rows inserted, 1,000 a statement", "grouped insert", "message rows by COPY, 10,000 at a time", "COPY",
		ourDispatch, "dispatch", "start calls of 3 messages over HTTP", "start calls",
		"resident memory of the server", "memory", "start calls with cap and idempotency", "start calls, capped and keyed",
	).Replace(name)
}

// value returns the measured figure and its bound, as text.
func (v verdict) value() string {
	text := fmt.Sprintf("%s (%s)", strings.TrimSpace(shown(v.median)+" "+v.unit), v.bound())
	if !v.met {
		text += " missed" // some readers cannot see the colours
	}
	return text
}
