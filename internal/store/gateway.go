package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
)

// keepNetworkIDs is how long a gateway's message ids are kept. In this time, an acknowledgement from the gateway finds
// its message.
const keepNetworkIDs = 30 * 24 * time.Hour

// CreateGateway is CreateSession with keys. The store calls the function seal inside the
// transaction, with the new id, perhaps more than once. The argument mark is the keyed hash of the gateway's
// number, or "" if there is none yet. Codes: conflict (another session has the same number).
func (t tenant) CreateGateway(ctx context.Context, s puntuale.Session, mark string, seal func(puntuale.SessionID) []byte, o *puntuale.Idempotency) (puntuale.SessionID, error) {
	var id puntuale.SessionID
	err := t.once(ctx, o, func(ctx context.Context, a engine.Querier) (_ any, err error) {
		if id, err = t.insertSession(ctx, a, s, seal); err != nil || mark == "" {
			return id, err
		}
		_, err = a.Exec(ctx, `update session set network_mark = $3 where client_id = $1 and id = $2`, t.id, id, mark)
		return id, sameNumber(err)
	})
	return id, err
}

const faultGatewayNumberTaken puntuale.ReasonCode = "gateway.number_taken"

// sameNumber turns the database's error about a repeated network_mark into a conflict. The error means that another
// session already has this number.
func sameNumber(err error) error {
	if engine.Repeated(err) {
		return puntuale.Conflict(faultGatewayNumberTaken)
	}
	return err
}

func (s *Store) SealedGateway(ctx context.Context, id puntuale.SessionID) (puntuale.ClientID, []byte, error) {
	return s.sealedKeys(ctx, id, puntuale.SendApp)
}

func (s *Store) ChangeGateway(ctx context.Context, id puntuale.SessionID, change puntuale.KeyChange) error {
	client, _, err := s.SealedGateway(ctx, id)
	if err != nil {
		return err
	}
	return tenant{s: s, id: client}.ChangeKeys(ctx, id, change)
}

func (s *Store) KeepNetworkID(ctx context.Context, client puntuale.ClientID, n puntuale.NetworkID) error {
	return s.TenantWriter(int64(client)).Do(ctx, engine.Single(s.kinds.heard, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `insert into network_id (client_id, session_id, id, message_id, token, at) values ($1, $2, $3, $4, $5, $6)
 on conflict (client_id, session_id, id) do nothing`, client, n.Session, n.ID, n.MessageRef.ID, n.Token, engine.Micros(n.At)); err != nil {
			return fmt.Errorf("keep a network's id: %w", err)
		}
		return nil
	}), false)
}

func (s *Store) NetworkIDs(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, ids []string) (map[string]puntuale.NetworkID, error) {
	found := make(map[string]puntuale.NetworkID, len(ids))
	err := s.CallReads.Query(ctx, `select n.id, n.message_id, n.token, n.at from $u(i text) join network_id n on n.id = u.i
 where n.client_id = $1 and n.session_id = $2`, []any{client, session, engine.Columns{ids}}, func(rows engine.Row) error {
		n := puntuale.NetworkID{MessageRef: puntuale.MessageRef{Client: client}, Session: session}
		if err := rows.Scan(&n.ID, &n.MessageRef.ID, &n.Token, engine.ScanTime(&n.At)); err != nil {
			return err
		}
		found[n.ID] = n
		return nil
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for a network's ids: %w", err))
	}
	return found, nil
}

// OpenAttempts reads the session's open attempts from the index of open messages.
func (s *Store) OpenAttempts(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, recipient string, since time.Time) ([]puntuale.OpenAttempt, error) {
	type attempt struct {
		puntuale.OpenAttempt
		step puntuale.StepRef
	}
	names, err := alias.Names(ctx, s.CallReads, client, recipient)
	if err != nil {
		return nil, engine.PublicError(err)
	}
	all, err := engine.QueryAll(ctx, s.CallReads, `select m.id, m.intent, m.intent_at, m.run_id, m.step from message m
 where m.session_id = $2 and m.state = 0 and m.client_id = $1 and m.intent > 0 and m.intent_at > $3 and m.phone in (select u.p from $u(p text))
 order by m.intent_at limit $4`, []any{client, session, engine.Micros(since), maxOpenAttempts, engine.Columns{names}}, func(rows engine.Row, o *attempt) error {
		o.Client, o.step.Client = client, client
		return rows.Scan(&o.ID, &o.Token, engine.ScanTime(&o.Begun), &o.step.RunRef.ID, &o.step.Step)
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for open attempts: %w", err))
	}
	steps := engine.Column(all, func(o *attempt) puntuale.StepRef { return o.step })
	contents, err := s.Contents(ctx, steps)
	if err != nil {
		return nil, err
	}
	open := make([]puntuale.OpenAttempt, 0, len(all))
	for _, o := range all {
		if c, ok := contents[o.step]; ok {
			o.Content = c.Content
			open = append(open, o.OpenAttempt)
		}
	}
	return open, nil
}

// maxOpenAttempts is how many attempts to one recipient are read at most. The callers only need to know whether there
// is more than one.
const maxOpenAttempts = 20

// errEnough ends a read before its last row.
var errEnough = errors.New("enough")

// GatewayHealth returns when a message of the session last failed for the given reason. It also counts the sent
// messages of the period, from the latest back. The count ends at the first message that was delivered or read, or at
// limit.
func (s *Store) GatewayHealth(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, from, to time.Time, limit int, failure puntuale.Reason, former string) (h puntuale.GatewayHealth, err error) {
	_, err = engine.QueryOne(ctx, s.ListReads, `select coalesce(max(done_at), 0) from message where client_id = $1 and session_id = $2 and done_at >= $3 and outcome = 2 and reason in ($4, $5)`,
		[]any{client, session, engine.Micros(from), failure.Stored(), former}, engine.ScanTime(&h.Failed))
	if err != nil {
		return h, engine.PublicError(fmt.Errorf("look for failures: %w", err))
	}
	err = s.ListReads.Query(ctx, `select coalesce(r.delivered_at, 0) + coalesce(r.read_at, 0) > 0 from message m
 left join receipt r on r.client_id = m.client_id and r.message_id = m.id
 where m.client_id = $1 and m.session_id = $2 and m.done_at >= $3 and m.done_at < $4 and m.outcome = 1 and m.outcome <> 0 order by m.done_at desc limit $5`,
		[]any{client, session, engine.Micros(from), engine.Micros(to), limit}, func(rows engine.Row) error {
			var confirmed bool
			if err := rows.Scan(&confirmed); err != nil {
				return err
			}
			if confirmed {
				return errEnough
			}
			h.Unconfirmed++
			return nil
		})
	if err != nil && !errors.Is(err, errEnough) {
		return h, engine.PublicError(fmt.Errorf("count messages without confirmation: %w", err))
	}
	return h, nil
}

// purgeNetworkIDs deletes ids that are older than keepNetworkIDs.
func (s *Store) purgeNetworkIDs(ctx context.Context, now time.Time) error {
	return s.TenantWriters[0].Do(ctx, engine.Single(s.kinds.heard, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `delete from network_id where at < $1`, engine.Micros(now.Add(-keepNetworkIDs))); err != nil {
			return fmt.Errorf("forget a network's ids: %w", err)
		}
		return nil
	}), false)
}
