package store

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// maxWaiting is how many commands of one session may wait for an answer. The commands of all callers count together.
const maxWaiting = 20

// GiveCommand stores a command. It ignores c.Client, c.ID and c.Taken. Codes: not_found (the session), busy (too
// many commands of the session wait for an answer).
func (t tenant) GiveCommand(ctx context.Context, c puntuale.Command) (puntuale.CommandID, error) {
	var id int64
	err := t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		offset, err := t.s.ClockOffset(ctx, a)
		if err != nil {
			return err
		}
		if err := t.commandable(ctx, a, c.Session, c.Created.Add(offset)); err != nil {
			return err
		}
		if id, err = engine.NextNumber(ctx, a, "command"); err != nil {
			return err
		}
		_, err = a.Exec(ctx, `insert into command (id, client_id, session_id, verb, detail, created_at, expires_at)
 values ($1, $2, $3, $4, $5, $6, $7)`,
			id, t.id, c.Session, c.Verb, append([]byte{}, c.Detail...), engine.Micros(c.Created), engine.Micros(c.Expires.Add(offset)))
		if err != nil {
			return fmt.Errorf("insert a command: %w", err)
		}
		return nil
	})
	return puntuale.CommandID(id), err
}

const faultCommandTooMany puntuale.ReasonCode = "command.too_many"

// commandable returns an error if the session does not exist or has too many waiting commands.
func (t tenant) commandable(ctx context.Context, a engine.Querier, session puntuale.SessionID, now time.Time) error {
	if session == 0 {
		return puntuale.NotFound(puntuale.NoSession)
	}
	if err := t.sessionThere(ctx, a, session); err != nil {
		return err
	}
	var n int
	if _, err := engine.QueryOne(ctx, a, `select count(*) from command where session_id = $1 and answered_at = 0 and expires_at > $2`,
		[]any{session, engine.Micros(now)}, &n); err != nil {
		return fmt.Errorf("count commands: %w", err)
	}
	if n >= maxWaiting {
		return &puntuale.Error{Code: puntuale.CodeBusy, Reason: puntuale.Because(faultCommandTooMany), RetryAfter: 5 * time.Second}
	}
	return nil
}

// CommandAnswer returns the sealed answer, or nil if the command has none yet. Codes: not_found if the command or
// its answer expired.
func (t tenant) CommandAnswer(ctx context.Context, id puntuale.CommandID, now time.Time) ([]byte, error) {
	offset, err := t.s.ClockOffset(ctx, t.s.CallReads)
	if err != nil {
		return nil, engine.PublicError(err)
	}
	now = now.Add(offset)
	var at int64
	var answer []byte
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select answered_at, answer from command where id = $1 and client_id = $2 and expires_at > $3`,
		[]any{id, t.id, engine.Micros(now)}, &at, &answer)
	if err := engine.FoundOr(found, err, puntuale.NoCommand); err != nil || at == 0 {
		return nil, err
	}
	return answer, nil
}
