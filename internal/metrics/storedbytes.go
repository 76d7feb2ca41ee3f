package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// shownClients is for how many clients the figure of stored bytes has a series.
const shownClients = 10

// WatchStoredBytes registers how many bytes the calls of clients have stored today, for the clients that stored the most.
// most calls report for at most n clients.
func (m *Meter) WatchStoredBytes(most func(n int, report func(client, bytes int64))) {
	m.registry.MustRegister(&storedBytes{
		most: most,
		desc: prometheus.NewDesc("puntuale_client_stored_bytes", "Bytes of calls that this server stored today, for the ten clients with the most.", []string{"client_id"}, nil),
	})
}

// storedBytes is a collector, because its clients change from day to day.
type storedBytes struct {
	most func(n int, report func(client, bytes int64))
	desc *prometheus.Desc
}

// Describe implements [prometheus.Collector].
func (s *storedBytes) Describe(to chan<- *prometheus.Desc) { to <- s.desc }

// Collect implements [prometheus.Collector].
func (s *storedBytes) Collect(to chan<- prometheus.Metric) {
	s.most(shownClients, func(client, bytes int64) {
		to <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, float64(bytes), strconv.FormatInt(client, 10))
	})
}
