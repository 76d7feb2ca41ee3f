package store

import (
	"context"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
)

func scanLinked(rows engine.Row, s *puntuale.Session) error {
	return rows.Scan(fleet.LinkedFields(s)...)
}

// CreateSession stores a session. The argument o may be nil; its function Answer gets the SessionID.
func (t tenant) CreateSession(ctx context.Context, s puntuale.Session, o *puntuale.Idempotency) (puntuale.SessionID, error) {
	return t.createSession(ctx, s, nil, o)
}

// createSession inserts a session. If seal is not nil, it returns the session's sealed keys for the new id.
func (t tenant) createSession(ctx context.Context, s puntuale.Session, seal func(puntuale.SessionID) []byte, o *puntuale.Idempotency) (puntuale.SessionID, error) {
	var id puntuale.SessionID
	err := t.once(ctx, o, func(ctx context.Context, a engine.Querier) (_ any, err error) {
		id, err = t.insertSession(ctx, a, s, seal)
		return id, err
	})
	return id, err
}

// insertSession does the work of createSession inside the caller's transaction.
func (t tenant) insertSession(ctx context.Context, a engine.Querier, s puntuale.Session, seal func(puntuale.SessionID) []byte) (puntuale.SessionID, error) {
	if err := t.checkQuota(ctx, a, puntuale.QuotaSessions); err != nil {
		return 0, err
	}
	id, err := fleet.InsertSession(ctx, a, t.id, s)
	if err != nil || seal == nil {
		return id, err
	}
	if _, err := a.Exec(ctx, `update session set keys = $3 where client_id = $1 and id = $2`, t.id, id, seal(id)); err != nil {
		return 0, fmt.Errorf("store a session's keys: %w", err)
	}
	return id, nil
}

// Session reads a session. Codes: not_found.
func (t tenant) Session(ctx context.Context, id puntuale.SessionID) (puntuale.Session, error) {
	var s puntuale.Session
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select `+fleet.ShownColumns+` from session s
 where s.client_id = $1 and s.id = $2 and s.deleted_at = 0`, []any{t.id, id}, fleet.LinkedFields(&s)...)
	return s, engine.FoundOr(found, err, puntuale.NoSession)
}

// DefaultSession reads the client's default session. Codes: not_found.
func (t tenant) DefaultSession(ctx context.Context) (puntuale.Session, error) {
	var s puntuale.Session
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select `+fleet.ShownColumns+` from session s
 where s.client_id = $1 and s.is_default = 1 and s.deleted_at = 0`, []any{t.id}, fleet.LinkedFields(&s)...)
	return s, engine.FoundOr(found, err, puntuale.NoSession)
}

// Sessions lists sessions, sorted by id. Codes: invalid (the cursor).
func (t tenant) Sessions(ctx context.Context, p puntuale.Page) ([]puntuale.Session, string, error) {
	last, limit, err := engine.ReadCursor(p, "session")
	if err != nil {
		return nil, "", err
	}
	all, err := engine.QueryAll(ctx, t.s.CallReads, `select `+fleet.ShownColumns+` from session s
 where s.client_id = $1 and s.id > $2 and s.deleted_at = 0 order by s.id limit $3`, []any{t.id, last, limit + 1}, scanLinked)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list sessions: %w", err))
	}
	all, next := engine.CutPage(all, limit, "session", func(s *puntuale.Session) int64 { return int64(s.ID) })
	return all, next, nil
}

// SetDefaultPair sets the session's default sequences; 0: none. If the argument known is not empty, the stored
// version of the pair must be in it. Codes: not_found (the session; or a sequence, with a fault at body.start or
// body.stop); precondition_failed.
//
// SetDefaultPair locks the session and the sequences. So no sequence is deleted before the session's row contains
// the sequence's id.
func (t tenant) SetDefaultPair(ctx context.Context, id puntuale.SessionID, start, stop puntuale.SequenceID, known ...puntuale.Version) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		s, err := t.lockedSession(ctx, a, id)
		if err != nil {
			return err
		}
		existing, err := engine.QueryAll(ctx, a, `select id from sequence where client_id = $1 and id in ($2, $3) and deleted_at = 0 order by id for update`,
			[]any{t.id, start, stop}, engine.ScanOne[puntuale.SequenceID])
		if err != nil {
			return fmt.Errorf("look for default sequences: %w", err)
		}
		var faults []puntuale.Fault
		for _, side := range []struct {
			name string
			id   puntuale.SequenceID
		}{{"body.start", start}, {"body.stop", stop}} {
			if side.id != 0 && !slices.Contains(existing, side.id) {
				faults = append(faults, puntuale.Fault{Location: side.name, Code: puntuale.NoSequence, Value: side.id.String()})
			}
		}
		if len(faults) > 0 {
			return notFound(puntuale.NoSequence, faults)
		}
		if err := puntuale.CheckVersion(s.PairVersion(), known); err != nil {
			return err
		}
		n, err := a.Exec(ctx, `update session set start_sequence = $3, stop_sequence = $4 where client_id = $1 and id = $2 and deleted_at = 0`,
			t.id, id, start, stop)
		return engine.ThereOr(n > 0, err, puntuale.NoSession)
	})
}

// UpdateSession changes the session's name, its pace and its ways, or some of them. If the argument known is not empty, the stored
// version must be in it. Codes: not_found, precondition_failed.
//
// UpdateSession locks the session. So no other call changes the session between the check of its version and the
// change.
func (t tenant) UpdateSession(ctx context.Context, id puntuale.SessionID, p puntuale.SessionPatch, known ...puntuale.Version) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		s, err := t.lockedSession(ctx, a, id)
		if err != nil {
			return err
		}
		if err := puntuale.CheckVersion(s.Version(), known); err != nil {
			return err
		}
		p.Name.Apply(&s.Name)
		p.Pace.Apply(&s.Pace)
		p.Ways.Apply(&s.Ways)
		_, err = a.Exec(ctx, `update session set name = $3, per_min = $4, per_day = $5, cold_per_min = $6, cold_per_day = $7, jitter = $8,
 direct_send = $9, marketing_path = $10, creative = $11 where client_id = $1 and id = $2`, t.id, id, s.Name, s.Pace.PerMinute, s.Pace.PerDay, s.Pace.ColdPerMinute, s.Pace.ColdPerDay, s.Pace.Jitter,
			engine.Bit(s.Ways.DirectSend), engine.Bit(s.Ways.Marketing), engine.Bit(s.Ways.Creative))
		if err != nil {
			return fmt.Errorf("change a session: %w", err)
		}
		return nil
	})
}

// lockedSession locks the session's row and then reads the session. So the row cannot change until this transaction
// commits.
func (t tenant) lockedSession(ctx context.Context, a engine.Querier, id puntuale.SessionID) (s puntuale.Session, err error) {
	if locked, err := t.lockSessions(ctx, a, id); err != nil || len(locked) == 0 {
		return s, engine.ThereOr(false, err, puntuale.NoSession)
	}
	found, err := engine.QueryOne(ctx, a, `select `+fleet.SessionColumns+` from session s where s.client_id = $1 and s.id = $2 and s.deleted_at = 0`, []any{t.id, id}, fleet.SessionFields(&s)...)
	return s, engine.ThereOr(found, err, puntuale.NoSession)
}

// sessionThere returns an error if the client does not have the session. It always accepts 0, the default session. It
// locks the session, so that nobody deletes it before this transaction commits.
func (t tenant) sessionThere(ctx context.Context, a engine.Querier, id puntuale.SessionID) error {
	if id == 0 {
		return nil
	}
	var n int64
	found, err := engine.QueryOne(ctx, a, `select id from session where client_id = $1 and id = $2 and deleted_at = 0 for key share`, []any{t.id, id}, &n)
	return engine.ThereOr(found, err, puntuale.NoSession)
}

// lockSessions locks those of the given sessions that exist, in the order of ids, and returns them.
func (t tenant) lockSessions(ctx context.Context, a engine.Querier, ids ...puntuale.SessionID) ([]lockedSession, error) {
	slices.Sort(ids)
	all, err := engine.QueryAll(ctx, a, `select s.id, s.is_default from $u(i bigint) join session s on s.client_id = $1 and s.id = u.i
 where s.deleted_at = 0 order by s.id for update of s`, []any{t.id, fleet.SessionColumn(slices.Compact(ids))}, scanLocked)
	if err != nil {
		return nil, fmt.Errorf("lock sessions: %w", err)
	}
	return all, nil
}

// lockAllSessions locks every session of the client, in the order of ids.
func (t tenant) lockAllSessions(ctx context.Context, a engine.Querier) error {
	_, err := engine.QueryAll(ctx, a, `select id, is_default from session where client_id = $1 and deleted_at = 0 order by id for update`,
		[]any{t.id}, scanLocked)
	if err != nil {
		return fmt.Errorf("lock sessions: %w", err)
	}
	return nil
}

type lockedSession struct {
	id        puntuale.SessionID
	isDefault bool
}

func scanLocked(rows engine.Row, s *lockedSession) error {
	return rows.Scan(&s.id, engine.ScanBool(&s.isDefault))
}
