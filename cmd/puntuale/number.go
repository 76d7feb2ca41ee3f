package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"puntuale/internal/session"
)

// numbers shows, whenever the figures are asked for, how many sessions this server owns in each state: the same states
// that the API shows.
type numbers struct {
	sessions        *session.Manager
	real, sandboxes *prometheus.Desc
}

// Numbers shows the states of a manager's sessions.
func (m *meter) Numbers(sessions *session.Manager) {
	labels := []string{"type", "state"}
	m.registry.MustRegister(&numbers{
		sessions,
		prometheus.NewDesc("puntuale_numbers", "Sessions with real numbers that this server owns, by connection type and state.", labels, nil),
		prometheus.NewDesc("puntuale_sandbox_sessions", "Sessions with simulated numbers that this server owns, by connection type and state.", labels, nil),
	})
}

func (n *numbers) Describe(to chan<- *prometheus.Desc) {
	to <- n.real
	to <- n.sandboxes
}

func (n *numbers) Collect(to chan<- prometheus.Metric) {
	for of, count := range n.sessions.States() {
		desc := n.real
		if of.Sandbox {
			desc = n.sandboxes
		}
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(count), string(of.Type), of.State)
	}
}
