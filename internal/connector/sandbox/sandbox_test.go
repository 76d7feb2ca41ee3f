package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/connector/connectortest"
	"puntuale/internal/connector/sandbox"
)

// ledger is a ledger in memory. The tests of package store test the real ledger.
type ledger struct {
	mu    sync.Mutex
	rows  []puntuale.SandboxMessage
	fails error
}

func (l *ledger) Receive(_ context.Context, m puntuale.SandboxMessage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails != nil {
		return l.fails
	}
	for i := range l.rows {
		if l.rows[i].ConnectorID == m.ConnectorID && l.rows[i].Client == m.Client {
			l.rows[i].Copies++
			return nil
		}
	}
	m.Copies = 1
	l.rows = append(l.rows, m)
	return nil
}

func (l *ledger) Received(_ context.Context, client puntuale.ClientID, id string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.rows {
		if m.Client == client && m.ConnectorID == id {
			return true, nil
		}
	}
	return false, l.fails
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.rows)
}

func TestConnector(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, func(*testing.T) connectortest.Network {
		l := &ledger{}
		return connectortest.Network{
			Connector: sandbox.New(l, clock.System(), 0),
			Client:    1, Session: 1,
			To:       func(n int) string { return fmt.Sprintf("+3934700010%02d", n) },
			Refused:  "+393470009901",
			Contents: connectortest.Carries{Text: true, Media: true, Location: true},
			Shown: func(*testing.T) (shown []connectortest.Shown) {
				for _, m := range l.rows {
					shown = append(shown, connectortest.Shown{To: m.Phone, Content: m.Content})
				}
				return shown
			},
		}
	})
}

func envelope(to string, attempt int) puntuale.Prepared {
	return puntuale.Prepared{Envelope: puntuale.Envelope{
		Client: 7, Session: 3, Message: 42, ConnectorID: puntuale.ConnectorID(42, 0), Attempt: attempt, To: to,
		Content: puntuale.Content{Text: "ciao"},
	}}
}

// TestMagicEndings checks each special ending of phone numbers: whether the message arrives, what the network answers,
// and when the answer comes.
func TestMagicEndings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		to      string
		attempt int
		arrived int
		kind    puntuale.SendErrorKind // 0: the error proves nothing
		err     bool
		took    time.Duration
	}{
		{"ordinary", "+393470001000", 1, 1, 0, false, 0},
		{"9901 refused for good", "+393470009901", 1, 0, puntuale.Final, true, 0},
		{"9901 whatever the attempt", "+393470009901", 2, 0, puntuale.Final, true, 0},
		{"9902 refused once", "+393470009902", 1, 0, puntuale.Transient, true, 0},
		{"9902 then accepted", "+393470009902", 2, 1, 0, false, 0},
		{"9903 accepted later", "+393470009903", 1, 1, 0, false, 2 * time.Second},
		{"9904 the answer is lost", "+393470009904", 1, 1, 0, true, 2 * time.Second},
		{"9904 each time", "+393470009904", 4, 1, 0, true, 2 * time.Second},
		{"a group has no magic", "1203630249901@g.us", 1, 1, 0, false, 0},
		{"a lid has no magic", "1203630249904@lid", 1, 1, 0, false, 0},
		{"an invite code has no magic", "ABCDEFGHIJKLMNOPQR9901", 1, 1, 0, false, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &ledger{}
				c := sandbox.New(l, clock.System(), 0)
				began := time.Now()
				arrived := make(chan int, 1)
				go func() {
					synctest.Wait()
					arrived <- l.len()
				}()
				_, err := c.Send(t.Context(), envelope(test.to, test.attempt))
				if got := <-arrived; got != test.arrived {
					t.Errorf("%d messages arrived at once, want %d", got, test.arrived)
				}
				if (err != nil) != test.err {
					t.Errorf("error %v, want one: %v", err, test.err)
				}
				var kind puntuale.SendErrorKind
				if e := puntuale.AsSendError(err); e != nil {
					kind = e.Kind
				}
				if kind != test.kind {
					t.Errorf("evidence %d, want %d", kind, test.kind)
				}
				if took := time.Since(began); took != test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
			})
		})
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		c := sandbox.New(l, clock.System(), 50*time.Millisecond)
		began := time.Now()
		if _, err := c.Send(t.Context(), envelope("+393470001000", 1)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 50*time.Millisecond {
			t.Errorf("took %v, want 50ms", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := c.Send(ctx, envelope("+393470001001", 1))
		if e := puntuale.AsSendError(err); e == nil || e.Kind != puntuale.Transient || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cut on its way: %v, want transient evidence", err)
		}
		if l.len() != 1 {
			t.Errorf("the ledger has %d messages, want 1", l.len())
		}
	})
}

// TestLedgerFails: if the ledger does not answer, nobody knows whether the message arrived.
func TestLedgerFails(t *testing.T) {
	t.Parallel()
	l := &ledger{fails: puntuale.Unavailable(errors.New("away"))}
	_, err := sandbox.New(l, clock.System(), 0).Send(t.Context(), envelope("+393470001000", 1))
	if err == nil || puntuale.AsSendError(err) != nil {
		t.Errorf("error %v, want one that is no evidence", err)
	}
}

// TestMedia: with a source, Prepare fetches the message's media from the source and returns the source's refusal.
// Without a source, or without media, Prepare fetches nothing.
func TestMedia(t *testing.T) {
	t.Parallel()
	refusal := &puntuale.SendError{Kind: puntuale.Final, Reason: puntuale.Quoted("File troppo grande")}
	s := &source{files: map[string]bool{"https://example.com/a.jpg": true}, refusal: refusal}
	plain := sandbox.New(&ledger{}, clock.System(), 0)
	c := plain.WithMedia(s)
	e := envelope("+393470001000", 1).Envelope
	e.Run = 40
	if _, err := c.Prepare(t.Context(), e); err != nil || len(s.asked) != 0 {
		t.Errorf("a text: %v, asked %v", err, s.asked)
	}
	e.Content.MediaURL = "https://example.com/a.jpg"
	if _, err := plain.Prepare(t.Context(), e); err != nil || len(s.asked) != 0 {
		t.Errorf("without a source: %v, asked %v", err, s.asked)
	}
	p, err := c.Prepare(t.Context(), e)
	if err != nil || !reflect.DeepEqual(p.Content, e.Content) {
		t.Errorf("media that are there: %+v, %v", p, err)
	}
	if want := (puntuale.MediaRequest{Client: 7, Run: 40, URL: e.Content.MediaURL}); len(s.asked) != 1 || s.asked[0] != want {
		t.Errorf("asked for %+v, want %+v", s.asked, want)
	}
	if s.open != 0 {
		t.Errorf("%d files are still open", s.open)
	}
	e.Content.MediaURL = "https://example.com/b.jpg"
	if _, err = c.Prepare(t.Context(), e); puntuale.AsSendError(err) != refusal {
		t.Errorf("media that are refused: %v", err)
	}
}

// source is a media source with the files of the test.
type source struct {
	files   map[string]bool
	refusal error
	asked   []puntuale.MediaRequest
	open    int
}

func (s *source) Fetch(_ context.Context, r puntuale.MediaRequest) (*puntuale.Media, error) {
	s.asked = append(s.asked, r)
	if !s.files[r.URL] {
		return nil, s.refusal
	}
	s.open++
	return &puntuale.Media{ReadSeekCloser: opened{strings.NewReader("jpeg"), s}, Size: 4, ContentType: "image/jpeg"}, nil
}

type opened struct {
	*strings.Reader
	source *source
}

func (o opened) Close() error {
	o.source.open--
	return nil
}
