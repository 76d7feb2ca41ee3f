package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"puntuale/internal/session"
)

// numbers shows, whenever the figures are asked for, how many real sessions this server owns in each state: the same
// states that the API shows.
type numbers struct {
	sessions *session.Manager
	desc     *prometheus.Desc
}

// Numbers shows the states of a manager's sessions.
func (m *meter) Numbers(sessions *session.Manager) {
	m.registry.MustRegister(&numbers{sessions, prometheus.NewDesc("puntuale_numbers",
		"Sessions with real numbers that this server owns, by connection type and state.", []string{"type", "state"}, nil)})
}

func (n *numbers) Describe(to chan<- *prometheus.Desc) { to <- n.desc }

func (n *numbers) Collect(to chan<- prometheus.Metric) {
	for of, count := range n.sessions.States() {
		to <- prometheus.MustNewConstMetric(n.desc, prometheus.GaugeValue, float64(count), string(of.Type), of.State)
	}
}
