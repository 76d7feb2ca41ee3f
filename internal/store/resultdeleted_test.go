package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestResultsOfDeletedClient: with a client go all its counts, answers, links and amounts, also those that a server stores
// that counts the client's messages at this moment. Another client keeps its own.
func TestResultsOfDeletedClient(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			d.Config.Public = linkSite
			w, ctx := storetest.NewWorld(t, d), context.Background()
			ok := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			gone, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
			node := w.MustJoin()
			for _, c := range []*storetest.Client{gone, other} {
				_, err := c.UpdateSettings(ctx, puntuale.SettingsPatch{TrackLinks: new(true)})
				ok(err)
				run := c.Run(linkPhone, storetest.Begin, 3)
				run.Messages[0].Content.Text, run.Messages[1].Content.Template = linkText, "modello"
				started, err := c.Start(ctx, run)
				ok(err)
				_, err = w.Contents(ctx, []puntuale.StepRef{{RunRef: puntuale.RunRef{Client: c.ID, ID: puntuale.RunID(started.IDs[0])}}}) // who sends it makes its links
				ok(err)
				items := c.Items(linkPhone, 0, started.IDs...)
				token, _ := w.MustClaim(node, storetest.Begin.Add(time.Minute), items...)
				for _, item := range items {
					w.MustRecord(storetest.Begin.Add(time.Minute), item, token, puntuale.Outcome{Verdict: puntuale.Sent})
				}
				_, err = c.PutBooking(ctx, c.Booking("visita"))
				ok(err)
				_, err = w.KeepInbound(ctx, storetest.Begin.Add(time.Hour), []puntuale.TakenMessage{{Names: []string{linkPhone}, Mark: "m", Keep: puntuale.KeepAllReplies,
					InboundMessage: puntuale.InboundMessage{Client: c.ID, Session: c.Session, Phone: linkPhone, At: storetest.Begin.Add(time.Hour), ID: "n", Kind: puntuale.ReplyButton, Text: "Confermo"}}})
				ok(err)
				w.Exec("insert into budget (client_id, amount, currency, zone, began_at, ends_at, spent, unpriced, generation, counted, place_at, place_id, told, held_to, let_at) values ($1, 50000000, 'EUR', 'Europe/Rome', 3, 4, 5, 6, 7, 1, 8, 9, 3, 10, 11)", c.ID)
				w.Exec("insert into budget_message (client_id, generation, message_id, amount) values ($1, 7, $2, 65800)", c.ID, started.IDs[0])
			}
			_, err := w.Recount(ctx, 0, storetest.Begin)
			ok(err)
			count := func(limit int) {
				t.Helper()
				for more := true; more; {
					var err error
					more, err = w.CountResults(ctx, limit)
					ok(err)
				}
			}
			count(100)
			tables := []string{"result_key", "result_message", "result_month", "result_answer", "result_client", "link", "budget_message"}
			rows := func(c *storetest.Client) (all []int64) {
				for _, table := range tables {
					all = append(all, w.Int("select count(*) from "+table+" where client_id = $1", c.ID))
				}
				return all
			}
			before := rows(other)
			if slices.Contains(before, 0) || !slices.Equal(rows(gone), before) {
				t.Fatalf("%v: %v and %v rows", tables, rows(gone), before)
			}
			counted := make(chan error, 1)
			_, err = w.Recount(ctx, gone.ID, storetest.Begin)
			ok(err)
			_, err = w.CountResults(ctx, 100) // the bookings are left
			if ok(err); d.Postgres {
				resume := pausedCount(t, w)
				go func() {
					_, err := w.CountResults(ctx, 100)
					counted <- err
				}()
				storetest.Until(t, "it counts", func() bool {
					return w.Int("select count(*) from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())") > 0
				})
				ok(w.Store.Partner(w.Partner).DeleteClient(ctx, gone.ID, storetest.Begin))
				resume()
			} else {
				ok(w.Store.Partner(w.Partner).DeleteClient(ctx, gone.ID, storetest.Begin))
				counted <- err
			}
			ok(<-counted)
			count(1)
			ok(w.MaintainStatements(ctx, storetest.Begin))
			if left := rows(gone); slices.Max(left) != 0 {
				t.Errorf("the deleted client has in %v %v rows", tables, left)
			}
			if after := rows(other); !slices.Equal(after, before) {
				t.Errorf("another client has in %v %v rows, and had %v", tables, after, before)
			}
		})
	}
}

// pausedCount makes PostgreSQL wait where a count stores a message, until the caller resumes it.
func pausedCount(t *testing.T, w *storetest.World) (resume func()) {
	t.Helper()
	hold, err := w.DB.SQL.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hold.Rollback() })
	w.Exec("create function paused() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock_shared(7); return new; end'")
	w.Exec("create trigger paused before insert on result_message for each row execute function paused()")
	if _, err := hold.Exec("select pg_advisory_xact_lock(7)"); err != nil {
		t.Fatal(err)
	}
	return func() { _ = hold.Rollback() } // which ends the lock
}
