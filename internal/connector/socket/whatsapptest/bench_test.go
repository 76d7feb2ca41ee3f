//go:build !nosocket

package whatsapptest_test

import (
	"strconv"
	"testing"

	"puntuale/internal/connector/socket/whatsapptest"
)

// BenchmarkSend measures how fast one client sends to one phone through the network. Tests with this network cannot
// measure a higher speed.
func BenchmarkSend(b *testing.B) {
	net := whatsapptest.New(b)
	anna, shop := net.Phone("393330000002"), net.Phone("393330000001")
	for i := range b.N {
		if _, err := shop.Send(b.Context(), anna.Number(), strconv.Itoa(i)); err != nil {
			b.Fatal(err)
		}
	}
	anna.Await(b, whatsapptest.Text(strconv.Itoa(b.N-1)))
}

// BenchmarkPhone measures how long it takes to make a phone that is online.
func BenchmarkPhone(b *testing.B) {
	net := whatsapptest.New(b)
	for i := range b.N {
		net.Phone(strconv.Itoa(393330000000 + i))
	}
}
