package result

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"puntuale"
	"puntuale/internal/control"
)

// compareVariants names the variants by their texts, adds those without messages, and compares them. Of a campaign, it also
// counts the holdout. A campaign of a sequence, or one that is not there, has no variants.
func compareVariants(ctx context.Context, client *control.Client, f puntuale.ResultFilter, out *puntuale.ResultReport) error {
	var variants []puntuale.Step
	if f.Sequence != 0 {
		s, err := client.Sequence(ctx, f.Sequence.String())
		if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return err
		}
		steps, err := client.Filled(ctx, s.Steps)
		if err != nil {
			return err
		}
		for i := range steps {
			if step := &steps[i]; step.Name(i) == strconv.Itoa(*f.Step) && len(step.Variants) > 0 {
				for x := range step.Texts() {
					variants = append(variants, *x)
				}
			}
		}
	} else {
		c, err := client.Campaign(ctx, f.Campaign.String())
		if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return err
		}
		variants, out.HeldOut = c.Texts(), c.Feed.HeldOut
	}
	rows := out.All
	out.All = nil
	for i := range puntuale.MaxVariants {
		row := puntuale.ResultRow{Key: puntuale.VariantKey(i)}
		at := slices.IndexFunc(rows, func(r puntuale.ResultRow) bool { return r.Key == row.Key })
		if at >= 0 {
			row = rows[at]
		}
		if i < len(variants) {
			row.Name = shortened(cmp.Or(variants[i].Text, variants[i].Template, variants[i].MediaName))
		} else if at < 0 || f.Sequence == 0 { // of a step, a variant that was removed is still counted
			continue
		}
		out.All = append(out.All, row)
	}
	for _, mark := range comparedMarks {
		if x, ok := Compare(out.All, mark); ok {
			out.Comparisons = append(out.Comparisons, x)
		}
	}
	return nil
}

// comparedMarks are the counts by which texts are compared.
var comparedMarks = []puntuale.ResultMarks{puntuale.ResultRead, puntuale.ResultAnswered, puntuale.ResultClicked}

// enough is how often a count, and its opposite, must be expected in each variant before two shares are compared: below, the
// normal approximation of the test is no good.
const enough = 5

// fewest is how often a count must be there, in both variants together, before anything is said about their shares.
const fewest = 5

// mostMore is the largest number of further messages that is worth to be named.
const mostMore = 1_000_000

// power is the quantile of the normal distribution for four chances in five to see a difference that there is.
const power = 0.8416

// certainty returns the quantile for one chance in twenty to be misled, divided by the number of pairs of variants
// (Bonferroni), because the best of several texts is often the best by chance.
func certainty(variants int) float64 {
	return map[int]float64{2: 1.9600, 3: 2.3940, 4: 2.6383}[variants]
}

// Compare compares the two variants with the largest shares of a count, by the test of two proportions. ok is false if
// fewer than two variants have messages of which the network tells.
func Compare(rows []puntuale.ResultRow, mark puntuale.ResultMarks) (x puntuale.ResultComparison, ok bool) {
	type part struct {
		key  string
		n, p float64 // messages, and the share that has the mark
	}
	var parts []part
	for _, r := range rows {
		if n := r.Tells(mark); n > 0 {
			parts = append(parts, part{r.Key, float64(n), float64(r.Of(mark)) / float64(n)})
		}
	}
	if len(parts) < 2 || len(parts) > puntuale.MaxVariants {
		return x, false
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.p, a.p) })
	a, b := parts[0], parts[1]
	x = puntuale.ResultComparison{Mark: mark, Best: a.key, Next: b.key, Chance: true, Few: a.p*a.n+b.p*b.n < fewest-0.5} // half of one: a share is not exact
	pooled := (a.p*a.n + b.p*b.n) / (a.n + b.n)
	z := certainty(len(parts))
	few := min(a.n, b.n) * min(pooled, 1-pooled)
	if spread := math.Sqrt(pooled * (1 - pooled) * (1/a.n + 1/b.n)); few >= enough && spread > 0 && (a.p-b.p)/spread >= z {
		x.Chance = false
		return x, true
	}
	if d := a.p - b.p; d > 0 {
		need := (z + power) * (z + power) * (a.p*(1-a.p) + b.p*(1-b.p)) / (d * d) // of each variant
		need = max(need, enough/min(pooled, 1-pooled))
		more := 0.0
		for _, p := range parts {
			more += max(0, need-p.n)
		}
		if more <= mostMore {
			x.More = max(1, rounded(more))
		}
	}
	return x, true
}

// rounded rounds up to one digit, because the number is only an estimate.
func rounded(n float64) int64 {
	unit := math.Pow(10, max(0, math.Floor(math.Log10(max(1, n)))))
	return int64(math.Ceil(n/unit) * unit)
}
