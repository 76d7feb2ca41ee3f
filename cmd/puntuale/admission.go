package main

import (
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/metrics"
)

// memoryBudget is what bodies and answers may take together, in bytes; see docs/decisions/0023-memory.md.
const memoryBudget = 96 << 20

// unknownCallerBurst times the rate is how many calls of an unknown caller may come at once. For example, everybody in
// an office may load the sign-in page at the same time.
const unknownCallerBurst = 10

// newLimits makes the limits that API, dashboards and webhooks share.
func newLimits(cfg serverConfig, m *metrics.Meter) admission.Limits {
	a := admission.Limits{
		Gate:           admission.NewGate(admission.GateConfig{Seats: cfg.calls(), Patience: cfg.Patience, Now: cfg.Clock.Now, Refused: m.Refused, Waited: m.Waited}),
		Budget:         admission.NewMemoryBudget(memoryBudget, m.Refused),
		UnknownCallers: admission.NewRateLimiter[admission.CallerKey](cfg.AnonymousRate, int(unknownCallerBurst*cfg.AnonymousRate), cfg.Clock.Now),
	}
	m.WatchAdmission(func() (atWork, waiting int) {
		load := a.Gate.Load()
		return load.Inside, load.Waiting
	}, a.Budget.Taken)
	return a
}
