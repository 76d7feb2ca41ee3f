package sendapp

import (
	"strconv"
	"strings"

	"puntuale"
)

// spinBar replaces a bar between braces. From {a|b} gateways choose a or b at random. This letter looks like a bar, but
// gateways do not treat it as a bar.
const spinBar = "ǀ"

// written returns the text that the gateway must send. Gateways cannot send locations, so a location becomes a link to
// a map. Each button becomes a numbered line, because gateways send only buttons that were made on their own pages.
func written(c puntuale.Content) string {
	text := c.Shown()
	if c.Latitude != nil && c.Longitude != nil {
		link := "https://maps.google.com/?q=" + degrees(*c.Latitude) + "," + degrees(*c.Longitude)
		text = strings.TrimLeft(text+"\n"+link, "\n")
	}
	return unspun(text)
}

func degrees(d float64) string { return strconv.FormatFloat(d, 'f', -1, 64) }

// unspun replaces each bar between an opening brace and its closing brace.
func unspun(text string) string {
	if !strings.Contains(text, "|") {
		return text
	}
	inside := make([]bool, len(text))
	var open []int
	for i := range len(text) {
		switch text[i] {
		case '{':
			open = append(open, i)
		case '}':
			if len(open) > 0 {
				begin := open[len(open)-1]
				open = open[:len(open)-1]
				for j := begin; j < i; j++ {
					inside[j] = true
				}
			}
		}
	}
	var b strings.Builder
	for i := range len(text) {
		if text[i] == '|' && inside[i] {
			b.WriteString(spinBar)
		} else {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}
