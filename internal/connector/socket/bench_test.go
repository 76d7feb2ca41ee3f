//go:build !nosocket

package socket_test

import (
	"testing"

	"puntuale/internal/connector/socket/whatsapptest"
)

// BenchmarkSend is what one number sends to one phone, without latency: encryption, its store, the loopback's half.
func BenchmarkSend(b *testing.B) {
	w := newWorld(b)
	w.net.FewKeys()
	anna := w.net.Phone(annaNumber)
	w.link()
	w.mustSend(w.text("+"+annaNumber, "prima"))
	anna.Await(b, whatsapptest.Text("prima"))
	for b.Loop() {
		w.mustSend(w.text("+"+annaNumber, "ciao"))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
