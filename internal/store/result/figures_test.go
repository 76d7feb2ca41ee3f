//go:build figures

package result_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/result"
	"puntuale/internal/store/storetest"
)

var drivers = map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres}

// TestReportFigures measures reports of a year of a client with 10,000,000 messages: 20 sequences of 5 steps through 3
// sessions, the last step with 3 texts, 200 campaigns, 4 automations, and 200,000 bookings. Then it measures lists of
// people behind counts, for which 2,000,000 of the messages are stored.
func TestReportFigures(t *testing.T) {
	for name, driver := range drivers {
		t.Run(name, func(t *testing.T) {
			w := storetest.NewWorld(t, driver(t))
			c := w.Client(puntuale.AccountFull)
			year(t, w, c)
			partner := w.Store.Partner(w.Partner)
			for what, f := range map[string]puntuale.ResultFilter{
				"by sequence": {By: puntuale.ResultBySequence}, "by campaign": {By: puntuale.ResultByCampaign}, "by template": {By: puntuale.ResultByTemplate}, "by session": {By: puntuale.ResultBySession},
				"by rule": {By: puntuale.ResultByRule}, "by day": {By: puntuale.ResultByDay}, "by step": {By: puntuale.ResultByStep, Sequence: 3},
				"by variant": {By: puntuale.ResultByVariant, Sequence: 3, Step: new(4)}, "of a partner by client": {By: puntuale.ResultByClient}, "of a partner by day": {By: puntuale.ResultByDay},
			} {
				f.Start, f.End, f.Hours = firstDay, lastDay, true
				read := c.Results
				if strings.HasPrefix(what, "of a partner") {
					read, f.Hours = partner.Results, false
				}
				var r puntuale.ResultReport
				median := timed(t, what, func() (err error) {
					r, err = read(context.Background(), f, storetest.Begin)
					return err
				})
				t.Logf("%s: %d rows, %d planned", what, len(r.All), r.Total.Planned)
				if f.Sequence == 0 && r.Total.Planned < 9_900_000 || r.Total.Planned == 0 {
					t.Errorf("only %d messages", r.Total.Planned)
				}
				if median > 100*time.Millisecond {
					t.Errorf("%s takes %v", what, median)
				}
			}
			for what, f := range map[string]puntuale.ResultMessages{
				"who did not read": {Is: puntuale.ResultSent, Not: puntuale.ResultRead}, "a rare reason": {Reason: "connector.not_accepted"},
			} {
				f.Start, f.End = firstDay, lastDay
				list := func(limit, pages int) func() error {
					return func() error {
						page, n := puntuale.Page{Limit: limit}, 0
						for range pages {
							rows, next, err := c.ResultMessages(context.Background(), f, page)
							if n += len(rows); err != nil || next == "" {
								return err
							}
							page.Cursor = next
						}
						return nil
					}
				}
				timed(t, "the first page of the list of "+what, list(50, 1))
				timed(t, "the number of people of the list of "+what, list(puntuale.MaxCounted/10, 10)) // the page counts so
			}
		})
	}
}

var firstDay, lastDay = puntuale.Date{Year: 2026, Month: 1, Day: 1}, puntuale.Date{Year: 2026, Month: 12, Day: 31}

// timed does something 11 times, logs how long it takes, and returns the median.
func timed(t *testing.T, what string, do func() error) (median time.Duration) {
	t.Helper()
	var took []time.Duration
	for range 11 {
		begun := time.Now()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	t.Logf("%s: median %v, slowest %v", what, took[5], took[10])
	return took[5]
}

// year inserts the counts of a year, in the form of the counter, and some of the messages.
func year(t *testing.T, w *storetest.World, c *storetest.Client) {
	t.Helper()
	key := int64(0)
	insert := func(sequence, step, campaign, variant int, session puntuale.SessionID, months []int, perDay int64) {
		key++
		w.Exec("insert into result_key (client_id, id, sequence_id, step, campaign_id, rule_id, session_id, template, told, variant) values ($1, $2, $3, $4, $5, $6, $7, $8, 3, $9)", c.ID, key, sequence, step, campaign, sequence%5, session, fmt.Sprint("modello ", step), variant)
		for _, month := range months {
			last := 31
			if campaign > 0 {
				last = 2
			}
			days, hours, words := binary.AppendVarint(nil, 10), []byte{}, []byte{}
			for day := 0; day <= last; day++ { // the totals, and then the days
				times, weekdays := int64(1), []int{day % 7}
				if day == 0 {
					times, weekdays = int64(last), []int{0, 1, 2, 3, 4, 5, 6}[:min(7, last)]
				}
				days = binary.AppendVarint(days, int64(day))
				for _, part := range []int64{100, 95, 92, 70, 20, 1, 3, 1, 1, 5} {
					days = binary.AppendVarint(days, perDay*part/100*times)
				}
				for _, weekday := range weekdays {
					for hour := 7; hour < 23; hour++ {
						hours = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(hours, int64(day)), int64(weekday*24+hour)), perDay/25*times/int64(len(weekdays)))
					}
				}
				for _, word := range []string{"bAnnulla", "bConfermo", "rexpired"} {
					words = binary.AppendVarint(binary.AppendVarint(words, int64(day)), int64(len(word)))
					words = binary.AppendVarint(append(words, word...), perDay/50*times)
				}
			}
			w.Exec("insert into result_month (client_id, month, key_id, generation, counts, hours, words) values ($1, $2, $3, 1, $4, $5, $6)", c.ID, 202600+month, key, days, hours, words)
		}
	}
	all := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	for sequence := 1; sequence <= 20; sequence++ {
		for step := range 5 {
			for session := range 3 {
				variant := 0
				if step == 4 {
					variant = 1 + session
				}
				insert(sequence, step, 0, variant, c.Session+puntuale.SessionID(session), all, 80)
			}
		}
	}
	for campaign := 1; campaign <= 200; campaign++ {
		insert(0, 0, campaign, 0, c.Session, []int{1 + campaign%12}, 3000)
	}
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	series := func(most int) string {
		if w.DB.Postgres {
			return fmt.Sprintf("with n(i) as (select generate_series(1, %d)::bigint)", most)
		}
		return fmt.Sprintf("with recursive n(i) as (select 1 union all select i + 1 from n where i < %d)", most)
	}
	w.Exec(`insert into booking (client_id, id, reference, sequence_id, phone, fields, date_at, status, revision, created_at, changed_at)
 ` + series(200_000) + `
 select ` + fmt.Sprint(int64(c.ID)) + `, i, cast(i as text), 1 + i % 20, '', '{}', ` + fmt.Sprint(first) + ` + i * 157000000, i % 5, 1, 0, 0 from n`)
	w.Exec("update counter set next = 1000 where noun = 'result'")
	w.Exec(result.CountBookings)
	for more := true; more; {
		var err error
		if more, err = w.CountResults(context.Background(), 5000); err != nil {
			t.Fatal(err)
		}
	}
	// Of the messages by day, seven in ten were read, and one in 500,000 was refused. Each month has 28 days.
	w.Exec(fmt.Sprintf(`insert into result_message (client_id, message_id, key_id, day, marks, hour, words, generation)
 %s, d(i, day) as (select i, i * 336 / 2000001 from n)
 select %d, i, 1 + i %% 300, 20260101 + day / 28 * 100 + day %% 28, case when i %% 500000 = 0 then 65 when i %% 10 < 7 then 15 else 7 end, case when i %% 10 < 7 then 19 else -1 end,
 case when i %% 500000 = 0 then 'rconnector.not_accepted' else '' end, 1 from d`, series(2_000_000), c.ID))
	w.Exec("analyze")
}

// TestNotingFigures measures how much slower outcomes are recorded because they are noted, how fast the counter is, and how
// much slower outcomes are recorded while it counts.
func TestNotingFigures(t *testing.T) {
	for name, driver := range drivers {
		t.Run(name, func(t *testing.T) {
			w := storetest.NewWorld(t, driver(t))
			c := w.Client(puntuale.AccountFull)
			const rounds, batches, size = 6, 20, 500
			record := func(beside func() (stop func())) time.Duration {
				var ids []puntuale.MessageID
				for len(ids) < batches*size {
					ids = append(ids, c.MustStart(fmt.Sprintf("+39333%07d", len(ids)), storetest.Begin, 5)...)
				}
				node := w.MustJoin() // all rounds take longer than a lease
				var outcomes []puntuale.Result
				for part := range slices.Chunk(ids, size) {
					items := c.Items("", 0, part...)
					token, _ := w.MustClaim(node, storetest.Begin.Add(time.Minute), items...)
					for _, item := range items {
						outcomes = append(outcomes, puntuale.Result{MessageRef: item.MessageRef, Token: token, Outcome: puntuale.Outcome{Verdict: puntuale.Sent}})
					}
				}
				defer beside()()
				begun := time.Now()
				for part := range slices.Chunk(outcomes, size) {
					if _, err := w.Record(context.Background(), storetest.Begin.Add(time.Minute), part); err != nil {
						t.Fatal(err)
					}
				}
				return time.Since(begun)
			}
			count := func(ctx context.Context) {
				for more := true; more && ctx.Err() == nil; {
					var err error
					limit, calls := w.ResultsBound()
					begun := time.Now()
					if more, err = w.CountResults(context.Background(), limit); err != nil {
						t.Error(err)
					}
					if calls && ctx.Done() != nil { // as the server does
						time.Sleep(time.Since(begun))
					}
				}
			}
			alone := func() func() { return func() {} }
			counting := func() func() {
				ctx, stop := context.WithCancel(context.Background())
				var done sync.WaitGroup
				done.Go(func() {
					for ctx.Err() == nil {
						count(ctx)
						time.Sleep(10 * time.Millisecond) // the server rests for two seconds
					}
				})
				return func() {
					stop()
					done.Wait()
				}
			}
			const n = rounds * batches * size
			each := func(d time.Duration) float64 { return d.Seconds() / n * 1e6 }
			took := map[bool]time.Duration{}
			for round := range rounds {
				for _, noting := range []bool{round%2 == 0, round%2 != 0} {
					result.SetNoting(noting)
					took[noting] += record(alone)
				}
			}
			result.SetNoting(true)
			speed := took[false].Seconds() / took[true].Seconds()
			t.Logf("%s: an outcome takes %.2f µs with noting, %.2f without: %.3f of the speed", name, each(took[true]), each(took[false]), speed)
			if speed < 0.95 {
				t.Errorf("recording has %.3f of its speed without noting", speed)
			}
			begun, rows := time.Now(), w.Int("select count(*) from result_change")
			count(context.Background())
			counted := w.Int("select count(*) from result_message")
			t.Logf("%s: counting %d messages, noted in %d rows, took %v: %.1f µs each", name, counted, rows, time.Since(begun), time.Since(begun).Seconds()/float64(counted)*1e6)
			clear(took)
			for round := range rounds {
				for _, beside := range []bool{round%2 == 0, round%2 != 0} {
					took[beside] += record(map[bool]func() func(){false: alone, true: counting}[beside])
					count(context.Background())
				}
			}
			t.Logf("%s: an outcome takes %.2f µs while the counter counts, %.2f while it rests: %.3f of the speed", name, each(took[true]), each(took[false]), took[false].Seconds()/took[true].Seconds())
		})
	}
}
