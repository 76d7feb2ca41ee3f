package metrics

import (
	"testing"
	"time"

	"puntuale/internal/clock"
)

// TestSummaries: the bounds are those of the histogram's buckets, and the slowest transactions come first.
func TestSummaries(t *testing.T) {
	t.Parallel()
	m := New("1", clock.System())
	if s := m.Lateness(); s != (LatenessSummary{}) {
		t.Errorf("%+v", s)
	}
	for range 98 {
		m.Late(3 * time.Millisecond)
	}
	m.Late(800 * time.Millisecond)
	m.Late(time.Hour)
	if s := m.Lateness(); s.Messages != 100 || s.Median != 5*time.Millisecond || s.P99 != time.Second {
		t.Errorf("%+v", s)
	}
	m.Batch("start", 1, time.Millisecond)
	m.Batch("start", 1, 3*time.Millisecond)
	m.Batch("record", 1, 200*time.Millisecond)
	all := m.Transactions()
	if len(all) != 2 || all[0] != (TransactionSummary{"record", 1, 200 * time.Millisecond, 1}) || all[1] != (TransactionSummary{"start", 2, 2 * time.Millisecond, 0}) {
		t.Errorf("%+v", all)
	}
}
