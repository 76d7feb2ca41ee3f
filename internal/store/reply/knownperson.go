package reply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
)

func (s *Replies) Knows(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, to string) (bool, error) {
	names, err := s.Recipients(ctx, client, to)
	if err != nil {
		return false, err
	}
	var n int64
	known, err := engine.QueryOne(ctx, s.db.CallReads, `select 1 from $u(p text) cross join contact g where g.client_id = $1 and g.phone = u.p and g.session_id = $2 and (g.window_until > 0 or g.met_at > 0) limit 1`,
		[]any{client, session, engine.Columns{names}}, &n)
	if err != nil {
		return false, engine.PublicError(fmt.Errorf("look for a contact: %w", err))
	}
	return known, nil
}

func (s *Replies) NoteKnown(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, to string, at time.Time) error {
	return s.db.TenantWriter(int64(client)).Do(ctx, engine.Single(s.heard, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `insert into contact as g (client_id, session_id, phone, met_at) values ($1, $2, $3, $4)
 on conflict (client_id, phone, session_id) do update set met_at = excluded.met_at where g.met_at = 0`, client, session, to, engine.Micros(at)); err != nil {
			return fmt.Errorf("note a contact: %w", err)
		}
		return nil
	}), false)
}

// MetSince reads all contact rows of the client, so call it only when the counting for a session begins. It leaves out
// groups.
func (s *Replies) MetSince(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, since time.Time, limit int) ([]time.Time, error) {
	all, err := engine.QueryAll(ctx, s.db.ListReads, `select met_at from contact where client_id = $1 and session_id = $2 and met_at >= $3 and phone not like '%@g.us'
 order by met_at desc limit $4`, []any{client, session, engine.Micros(since), limit}, scanMoment)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read new contacts: %w", err))
	}
	return all, nil
}

// Departed returns the times at which messages of the session left, latest first. It leaves out times before the
// argument since. It reads the client's outcomes from the index by done_at.
func (s *Replies) Departed(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, since time.Time, limit int) ([]time.Time, error) {
	all, err := engine.QueryAll(ctx, s.db.ListReads, `select done_at from message where client_id = $1 and session_id = $2 and done_at >= $3 and outcome = 1 and outcome <> 0
 order by done_at desc limit $4`, []any{client, session, engine.Micros(since), limit}, scanMoment)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read what a session sent: %w", err))
	}
	return all, nil
}

func scanMoment(rows engine.Row, at *time.Time) error { return rows.Scan(engine.ScanTime(at)) }

func (s *Replies) SessionsThere(ctx context.Context, sessions []puntuale.SessionID) (map[puntuale.SessionID]bool, error) {
	existing := make(map[puntuale.SessionID]bool, len(sessions))
	for len(sessions) > 0 {
		part := sessions[:min(engine.Chunk, len(sessions))]
		sessions = sessions[len(part):]
		found, err := engine.QueryAll(ctx, s.db.MaintenanceReads, `select s.id from $u(i bigint) join session s on s.id = u.i where s.deleted_at = 0`,
			[]any{fleet.SessionColumn(part)}, engine.ScanOne[puntuale.SessionID])
		if err != nil {
			return nil, engine.PublicError(fmt.Errorf("look for sessions: %w", err))
		}
		for _, id := range found {
			existing[id] = true
		}
	}
	return existing, nil
}

// contactKey is the primary key of the table contact, which stores what networks reported about people.
type contactKey struct {
	client, session int64
	phone           string
}

const (
	contactsLooked = 2000           // largest number of rows that one call reads; the next call continues after them
	keepWindow     = 48 * time.Hour // how long a row is kept after the end of its 24-hour window
)

const contactsNext = `
select g.client_id, g.phone, g.session_id, g.window_until < $4 and g.preference_at = 0 and g.met_at = 0 from contact g
where (g.client_id, g.phone, g.session_id) > ($1, $2, $3) order by g.client_id, g.phone, g.session_id limit $5`

// purgeContacts deletes old rows of the table contact. Such a row only says that a person wrote long ago.
// purgeContacts keeps the rows of known persons and of persons who set a preference. It reads in the order of the
// primary key, because there is no index by time.
func (s *Replies) purgeContacts(ctx context.Context, now time.Time) error {
	var last contactKey
	if p := s.lastContact.Load(); p != nil {
		last = *p
	}
	before := engine.Micros(now.Add(-keepWindow))
	var outdated []contactKey
	n := 0
	if err := s.db.MaintenanceReads.Query(ctx, contactsNext, []any{last.client, last.phone, last.session, before, contactsLooked}, func(rows engine.Row) error {
		var old bool
		if err := rows.Scan(&last.client, &last.phone, &last.session, &old); err != nil {
			return err
		}
		if n++; old {
			outdated = append(outdated, last)
		}
		return nil
	}); err != nil {
		return engine.PublicError(fmt.Errorf("look for old contacts: %w", err))
	}
	for part := range slices.Chunk(outdated, engine.Chunk) {
		if err := s.db.TenantWriters[0].Do(ctx, engine.Single(s.db.Writes, func(ctx context.Context, a engine.Querier) error {
			_, err := a.Exec(ctx, `delete from contact where window_until < $1 and preference_at = 0 and met_at = 0 and (client_id, phone, session_id) in
 (select u.c, u.p, u.s from $u(c bigint, p text, s bigint))`, before, engine.Columns{
				engine.Column(part, func(k *contactKey) int64 { return k.client }),
				engine.Column(part, func(k *contactKey) string { return k.phone }),
				engine.Column(part, func(k *contactKey) int64 { return k.session }),
			})
			return err
		}), false); err != nil {
			return fmt.Errorf("remove old contacts: %w", err)
		}
	}
	if n < contactsLooked {
		last = contactKey{}
	}
	s.lastContact.Store(&last)
	return nil
}

func (s *Replies) OpenWindows(ctx context.Context, now time.Time, m puntuale.TakenMessage) error {
	x := &inbound{TakenMessage: m, at: m.At}
	if x.at.After(now) {
		x.at = now
	}
	return s.db.TenantWriter(int64(m.Client)).Do(ctx, engine.Single(s.heard, func(ctx context.Context, a engine.Querier) error {
		return openWindows(ctx, a, []*inbound{x})
	}).ForOwner(int64(m.Client)), false)
}

// replyWindow identifies the 24-hour window of one person on one session.
type replyWindow struct {
	client, session int64
	phone           string
	windowEnd       int64
}

// openWindows opens the 24-hour windows of the people who wrote, under all names of each person.
func openWindows(ctx context.Context, a engine.Querier, rows []*inbound) error {
	windowEnd := map[replyWindow]int64{}
	for _, n := range namesOf(rows, func(x *inbound) bool { return !x.Own }) {
		k := replyWindow{client: int64(n.Client), session: int64(n.Session), phone: n.name}
		windowEnd[k] = max(windowEnd[k], engine.Micros(n.at.Add(puntuale.ServiceWindow)))
	}
	if len(windowEnd) == 0 {
		return nil
	}
	var all []replyWindow
	for k, at := range windowEnd {
		k.windowEnd = at
		all = append(all, k)
	}
	engine.Sort(all, func(x, y replyWindow) int {
		return cmp.Or(cmp.Compare(x.client, y.client), cmp.Compare(x.phone, y.phone), cmp.Compare(x.session, y.session))
	})
	if err := a.Queue(ctx, `insert into contact as g (client_id, session_id, phone, window_until)
 select u.c, u.s, u.p, u.w from $u(c bigint, s bigint, p text, w bigint) where true
 on conflict (client_id, phone, session_id) do update set window_until = greatest(g.window_until, excluded.window_until)`, []any{engine.Columns{
		engine.Column(all, func(k *replyWindow) int64 { return k.client }),
		engine.Column(all, func(k *replyWindow) int64 { return k.session }),
		engine.Column(all, func(k *replyWindow) string { return k.phone }),
		engine.Column(all, func(k *replyWindow) int64 { return k.windowEnd }),
	}}, nil); err != nil {
		return fmt.Errorf("open windows: %w", err)
	}
	return nil
}

func (s *Replies) ReplyWindowEnd(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, phone string) (time.Time, error) {
	var windowEnd time.Time
	names, err := s.Recipients(ctx, client, phone)
	if err != nil {
		return windowEnd, err
	}
	_, err = engine.QueryOne(ctx, s.db.CallReads, `select coalesce(max(g.window_until), 0) from $u(p text) cross join contact g where g.client_id = $1 and g.phone = u.p and g.session_id = $2`,
		[]any{client, session, engine.Columns{names}}, engine.ScanTime(&windowEnd))
	if err != nil {
		return time.Time{}, engine.PublicError(fmt.Errorf("read a window: %w", err))
	}
	return windowEnd, nil
}

// ReplyWindowOf returns the time until which the phone may get free text from the session. Zero: the person never
// wrote.
func (t ClientReplies) ReplyWindowOf(ctx context.Context, session puntuale.SessionID, phone string) (time.Time, error) {
	return t.all.ReplyWindowEnd(ctx, t.client, session, phone)
}
