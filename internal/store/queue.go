package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"puntuale"
)

const dueColumns = `m.client_id, m.id, m.session_id, m.run_id, m.step, m.phone, m.due_at, m.next_at, m.valid_until,
 m.intent, m.intent_at, m.attempt, m.repeats, m.generation`

func scanDue(rows *sql.Rows, m *puntuale.DueMessage) error {
	return rows.Scan(&m.Client, &m.ID, &m.Session, &m.Run, &m.Step, &m.Phone, moment{&m.Due}, moment{&m.Next},
		moment{&m.ValidUntil}, &m.Intent, moment{&m.IntentAt}, &m.Attempt, &m.Repeats, &m.Generation)
}

// The open messages of a session in the order of its index, from which reading stops at the limit. PostgreSQL does it
// for all sessions in one round trip; SQLite has no lateral join and no round trips.
const (
	dueOfSessions = `
select ` + dueColumns + ` from $u(s bigint, n bigint, i bigint) cross join lateral (
 select * from message o where o.session_id = u.s and o.state = 0 and o.next_at <= $1 and (o.next_at, o.id) > (u.n, u.i)
 order by o.next_at, o.id limit $2) m`
	dueOfSession = `
select ` + dueColumns + ` from message m where m.session_id = $3 and m.state = 0 and m.next_at between $4 and $1
 and (m.next_at > $4 or m.id > $5) order by m.next_at, m.id limit $2`

	retryingOfSessions = `
select ` + dueColumns + ` from $u(s bigint) join message m on m.session_id = u.s and m.state = 0 and m.next_at <= $1
where m.intent_at > 0`

	expiringOfSession = `
select ` + dueColumns + ` from message m where m.session_id = $1 and m.state = 0 and m.next_at <= $2
 and m.valid_until <= $2 and m.intent = 0 order by m.valid_until, m.id limit $3`
)

func (s *Store) Due(ctx context.Context, from []puntuale.Place, horizon time.Time, limit int) ([]puntuale.DueMessage, error) {
	if len(from) == 0 || limit <= 0 {
		return nil, nil
	}
	var all []puntuale.DueMessage
	var err error
	if s.d.postgres {
		all, err = list(ctx, s.read, dueOfSessions, []any{micros(horizon), limit, batch{
			pick(from, func(p *puntuale.Place) int64 { return int64(p.Session) }),
			pick(from, func(p *puntuale.Place) int64 { return micros(p.Next) }),
			pick(from, func(p *puntuale.Place) int64 { return int64(p.ID) }),
		}}, scanDue)
	} else {
		for _, p := range from {
			var some []puntuale.DueMessage
			if some, err = list(ctx, s.read, dueOfSession, []any{micros(horizon), limit, p.Session, micros(p.Next), p.ID}, scanDue); err != nil {
				break
			}
			all = append(all, some...)
		}
	}
	if err != nil {
		return nil, outward(fmt.Errorf("read due messages: %w", err))
	}
	slices.SortFunc(all, compareDue)
	return all, nil
}

func (s *Store) Retrying(ctx context.Context, sessions []puntuale.SessionID, horizon time.Time) ([]puntuale.DueMessage, error) {
	if len(sessions) == 0 {
		return nil, nil
	}
	all, err := list(ctx, s.read, retryingOfSessions, []any{micros(horizon), sessionColumn(sessions)}, scanDue)
	if err != nil {
		return nil, outward(fmt.Errorf("read messages in retry: %w", err))
	}
	slices.SortFunc(all, compareDue)
	return all, nil
}

func (s *Store) Expiring(ctx context.Context, session puntuale.SessionID, by time.Time, limit int) ([]puntuale.DueMessage, error) {
	all, err := list(ctx, s.read, expiringOfSession, []any{session, micros(by), limit}, scanDue)
	if err != nil {
		return nil, outward(fmt.Errorf("read expiring messages: %w", err))
	}
	return all, nil
}

func compareDue(a, b puntuale.DueMessage) int {
	return cmp.Or(a.Next.Compare(b.Next), cmp.Compare(a.ID, b.ID))
}

func sessionColumn(sessions []puntuale.SessionID) batch {
	return batch{pick(sessions, func(id *puntuale.SessionID) int64 { return int64(*id) })}
}

// Contents decodes one run at a time and keeps what was asked of it: a run is up to a mebibyte, a step a few kilobytes.
func (s *Store) Contents(ctx context.Context, steps []puntuale.StepRef) (map[puntuale.StepRef]puntuale.StepContent, error) {
	contents := make(map[puntuale.StepRef]puntuale.StepContent, len(steps))
	if len(steps) == 0 {
		return contents, nil
	}
	asked := map[puntuale.RunRef][]int{}
	var runs []puntuale.RunRef
	for _, ref := range steps {
		if asked[ref.RunRef] == nil {
			runs = append(runs, ref.RunRef)
		}
		asked[ref.RunRef] = append(asked[ref.RunRef], ref.Step)
	}
	err := s.read.each(ctx, `
select r.client_id, r.id, r.zone, r.content from $u(c bigint, i bigint) join run r on r.client_id = u.c and r.id = u.i`,
		[]any{batch{
			pick(runs, func(r *puntuale.RunRef) int64 { return int64(r.Client) }),
			pick(runs, func(r *puntuale.RunRef) int64 { return int64(r.ID) }),
		}}, func(rows *sql.Rows) error {
			var ref puntuale.RunRef
			var zone string
			var frozen []puntuale.FrozenStep
			if err := rows.Scan(&ref.Client, &ref.ID, &zone, inJSON{&frozen}); err != nil {
				return err
			}
			for _, i := range asked[ref] {
				if i >= 0 && i < len(frozen) {
					contents[puntuale.StepRef{RunRef: ref, Step: i}] = puntuale.StepContent{Zone: zone, Content: frozen[i].Content, Window: frozen[i].Window}
				}
			}
			return nil
		})
	if err != nil {
		return nil, outward(fmt.Errorf("read contents: %w", err))
	}
	return contents, nil
}

func (s *Store) Standings(ctx context.Context, clients []puntuale.ClientID) (map[puntuale.ClientID]puntuale.Standing, error) {
	all, err := standings(ctx, s.read, clients)
	return all, outward(err)
}

const standingsOf = `
select k.id, k.deleted_at, k.suspended, k.expires_at, k.credits from $u(c bigint) join client k on k.id = u.c`

// standings leaves out clients that never existed.
func standings(ctx context.Context, a asker, clients []puntuale.ClientID) (map[puntuale.ClientID]puntuale.Standing, error) {
	all := make(map[puntuale.ClientID]puntuale.Standing, len(clients))
	if len(clients) == 0 {
		return all, nil
	}
	err := a.each(ctx, standingsOf, []any{batch{pick(clients, func(c *puntuale.ClientID) int64 { return int64(*c) })}},
		func(rows *sql.Rows) error {
			var id puntuale.ClientID
			var deleted int64
			var st puntuale.Standing
			if err := rows.Scan(&id, &deleted, &st.Suspended, moment{&st.ExpiresAt}, &st.Credits); err != nil {
				return err
			}
			st.Deleted = deleted != 0
			all[id] = st
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("read standings: %w", err)
	}
	return all, nil
}
