package metrics

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// LatenessSummary says how late the messages of this server left since its start.
type LatenessSummary struct {
	Messages    uint64
	Median, P99 time.Duration // bounds of the histogram: at least half, and 99 of 100 messages, were not later; negative: beyond the last bound
}

// Lateness summarises the lateness of messages.
func (m *Meter) Lateness() (s LatenessSummary) {
	var read dto.Metric
	if m.lateness.Write(&read) != nil {
		return s
	}
	h := read.GetHistogram()
	return LatenessSummary{h.GetSampleCount(), quantile(h, .5), quantile(h, .99)}
}

// quantile returns the upper bound of the bucket that contains the quantile.
func quantile(h *dto.Histogram, q float64) time.Duration {
	if h.GetSampleCount() == 0 {
		return 0
	}
	want := uint64(math.Ceil(q * float64(h.GetSampleCount())))
	for _, b := range h.GetBucket() {
		if b.GetCumulativeCount() >= want {
			return time.Duration(b.GetUpperBound() * float64(time.Second))
		}
	}
	return -1
}

// TransactionSummary describes the transactions of the store with one name.
type TransactionSummary struct {
	Name  string
	Count uint64
	Mean  time.Duration
	Slow  uint64 // took longer than 0.1 s
}

// Transactions summarises the store's transactions since the start of the server, the slowest on average first.
func (m *Meter) Transactions() (all []TransactionSummary) {
	found := make(chan prometheus.Metric, 256) // there are far fewer names
	m.batchTime.Collect(found)
	close(found)
	for metric := range found {
		var read dto.Metric
		if metric.Write(&read) != nil || len(read.GetLabel()) == 0 || read.GetHistogram().GetSampleCount() == 0 {
			continue
		}
		h := read.GetHistogram()
		t := TransactionSummary{Name: read.GetLabel()[0].GetValue(), Count: h.GetSampleCount(), Slow: h.GetSampleCount()}
		t.Mean = time.Duration(h.GetSampleSum() / float64(t.Count) * float64(time.Second))
		for _, b := range h.GetBucket() {
			if b.GetUpperBound() == .1 {
				t.Slow -= b.GetCumulativeCount()
			}
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b TransactionSummary) int {
		return cmp.Or(cmp.Compare(b.Mean, a.Mean), cmp.Compare(a.Name, b.Name))
	})
	return all
}
