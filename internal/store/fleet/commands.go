package fleet

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// A command is a row that waits for the node that owns its session. There are few open commands, and they have their
// own index. So each node can search for its commands every second. Commands expire by the database's clock.

const openCommands = `
select c.id, c.client_id, c.session_id, c.verb, c.detail, c.created_at, c.expires_at, c.taken
from command c join session s on s.client_id = c.client_id and s.id = c.session_id
where c.answered_at = 0 and c.expires_at > $2 and s.owner = $1 and s.deleted_at = 0 order by c.id`

func (s *Fleet) OpenCommands(ctx context.Context, node puntuale.NodeID, now time.Time) ([]puntuale.Command, error) {
	offset, err := s.ClockOffset(ctx, s.DispatchReads)
	if err != nil {
		return nil, engine.PublicError(err)
	}
	all, err := engine.QueryAll(ctx, s.DispatchReads, openCommands, []any{node, engine.Micros(now.Add(offset))}, func(rows engine.Row, c *puntuale.Command) error {
		return rows.Scan(&c.ID, &c.Client, &c.Session, &c.Verb, &c.Detail, engine.ScanTime(&c.Created), engine.ScanTime(&c.Expires), &c.Taken)
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read commands: %w", err))
	}
	return all, nil
}

// byOwner is a condition for updates of a command. It requires that the node owns the command's session.
const byOwner = ` and answered_at = 0 and expires_at > $3 and exists (select 1 from session s
 where s.client_id = command.client_id and s.id = command.session_id and s.owner = $1 and s.deleted_at = 0)`

func (s *Fleet) TakeCommand(ctx context.Context, node puntuale.NodeID, id puntuale.CommandID, now, expiresAt time.Time) (taken bool, err error) {
	err = s.asOwner(ctx, node, func(ctx context.Context, a engine.Querier) error {
		offset, err := s.ClockOffset(ctx, a)
		if err != nil {
			return err
		}
		n, err := a.Exec(ctx, `update command set taken = $1, expires_at = greatest(expires_at, $4) where id = $2`+byOwner,
			node, id, engine.Micros(now.Add(offset)), engine.Micros(expiresAt.Add(offset)))
		taken = n > 0
		return err
	})
	return taken, err
}

func (s *Fleet) AnswerCommand(ctx context.Context, node puntuale.NodeID, id puntuale.CommandID, answer []byte, now, expiresAt time.Time) error {
	return s.asOwner(ctx, node, func(ctx context.Context, a engine.Querier) error {
		offset, err := s.ClockOffset(ctx, a)
		if err != nil {
			return err
		}
		_, err = a.Exec(ctx, `update command set answered_at = $3, answer = $5, detail = $6, expires_at = $4 where id = $2`+byOwner,
			node, id, engine.Micros(now.Add(offset)), engine.Micros(expiresAt.Add(offset)), append([]byte{}, answer...), []byte{})
		return err
	})
}

// asOwner runs a transaction that needs the node's lease.
func (s *Fleet) asOwner(ctx context.Context, node puntuale.NodeID, do func(ctx context.Context, a engine.Querier) error) error {
	return s.TenantWriters[0].Do(ctx, engine.Single(s.Writes, func(ctx context.Context, a engine.Querier) error {
		if err := Fence(ctx, a, node); err != nil {
			return err
		}
		return do(ctx, a)
	}), false)
}

// PurgeCommands deletes expired commands with their answers.
func (s *Fleet) PurgeCommands(ctx context.Context, now time.Time) error {
	offset, err := s.ClockOffset(ctx, s.MaintenanceReads)
	if err != nil {
		return engine.PublicError(err)
	}
	now = now.Add(offset)
	return engine.Purge(ctx, s.DB, "commands", `select id from command where expires_at < $1 order by expires_at limit $2`, engine.Micros(now),
		engine.ScanOne[int64], cmp.Compare[int64],
		func(ctx context.Context, a engine.Querier, part []int64) error {
			if _, err := engine.QueryAll(ctx, a, `select c.id from $u(i bigint) join command c on c.id = u.i order by c.id for update of c`,
				[]any{engine.Columns{part}}, engine.ScanOne[int64]); err != nil {
				return err
			}
			_, err := a.Exec(ctx, `delete from command where expires_at < $1 and id in (select u.i from $u(i bigint))`, engine.Micros(now), engine.Columns{part})
			return err
		})
}
