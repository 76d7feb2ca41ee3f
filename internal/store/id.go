package store

import (
	"context"
	"fmt"
	"time"

	"puntuale"
)

// idBlock is a writer's stock of identifiers for messages and runs. Blocks come from one counter that never falls
// behind the database's clock (microseconds since the beginning of 2026), so identifiers grow with time, stay below
// 2^53 for 285 years, and are no count; what is left of a block is dropped when the next is taken.
type idBlock struct {
	next, end int64
	taken     time.Time
}

const (
	blockSize = 65536
	blockAge  = 10 * time.Second // older stock would number new messages below those of other writers
)

// idEpoch is 2026-01-01T00:00:00Z.
const idEpoch = 1767225600000000

const takeBlock = `
update id_block set next = greatest(next, $clock - 1767225600000000) + $1::bigint where one = 1 returning next`

// stock makes sure that n more identifiers can be taken.
func (w *writer) stock(ctx context.Context, n int) error {
	now := w.db.cfg.Clock.Now()
	if w.ids.end-w.ids.next >= int64(n) && now.Sub(w.ids.taken) < blockAge {
		return nil
	}
	size := max(blockSize, int64(n))
	var end int64
	if _, err := one(ctx, &w.link, takeBlock, []any{size}, &end); err != nil {
		return fmt.Errorf("take a block of identifiers: %w", err)
	}
	if end > puntuale.MaxID {
		return fmt.Errorf("identifiers are used up at %d", end)
	}
	w.ids = idBlock{next: end - size + 1, end: end + 1, taken: now}
	return nil
}

// take returns the first of n identifiers without gaps.
func (b *idBlock) take(n int) int64 {
	first := b.next
	b.next += int64(n)
	return first
}

// number raises a noun's small counter inside the caller's transaction.
func number(ctx context.Context, a asker, noun string) (id int64, err error) {
	return numbers(ctx, a, noun, 1)
}

// numbers raises it by n, and returns the last of them.
func numbers(ctx context.Context, a asker, noun string, n int) (last int64, err error) {
	found, err := one(ctx, a, `update counter set next = next + $2 where noun = $1 returning next`, []any{noun, n}, &last)
	if err == nil && !found {
		err = fmt.Errorf("no counter for %q", noun)
	}
	return last, err
}
