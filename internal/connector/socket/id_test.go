//go:build !nosocket

package socket

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"puntuale"
)

// An id decrypts to its message only with the key that encrypted it. It looks like an id of any web client.
func TestIDs(t *testing.T) {
	t.Parallel()
	c, other := ids{[]byte("a key of the installation")}, ids{[]byte("another one")}
	wrong := 0
	rapid.Check(t, func(t *rapid.T) {
		m := puntuale.MessageID(rapid.Int64Range(1, 1<<53-1).Draw(t, "message"))
		generation := rapid.IntRange(0, 255).Draw(t, "generation")
		id := c.connectorID(m, puntuale.ConnectorID(m, generation))
		if id != c.connectorID(m, puntuale.ConnectorID(m, generation)) || id == c.connectorID(m, puntuale.ConnectorID(m, generation+1)) {
			t.Fatal("not the same for the same, another for another generation")
		}
		if len(id) != 22 || !strings.HasPrefix(id, "3EB0") || strings.Trim(id, "0123456789ABCDEF") != "" {
			t.Fatalf("%q does not look like an id", id)
		}
		if got, ok := c.message(id); !ok || got != m {
			t.Fatalf("%q is of %d (%v), want %d", id, got, ok, m)
		}
		if _, ok := other.message(id); ok {
			wrong++
		}
	})
	if wrong > 2 { // by chance, a wrong key is accepted one time in 2,048
		t.Errorf("%d ids open under another key", wrong)
	}
	for _, id := range []string{"", "3EB0", "3AF00D", "3EB0XYZ", "3EB0" + strings.Repeat("0", 18), strings.Repeat("A", 32)} {
		if m, ok := c.message(id); ok {
			t.Errorf("%q is taken for that of message %d", id, m)
		}
	}
}
