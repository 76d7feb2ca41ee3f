//go:build !nosocket

package socket_test

import (
	"testing"
	"time"

	"puntuale/internal/connector/socket/whatsapptest"
)

// BenchmarkSend measures how fast one number sends to one phone. The cost is encryption, the store of the encryption
// states, and the loopback network. The second case has a slow network, because the library waits for an
// acknowledgement after each message.
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
