package campaign

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Add returns true if the phone was added before. The test uses small and large sets, with near and distant numbers.
func TestSeen(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for _, among := range []int64{3, 60_000, 10_000_000_000} {
		s, known := NewSeenPhones(), map[string]bool{}
		for range 50_000 {
			phone := fmt.Sprintf("+39%d", 3_000_000_000+r.Int64N(among))
			if before := s.Add(phone); before != known[phone] {
				t.Fatalf("%s of %d: known %v, want %v", phone, among, before, known[phone])
			}
			known[phone] = true
		}
	}
	s := NewSeenPhones()
	if s.Add("12036304@g.us") || !s.Add("12036304@g.us") {
		t.Error("what is no number is not remembered")
	}
}
