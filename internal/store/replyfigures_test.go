//go:build figures

package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// figureReplies is how many replies one client has. They come from 100,000 people, and a tenth of the replies is
// unread. The ledger of consent has a tenth as many entries.
const figureReplies = 1_000_000

// TestReplyFigures reads the lists of replies, conversations and consent. On both databases, the median time for each
// list must be at most 50 ms.
func TestReplyFigures(t *testing.T) {
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			w := storetest.NewWorld(t, driver(t))
			c, ctx := w.Client(puntuale.AccountFull), t.Context()
			fillReplies(t, w, c)
			deepReplies, deepUnread, deepTalks, deepConsent := "", "", "", ""
			for range 40 {
				var err error
				if _, deepReplies, err = c.Replies(ctx, puntuale.ReplyFilter{}, puntuale.Page{Limit: 1000, Cursor: deepReplies}); err != nil {
					t.Fatal(err)
				}
				if _, deepUnread, err = c.Replies(ctx, puntuale.ReplyFilter{Unread: true}, puntuale.Page{Limit: 1000, Cursor: deepUnread}); err != nil {
					t.Fatal(err)
				}
				if _, deepTalks, err = c.Conversations(ctx, false, puntuale.Page{Limit: 1000, Cursor: deepTalks}); err != nil {
					t.Fatal(err)
				}
				if _, deepConsent, err = c.Consents(ctx, puntuale.Person{}, puntuale.Page{Limit: 1000, Cursor: deepConsent}); err != nil {
					t.Fatal(err)
				}
			}
			replies := func(f puntuale.ReplyFilter, p puntuale.Page) func(context.Context) (int, error) {
				return func(ctx context.Context) (int, error) {
					rows, _, err := c.Replies(ctx, f, p)
					return len(rows), err
				}
			}
			talks := func(unread bool, p puntuale.Page) func(context.Context) (int, error) {
				return func(ctx context.Context) (int, error) {
					rows, _, err := c.Conversations(ctx, unread, p)
					return len(rows), err
				}
			}
			consents := func(phone string, p puntuale.Page) func(context.Context) (int, error) {
				return func(ctx context.Context) (int, error) {
					rows, _, err := c.Consents(ctx, puntuale.Person{Names: []string{phone}}, p)
					return len(rows), err
				}
			}
			const phone = "+393330050000"
			for _, q := range []struct {
				what string
				ask  func(context.Context) (int, error)
			}{
				{"replies", replies(puntuale.ReplyFilter{}, puntuale.Page{})},
				{"replies, 1,000 a page", replies(puntuale.ReplyFilter{}, puntuale.Page{Limit: 1000})},
				{"replies behind 40,000", replies(puntuale.ReplyFilter{}, puntuale.Page{Cursor: deepReplies})},
				{"replies of a person", replies(puntuale.ReplyFilter{Phone: phone}, puntuale.Page{})},
				{"a conversation, both directions", replies(puntuale.ReplyFilter{Phone: phone, Own: true}, puntuale.Page{})},
				{"replies of nobody", replies(puntuale.ReplyFilter{Phone: "+393339999999"}, puntuale.Page{})},
				{"unread replies", replies(puntuale.ReplyFilter{Unread: true}, puntuale.Page{})},
				{"unread replies behind 40,000", replies(puntuale.ReplyFilter{Unread: true}, puntuale.Page{Cursor: deepUnread})},
				{"unread replies of a person", replies(puntuale.ReplyFilter{Phone: phone, Unread: true}, puntuale.Page{})},
				{"conversations", talks(false, puntuale.Page{})},
				{"conversations, 1,000 a page", talks(false, puntuale.Page{Limit: 1000})},
				{"conversations behind 40,000", talks(false, puntuale.Page{Cursor: deepTalks})},
				{"unread conversations", talks(true, puntuale.Page{})},
				{"count of unread conversations", func(ctx context.Context) (int, error) { return c.Unread(ctx, 100) }},
				{"consent", consents("", puntuale.Page{})},
				{"consent behind 40,000", consents("", puntuale.Page{Cursor: deepConsent})},
				{"consent of a person", consents(phone, puntuale.Page{})},
			} {
				took := make([]time.Duration, figureTimes)
				n := 0
				for i := range took {
					begun := time.Now()
					var err error
					if n, err = q.ask(ctx); err != nil {
						t.Fatalf("%s: %v", q.what, err)
					}
					took[i] = time.Since(begun)
				}
				slices.Sort(took)
				t.Logf("%-36s %4d rows: median %6.1f ms, most %6.1f ms", q.what, n, took[figureTimes/2].Seconds()*1000, took[figureTimes-1].Seconds()*1000)
				if took[figureTimes/2] > figureBound {
					t.Errorf("%s takes %v at the median", q.what, took[figureTimes/2])
				}
			}
		})
	}
}

// fillReplies writes the same rows that the intake would write, but many in one statement.
func fillReplies(t *testing.T, w *storetest.World, c *storetest.Client) {
	t.Helper()
	n := func(limit int) string {
		if w.DB.Postgres {
			return fmt.Sprintf("generate_series(1::bigint, %d) as n(i)", limit)
		}
		return fmt.Sprintf("(with recursive n(i) as (select 1 union all select i + 1 from n where i < %d) select i from n) as n", limit)
	}
	const phone = "'+3933300' || (10000 + i % 100000)"
	begin := storetest.Begin.UnixMicro()
	for _, text := range []string{
		fmt.Sprintf(`insert into reply (client_id, id, session_id, phone, at, own, kind, text, network_id, read_at)
 select %d, 1000 + i, %d, %s, %d + i, case when i %% 50 = 1 then 1 else 0 end, 'text', 'Sì, confermo: ci vediamo venerdì alle 10:30. Grazie!', 'wamid.' || i,
 case when i %% 10 = 0 then 0 else 1 end from %s`, c.ID, c.Session, phone, begin, n(figureReplies)),
		`insert into conversation (client_id, phone, last_id, unread) select client_id, phone, max(id), sum(case when read_at = 0 then 1 else 0 end) from reply group by client_id, phone`,
		fmt.Sprintf(`insert into consent (client_id, id, phone, purpose, change, source, words, message, mark, at, entered_at, applied, changed)
 select %d, 1000 + i, %s, 1, 2, 'reply', 'Basta!', 'wamid.' || i, 'm' || i, %d + i, %[3]d + i, 1, 1 from %s`, c.ID, phone, begin, n(figureReplies/10)),
	} {
		exec(t, w.DB.SQL, text)
	}
	if w.DB.Postgres {
		exec(t, w.DB.SQL, "vacuum analyze") // PostgreSQL does this by itself within minutes; on SQLite nothing ever updates statistics
	}
}
