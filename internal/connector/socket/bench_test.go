//go:build !nosocket

package socket_test

import (
	"testing"
	"time"

	"puntuale/internal/connector/socket/whatsapptest"
)

// BenchmarkSend measures how fast one number sends to one phone: encryption, its store, and the loopback network. It
// also measures with a slow network: there the library waits for the network's answer after each message.
func BenchmarkSend(b *testing.B) {
	for name, latency := range map[string]time.Duration{"at once": 0, "50ms away": 50 * time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			w.net.FewKeys()
			anna := w.net.Phone(annaNumber)
			w.link()
			w.mustSend(w.text("+"+annaNumber, "prima"))
			anna.Await(b, whatsapptest.Text("prima"))
			w.net.Latency(latency)
			for b.Loop() {
				w.mustSend(w.text("+"+annaNumber, "ciao"))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			w.net.Latency(0)
		})
	}
}
