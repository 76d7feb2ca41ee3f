package budget

import (
	"encoding/json"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// cost is how much of this process's resources one operation uses.
type cost struct {
	allocs, bytes float64
	loops         float64 // processor time, in units of one calibration loop (see calibrate); 0: not measured
}

// meter is what all goroutines of this process together have used so far.
type meter struct {
	memory runtime.MemStats
	cpu    time.Duration
}

func readMeter() (m meter) {
	runtime.ReadMemStats(&m.memory)
	m.cpu = processorTime()
	return m
}

// since returns the average cost of n operations since m was read. Here loops is in nanoseconds.
func (m meter) since(n int) cost {
	now := readMeter()
	each := func(before, after uint64) float64 { return float64(after-before) / float64(n) }
	return cost{
		allocs: each(m.memory.Mallocs, now.memory.Mallocs), bytes: each(m.memory.TotalAlloc, now.memory.TotalAlloc),
		loops: float64((now.cpu - m.cpu).Nanoseconds()) / float64(n),
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// calibrate returns the processor time of one calibration loop. The loop decodes and encodes a document: it allocates,
// branches and copies as the hot path does. It runs shortly before or after the operation that it is compared with.
// Therefore a slow or busy machine slows both, and their ratio stays about the same.
func calibrate(t testing.TB) time.Duration {
	t.Helper()
	const times = 2000
	begun := processorTime()
	for range times {
		var v map[string]any
		if err := json.Unmarshal([]byte(calibration), &v); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	return (processorTime() - begun) / times
}

const calibration = `{"phone":"+393471234567","nome":"Maria","quando":"2026-12-01T10:30","steps":[{"text":"Gentile Maria","timing":` +
	`{"anchor":"start","offset":{"amount":1,"unit":"days"}}},{"text":"A presto","timing":{"anchor":"start","jitter":60}}],"sum":12.5}`
