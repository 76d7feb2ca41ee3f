package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// refillsAtOnce is the largest number of clients that one statement reads.
const refillsAtOnce = 200

// Refill continues with the next client if the refill of one client fails.
func (s *Accounts) Refill(ctx context.Context, now time.Time, next func(puntuale.Client) time.Time) (int, error) {
	refilled := 0
	var failed []error
	for last := int64(0); ; {
		due, err := engine.QueryAll(ctx, s.DispatchReads, `select `+ClientColumns+` from client c
 where c.refill_at > 0 and c.refill_at <= $1 and c.deleted_at = 0 and c.id > $2 order by c.id limit $3`,
			[]any{engine.Micros(now), last, refillsAtOnce}, scanClient)
		if err != nil {
			return refilled, errors.Join(append(failed, engine.PublicError(fmt.Errorf("look for clients to refill: %w", err)))...)
		}
		for _, c := range due {
			done, err := s.refill(ctx, c, next(c), now)
			if err != nil {
				failed = append(failed, fmt.Errorf("refill client %d: %w", c.ID, err))
			}
			if puntuale.StoreAway(err) { // the other clients would cause the same error
				return refilled, errors.Join(failed...)
			}
			if done {
				refilled++
			}
		}
		if len(due) < refillsAtOnce {
			return refilled, errors.Join(failed...)
		}
		last = int64(due[len(due)-1].ID)
	}
}

// refill refills one client, unless another node did it before. To find out, it compares the client's RefillAt with the
// value that it read, and changes RefillAt in the same transaction. Unlimited credits stay unlimited.
func (s *Accounts) refill(ctx context.Context, c puntuale.Client, next, now time.Time) (done bool, err error) {
	err = s.TenantWriter(int64(c.ID)).Do(ctx, engine.Single(s.Writes, func(ctx context.Context, a engine.Querier) error {
		done = false
		locked, found, err := Partner{s, c.Partner}.lockedClient(ctx, a, c.ID)
		if err != nil {
			return fmt.Errorf("lock a client: %w", err)
		}
		if !found || !locked.RefillAt.Equal(c.RefillAt) {
			return nil
		}
		fresh := locked
		fresh.RefillAt = next
		if fresh.Credits != nil {
			fresh.Credits = new(max(*locked.Credits, locked.RefillTo))
		}
		if _, err := a.Exec(ctx, `update client set credits = $2, refill_at = $3 where id = $1`,
			c.ID, optional(fresh.Credits), engine.Micros(next)); err != nil {
			return fmt.Errorf("update a client: %w", err)
		}
		done = true
		if err := queue.TellSetCredits(ctx, a, now, c.ID, locked.Credits, fresh.Credits); err != nil {
			return err
		}
		return queue.Enter(ctx, a, "refill", now, []puntuale.ClientID{c.ID}, []int64{creditsOf(fresh) - creditsOf(locked)})
	}), false)
	return done, err
}
