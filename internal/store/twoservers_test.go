package store_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/control/link"
	"puntuale/internal/control/statement"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// TestTwoServers lets two servers count results, close a month, write clicks and store what the network bills, all at the
// same moment, month after month. Then results equal a count from scratch, each month was closed once and has each message
// once, and each click is counted once. On SQLite both work with one store, as two tasks of one server do.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	months := 4
	if os.Getenv("PUNTUALE_LONG") != "" {
		months = 120
	}
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			d := driver(t)
			d.Clock.Set(longAgo)
			d.Config.Public = linkSite
			p := newServerPair(t, newResultHistory(t, storetest.NewWorld(t, d), seed))
			for range months {
				p.play()
				p.closeMonth()
			}
			if n := d.Meter.Deadlocks.Load(); n != 0 {
				t.Errorf("%d deadlocks", n)
			}
		})
	}
}

// serverPair is two servers of one database, beside a history.
type serverPair struct {
	*resultHistory
	stores     [2]*store.Store // of PostgreSQL
	clocks     [2]*clock.Fake  // the clocks of servers always differ a little
	links      [2]*link.Links
	statements [2]*statement.Statements
	month      puntuale.Month
	closed     map[puntuale.ClientID]puntuale.Statement // of the month before
	parts      map[puntuale.ClientID][]puntuale.MessageID
}

func newServerPair(t *testing.T, h *resultHistory) *serverPair {
	h.unbroken = true
	h.Exec("update session set sandbox = 0") // statements do not have the messages of sandboxes
	p := &serverPair{resultHistory: h, closed: map[puntuale.ClientID]puntuale.Statement{}, parts: map[puntuale.ClientID][]puntuale.MessageID{}}
	for i := range p.clocks {
		p.clocks[i] = clock.NewFake(h.now())
		if h.DB.Postgres {
			p.stores[i] = h.DB.Open(t)
		}
	}
	return p
}

// store returns the store of a server.
func (p *serverPair) store(i int) *store.Store {
	if p.stores[i] == nil {
		return p.Store
	}
	return p.stores[i]
}

// at sets the clocks of both servers.
func (p *serverPair) at(now time.Time) {
	p.DB.Clock.Set(now)
	for i := range p.clocks {
		p.clocks[i].Set(now.Add(time.Duration(7*i) * time.Millisecond))
		p.links[i] = link.New(p.store(i).Links, p.clocks[i])
		p.statements[i] = statement.New(statement.Config{Tenants: p.store(i), Maintenance: p.store(i), Budgets: p.store(i), Clock: p.clocks[i]})
	}
}

// play plays a part of the history. On PostgreSQL both servers count meanwhile.
func (p *serverPair) play() {
	p.month = puntuale.MonthOf(p.now())
	ctx, stop := context.WithCancel(context.Background())
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		if p.DB.Postgres {
			storetest.Together(2, func(i int) {
				for limit := 1; ctx.Err() == nil; limit = limit%20 + 1 {
					if _, err := p.store(i).CountResults(ctx, limit); err != nil && ctx.Err() == nil {
						p.t.Error(err)
						return
					}
				}
			})
		}
	}()
	p.resultHistory.play(60)
	stop()
	<-counted
}

// send sends messages with two links each, and returns their codes. None is to a person of the history, who may refuse it.
func (p *serverPair) send() (sent []puntuale.MessageRef, codes [][]string) {
	ctx, node := context.Background(), p.MustJoin()
	for _, id := range p.clients {
		var items []puntuale.ClaimItem
		for i := range 25 {
			phone := fmt.Sprintf("+39334000%04d", i)
			run := p.own[id].Run(phone, p.now(), 1)
			run.Messages[0].Content.Text = "Ecco https://negozio.example/x, oppure https://negozio.example/y"
			r, err := p.Tenant(id).Start(ctx, run)
			p.ok(err)
			items = append(items, puntuale.ClaimItem{MessageRef: puntuale.MessageRef{Client: id, ID: r.IDs[0]}, Phone: phone, Mark: mark(id, phone)})
			step := puntuale.StepRef{RunRef: puntuale.RunRef{Client: id, ID: puntuale.RunID(r.IDs[0])}}
			found, err := p.Contents(ctx, []puntuale.StepRef{step})
			p.ok(err)
			sent, codes = append(sent, items[i].MessageRef), append(codes, codesIn(found[step].Content.Text))
		}
		token, granted := p.MustClaim(node, p.now(), items...)
		for i, item := range items {
			if granted[i] != puntuale.ClaimGranted || !p.MustRecord(p.now(), item, token, puntuale.Outcome{Verdict: puntuale.Sent}) {
				p.t.Fatalf("message %d: %v", item.ID, granted[i])
			}
		}
	}
	return sent, codes
}

// bill stores what the network bills for messages, as a server that the network calls does.
func (p *serverPair) bill(i int, sent []puntuale.MessageRef) {
	all := make([]puntuale.DeliveryReceipt, 0, len(sent))
	for _, m := range sent {
		charge := puntuale.Charge{MessageKind: puntuale.MessageKind{Country: "IT", Category: "utility"}, Billable: true}
		all = append(all, puntuale.DeliveryReceipt{MessageRef: m, Session: p.own[m.Client].Session, Token: 1, Kind: puntuale.ReceiptDelivered, At: p.clocks[i].Now(), Charge: charge})
	}
	if _, err := p.store(i).KeepReceipts(context.Background(), p.clocks[i].Now(), all); err != nil {
		p.t.Error(err)
	}
}

// closeMonth lets both servers do everything at the same moment, a few days after the month's end.
func (p *serverPair) closeMonth() {
	sent, codes := p.send()
	p.at(p.month.Add(1).Begin(time.UTC).Add(statement.Grace + 24*time.Hour))
	ctx := context.Background()
	const clicks = "select coalesce(sum(clicks), 0) from link"
	before, people := p.Int(clicks), "Mozilla/5.0 (iPhone)"
	for i := range p.links {
		for n, code := range codes { // both links of a message, and each of them at both servers
			for _, c := range []string{code[0], code[1], code[(n+i)%2]} {
				if _, err := p.links[i].Follow(ctx, c, people, true); err != nil {
					p.t.Fatal(err)
				}
			}
		}
	}
	storetest.Together(8, func(task int) {
		i := task % 2
		switch task / 2 {
		case 0:
			for more := true; more; {
				var err error
				if more, err = p.store(i).CountResults(ctx, 5); err != nil {
					p.t.Error(err)
					return
				}
			}
		case 1:
			if err := p.statements[i].Close(ctx); err != nil {
				p.t.Error(err)
			}
		case 2:
			if err := p.links[i].Flush(ctx); err != nil {
				p.t.Error(err)
			}
		case 3:
			for part := range slices.Chunk(sent[:len(sent)/2], 5) { // both are told of the same messages
				p.bill(i, part)
			}
		}
	})
	if n := p.Int(clicks) - before; n != int64(6*len(codes)) {
		p.t.Errorf("%v: %d clicks are counted, %d were made", p.month, n, 6*len(codes))
	}
	for _, m := range sent {
		if n := p.Int("select count(*) from event where client_id = $1 and message_id = $2 and kind = 'clicked'", m.Client, m.ID); n != 1 {
			p.t.Errorf("%v: message %d was clicked for the first time %d times", p.month, m.ID, n)
		}
	}
	for _, client := range p.clients {
		p.checkStatement(client)
	}
	p.at(p.now().Add(time.Hour))
	storetest.Together(2, func(i int) {
		if err := p.statements[i].Close(ctx); err != nil {
			p.t.Error(err)
		}
	})
	for _, client := range p.clients {
		if s, _ := p.statementOf(client, p.month); !reflect.DeepEqual(s, p.closed[client]) {
			p.t.Errorf("%v of client %d was %+v, and is %+v", p.month, client, p.closed[client], s)
		}
	}
	p.compare(fmt.Sprintf("after %v", p.month))
}

// statementOf returns a closed month, and the messages that the count of it stored.
func (p *serverPair) statementOf(client puntuale.ClientID, month puntuale.Month) (s puntuale.Statement, counted []puntuale.MessageID) {
	s, found, err := p.Tenant(client).Statement(context.Background(), month)
	p.ok(err)
	if !found {
		p.t.Fatalf("%v of client %d is not closed", month, client)
	}
	rows, err := p.DB.SQL.Query(fmt.Sprintf(`select counted_to, messages from statement_part where client_id = %d and month = %d`, client, month))
	p.ok(err)
	defer rows.Close()
	for rows.Next() {
		var to int64
		var packed []byte
		p.ok(rows.Scan(&to, &packed))
		if to != s.CountedTo.UnixMicro() {
			p.t.Errorf("%v of client %d was counted to %v, and to %v, too", month, client, s.CountedTo, time.UnixMicro(to).UTC())
		}
		for last := puntuale.MessageID(0); len(packed) > 0; {
			d, n := binary.Uvarint(packed)
			last, packed = last+puntuale.MessageID(d), packed[n:]
			counted = append(counted, last)
		}
	}
	p.ok(rows.Err())
	slices.Sort(counted)
	return s, counted
}

// checkStatement compares the month that was closed now with the stored messages.
func (p *serverPair) checkStatement(client puntuale.ClientID) {
	s, counted := p.statementOf(client, p.month)
	zone, err := time.LoadLocation(s.Zone)
	p.ok(err)
	begin := zone
	if was, found := p.closed[client]; found {
		begin, err = time.LoadLocation(was.Zone)
		p.ok(err)
	}
	rows, err := p.DB.SQL.Query(fmt.Sprintf(`select id from message where client_id = %d and outcome = 1 and done_at >= %d and done_at < %d order by id`,
		client, p.month.Begin(begin).UnixMicro(), p.month.Add(1).Begin(zone).UnixMicro()))
	p.ok(err)
	defer rows.Close()
	var want []puntuale.MessageID
	for rows.Next() {
		var id puntuale.MessageID
		p.ok(rows.Scan(&id))
		want = append(want, id)
	}
	p.ok(rows.Err())
	if !slices.Equal(counted, want) || len(want) < 25 {
		p.t.Errorf("%v of client %d counted %v, want %v", p.month, client, counted, want)
	}
	own, corrections := 0, 0
	for _, line := range s.Lines {
		if line.Month == 0 {
			own += line.Messages
		} else {
			corrections += line.Messages
		}
	}
	back := 0 // messages of the month before that failed after it was closed
	if ids := p.parts[client]; len(ids) > 0 {
		back = int(p.Int(fmt.Sprintf(`select count(*) from message where client_id = %d and done_at >= %d and id in (%s)`,
			client, p.closed[client].CountedTo.UnixMicro(), strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ids)), ","), "[]"))))
	}
	if own != len(want) || corrections != -back {
		p.t.Errorf("%v of client %d has lines of %d messages and corrections of %d: %+v; want %d and %d", p.month, client, own, corrections, s.Lines, len(want), -back)
	}
	p.closed[client], p.parts[client] = s, counted
}

// TestHungClose lets a server hang while it closes a month. Until its time is over, no other server closes the month.
// Then another one does, and what the first server stores when it goes on changes nothing.
func TestHungClose(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			p := newServerPair(t, newResultHistory(t, storetest.NewWorld(t, d), 1))
			p.month = puntuale.MonthOf(storetest.Begin)
			p.at(p.month.Add(1).Begin(time.UTC).Add(statement.Grace + 24*time.Hour))
			ctx, hung, until := context.Background(), p.Tenant(p.clients[0]), p.now().Add(30*time.Minute)
			claimed, err := hung.ClaimStatement(ctx, p.month, p.now(), until)
			if err != nil || !claimed {
				t.Fatal(claimed, err)
			}
			begun := puntuale.Statement{Client: p.clients[0], Month: p.month, Zone: "Europe/Rome", Calls: 999, Frozen: p.now(), CountedTo: p.now()}
			p.at(p.now().Add(20 * time.Minute))
			p.ok(p.statements[1].Close(ctx))
			if _, found, err := hung.Statement(ctx, p.month); err != nil || found {
				t.Fatalf("closed %v by two servers, %v", found, err)
			}
			p.at(until)
			p.ok(p.statements[1].Close(ctx))
			closed, _ := p.statementOf(p.clients[0], p.month)
			if frozen, err := hung.FreezeStatement(ctx, begun, until); err != nil || frozen {
				t.Errorf("closed again: %v, %v", frozen, err)
			}
			if again, _ := p.statementOf(p.clients[0], p.month); !reflect.DeepEqual(again, closed) || again.Calls != 0 {
				t.Errorf("%+v became %+v", closed, again)
			}
		})
	}
}
