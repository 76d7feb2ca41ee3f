package admission_test

import (
	"slices"
	"testing"

	"puntuale"
	"puntuale/internal/httpkit/admission"
)

// All grants together use at most the budget. A caller that uses much memory leaves memory for other callers. At the
// end all memory is returned.
func TestMemoryBudget(t *testing.T) {
	t.Parallel()
	const limit = 64 << 20
	var reasons []string
	b := admission.NewMemoryBudget(limit, func(reason string) { reasons = append(reasons, reason) })
	var open []*admission.MemoryGrant
	take := func(who admission.CallerKey, bytes int64) error {
		a := b.Open(who)
		open = append(open, a)
		return a.Take(bytes)
	}
	if err := take(greedy, limit*3/4); puntuale.CodeOf(err) != puntuale.CodeOverloaded {
		t.Errorf("more than half of the memory at once: %v", err)
	}
	n := 0
	for ; take(greedy, admission.MaxBody) == nil; n++ {
		if n > 1000 {
			t.Fatal("there is no end")
		}
	}
	if n < 20 || b.Taken() > limit/2 {
		t.Errorf("%d bodies take %d bytes", n, b.Taken())
	}
	if err := take(modest, limit/4); err != nil {
		t.Errorf("another's answer: %v", err)
	}
	if err := take(greedy, 1000); err != nil {
		t.Errorf("a small body: %v", err)
	}
	if err := take(greedy, admission.MaxBody); puntuale.CodeOf(err) != puntuale.CodeRateLimited {
		t.Errorf("one more of the greedy one's: %v", err)
	}
	if err := take(third, limit/2); puntuale.CodeOf(err) != puntuale.CodeOverloaded {
		t.Errorf("more than there is: %v", err)
	}
	if !slices.Equal(reasons, []string{"bodies", "caller", "caller", "bodies"}) {
		t.Errorf("%v", reasons)
	}
	for _, a := range open {
		a.Close()
	}
	if b.Taken() != 0 {
		t.Errorf("%d bytes are still held", b.Taken())
	}
	if err := (*admission.MemoryBudget)(nil).Open(greedy).Take(limit); err != nil {
		t.Errorf("without a budget: %v", err)
	}
}
