package session_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"puntuale"
	"puntuale/internal/session"
)

// tested is a network that also has the method Test.
type tested struct {
	*network
	test func(context.Context) error
}

func (n *tested) Test(ctx context.Context, _ puntuale.SessionID) error {
	n.note("test")
	return n.test(ctx)
}

// TestTestCommand checks that a test is answered after its result is stored. If the connector has no method Test, the
// answer must be an error that says so.
func TestTestCommand(t *testing.T) {
	t.Parallel()
	start := func(w *world, test func(*node) func(context.Context) error) *node {
		net := &tested{}
		n := w.newNode(func(c *session.Config) {
			linker := c.Linker
			c.Linker = func(s puntuale.Session) puntuale.Linker {
				if net.test == nil {
					return linker(s)
				}
				return net
			}
		})
		net.network = n.net
		if test != nil {
			net.test = test(n)
		}
		n.owns(0)
		return n
	}
	databases(t, func(t *testing.T, w *world) {
		n := start(w, func(n *node) func(context.Context) error {
			return func(context.Context) error {
				n.tells(puntuale.LinkUnlinked, "", "Token di accesso scaduto")
				return nil
			}
		})
		for range 2 { // the second test has the same result
			if err := w.answer(w.give(n, puntuale.CommandTest, nil)); err != nil {
				t.Fatal(err)
			}
			if link := w.session().Link; link.State != puntuale.LinkUnlinked || link.Detail.String() != "Token di accesso scaduto" {
				t.Errorf("stored: %+v", link)
			}
		}
	})
	databases(t, func(t *testing.T, w *world) {
		n := start(w, func(*node) func(context.Context) error {
			return func(context.Context) error { return errors.New("the store is away") }
		})
		wantCode(t, w.answer(w.give(n, puntuale.CommandTest, nil)), puntuale.CodeInternal)
	})
	databases(t, func(t *testing.T, w *world) {
		wantCode(t, w.answer(w.give(start(w, nil), puntuale.CommandTest, nil)), puntuale.CodeConflict)
	})
}

// looking is a network that also has the method Look.
type looking struct{ *network }

func (n *looking) Look(puntuale.SessionID) { n.note("look") }

// TestLookCommand checks that a connector learns of a report that another node got. A connector without the method Look
// ignores it.
func TestLookCommand(t *testing.T) {
	t.Parallel()
	for _, can := range []bool{true, false} {
		databases(t, func(t *testing.T, w *world) {
			net := &looking{}
			n := w.newNode(func(c *session.Config) {
				linker := c.Linker
				c.Linker = func(s puntuale.Session) puntuale.Linker {
					if can {
						return net
					}
					return linker(s)
				}
			})
			net.network = n.net
			n.owns(0)
			if err := w.answer(w.give(n, puntuale.CommandLook, nil)); err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(n.net.called(), "look"); got != can {
				t.Errorf("looked: %v, want %v", got, can)
			}
		})
	}
}
