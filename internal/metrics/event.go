package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"puntuale"
)

// eventMeter contains the figures about events for webhooks.
type eventMeter struct {
	attempts *prometheus.CounterVec
	backlog  *prometheus.GaugeVec
	oldest   prometheus.Gauge
	event    prometheus.Gauge
	disabled prometheus.Gauge
}

func (m *Meter) registerEvents() {
	m.events = eventMeter{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "puntuale_event_attempts_total",
			Help: "Attempts to deliver an event to a webhook, by result: delivered, failed (it is tried again), given_up or gone (the receiver answered 410).",
		}, []string{"result"}),
		backlog: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "puntuale_event_backlog",
			Help: "Events of the whole installation on their way, at most 100,000 of each state: unnumbered (just written) or waiting (deliveries, those between retries too). Each server shows the same: take the maximum.",
		}, []string{"state"}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "puntuale_event_oldest_due_seconds", Help: "How long the first due delivery has been due; 0 without any.",
		}),
		event: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "puntuale_event_oldest_seconds", Help: "Age of the oldest event that a receiver has not accepted yet, also between two attempts; 0 without any. Disabled webhooks do not count.",
		}),
		disabled: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "puntuale_webhooks_disabled", Help: "Webhooks that were disabled because they failed for days, or answered 410.",
		}),
	}
	for _, result := range []string{"delivered", "failed", "given_up", "gone"} {
		m.events.attempts.WithLabelValues(result) // the figure is 0 until the first attempt
	}
	m.registry.MustRegister(m.events.attempts, m.events.backlog, m.events.oldest, m.events.event, m.events.disabled)
}

// Attempted counts an attempt to deliver an event by its result: delivered, failed, given_up or gone.
func (m *Meter) Attempted(result string) { m.events.attempts.WithLabelValues(result).Inc() }

// EventBacklog sets the figures about events that wait.
func (m *Meter) EventBacklog(b puntuale.OutboxBacklog) {
	m.events.backlog.WithLabelValues("unnumbered").Set(float64(b.Unnumbered))
	m.events.backlog.WithLabelValues("waiting").Set(float64(b.Waiting))
	m.events.oldest.Set(b.Oldest.Seconds())
	m.events.event.Set(b.Event.Seconds())
	m.events.disabled.Set(float64(b.Disabled))
}
