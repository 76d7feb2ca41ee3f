package metrics

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"puntuale/internal/clock"
)

// Meter contains the figures that operators see, of the dispatcher and the store. It is safe for concurrent use.
type Meter struct {
	registry *prometheus.Registry

	roles       *prometheus.GaugeVec
	lateness    prometheus.Histogram
	outcomes    *prometheus.CounterVec
	queued      prometheus.Gauge
	sessions    prometheus.Gauge
	capRefused  prometheus.Counter
	fileStorage prometheus.Counter
	batchSize   *prometheus.HistogramVec
	batchTime   *prometheus.HistogramVec
	deadlocks   prometheus.Counter
	fenced      prometheus.Counter
	quarantined prometheus.Counter
	requests    *prometheus.CounterVec
	requestTime *prometheus.HistogramVec
	refused     *prometheus.CounterVec
	waited      prometheus.Histogram
	closed      prometheus.Counter
	unknown     prometheus.Counter

	backlog *backlogs
	alerts  alerts
	events  eventMeter
}

// New registers all figures in a new registry. version is the program's release, which is one of the figures. Ages are
// counted until the time of c.
func New(version string, c clock.Clock) *Meter {
	m := &Meter{registry: prometheus.NewRegistry(), backlog: newBacklogs(c)}
	m.roles = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "puntuale_role", Help: "1 for each thing that this server does: api, web, dispatch.",
	}, []string{"role"})
	m.lateness = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "puntuale_lateness_seconds",
		Help:    "How long after its planned moment a message's attempt was on disk, ready to leave.",
		Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60},
	})
	m.outcomes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "puntuale_outcomes_total", Help: "What became of messages and attempts, by connector.",
	}, []string{"connector", "outcome"})
	m.queued = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "puntuale_queue_messages", Help: "Messages due soon that the dispatcher holds in memory, at most so many of each session. All that is due: puntuale_backlog_messages.",
	})
	m.sessions = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "puntuale_queue_sessions", Help: "Sessions that these messages belong to.",
	})
	m.fileStorage = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "puntuale_file_storage_failures_total", Help: "Requests to the storage of uploaded files that failed; files-to names the storage.",
	})
	m.capRefused = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "puntuale_cap_refusals_total", Help: "Calls refused because a client's daily cap was used up.",
	})
	m.batchSize = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "puntuale_batch_size", Help: "Members of a transaction of the store.",
		Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000},
	}, []string{"operation"})
	m.batchTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "puntuale_batch_seconds", Help: "Time of a transaction of the store, with its commit.",
		Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 5},
	}, []string{"operation"})
	m.deadlocks = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "puntuale_deadlocks_total", Help: "Transactions that the database gave up for a deadlock or a conflict, and that were repeated.",
	})
	m.fenced = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "puntuale_fenced_total", Help: "Claims and outcomes that lost against another server's.",
	})
	m.quarantined = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "puntuale_quarantined_total", Help: "Messages that a failover of the database made uncertain.",
	})
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "puntuale_http_requests_total", Help: "Requests answered, by route and status.",
	}, []string{"route", "status"})
	m.requestTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "puntuale_http_request_seconds", Help: "Time to answer a request, by route.",
		Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 2, 5, 10},
	}, []string{"route"})
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "puntuale_overload_refusals_total",
		Help: "Calls refused because more came than can be answered in time, by what ran out: calls, bodies, store, or one caller's part.",
	}, []string{"reason"})
	m.waited = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "puntuale_call_wait_seconds", Help: "How long calls waited for their turn, of those that had to wait.",
		Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 2, 5, 10},
	})
	m.closed = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "puntuale_connections_closed_total", Help: "Connections that were closed because there were too many.",
	})
	m.unknown = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "puntuale_official_unknown_codes_total", Help: "Messages that Meta refused with a code that this version does not know; the log has the code.",
	})
	for _, reason := range []string{"bodies", "caller", "calls", "store"} {
		m.refused.WithLabelValues(reason) // the figure is 0 until the first refusal
	}
	m.registry.MustRegister(m.refused, m.waited, m.closed, m.unknown)
	m.registry.MustRegister(m.fileStorage, m.roles, m.lateness, m.outcomes, m.queued, m.sessions, m.capRefused, m.batchSize, m.batchTime,
		m.deadlocks, m.fenced, m.quarantined, m.requests, m.requestTime,
		m.backlog, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registerOperation(version)
	m.registerEvents()
	return m
}

// Roles sets the roles of the server.
func (m *Meter) Roles(roles []string) {
	for _, r := range roles {
		m.roles.WithLabelValues(r).Set(1)
	}
}

// Late records how late a message left.
func (m *Meter) Late(d time.Duration) { m.lateness.Observe(max(0, d.Seconds())) }

// Outcome counts the outcomes of messages.
func (m *Meter) Outcome(connector, verdict string, n int) {
	m.outcomes.WithLabelValues(connector, verdict).Add(float64(n))
}

// Queue sets how many messages and sessions the dispatcher has in memory.
func (m *Meter) Queue(messages, sessions int) {
	m.queued.Set(float64(messages))
	m.sessions.Set(float64(sessions))
}

// CapRefused counts calls beyond a daily cap.
func (m *Meter) CapRefused(n int) { m.capRefused.Add(float64(n)) }

// FileStorageFailed counts a request to the storage of uploaded files that failed.
func (m *Meter) FileStorageFailed() { m.fileStorage.Inc() }

// UnknownCode counts a message that Meta refused with an unknown code.
func (m *Meter) UnknownCode() { m.unknown.Inc() }

// Batch records a transaction of the store.
func (m *Meter) Batch(operation string, size int, took time.Duration) {
	m.batchSize.WithLabelValues(operation).Observe(float64(size))
	m.batchTime.WithLabelValues(operation).Observe(took.Seconds())
}

// Deadlock counts a transaction that the database aborted because of a deadlock.
func (m *Meter) Deadlock() { m.deadlocks.Inc() }

// Fenced counts claims and outcomes that were refused because another server owns the session.
func (m *Meter) Fenced(n int) { m.fenced.Add(float64(n)) }

// Quarantined counts messages that a failover made uncertain.
func (m *Meter) Quarantined(n int) { m.quarantined.Add(float64(n)) }

// Refused counts a call that was refused because there were too many calls.
func (m *Meter) Refused(reason string) { m.refused.WithLabelValues(reason).Inc() }

// Waited records how long a call waited at the gate.
func (m *Meter) Waited(d time.Duration) { m.waited.Observe(max(0, d.Seconds())) }

// Closed counts connections that were closed to make room for others.
func (m *Meter) Closed(n int) { m.closed.Add(float64(n)) }

// WatchAdmission registers figures about how many calls are worked on, how many wait, and how much memory they use.
func (m *Meter) WatchAdmission(load func() (atWork, waiting int), taken func() int64) {
	m.gauge("puntuale_calls", "Calls that are worked on.", func() float64 { atWork, _ := load(); return float64(atWork) })
	m.gauge("puntuale_calls_waiting", "Calls that wait for their turn.", func() float64 { _, waiting := load(); return float64(waiting) })
	m.gauge("puntuale_body_bytes", "Memory kept for bodies and answers.", func() float64 { return float64(taken()) })
}

// WatchConnections registers the number of connections.
func (m *Meter) WatchConnections(count func() int) {
	m.gauge("puntuale_connections", "Open connections, idle ones too.", func() float64 { return float64(count()) })
}

// WatchBackup registers the time of the last backup.
func (m *Meter) WatchBackup(last func(context.Context) (time.Time, error)) {
	m.gauge("puntuale_last_backup_timestamp_seconds", "Moment of the last checked backup, in seconds since 1970; 0: none, NaN: the store does not answer.", func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		at, err := last(ctx)
		switch {
		case err != nil:
			return math.NaN()
		case at.IsZero():
			return 0
		}
		return float64(at.UnixMilli()) / 1000
	})
}

func (m *Meter) gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// Dispatch is the meter for the dispatcher. The store itself measures the transactions that the dispatcher would
// measure, too. Therefore, Dispatch does not count them a second time.
type Dispatch struct{ *Meter }

// Batch does nothing, because the store calls [Meter.Batch] for the same transaction.
func (Dispatch) Batch(string, int, time.Duration) {}

// Request counts an answered request. The route is a pattern and never a path, because a path contains identifiers. A
// caller could also invent any number of paths.
func (m *Meter) Request(route string, status int, took time.Duration) {
	if route == "" {
		route = "(none)"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.requestTime.WithLabelValues(route).Observe(took.Seconds())
}

// Handler returns the handler of GET /metrics.
func (m *Meter) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}
