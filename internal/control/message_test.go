package control_test

import (
	"testing"

	"puntuale"
	"puntuale/internal/control"
)

func TestMediaName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ address, name, want string }{
		{"", "x.pdf", "x.pdf"},
		{"", "", ""},
		{"https://x/a/b.pdf?q=/c.pdf#/d", "", "b.pdf"},
		{"https://x/a/listino%202026.pdf", "", "listino 2026.pdf"},
		{"https://x/a/b.pdf", "altro.pdf", "altro.pdf"},
		{"https://x/a/", "", "a"},
		{"https://x/", "", "x"},
		{"https://x", "", "x"},
	} {
		if got := control.MediaName(puntuale.Content{MediaURL: c.address, MediaName: c.name}); got != c.want {
			t.Errorf("%s: %q, want %q", c.address, got, c.want)
		}
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "Nessun messaggio annullato", 1: "1 messaggio annullato", 2: "2 messaggi annullati", 1001: "1001 messaggi annullati"} {
		if got := control.Cancelled(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}
