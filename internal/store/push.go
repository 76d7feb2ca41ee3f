package store

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// pushMargin is how long a message must be due before its session's devices get a push. A message may be stored after
// its due time. If it is stored at most pushMargin later, a push still reports it.
const pushMargin = 2 * time.Second

// claimPushes picks the devices that may get a push. A device may get a push if an open message of its session came due
// since the device's last push. Two nodes can run the statement together. The second node waits for the rows that the
// first node has locked. Then the second node finds that these devices may not get another push yet.
const claimPushes = `
update device set pushed_at = $2::bigint, push_after = $3::bigint
where push_after <= $1 and (client_id, id) in (
 select d.client_id, d.id from device d
 where d.push is not null and d.push_after <= $1 and exists (
  select 1 from message m where m.session_id = d.session_id and ` + queue.BothQueues + ` and m.state = 0 and m.next_at > d.pushed_at and m.next_at <= $2
   and m.client_id = d.client_id and m.intent = 0 and m.valid_until > $1)
 order by d.push_after limit $4)
returning client_id, id, session_id, push, push_failures`

func (s *Store) ClaimPushes(ctx context.Context, now time.Time, limit int) ([]puntuale.Push, error) {
	var claimed []puntuale.Push
	err := s.TenantWriters[0].Do(ctx, engine.Single(s.Writes, func(ctx context.Context, a engine.Querier) (err error) {
		claimed, err = engine.QueryAll(ctx, a, claimPushes, []any{engine.Micros(now), engine.Micros(now.Add(-pushMargin)), engine.Micros(now.Add(puntuale.PushEvery)), limit},
			func(rows engine.Row, p *puntuale.Push) error {
				return rows.Scan(&p.Client, &p.Device, &p.Session, &p.Target, &p.Failures)
			})
		if err != nil {
			return fmt.Errorf("claim pushes: %w", err)
		}
		return nil
	}), false)
	if err != nil {
		return nil, err
	}
	var able []puntuale.Push
	for _, p := range claimed {
		held, err := tenant{s: s, id: p.Client}.Takeable(ctx, p.Session, p.Device, now, 1)
		if err != nil {
			return able, err
		}
		if len(held) > 0 { // a device that can take no message gets no push: another device holds the messages, or their window is closed
			able = append(able, p)
		}
	}
	return able, nil
}

func (s *Store) EndPush(ctx context.Context, p puntuale.Push, end puntuale.PushOutcome, retryAt time.Time) error {
	text, args := `update device set push_failures = 0 where client_id = $1 and id = $2 and push = $3`, []any{p.Client, p.Device, p.Target}
	switch end {
	case puntuale.PushArrived:
		if p.Failures == 0 {
			return nil
		}
	case puntuale.PushUnsubscribed:
		text = `update device set push = null, push_failures = 0 where client_id = $1 and id = $2 and push = $3`
	case puntuale.PushFailed:
		text = `update device set pushed_at = 0, push_after = $4, push_failures = push_failures + 1 where client_id = $1 and id = $2 and push = $3`
		args = append(args, engine.Micros(retryAt))
	}
	return s.TenantWriter(int64(p.Client)).Do(ctx, engine.Single(s.Writes, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, text, args...); err != nil {
			return fmt.Errorf("record how a push ended: %w", err)
		}
		return nil
	}), false)
}
