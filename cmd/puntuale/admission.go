package main

import (
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/metrics"
)

// memoryBudget is how many bytes the bodies and answers of all requests may use together; see
// docs/decisions/overload.md.
const memoryBudget = 96 << 20

// unknownCallerBurst says how many calls an unknown caller may make at the same time: the calls of this many seconds. An
// office may need so many, if all its people load the sign-in page together.
const unknownCallerBurst = 10

// newLimits makes the limits that the API, the dashboards and the webhooks share.
func newLimits(cfg serverConfig, memory *admission.MemoryBudget, m *metrics.Meter) admission.Limits {
	a := admission.Limits{
		Gate:           admission.NewGate(admission.GateConfig{Seats: cfg.calls(), LongestWait: cfg.Patience, Now: cfg.Clock.Now, Refused: m.Refused, Waited: m.Waited}),
		Budget:         memory,
		UnknownCallers: admission.NewRateLimiter[admission.CallerKey](cfg.AnonymousRate, int(unknownCallerBurst*cfg.AnonymousRate), cfg.Clock.Now),
	}
	m.WatchAdmission(func() (atWork, waiting int) {
		load := a.Gate.Load()
		return load.Inside, load.Waiting
	}, a.Budget.Taken)
	return a
}
