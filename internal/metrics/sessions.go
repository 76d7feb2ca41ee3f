package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"puntuale"
)

// SessionState contains a type of sessions and one of their states.
type SessionState struct {
	Type    puntuale.ConnectionType
	State   string // the state's name in the API
	Sandbox bool
}

// numbers counts the sessions of this server in each state, at each request for the metrics. The states are those of the
// API.
type numbers struct {
	count           func(report func(state SessionState, n int))
	real, sandboxes *prometheus.Desc
}

// WatchSessions registers how many sessions are in each state. It calls count at each request for the figures.
func (m *Meter) WatchSessions(count func(report func(state SessionState, n int))) {
	labels := []string{"type", "state"}
	m.registry.MustRegister(&numbers{
		count,
		prometheus.NewDesc("puntuale_numbers", "Sessions with real numbers that this server owns, by connection type and state.", labels, nil),
		prometheus.NewDesc("puntuale_sandbox_sessions", "Sessions with simulated numbers that this server owns, by connection type and state.", labels, nil),
	})
}

func (n *numbers) Describe(to chan<- *prometheus.Desc) {
	to <- n.real
	to <- n.sandboxes
}

func (n *numbers) Collect(to chan<- prometheus.Metric) {
	n.count(func(state SessionState, count int) {
		desc := n.real
		if state.Sandbox {
			desc = n.sandboxes
		}
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(count), string(state.Type), state.State)
	})
}
