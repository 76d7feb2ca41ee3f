package plan_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/plan"
)

// varied returns a sequence whose steps have the same shares.
func varied(id puntuale.SequenceID, text string, shares ...int) puntuale.Sequence {
	s := puntuale.Sequence{ID: id, Name: "x"}
	for step := range 2 {
		x := puntuale.Step{ID: fmt.Sprint(step + 3), Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}
		for i, share := range shares {
			x.Variants = append(x.Variants, puntuale.StepVariant{Share: share, Content: puntuale.VariantText{Text: fmt.Sprint(text, i)}})
		}
		s.Steps = append(s.Steps, x)
	}
	s.Steps = puntuale.LeadVariants(s.Steps)
	return s
}

// chosen returns which variant of each step a person gets, from 1.
func chosen(t *testing.T, s puntuale.Sequence, phone, text string) (all []int8) {
	t.Helper()
	p, err := plan.Build(plan.Input{Sequence: s, Phone: phone, Now: time.Date(2027, 1, 1, 9, 0, 0, 0, time.UTC), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range p.Messages {
		if m.Content.Text != fmt.Sprint(text, m.Variant-1) || m.Variants != nil {
			t.Fatalf("variant %d is %q", m.Variant, m.Content.Text)
		}
		all = append(all, m.Variant)
	}
	return all
}

// TestStepVariants plans two steps with variants for 10,000 people: each variant has about its share, also among those who
// have the same variant of the other step, and each person keeps it, whatever the texts are and whatever form the number has.
func TestStepVariants(t *testing.T) {
	t.Parallel()
	const people = 10_000
	for _, shares := range [][]int{{50, 50}, {90, 10}, {34, 33, 33}, {40, 30, 20, 10}, {1, 99}} {
		s, edited := varied(12, "a", shares...), varied(12, "b", shares...)
		if faults := plan.Check(s); len(faults) > 0 {
			t.Fatal(faults)
		}
		got, both := [2][4]int{}, 0
		for i := range people {
			phone := fmt.Sprintf("+39333%07d", i)
			c := chosen(t, s, phone, "a")
			if again := chosen(t, edited, phone, "b"); again[0] != c[0] || again[1] != c[1] {
				t.Fatal("an edited text changes the variants")
			}
			got[0][c[0]-1]++
			got[1][c[1]-1]++
			if c[0] == 1 && c[1] == 1 {
				both++
			}
		}
		for i, share := range shares {
			for step := range got {
				about(t, fmt.Sprintf("variant %d of %v", i, shares), got[step][i], people, float64(share)/100)
			}
		}
		about(t, "variant 0 of both steps", both, got[0][0], float64(shares[0])/100)
	}
	s := varied(7, "a", 50, 50)
	pinned := ""
	for i := range 16 { // people keep their variants when the program is updated
		pinned += fmt.Sprint(chosen(t, s, fmt.Sprintf("+39333123450%d", i), "a")[0])
	}
	if want := "2111121121222221"; pinned != want {
		t.Errorf("the variants are %s, want %s", pinned, want)
	}
	if chosen(t, s, "+5215512345678", "a")[0] != chosen(t, s, "+525512345678", "a")[0] {
		t.Error("two forms of a number have two variants")
	}
	p, err := plan.Build(plan.Input{Sequence: s, Phone: "+393331234567", Now: time.Date(2027, 1, 1, 9, 0, 0, 0, time.UTC)})
	if err != nil || p.Messages[0].Variants == nil || (*p.Messages[0].Variants)[1].Text != "a1" {
		t.Errorf("a dry run shows %+v: %v", p.Messages, err)
	}
}

// about fails if a part of many is further from its share than chance explains: four standard deviations.
func about(t *testing.T, what string, got, of int, share float64) {
	t.Helper()
	want, spread := share*float64(of), math.Sqrt(share*(1-share)*float64(of))
	if math.Abs(float64(got)-want) > 4*spread {
		t.Errorf("%s: %d of %d, want about %.0f", what, got, of, want)
	}
}
