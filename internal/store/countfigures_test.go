//go:build figures

package store_test

import (
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// countBound is the longest median time for the count of one state.
const countBound = 5 * time.Millisecond

// TestCountFigures counts the messages of a client in each state. The client has 1,000,000 messages, a quarter of them
// waiting.
func TestCountFigures(t *testing.T) {
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			w := storetest.NewWorld(t, driver(t))
			c, ctx := w.Client(puntuale.AccountFull), t.Context()
			first := int64(c.MustStart("+393330000001", storetest.Begin.Add(time.Hour), 1)[0])
			numbers := "(with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000) select i from n) as n"
			if name == "PostgreSQL" {
				numbers = "generate_series(1, 1000000) as n(i)"
			}
			begun := time.Now()
			w.Exec(`insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request, client_name, sequence_name, content)
 select r.client_id, r.id + 100000 + n.i, r.sequence_id, r.session_id, '+393409999999', r.origin, 1, '', r.zone, r.received_at, r.request, '', '', r.content
 from run r cross join `+numbers+` where r.id <= cast($1 as bigint) and r.id + r.messages > cast($1 as bigint)`, first)
			w.Exec(`insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone, state, intent, outcome, done_at)
 select r.client_id, r.id, r.session_id, r.id, 0, 1, 1000000 + r.id, 1, 0, r.origin, r.phone, case r.id % 4 when 0 then 0 when 1 then 1 when 2 then 2 else 3 end, case r.id % 4 when 0 then 0 else -1 end, case r.id % 4 when 1 then 1 when 2 then 2 else 0 end, case r.id % 4 when 0 then null else 5 end from run r where r.id > cast($1 as bigint) + 100000`, first)
			w.Exec("analyze")
			t.Logf("filled in %v", time.Since(begun).Round(time.Second))
			begun = time.Now()
			another := w.Client(puntuale.AccountFull)
			if n, all, err := another.CountMessages(ctx, puntuale.MessageFilter{State: new(puntuale.Pending)}, puntuale.MaxCounted); n != 0 || !all || err != nil {
				t.Errorf("another client: %d, %v, %v", n, all, err)
			}
			t.Logf("another client without messages: %v", time.Since(begun))
			for _, s := range []puntuale.State{puntuale.Pending, puntuale.Completed, puntuale.Failed, puntuale.Cancelled, puntuale.Rescheduled, puntuale.Blacklisted} {
				var took []time.Duration
				var n int
				for range 21 {
					begun := time.Now()
					var err error
					if n, _, err = c.CountMessages(ctx, puntuale.MessageFilter{State: &s}, puntuale.MaxCounted); err != nil {
						t.Fatal(err)
					}
					took = append(took, time.Since(begun))
				}
				slices.Sort(took)
				if took[10] > countBound {
					t.Errorf("counting %s takes %v at the median", s, took[10])
				}
				t.Logf("%-12s %6d: median %5.1f ms, most %5.1f ms", s, n, took[10].Seconds()*1000, took[20].Seconds()*1000)
			}
		})
	}
}

// TestCountOfManySessionsFigures counts the waiting messages of a client whose 20 sessions have 11,000 each.
func TestCountOfManySessionsFigures(t *testing.T) {
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			w := storetest.NewWorld(t, driver(t))
			c, ctx := w.Client(puntuale.AccountFull), t.Context()
			if _, err := w.Store.Partner(w.Partner).UpdateClient(ctx, c.ID, puntuale.ClientPatch{Quotas: map[puntuale.Quota]*int64{puntuale.QuotaSessions: new(int64(20))}}, storetest.Begin); err != nil {
				t.Fatal(err)
			}
			sessions := []puntuale.SessionID{c.Session}
			for range 19 {
				sessions = append(sessions, c.MustGateway(storetest.Unique("gateway")))
			}
			first := int64(c.MustStart("+393330000001", storetest.Begin.Add(time.Hour), 1)[0])
			numbers := "(with recursive n(i) as (select 1 union all select i + 1 from n where i < 11000) select i from n) as n"
			if name == "PostgreSQL" {
				numbers = "generate_series(1, 11000) as n(i)"
			}
			for k, session := range sessions {
				w.Exec(`insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request, client_name, sequence_name, content)
 select r.client_id, r.id + 100000 + n.i * 20 + cast($2 as bigint), r.sequence_id, cast($3 as bigint), '+393409999999', r.origin, 1, '', r.zone, r.received_at, r.request, '', '', r.content
 from run r cross join `+numbers+` where r.id <= cast($1 as bigint) and r.id + r.messages > cast($1 as bigint)`, first, k, session)
			}
			w.Exec(`insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone, state, intent, outcome)
 select r.client_id, r.id, r.session_id, r.id, 0, 1, 1000000 + r.id, 1, 0, r.origin, r.phone, 0, 0, 0 from run r where r.id > cast($1 as bigint) + 100000`, first)
			w.Exec("analyze")
			var took []time.Duration
			for range 41 {
				begun := time.Now()
				n, all, err := c.CountMessages(ctx, puntuale.MessageFilter{State: new(puntuale.Pending)}, puntuale.MaxCounted)
				if took = append(took, time.Since(begun)); n != puntuale.MaxCounted || all || err != nil {
					t.Fatalf("%d, %v, %v", n, all, err)
				}
			}
			slices.Sort(took)
			if took[20] > countBound {
				t.Errorf("counting takes %v at the median", took[20])
			}
			t.Logf("median %5.1f ms, most %5.1f ms", took[20].Seconds()*1000, took[40].Seconds()*1000)
		})
	}
}
