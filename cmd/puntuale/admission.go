package main

import (
	"puntuale/internal/httpkit"
)

// memoryBudget is what bodies and answers may take together, in bytes; see docs/decisions/0023-memory.md.
const memoryBudget = 96 << 20

// strangerTimes multiplies the calls a second of a caller that nobody knows: so many may come at once. Everybody in an
// office may load the sign-in page together.
const strangerTimes = 10

// admission makes what API, dashboards and webhooks share.
func admission(cfg serverConfig, m *meter) httpkit.Admission {
	a := httpkit.Admission{
		Gate:      httpkit.NewGate(httpkit.GateConfig{Places: cfg.calls(), Patience: cfg.Patience, Now: cfg.Clock.Now, Refused: m.Refused, Waited: m.Waited}),
		Budget:    httpkit.NewBudget(memoryBudget, m.Refused),
		Strangers: httpkit.NewPace[httpkit.Share](cfg.AnonymousRate, int(strangerTimes*cfg.AnonymousRate), cfg.Clock.Now),
	}
	m.watchAdmission(a.Gate.Load, a.Budget.Held)
	return a
}
