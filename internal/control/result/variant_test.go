package result_test

import (
	"testing"

	"puntuale"
	"puntuale/internal/control/result"
)

func variants(parts ...[2]int64) (all []puntuale.ResultRow) {
	for i, p := range parts {
		all = append(all, puntuale.ResultRow{Key: puntuale.VariantKey(i), ResultCounts: puntuale.ResultCounts{Planned: p[1], Sent: p[1], Read: p[0], TellRead: p[1]}})
	}
	return all
}

// TestCompare compares texts by how many of their messages were read.
func TestCompare(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		rows   []puntuale.ResultRow
		ok     bool
		best   string
		chance bool
		few    bool
		more   [2]int64 // lower and upper bound
	}{
		"one text":                      {rows: variants([2]int64{50, 100})},
		"nobody got the other":          {rows: variants([2]int64{50, 100}, [2]int64{0, 0})},
		"a clear difference":            {rows: variants([2]int64{500, 1000}, [2]int64{600, 1000}), ok: true, best: "B"},
		"the same difference, few":      {rows: variants([2]int64{5, 10}, [2]int64{6, 10}), ok: true, best: "B", chance: true, more: [2]int64{500, 1000}},
		"just enough":                   {rows: variants([2]int64{140, 1000}, [2]int64{109, 1000}), ok: true, best: "A"},                                           // z = 2.10
		"just not enough":               {rows: variants([2]int64{140, 1000}, [2]int64{112, 1000}), ok: true, best: "A", chance: true, more: [2]int64{1000, 6000}}, // z = 1.89
		"the same, but of three texts":  {rows: variants([2]int64{140, 1000}, [2]int64{109, 1000}, [2]int64{50, 1000}), ok: true, best: "A", chance: true, more: [2]int64{1000, 9000}},
		"no difference":                 {rows: variants([2]int64{300, 1000}, [2]int64{300, 1000}), ok: true, best: "A", chance: true},
		"hardly a difference":           {rows: variants([2]int64{300000, 1000000}, [2]int64{300001, 1000000}), ok: true, best: "B", chance: true},
		"nobody read":                   {rows: variants([2]int64{0, 1000}, [2]int64{0, 1000}), ok: true, best: "A", chance: true, few: true},
		"four read":                     {rows: variants([2]int64{2, 1000}, [2]int64{2, 1000}), ok: true, best: "A", chance: true, few: true},
		"five read":                     {rows: variants([2]int64{2, 900}, [2]int64{3, 900}), ok: true, best: "B", chance: true, more: [2]int64{1, 1000000}},
		"everybody read":                {rows: variants([2]int64{10, 10}, [2]int64{10, 10}), ok: true, best: "A", chance: true},
		"too rare for the test":         {rows: variants([2]int64{4, 100}, [2]int64{0, 100}), ok: true, best: "A", chance: true, few: true, more: [2]int64{50, 500}}, // fewer than 5 are expected
		"very different sizes":          {rows: variants([2]int64{450, 900}, [2]int64{35, 100}), ok: true, best: "A"},
		"the third is the second best":  {rows: variants([2]int64{700, 1000}, [2]int64{100, 1000}, [2]int64{500, 1000}), ok: true, best: "A"},
		"four texts, two of them equal": {rows: variants([2]int64{700, 1000}, [2]int64{700, 1000}, [2]int64{500, 1000}, [2]int64{1, 1000}), ok: true, best: "A", chance: true},
	} {
		got, ok := result.Compare(x.rows, puntuale.ResultRead)
		if ok != x.ok || got.Best != x.best || got.Chance != x.chance || got.Few != x.few || got.More < x.more[0] || got.More > x.more[1] {
			t.Errorf("%s: %+v %v", name, got, ok)
		}
	}
	if got, _ := result.Compare(variants([2]int64{700, 1000}, [2]int64{100, 1000}, [2]int64{500, 1000}), puntuale.ResultRead); got.Next != "C" {
		t.Errorf("the next best is %s", got.Next)
	}
	if _, ok := result.Compare(variants([2]int64{5, 10}, [2]int64{6, 10}), puntuale.ResultAnswered); ok {
		t.Error("what nobody tells is compared")
	}
}
