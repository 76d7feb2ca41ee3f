//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/dispatch"
	"puntuale/internal/store"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/storetest"
)

// peer is a network that remembers everything that it received. It uses no database. Therefore its record is complete
// even if a failover loses rows.
type peer struct {
	recovery puntuale.Recovery
	mu       sync.Mutex
	given    map[puntuale.MessageID]map[string]int // how many times each message came, by connector id
}

func (n *peer) Capabilities() puntuale.Capabilities {
	return puntuale.Capabilities{Name: "peer", Slots: 4, SendTimeout: 5 * time.Second, Recovery: n.recovery}
}

func (n *peer) Online(puntuale.SessionID) bool { return true }

func (n *peer) Prepare(_ context.Context, e puntuale.Envelope) (puntuale.Prepared, error) {
	return puntuale.Prepared{Envelope: e}, nil
}

func (n *peer) Send(_ context.Context, p puntuale.Prepared) (puntuale.Acceptance, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.given[p.Message] == nil {
		n.given[p.Message] = map[string]int{}
	}
	n.given[p.Message][p.ConnectorID]++
	return puntuale.Acceptance{Detail: puntuale.Quoted("preso")}, nil
}

// shown returns how many copies of a message the recipient sees. A network that recognises repeats shows one copy for
// each connector id. Any other network shows one copy for each attempt.
func (n *peer) shown(id puntuale.MessageID) (copies int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.recovery == puntuale.RecoverSameID {
		return len(n.given[id])
	}
	for _, times := range n.given[id] {
		copies += times
	}
	return copies
}

func (n *peer) all() []puntuale.MessageID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.given))
}

// meter counts the messages that were quarantined.
type meter struct {
	puntuale.NoMeter
	setAside atomic.Int64
}

func (m *meter) Quarantined(n int) { m.setAside.Add(int64(n)) }

// failoverRig is a store and a dispatcher in this process. One client sends through a network that recognises repeats.
// The other client sends through a network that does not.
type failoverRig struct {
	t       *testing.T
	store   *store.Store
	meter   meter
	clients [2]*rigClient
}

// rigClient is one client and its network.
type rigClient struct {
	*peer
	client  puntuale.ClientID
	session puntuale.SessionID
	known   map[puntuale.MessageID]bool // the messages of acknowledged calls
	serial  int
}

func openFailoverRig(t *testing.T, database string) *failoverRig {
	t.Helper()
	h := &failoverRig{t: t}
	var err error
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	h.store, err = store.Open(t.Context(), engine.Config{Database: database, Meter: &h.meter, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.store.Close() })
	now := time.Now()
	key := func(s string) puntuale.Key { return puntuale.Key{Hash: sha256.Sum256([]byte(s)), Created: now} }
	partner, err := h.store.CreatePartner(t.Context(), puntuale.Partner{Name: "P", Slug: "p", Created: now},
		puntuale.Login{Email: "p@example.com", Password: "x"}, key("p"))
	if err != nil {
		t.Fatal(err)
	}
	connectors := map[puntuale.SessionID]puntuale.Connector{}
	for i, recovery := range []puntuale.Recovery{puntuale.RecoverSameID, puntuale.RecoverNone} {
		c := puntuale.NewAccount(puntuale.AccountFull, puntuale.DateOf(now))
		c.Name, c.Partner, c.Created = "C", partner, now
		created, err := h.store.Partner(partner).CreateClient(t.Context(), puntuale.NewClient{
			Client: c, Login: puntuale.Login{Email: fmt.Sprintf("c%d@example.com", i), Password: "x"}, Key: key(fmt.Sprint(i)),
			Session: puntuale.Session{Name: "S", Type: puntuale.Socket, Sandbox: true, Default: true, Created: now},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &rigClient{peer: &peer{recovery: recovery, given: map[puntuale.MessageID]map[string]int{}},
			client: created.Client, session: created.Session, known: map[puntuale.MessageID]bool{}}
		h.clients[i] = s
		connectors[created.Session] = s.peer
	}
	d := dispatch.New(dispatch.Config{
		Queue: h.store, Fleet: h.store, Logger: log, Lease: 2 * time.Second, Poll: 200 * time.Millisecond,
		Connector: func(s puntuale.Session) puntuale.Connector { return connectors[s.ID] },
	})
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			t.Logf("stop: %v", err)
		}
	})
	return h
}

// plan stores one message for each due time. It repeats the call until it is answered, as a careful caller does.
func (h *failoverRig) plan(s *rigClient, due ...time.Time) (ids []puntuale.MessageID) {
	for _, at := range due {
		s.serial++
		now := time.Now()
		phone := fmt.Sprintf("+39347%07d", s.serial)
		run := puntuale.StartRun{Day: puntuale.DateOf(now), Now: now, Run: puntuale.Run{
			Client: s.client, Session: s.session, Phone: phone, Origin: puntuale.OriginSingle, Name: "N", Zone: "Europe/Rome",
			Received: now, Request: []byte(`{}`), ClientName: "C",
			Steps: []puntuale.FrozenStep{{Content: puntuale.Content{Text: phone}}},
		}, Messages: []puntuale.PlannedMessage{{Content: puntuale.Content{Text: phone}, Due: at, DueMax: at, ValidUntil: at.Add(time.Hour)}},
			Idempotency: storetest.Keyed("s", phone, "h")}
		for h.t.Context().Err() == nil {
			started, err := storetest.Start(context.Background(), h.store.Tenant(s.client), run)
			if err == nil {
				ids = append(ids, started.IDs...)
				break
			}
			if puntuale.CodeOf(err) != puntuale.CodeUnavailable {
				h.t.Errorf("start: %v", err)
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	for _, id := range ids {
		s.known[id] = true
	}
	return ids
}

func (h *failoverRig) detail(s *rigClient, id puntuale.MessageID) (puntuale.MessageDetail, bool) {
	h.t.Helper()
	var found []puntuale.MessageDetail
	var err error
	eventually(h.t, 20*time.Second, "the store answers", func() bool {
		found, err = h.store.Tenant(s.client).Details(context.Background(), []puntuale.MessageID{id})
		return err == nil
	})
	if len(found) == 0 {
		return puntuale.MessageDetail{}, false
	}
	return found[0], true
}

// arrives waits until each message is COMPLETED and was shown once.
func (h *failoverRig) arrives(s *rigClient, what string, ids ...puntuale.MessageID) {
	h.t.Helper()
	for _, id := range ids {
		var d puntuale.MessageDetail
		deadline := time.Now().Add(30 * time.Second)
		for {
			if d, _ = h.detail(s, id); d.State == puntuale.Completed && s.shown(id) > 0 {
				break
			}
			if time.Now().After(deadline) {
				h.t.Fatalf("%s: message %d was shown %d times: %+v", what, id, s.shown(id), d.Message)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func spread(from time.Time, n int, every time.Duration) (all []time.Time) {
	for i := range n {
		all = append(all, from.Add(time.Duration(i)*every))
	}
	return all
}

// TestFailoverAsynchronous: a standby that lags behind is promoted. It does not know that the old server had sent some
// messages. If the network recognises repeats, these messages are sent again and shown once. If the network does not
// recognise repeats, the messages are not sent again.
func TestFailoverAsynchronous(t *testing.T) {
	t.Parallel()
	primary := newDBServer(t)
	standby := primary.standby()
	h := openFailoverRig(t, address(primary, standby))
	due := time.Now().Add(6 * time.Second)
	var early, lost, soon, far, forgotten [2][]puntuale.MessageID
	for i, s := range h.clients {
		early[i] = h.plan(s, spread(time.Now(), 5, 0)...)
		lost[i] = h.plan(s, spread(due, 40, 25*time.Millisecond)...)
		soon[i] = h.plan(s, spread(due.Add(20*time.Second), 5, 0)...)
		far[i] = h.plan(s, due.Add(time.Hour))
		h.arrives(s, "before the cut", early[i]...)
	}
	primary.follows(standby)
	standby.cutOff()
	if !time.Now().Before(due) {
		t.Fatal("the machine is too slow for this test's plan")
	}
	for i, s := range h.clients {
		forgotten[i] = h.plan(s, spread(time.Now(), 5, 0)...)
		h.arrives(s, "after the cut", append(forgotten[i], lost[i]...)...)
	}
	primary.stop("immediate")
	standby.promote()
	eventually(t, 30*time.Second, "what was due is set aside", func() bool { return h.meter.setAside.Load() > 0 })
	var fresh [2][]puntuale.MessageID
	for i, s := range h.clients {
		h.arrives(s, "known before the failover", early[i]...)
		fresh[i] = h.plan(s, time.Now().Add(time.Second))
		h.arrives(s, "new", fresh[i]...)
		h.arrives(s, "due after the failover", soon[i]...)
		if d, ok := h.detail(s, far[i][0]); !ok || d.Intent != 0 || d.State != puntuale.Pending || s.shown(far[i][0]) != 0 {
			t.Errorf("due in an hour: %+v", d.Message)
		}
		for _, id := range forgotten[i] {
			if d, ok := h.detail(s, id); ok {
				t.Errorf("accepted after the cut, and known: %+v", d.Message)
			}
		}
	}
	h.arrives(h.clients[0], "sent and forgotten, where the network knows repeats", lost[0]...)
	for _, id := range lost[1] {
		d, _ := h.detail(h.clients[1], id)
		if d.State != puntuale.Pending || d.Intent <= 0 || !strings.Contains(catalogue.Italian.Sentence(d.Detail), "esito incerto") {
			t.Errorf("sent and forgotten: %+v", d.Message)
		}
	}
	if n := h.meter.setAside.Load(); n != int64(len(lost[0])+len(lost[1])) {
		t.Errorf("%d messages were set aside, not %d and %d", n, len(lost[0]), len(lost[1]))
	}
	h.shownOnce()
}

// shownOnce checks that no message is shown twice.
func (h *failoverRig) shownOnce() {
	h.t.Helper()
	for _, s := range h.clients {
		for _, id := range s.all() {
			if n := s.shown(id); n != 1 {
				h.t.Errorf("message %d is shown %d times", id, n)
			}
		}
	}
}

// TestFailoverSynchronous: a standby that confirmed every commit is promoted under load. No message is lost, doubled or
// quarantined.
func TestFailoverSynchronous(t *testing.T) {
	t.Parallel()
	primary := newDBServer(t)
	standby := primary.standby()
	primary.exec("alter system set synchronous_standby_names = '*'")
	primary.exec("select pg_reload_conf()")
	h := openFailoverRig(t, address(primary, standby))
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for _, s := range h.clients {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					now := time.Now()
					h.plan(s, now, now.Add(2*time.Second))
				}
			}
		})
	}
	time.Sleep(3 * time.Second)
	primary.kill()
	standby.promote()
	went := time.Now()
	time.Sleep(3 * time.Second)
	close(stop)
	callers.Wait()
	for _, s := range h.clients {
		h.settles(s)
		t.Logf("%d messages; the last was there %v after the promotion", len(s.known), time.Since(went).Round(time.Millisecond))
	}
	if n := h.meter.setAside.Load(); n != 0 {
		t.Errorf("%d messages were set aside", n)
	}
	h.shownOnce()
}

// settles waits until every acknowledged message is COMPLETED. If the network does not recognise repeats, a message may
// also be uncertain, because the answer to its attempt may be lost. Even an uncertain message was shown once.
func (h *failoverRig) settles(s *rigClient) {
	h.t.Helper()
	unsure := 0
	for id := range s.known {
		var d puntuale.MessageDetail
		var ok bool
		eventually(h.t, 30*time.Second, fmt.Sprintf("message %d has left", id), func() bool {
			d, ok = h.detail(s, id)
			return !ok || d.State != puntuale.Pending || s.recovery == puntuale.RecoverNone && d.Intent > 0 && !d.Detail.IsZero()
		})
		switch {
		case !ok:
			h.t.Errorf("message %d was acknowledged, and is lost", id)
		case d.State == puntuale.Pending:
			unsure++
		case d.State != puntuale.Completed || s.shown(id) != 1:
			h.t.Errorf("message %d was shown %d times: %+v", id, s.shown(id), d.Message)
		}
	}
	if unsure > 8 { // at most this many messages can be in flight at one time
		h.t.Errorf("%d messages are uncertain", unsure)
	}
}
