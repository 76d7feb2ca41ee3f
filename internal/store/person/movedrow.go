package person

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// movedRows are the rows that a change took from one ended name.
type movedRows struct {
	Messages      []int64 `json:"messages,omitempty"`
	Runs          []int64 `json:"runs,omitempty"`
	Bookings      []int64 `json:"bookings,omitempty"`
	Replies       []int64 `json:"replies,omitempty"`
	Consents      []int64 `json:"consents,omitempty"`
	Firings       []int64 `json:"firings,omitempty"`
	Triggers      []int64 `json:"triggers,omitempty"`
	Conversations []int64 `json:"conversations,omitempty"` // in Chatwoot, by webhook

	Windows  []windowRow `json:"windows,omitempty"`
	Answered int64       `json:"answered,omitempty"` // when the client's people wrote last

	// The person is still a contact, under another number.
	Contact puntuale.ContactID `json:"contact,omitempty"`
}

// windowRow is a row of the table contact: what a session's network told about a person.
type windowRow struct{ Session, Until, Preference, Met int64 }

// movedTable moves the rows of one table from a name to another. Both statements get the client, the name and the target;
// back also gets the rows' ids.
type movedTable struct {
	table string
	ids   func(*movedRows) *[]int64
	key   string // the column of the ids
	only  string // a further condition
	late  string // a further condition for a late report: rows that came after the change stay
}

// movedTables are the tables with a row for each thing. Bookings come first, as in the order of locks.
var movedTables = []movedTable{
	{"booking", func(m *movedRows) *[]int64 { return &m.Bookings }, "id", "", ""},
	{"run", func(m *movedRows) *[]int64 { return &m.Runs }, "id", "", "run.received_at <= $4"},
	{"reply", func(m *movedRows) *[]int64 { return &m.Replies }, "id", "", "reply.at <= $4"},
	{"consent", func(m *movedRows) *[]int64 { return &m.Consents }, "id", `not (consent.mark <> '' and exists (select 1 from consent o where o.client_id = $1 and o.phone = $3 and o.mark = consent.mark))`, "consent.at <= $4"},
	{"automation_firing", func(m *movedRows) *[]int64 { return &m.Firings }, "id", "", "automation_firing.at <= $4"},
	{"automation_trigger", func(m *movedRows) *[]int64 { return &m.Triggers }, "id", "", ""},
	{"chatwoot_conversation", func(m *movedRows) *[]int64 { return &m.Conversations }, "webhook_id", absent("chatwoot_conversation", "webhook_id"), ""},
}

// absent returns the condition that the target has no row with the same key.
func absent(table string, key ...string) string {
	text := `not exists (select 1 from ` + table + ` o where o.client_id = $1 and o.phone = $3`
	for _, column := range key {
		text += ` and o.` + column + ` = ` + table + `.` + column
	}
	return text + `)`
}

// keyedMoves are further tables with the column phone, each with the rest of its key. A row of which the target has one,
// too, is deleted. Add a table here if its rows say what a person waits for.
var keyedMoves = []struct {
	table string
	key   []string
}{
	{"automation_timer", []string{"rule_id", "run_id"}},
	{"automation_occurrence", []string{"rule_id", "occurrence"}},
}

// moveRows moves the rows of the ended names, one name after the other.
func (x *numberChange) moveRows(ctx context.Context) (err error) {
	if x.undo.Windows, err = engine.QueryAll(ctx, x.a, `select session_id, window_until, preference_at, met_at from contact where client_id = $1 and phone = $2 order by session_id`, []any{x.Client, x.target}, scanWindow); err != nil {
		return fmt.Errorf("read windows: %w", err)
	}
	for _, name := range x.ended {
		m := &movedRows{}
		x.undo.Moved[name] = m
		for i, move := range movedTables {
			if move.table == "run" { // messages are found by their runs
				if err := x.moveMessages(ctx, name, m); err != nil {
					return err
				}
			}
			if err := x.moveTable(ctx, &movedTables[i], name, m); err != nil {
				return err
			}
		}
		if err := moveSteps(ctx, x.a, x.Client, name, x.target, m.Bookings); err != nil {
			return err
		}
		for _, k := range keyedMoves {
			if _, err := x.a.Exec(ctx, `update `+k.table+` set phone = $3 where client_id = $1 and phone = $2 and `+absent(k.table, k.key...), x.Client, name, x.target); err != nil {
				return fmt.Errorf("move %s to a new number: %w", k.table, err)
			}
			if _, err := x.a.Exec(ctx, `delete from `+k.table+` where client_id = $1 and phone = $2`, x.Client, name); err != nil {
				return fmt.Errorf("move %s to a new number: %w", k.table, err)
			}
		}
		for _, step := range []func(context.Context, string, *movedRows) error{x.moveConversation, x.moveWindows} {
			if err := step(ctx, name, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *numberChange) moveTable(ctx context.Context, move *movedTable, name string, m *movedRows) (err error) {
	text, args := `update `+move.table+` set phone = $3 where client_id = $1 and phone = $2`, []any{x.Client, name, x.target}
	if move.only != "" {
		text += ` and ` + move.only
	}
	if x.wrote && isNumber(name) && move.late != "" {
		text, args = text+` and `+move.late, append(args, engine.Micros(x.At))
	}
	ids := move.ids(m)
	if *ids, err = engine.QueryAll(ctx, x.a, text+` returning `+move.key, args, engine.ScanOne[int64]); err != nil {
		return fmt.Errorf("move %s to a new number: %w", move.table, err)
	}
	slices.Sort(*ids)
	return nil
}

// moveMessages gives pending messages the new recipient. A message with an open attempt stays as it is. If the attempt
// fails, the next claim gives it the recipient of its run (queue/claim.go).
func (x *numberChange) moveMessages(ctx context.Context, name string, m *movedRows) error {
	refs, err := engine.QueryAll(ctx, x.a, queue.PhoneCandidates, []any{x.Client, engine.Columns{[]string{name}}}, queue.ScanRef)
	if err != nil {
		return fmt.Errorf("look for messages to move: %w", err)
	}
	engine.Sort(refs, queue.CompareRefs)
	before := int64(puntuale.MaxID)
	if x.wrote && isNumber(name) {
		before = engine.Micros(x.At)
	}
	for part := range slices.Chunk(slices.Compact(refs), engine.Chunk) {
		ids, err := engine.QueryAll(ctx, x.a, `update message set phone = $1 from $u(c bigint, i bigint) where message.client_id = u.c and message.id = u.i and message.state = 0 and message.intent = 0
 and exists (select 1 from run r where r.client_id = message.client_id and r.id = message.run_id and r.received_at <= $2) returning message.id`,
			[]any{x.target, before, queue.RefColumns(part)}, engine.ScanOne[int64])
		if err != nil {
			return fmt.Errorf("move messages to a new number: %w", err)
		}
		m.Messages = append(m.Messages, ids...)
	}
	slices.Sort(m.Messages)
	return nil
}

// moveSteps rewrites the keys of bookings' ledgers. The person is the same, so nothing is planned again.
func moveSteps(ctx context.Context, a engine.Querier, client puntuale.ClientID, from, to string, bookings []int64) error {
	if _, err := a.Exec(ctx, `update booking_step set phone = $3 where client_id = $1 and phone = $2 and booking_id in (select u.i from $u(i bigint)) and `+
		absent("booking_step", "booking_id", "sequence_id", "step", "occurrence"), client, from, to, engine.Columns{bookings}); err != nil {
		return fmt.Errorf("move the messages of bookings: %w", err)
	}
	return nil
}

// moveConversation adds the conversation to the one of the target.
func (x *numberChange) moveConversation(ctx context.Context, name string, m *movedRows) error {
	if _, err := engine.QueryOne(ctx, x.a, `select answered_at from conversation where client_id = $1 and phone = $2`, []any{x.Client, name}, &m.Answered); err != nil {
		return fmt.Errorf("read a conversation: %w", err)
	}
	if err := countConversation(ctx, x.a, x.Client, x.target, m.Answered); err != nil {
		return err
	}
	return countConversation(ctx, x.a, x.Client, name, 0)
}

// countConversation makes a conversation from the replies that there are. answered is when the client's people wrote; 0:
// they have no further answer to the phone.
func countConversation(ctx context.Context, a engine.Querier, client puntuale.ClientID, phone string, answered int64) error {
	if _, err := a.Exec(ctx, `insert into conversation as g (client_id, phone, last_id, unread, answered_at)
 select $1::bigint, $2::text, coalesce(max(y.id), 0), coalesce(sum(case when y.read_at = 0 and y.own = 0 then 1 else 0 end), 0), $3::bigint from reply y where y.client_id = $1 and y.phone = $2
 on conflict (client_id, phone) do update set last_id = excluded.last_id, unread = excluded.unread, answered_at = greatest(g.answered_at, excluded.answered_at)`, client, phone, answered); err != nil {
		return fmt.Errorf("count a conversation: %w", err)
	}
	if _, err := a.Exec(ctx, `delete from conversation where client_id = $1 and phone = $2 and last_id = 0 and $3::bigint = 0`, client, phone, answered); err != nil {
		return fmt.Errorf("remove a conversation: %w", err)
	}
	return nil
}

// moveWindows moves the 24-hour windows, with their ends, and what else networks told about the person.
func (x *numberChange) moveWindows(ctx context.Context, name string, m *movedRows) (err error) {
	text, args := `delete from contact where client_id = $1 and phone = $2`, []any{x.Client, name}
	if x.wrote && isNumber(name) {
		text, args = text+` and window_until <= $3`, append(args, engine.Micros(x.At.Add(puntuale.ServiceWindow)))
	}
	if m.Windows, err = engine.QueryAll(ctx, x.a, text+` returning session_id, window_until, preference_at, met_at`, args, scanWindow); err != nil {
		return fmt.Errorf("move windows: %w", err)
	}
	engine.Sort(m.Windows, func(a, b windowRow) int { return cmp.Compare(a.Session, b.Session) })
	return insertWindows(ctx, x.a, x.Client, x.target, m.Windows)
}

func scanWindow(r engine.Row, w *windowRow) error {
	return r.Scan(&w.Session, &w.Until, &w.Preference, &w.Met)
}

func insertWindows(ctx context.Context, a engine.Querier, client puntuale.ClientID, phone string, all []windowRow) error {
	type W = windowRow
	if _, err := a.Exec(ctx, `insert into contact as g (client_id, phone, session_id, window_until, preference_at, met_at)
 select $1::bigint, $2::text, u.s, u.w, u.p, u.m from $u(s bigint, w bigint, p bigint, m bigint) where true
 on conflict (client_id, phone, session_id) do update set window_until = greatest(g.window_until, excluded.window_until),
 preference_at = greatest(g.preference_at, excluded.preference_at), met_at = greatest(g.met_at, excluded.met_at)`, client, phone, engine.Columns{
		engine.Column(all, func(w *W) int64 { return w.Session }), engine.Column(all, func(w *W) int64 { return w.Until }),
		engine.Column(all, func(w *W) int64 { return w.Preference }), engine.Column(all, func(w *W) int64 { return w.Met }),
	}); err != nil {
		return fmt.Errorf("move windows: %w", err)
	}
	return nil
}
