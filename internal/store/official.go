package store

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// CreateOfficial is CreateSession with keys. The store calls the function seal inside the
// transaction, with the new id, perhaps more than once.
func (t tenant) CreateOfficial(ctx context.Context, s puntuale.Session, seal func(puntuale.SessionID) []byte, o *puntuale.Idempotency) (puntuale.SessionID, error) {
	return t.createSession(ctx, s, seal, o)
}

// SetKeys replaces a session's sealed keys; nil removes them. Codes: not_found.
func (t tenant) SetKeys(ctx context.Context, id puntuale.SessionID, sealed []byte) error {
	if sealed == nil {
		sealed = []byte{}
	}
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update session set keys = $3 where client_id = $1 and id = $2 and deleted_at = 0`, t.id, id, sealed)
		return engine.ThereOr(n > 0, err, puntuale.NoSession)
	})
}

// ChangeKeys replaces a session's sealed keys by the result of the function change, in one transaction. If change
// returns an error, ChangeKeys returns this error and changes nothing. Codes: not_found, conflict (another session
// has the same mark).
func (t tenant) ChangeKeys(ctx context.Context, id puntuale.SessionID, change puntuale.KeyChange) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var old []byte
		found, err := engine.QueryOne(ctx, a, `select s.keys from session s where s.client_id = $1 and s.id = $2 and s.deleted_at = 0 for update of s`, []any{t.id, id}, &old)
		if err := engine.ThereOr(found, err, puntuale.NoSession); err != nil {
			return err
		}
		if len(old) == 0 {
			old = nil
		}
		sealed, mark, err := change(old)
		if err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `update session set keys = $3, network_mark = $4 where client_id = $1 and id = $2`, t.id, id, sealed, mark); err != nil {
			return fmt.Errorf("change a session's keys: %w", sameNumber(err))
		}
		return nil
	})
}

func (s *Store) SealedKeys(ctx context.Context, id puntuale.SessionID) (puntuale.ClientID, []byte, error) {
	return s.sealedKeys(ctx, id, puntuale.Official)
}

// sealedKeys reads the sealed keys of a session of the given type. The keys are nil if the session has no keys.
func (s *Store) sealedKeys(ctx context.Context, id puntuale.SessionID, connection puntuale.ConnectionType) (client puntuale.ClientID, sealed []byte, err error) {
	found, err := engine.QueryOne(ctx, s.CallReads, `select s.client_id, s.keys from session s where s.id = $1 and s.type = $2 and s.sandbox = 0 and s.deleted_at = 0`,
		[]any{id, connection}, &client, &sealed)
	if err := engine.FoundOr(found, err, puntuale.NoSession); err != nil {
		return 0, nil, err
	}
	if len(sealed) == 0 {
		sealed = nil
	}
	return client, sealed, nil
}

func (s *Store) ForgetKeys(ctx context.Context, id puntuale.SessionID) error {
	client, _, err := s.SealedKeys(ctx, id)
	if err != nil {
		return err
	}
	return tenant{s: s, id: client}.write(ctx, func(ctx context.Context, a engine.Querier) error {
		for _, statement := range []string{
			`update session set keys = $3 where client_id = $1 and id = $2 and deleted_at = 0`,
			`delete from official where client_id = $1 and session_id = $2 and $3::bytea is not null`,
			`delete from official_pause where client_id = $1 and session_id = $2 and $3::bytea is not null`,
			`delete from official_health where client_id = $1 and session_id = $2 and $3::bytea is not null`,
		} {
			if _, err := a.Exec(ctx, statement, client, id, []byte{}); err != nil {
				return fmt.Errorf("forget a session's keys: %w", err)
			}
		}
		return forgetTemplates(ctx, a, client)
	})
}

// outsideWindow is a condition that excludes each message m that left inside its recipient's 24-hour window.
const outsideWindow = `
 and not exists (select 1 from contact c where c.client_id = m.client_id and c.phone = m.phone and c.session_id = m.session_id
  and m.intent_at < c.window_until and m.intent_at >= c.window_until - $4)`

// Addressed reads the outcomes of the session's business since a time, from the client's index by done_at. The store contains only the end of
// each person's last window, which began 24 hours before this end. Earlier windows of the person are not stored.
func (s *Store) Addressed(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, since time.Time) (map[string]time.Time, error) {
	all := map[string]time.Time{}
	err := s.ListReads.Query(ctx, addressedSince, []any{client, session, engine.Micros(since), puntuale.ServiceWindow.Microseconds()}, func(rows engine.Row) error {
		var phone string
		var at time.Time
		err := rows.Scan(&phone, engine.ScanTime(&at))
		all[phone] = at
		return err
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read whom a session addressed: %w", err))
	}
	return all, nil
}

func (s *Store) Upload(ctx context.Context, u puntuale.Upload, now time.Time) (id string, err error) {
	_, err = engine.QueryOne(ctx, s.CallReads, `select media from upload where client_id = $1 and session_id = $2 and number = $3 and hash = $4 and until > $5`,
		[]any{u.Client, u.Session, u.Number, u.Hash, engine.Micros(now)}, &id)
	if err != nil {
		return "", engine.PublicError(fmt.Errorf("look for an upload: %w", err))
	}
	return id, nil
}

func (s *Store) KeepUpload(ctx context.Context, u puntuale.Upload, id string, expiresAt time.Time) error {
	return tenant{s: s, id: u.Client}.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var err error
		if id == "" {
			_, err = a.Exec(ctx, `delete from upload where client_id = $1 and session_id = $2 and number = $3 and hash = $4`, u.Client, u.Session, u.Number, u.Hash)
		} else {
			_, err = a.Exec(ctx, `insert into upload (client_id, session_id, number, hash, media, until) values ($1, $2, $3, $4, $5, $6)
 on conflict (client_id, session_id, number, hash) do update set media = excluded.media, until = excluded.until`,
				u.Client, u.Session, u.Number, u.Hash, id, engine.Micros(expiresAt))
		}
		if err != nil {
			return fmt.Errorf("keep an upload: %w", err)
		}
		return nil
	})
}

// purgeUploads deletes the ids of files that the network no longer stores.
func (s *Store) purgeUploads(ctx context.Context, now time.Time) error {
	return s.TenantWriters[0].Do(ctx, engine.Single(s.kinds.heard, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `delete from upload where until < $1`, engine.Micros(now)); err != nil {
			return fmt.Errorf("forget uploads: %w", err)
		}
		return nil
	}), false)
}

// HealthOf summarises what Meta says about a session's number and business. Codes: not_found.
func (t tenant) HealthOf(ctx context.Context, id puntuale.SessionID, now time.Time) (puntuale.SessionHealth, error) {
	if err := t.sessionThere(ctx, t.s.CallReads, id); err != nil {
		return puntuale.SessionHealth{}, engine.PublicError(err)
	}
	return t.s.SessionHealth(ctx, t.id, id, now)
}
