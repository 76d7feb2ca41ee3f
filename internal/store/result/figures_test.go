//go:build figures

package result_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/result"
	"puntuale/internal/store/storetest"
)

var drivers = map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres}

// TestReportFigures measures reports of a year of a client with 10,000,000 messages: 20 sequences of 5 steps through 3
// sessions, 200 campaigns, and 200,000 bookings.
func TestReportFigures(t *testing.T) {
	for name, driver := range drivers {
		t.Run(name, func(t *testing.T) {
			w := storetest.NewWorld(t, driver(t))
			c := w.Client(puntuale.AccountFull)
			year(t, w, c)
			for _, by := range []puntuale.ResultGroup{puntuale.ResultBySequence, puntuale.ResultByCampaign, puntuale.ResultByTemplate, puntuale.ResultBySession, puntuale.ResultByDay, puntuale.ResultByStep} {
				f := puntuale.ResultFilter{By: by, Start: puntuale.Date{Year: 2026, Month: 1, Day: 1}, End: puntuale.Date{Year: 2026, Month: 12, Day: 31}, Hours: true}
				if by == puntuale.ResultByStep {
					f.Sequence = 3
				}
				var took []time.Duration
				var r puntuale.ResultReport
				for range 11 {
					begun := time.Now()
					var err error
					if r, err = c.Results(context.Background(), f, storetest.Begin); err != nil {
						t.Fatal(err)
					}
					took = append(took, time.Since(begun))
				}
				slices.Sort(took)
				t.Logf("%s by %s: median %v, slowest %v; %d rows, %d planned", name, by, took[5], took[10], len(r.All), r.Total.Planned)
				if by != puntuale.ResultByStep && r.Total.Planned < 9_900_000 {
					t.Errorf("only %d messages", r.Total.Planned)
				}
				if took[5] > 100*time.Millisecond {
					t.Errorf("by %s takes %v", by, took[5])
				}
			}
		})
	}
}

// year inserts the counts of a year, in the form of the counter.
func year(t *testing.T, w *storetest.World, c *storetest.Client) {
	t.Helper()
	key := int64(0)
	insert := func(sequence, step, campaign int, session puntuale.SessionID, months []int, perDay int64) {
		key++
		w.Exec("insert into result_key (client_id, id, sequence_id, step, campaign_id, rule_id, session_id, template, told) values ($1, $2, $3, $4, $5, 0, $6, $7, 3)", c.ID, key, sequence, step, campaign, session, fmt.Sprint("modello ", step))
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
				insert(sequence, step, 0, c.Session+puntuale.SessionID(session), all, 80)
			}
		}
	}
	for campaign := 1; campaign <= 200; campaign++ {
		insert(0, 0, campaign, c.Session, []int{1 + campaign%12}, 3000)
	}
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	series := "with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)"
	if w.DB.Postgres {
		series = "with n(i) as (select generate_series(1, 200000)::bigint)"
	}
	w.Exec(`insert into booking (client_id, id, reference, sequence_id, phone, fields, date_at, status, revision, created_at, changed_at)
 ` + series + `
 select ` + fmt.Sprint(int64(c.ID)) + `, i, cast(i as text), 1 + i % 20, '', '{}', ` + fmt.Sprint(first) + ` + i * 157000000, i % 5, 1, 0, 0 from n`)
	w.Exec("update counter set next = 1000 where noun = 'result'")
	w.Exec(result.CountBookings)
	for more := true; more; {
		var err error
		if more, err = w.CountResults(context.Background(), 5000); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNotingFigures measures how much slower outcomes are recorded because they are noted, and how fast the counter is.
func TestNotingFigures(t *testing.T) {
	for name, driver := range drivers {
		t.Run(name, func(t *testing.T) {
			w := storetest.NewWorld(t, driver(t))
			c := w.Client(puntuale.AccountFull)
			node := w.MustJoin()
			took := map[bool]time.Duration{}
			const rounds, batches, size = 6, 20, 500
			for round := range rounds {
				for _, noting := range []bool{round%2 == 0, round%2 != 0} {
					result.SetNoting(noting)
					var ids []puntuale.MessageID
					for len(ids) < batches*size {
						ids = append(ids, c.MustStart(fmt.Sprintf("+39333%07d", len(ids)), storetest.Begin, 5)...)
					}
					var outcomes []puntuale.Result
					for part := range slices.Chunk(ids, size) {
						items := c.Items("", 0, part...)
						token, _ := w.MustClaim(node, storetest.Begin.Add(time.Minute), items...)
						for _, item := range items {
							outcomes = append(outcomes, puntuale.Result{MessageRef: item.MessageRef, Token: token, Outcome: puntuale.Outcome{Verdict: puntuale.Sent}})
						}
					}
					begun := time.Now()
					for part := range slices.Chunk(outcomes, size) {
						if _, err := w.Record(context.Background(), storetest.Begin.Add(time.Minute), part); err != nil {
							t.Fatal(err)
						}
					}
					took[noting] += time.Since(begun)
				}
			}
			result.SetNoting(true)
			n := float64(rounds * batches * size)
			speed := took[false].Seconds() / took[true].Seconds()
			t.Logf("%s: an outcome takes %.2f µs with noting, %.2f without: %.3f of the speed", name, took[true].Seconds()/n*1e6, took[false].Seconds()/n*1e6, speed)
			if speed < 0.95 {
				t.Errorf("recording has %.3f of its speed without noting", speed)
			}
			begun, rows := time.Now(), w.Int("select count(*) from result_change")
			for more := true; more; {
				var err error
				limit, _ := w.ResultsBound()
				if more, err = w.CountResults(context.Background(), limit); err != nil {
					t.Fatal(err)
				}
			}
			counted := w.Int("select count(*) from result_message")
			t.Logf("%s: counting %d messages, noted in %d rows, took %v: %.1f µs each", name, counted, rows, time.Since(begun), time.Since(begun).Seconds()/float64(counted)*1e6)
		})
	}
}
