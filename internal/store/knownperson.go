package store

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
)

func (s *Store) Knows(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, to string) (bool, error) {
	var n int64
	known, err := engine.QueryOne(ctx, s.CallReads, `select 1 from contact where client_id = $1 and phone = $2 and session_id = $3 and (window_until > 0 or met_at > 0)`,
		[]any{client, to, session}, &n)
	if err != nil {
		return false, engine.PublicError(fmt.Errorf("look for a contact: %w", err))
	}
	return known, nil
}

func (s *Store) Met(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, to string, at time.Time) error {
	return s.TenantWriter(int64(client)).Do(ctx, engine.Single(s.kinds.heard, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `insert into contact as g (client_id, session_id, phone, met_at) values ($1, $2, $3, $4)
 on conflict (client_id, phone, session_id) do update set met_at = excluded.met_at where g.met_at = 0`, client, session, to, engine.Micros(at)); err != nil {
			return fmt.Errorf("note a contact: %w", err)
		}
		return nil
	}), false)
}

// MetSince reads all that the client knows, so it is for when a session begins to count. Groups are nobody.
func (s *Store) MetSince(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, since time.Time, most int) ([]time.Time, error) {
	all, err := engine.QueryAll(ctx, s.ListReads, `select met_at from contact where client_id = $1 and session_id = $2 and met_at >= $3 and phone not like '%@g.us'
 order by met_at desc limit $4`, []any{client, session, engine.Micros(since), most}, scanMoment)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read new contacts: %w", err))
	}
	return all, nil
}

// Departed returns when the session's messages since a moment left, latest first, at most so many. It reads the client's
// outcomes of the time by their index.
func (s *Store) Departed(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, since time.Time, most int) ([]time.Time, error) {
	all, err := engine.QueryAll(ctx, s.ListReads, `select done_at from message where client_id = $1 and session_id = $2 and done_at >= $3 and outcome = 1
 order by done_at desc limit $4`, []any{client, session, engine.Micros(since), most}, scanMoment)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read what a session sent: %w", err))
	}
	return all, nil
}

func scanMoment(rows engine.Row, at *time.Time) error { return rows.Scan(engine.ScanTime(at)) }

func (s *Store) SessionsThere(ctx context.Context, sessions []puntuale.SessionID) (map[puntuale.SessionID]bool, error) {
	there := make(map[puntuale.SessionID]bool, len(sessions))
	for len(sessions) > 0 {
		part := sessions[:min(engine.Chunk, len(sessions))]
		sessions = sessions[len(part):]
		found, err := engine.QueryAll(ctx, s.MaintenanceReads, `select s.id from $u(i bigint) join session s on s.id = u.i where s.deleted_at = 0`,
			[]any{fleet.SessionColumn(part)}, engine.ScanOne[puntuale.SessionID])
		if err != nil {
			return nil, engine.PublicError(fmt.Errorf("look for sessions: %w", err))
		}
		for _, id := range found {
			there[id] = true
		}
	}
	return there, nil
}
