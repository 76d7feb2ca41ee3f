package main

import (
	"puntuale/internal/httpkit"
)

// memoryBudget is what bodies and answers may take together, in bytes; see docs/decisions/0023-memory.md.
const memoryBudget = 96 << 20

// strangerTimes is how many times as many calls as in a second a caller that nobody knows may make at once: a page that
// signs in is loaded by everybody in an office.
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
