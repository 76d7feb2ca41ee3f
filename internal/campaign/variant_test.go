package campaign_test

import (
	"fmt"
	"math"
	"testing"

	"puntuale"
	"puntuale/internal/campaign"
)

// TestVariantShares gives 10,000 people a variant: each variant has about its share, each person has one, whatever form
// the number has, and the holdout says nothing about the variant.
func TestVariantShares(t *testing.T) {
	t.Parallel()
	const people = 10_000
	for _, shares := range [][]int{{50, 50}, {90, 10}, {34, 33, 33}, {40, 30, 20, 10}, {1, 99}} {
		for id := puntuale.CampaignID(1); id <= 3; id++ {
			got, held, both := make([]int, len(shares)), 0, 0
			for i := range people {
				phone := fmt.Sprintf("+39333%07d", i)
				v := campaign.Variant(id, phone, shares)
				if v != campaign.Variant(id, phone, shares) {
					t.Fatal("the same person has two variants")
				}
				got[v]++
				if campaign.HeldOut(id, phone, 20) {
					if held++; v == 0 {
						both++
					}
				}
			}
			for i, share := range shares {
				within(t, fmt.Sprintf("variant %d of %v", i, shares), got[i], people, float64(share)/100)
			}
			within(t, "the holdout", held, people, 0.2)
			within(t, "variant 0 in the holdout", both, held, float64(shares[0])/100)
		}
	}
	same := 0
	for i := range people {
		phone := fmt.Sprintf("+39333%07d", i)
		if campaign.Variant(1, phone, []int{50, 50}) == campaign.Variant(2, phone, []int{50, 50}) {
			same++
		}
	}
	within(t, "the same variant in two campaigns", same, people, 0.5)
	if campaign.Variant(7, "+5215512345678", []int{50, 50}) != campaign.Variant(7, "+525512345678", []int{50, 50}) {
		t.Error("two forms of a number have two variants")
	}
	if campaign.HeldOut(1, "+393331234567", 0) {
		t.Error("a campaign without a holdout holds somebody out")
	}
}

// TestVariantStays pins the choice: people keep their variants when the program is updated.
func TestVariantStays(t *testing.T) {
	t.Parallel()
	got := ""
	for i := range 16 {
		got += puntuale.VariantKey(campaign.Variant(7, fmt.Sprintf("+39333000000%d", i), []int{40, 30, 20, 10}))
	}
	if want := "AAAAAADDDCDAABAA"; got != want {
		t.Errorf("people have %s, and had %s", got, want)
	}
}

// within fails if a count is further from its share than five standard deviations.
func within(t *testing.T, what string, n, of int, share float64) {
	t.Helper()
	if d := math.Abs(float64(n) - float64(of)*share); d > 5*math.Sqrt(float64(of)*share*(1-share)) {
		t.Errorf("%s: %d of %d, which is not about %v", what, n, of, share)
	}
}
