package view_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"puntuale/internal/web/language"
	"puntuale/internal/web/view"
)

var chartBar = regexp.MustCompile(`<rect [^>]*height="([0-9.]+)"[^>]*class="bar-([a-z]+)"><title>([^<]*)</title>`)

// TestChartWithOneLargeDay: one day that is much larger than all others does not flatten them. Its bar is cut, has a mark,
// and names its whole number.
func TestChartWithOneLargeDay(t *testing.T) {
	t.Parallel()
	ctx := view.With(t.Context(), &view.Frame{Language: language.Named("it")})
	for large, cut := range map[int64]bool{1000: true, 100: true, 80: false, 20: false} {
		chart := view.Bars{Kinds: []view.Kind{{Name: "Inviati", Tone: "ok"}}}
		for i, n := range []int64{10, 20, large, 15} {
			chart.Days = append(chart.Days, view.BarDay{Title: fmt.Sprint("giorno ", i), Values: []int64{n}})
		}
		var page strings.Builder
		if err := view.Chart(chart).Render(ctx, &page); err != nil {
			t.Fatal(err)
		}
		heights, marks := map[string]float64{}, 0
		for _, bar := range chartBar.FindAllStringSubmatch(page.String(), -1) {
			if bar[2] == "cut" {
				marks++
				continue
			}
			h, err := strconv.ParseFloat(bar[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			heights[bar[3]] = h
		}
		if len(heights) != 4 {
			t.Fatalf("the bars are %v: %s", heights, page.String())
		}
		usual, tall := heights["giorno 1: Inviati 20"], heights["giorno 2: Inviati "+view.Number(ctx, large)]
		if usual*4 < tall-0.1 || tall < usual || heights["giorno 0: Inviati 10"]*2 != usual {
			t.Errorf("beside a day of %d the bars are %v", large, heights)
		}
		if (marks > 0) != cut {
			t.Errorf("a day of %d has %d marks", large, marks)
		}
	}
}
