package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// replyCandidates are messages that a reply stops: of sequences that stop on one, started for this person through this
// session before they wrote.
const replyCandidates = `
select m.client_id, m.id from run r join sequence q on q.client_id = r.client_id and q.id = r.sequence_id and q.stop_on_reply = 1
 cross join message m
where r.client_id = $1 and r.phone = $2 and r.session_id = $3 and r.received_at <= $4
 and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent >= 0 and m.valid_until > 0
union all
select m.client_id, m.id from run r join sequence q on q.client_id = r.client_id and q.id = r.sequence_id and q.stop_on_reply = 1
 cross join message m
where r.client_id = $1 and r.phone = $2 and r.session_id = $3 and r.received_at <= $4
 and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent >= 0 and m.valid_until > 0`

func (s *Store) KeepHeard(ctx context.Context, now time.Time, all []puntuale.InboundMessage) (cancelled int, err error) {
	for _, h := range all {
		at := h.At
		if at.After(now) {
			at = now
		}
		refs, err := engine.QueryAll(ctx, s.CallReads, replyCandidates, []any{h.Client, h.Phone, h.Session, engine.Micros(at)}, queue.ScanRef)
		if err != nil {
			return cancelled, engine.PublicError(fmt.Errorf("look for messages that a reply stops: %w", err))
		}
		slices.SortFunc(refs, queue.CompareRefs)
		refs = slices.Compact(refs)
		for first := true; first || len(refs) > 0; first = false {
			part := refs[:min(engine.Chunk, len(refs))]
			refs = refs[len(part):]
			var done []puntuale.CancelledMessage
			if err := s.TenantWriter(int64(h.Client)).Do(ctx, engine.Single(s.kinds.heard, func(ctx context.Context, a engine.Querier) (err error) {
				if done, err = queue.CancelOpen(ctx, a, part, now); err != nil {
					return err
				}
				return openWindow(ctx, a, h, at)
			}).Of(int64(h.Client)), false); err != nil {
				return cancelled, err
			}
			cancelled += len(done)
		}
	}
	return cancelled, nil
}

func openWindow(ctx context.Context, a engine.Querier, h puntuale.InboundMessage, at time.Time) error {
	if _, err := a.Exec(ctx, `insert into contact as g (client_id, session_id, phone, window_until) values ($1, $2, $3, $4)
 on conflict (client_id, phone, session_id) do update set window_until = greatest(g.window_until, excluded.window_until)`,
		h.Client, h.Session, h.Phone, engine.Micros(at.Add(puntuale.ServiceWindow))); err != nil {
		return fmt.Errorf("open a window: %w", err)
	}
	return nil
}

func (s *Store) WindowUntil(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, phone string) (time.Time, error) {
	var until time.Time
	_, err := engine.QueryOne(ctx, s.CallReads, `select window_until from contact where client_id = $1 and phone = $2 and session_id = $3`,
		[]any{client, phone, session}, engine.ScanTime(&until))
	if err != nil {
		return time.Time{}, engine.PublicError(fmt.Errorf("read a window: %w", err))
	}
	return until, nil
}

func (s *Store) KeepPreference(ctx context.Context, now time.Time, p puntuale.Preference) (changed bool, err error) {
	at := p.At
	if at.After(now) {
		at = now
	}
	err = s.TenantWriter(int64(p.Client)).Do(ctx, engine.Single(s.kinds.heard, func(ctx context.Context, a engine.Querier) error {
		changed = false
		n, err := a.Exec(ctx, `insert into contact as g (client_id, session_id, phone, preference_at) values ($1, $2, $3, $4)
 on conflict (client_id, phone, session_id) do update set preference_at = excluded.preference_at where g.preference_at < excluded.preference_at`,
			p.Client, p.Session, p.Phone, engine.Micros(at))
		if err != nil {
			return fmt.Errorf("note a preference: %w", err)
		}
		if n == 0 {
			return nil
		}
		if p.Stop {
			n, err = queue.AddBlacklisted(ctx, a, p.Client, puntuale.BlacklistEntry{Phone: p.Phone, Mark: p.Mark, Reason: puntuale.PreferenceReason + p.Reason, Added: now})
		} else {
			n, err = a.Exec(ctx, `delete from blacklist where client_id = $1 and phone = $2 and reason like $3`, p.Client, p.Phone, puntuale.PreferenceReason+"%")
		}
		changed = n > 0
		return err
	}), false)
	return changed, err
}

// contactKey is the key of a contact.
type contactKey struct {
	client, session int64
	phone           string
}

const (
	contactsLooked = 2000           // contacts that one call looks at; the next call goes on after them
	keepWindow     = 48 * time.Hour // after its end
)

const contactsNext = `
select g.client_id, g.phone, g.session_id, g.window_until < $4 and g.preference_at = 0 and g.met_at = 0 from contact g
where (g.client_id, g.phone, g.session_id) > ($1, $2, $3) order by g.client_id, g.phone, g.session_id limit $5`

// purgeContacts removes contacts of which nothing is known any more but that they wrote long ago, as if they never had.
// A linked number does not forget the people that it knows. It walks by the key, for there is no index by time.
func (s *Store) purgeContacts(ctx context.Context, now time.Time) error {
	var last contactKey
	if p := s.lastContact.Load(); p != nil {
		last = *p
	}
	before := engine.Micros(now.Add(-keepWindow))
	var over []contactKey
	n := 0
	if err := s.MaintenanceReads.Query(ctx, contactsNext, []any{last.client, last.phone, last.session, before, contactsLooked}, func(rows engine.Row) error {
		var old bool
		if err := rows.Scan(&last.client, &last.phone, &last.session, &old); err != nil {
			return err
		}
		if n++; old {
			over = append(over, last)
		}
		return nil
	}); err != nil {
		return engine.PublicError(fmt.Errorf("look for old contacts: %w", err))
	}
	for part := range slices.Chunk(over, engine.Chunk) {
		if err := s.TenantWriters[0].Do(ctx, engine.Single(s.Writes, func(ctx context.Context, a engine.Querier) error {
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
