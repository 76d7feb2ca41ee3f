//go:build !nosocket

package socket

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

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

// TestOthersIDs: a message that a person wrote on another device has a random id. It must almost never count as a message
// of this package, because such a message would not be stored.
func TestOthersIDs(t *testing.T) {
	t.Parallel()
	c, now := ids{[]byte("a key of the installation")}, time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	random, wrong := rand.NewChaCha8([32]byte{}), 0
	for range 200_000 {
		var id [idBytes]byte
		_, _ = random.Read(id[:])
		if c.made(idPrefix+strings.ToUpper(hex.EncodeToString(id[:])), now) {
			wrong++
		}
	}
	if wrong > 3 { // the zeros alone would accept about 98 of these ids
		t.Errorf("%d ids of other devices count as ours", wrong)
	}
	for _, age := range []time.Duration{0, 300 * 24 * time.Hour, -time.Hour} {
		m := puntuale.MessageID(now.Add(-age).UnixMicro() - puntuale.IDEpoch)
		if !c.made(c.connectorID(m, puntuale.ConnectorID(m, 0)), now) {
			t.Errorf("our id of a message %v ago does not count as ours", age)
		}
	}
}
