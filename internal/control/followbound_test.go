package control_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/control/webhook"
	"puntuale/internal/store/storetest"
)

// TestFollowersAreBounded: at most forty callers may follow one client's messages. Another caller is refused until one
// of the forty stops.
func TestFollowersAreBounded(t *testing.T) {
	t.Parallel()
	client := newLimited(t, storetest.SQLite(t)).client
	var open []*control.Following
	defer func() {
		for _, f := range open {
			f.Stop()
		}
	}()
	follow := func() error {
		f, err := client.Follow("")
		if err == nil {
			open = append(open, f)
		}
		return err
	}
	for range 40 {
		if err := follow(); err != nil {
			t.Fatalf("after %d: %v", len(open), err)
		}
	}
	if err := follow(); puntuale.CodeOf(err) != puntuale.CodeRateLimited {
		t.Errorf("one more: %v", err)
	}
	open[0].Stop()
	open = open[1:]
	if err := follow(); err != nil {
		t.Errorf("after one ended: %v", err)
	}
}

// TestPartnersShareWhatWaits: the clients of one partner cannot take all open pages and all waiting calls. Another
// partner's client still gets some.
func TestPartnersShareWhatWaits(t *testing.T) {
	t.Parallel()
	w := newLimited(t, storetest.SQLite(t))
	clientOf := func(id puntuale.ClientID, partner puntuale.PartnerID) *control.Client {
		return w.control.ClientFor(puntuale.Client{ID: id, Partner: partner, Zone: "Europe/Rome"}, puntuale.Actor{})
	}
	for name, take := range map[string]func(c *control.Client) (leave func(), err error){
		"pages": func(c *control.Client) (leave func(), err error) {
			f, err := c.Follow("")
			if err != nil {
				return nil, err
			}
			return f.Stop, nil
		},
		"waits": (*control.Client).Wait,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			takes := func(c *control.Client) (n int) {
				for {
					leave, err := take(c)
					if puntuale.CodeOf(err) == puntuale.CodeRateLimited {
						return n
					}
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(leave)
					n++
				}
			}
			all := 0
			for i := range 60 {
				n := takes(clientOf(puntuale.ClientID(1000+i), 7))
				if n > 40 {
					t.Fatalf("one client has %d", n)
				}
				all += n
			}
			if most := map[string]int{"pages": 500, "waits": 1024}[name]; all != most {
				t.Errorf("one partner has %d, want %d", all, most)
			}
			if n := takes(clientOf(2000, 8)); n != 40 {
				t.Errorf("another partner's client has %d, want 40", n)
			}
		})
	}
}

// panickingReads panics at every read that is repeated for callers that wait.
type panickingReads struct{ puntuale.TenantStore }

func (s panickingReads) Tenant(id puntuale.ClientID) puntuale.Tenant {
	return panickingTenant{s.TenantStore.Tenant(id)}
}

func (s panickingReads) Uncounted(id puntuale.ClientID) puntuale.Tenant { return s.Tenant(id) }

type panickingTenant struct{ puntuale.Tenant }

func (panickingTenant) Version(context.Context) (string, error)  { panic("a bad row") }
func (panickingTenant) LastEvent(context.Context) (int64, error) { panic("a bad row") }
func (panickingTenant) Sessions(context.Context, puntuale.Page) ([]puntuale.Session, string, error) {
	panic("a bad row")
}

// TestPanicsEndWaits: if the read for callers that wait panics, they get an answer at once, and the log says so. It is not
// their own time that ends the wait.
func TestPanicsEndWaits(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	w := newLimited(t, db)
	store := panickingReads{db.Open(t)}
	id, err := puntuale.ParseID[puntuale.ClientID](w.id)
	must(t, err)
	account := puntuale.Client{ID: id, Partner: 1, Zone: "Europe/Rome"}
	for name, wait := range map[string]func(c *control.Client, d *webhook.Webhooks) error{
		"messages": func(c *control.Client, _ *webhook.Webhooks) error {
			f, err := c.Follow("")
			must(t, err)
			defer f.Stop()
			_, err = f.Next(t.Context())
			return err
		},
		"a link": func(c *control.Client, _ *webhook.Webhooks) error {
			_, err := c.AwaitSession(t.Context(), w.session, func(control.Session) bool { return true })
			return err
		},
		"events": func(c *control.Client, d *webhook.Webhooks) error {
			f, err := d.Feed(c, webhook.FeedQuery{Wait: "30"})
			must(t, err)
			end, err := f.Begin()
			must(t, err)
			defer end()
			if f.Pause(t.Context()) {
				t.Error("there is an event")
			}
			return &puntuale.PanicError{} // the reader answers that there are no events
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, now := &logBuffer{}, clock.NewFake(storetest.Begin)
			logger := slog.New(slog.NewTextHandler(log, nil))
			c := control.New(control.Config{Tenants: store, Clock: now, Logger: logger}).ClientFor(account, puntuale.Actor{})
			d := webhook.New(webhook.Config{Tenants: store, Clock: now, Logger: logger})
			ended := make(chan error, 1)
			go func() { ended <- wait(c, d) }()
			ctx, end := context.WithCancel(t.Context())
			go func() {
				for now.Waiting(ctx, map[bool]int{true: 2, false: 1}[name == "events"]) == nil { // the reader, and in "events" also its caller
					now.Advance(500 * time.Millisecond)
				}
			}()
			err := <-ended
			end()
			if !puntuale.Panicked(err) || !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "a bad row") {
				t.Errorf("the caller got %v, and the log is %q", err, log.String())
			}
		})
	}
}

type logBuffer struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines.Write(line)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines.String()
}
