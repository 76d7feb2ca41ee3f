package engine

import (
	"context"
	"fmt"
	"time"

	"puntuale"
)

// idBlock is a writer's stock of identifiers for messages and runs. Blocks come from one counter. The counter is
// never behind the database's clock, in microseconds since the beginning of 2026. So identifiers grow with time, stay
// below 2^53 for 285 years, and do not reveal how many there are. When a writer takes a new block, it drops the rest
// of the old one.
type idBlock struct {
	next, end int64
	taken     time.Time
}

const (
	blockSize = 65536
	blockAge  = 10 * time.Second // with an older block, new messages would get smaller numbers than older messages of other writers
)

// IDEpoch is 2026-01-01T00:00:00Z, in microseconds of the Unix epoch.
const IDEpoch = 1767225600000000

// TakeBlock takes $1 identifiers from the counter, and returns the last one. If the counter is behind the database's
// clock, it first jumps to the clock.
const TakeBlock = `
update id_block set next = greatest(next, $clock - 1767225600000000) + $1::bigint where one = 1 returning next`

// Stock makes sure that the block has at least n identifiers.
func (w *Writer) Stock(ctx context.Context, n int) error {
	now := w.DB.Config.Clock.Now()
	if w.IDs.end-w.IDs.next >= int64(n) && now.Sub(w.IDs.taken) < blockAge {
		return nil
	}
	size := max(blockSize, int64(n))
	var end int64
	if _, err := QueryOne(ctx, &w.Conn, TakeBlock, []any{size}, &end); err != nil {
		return fmt.Errorf("take a block of identifiers: %w", err)
	}
	if end > puntuale.MaxID {
		return fmt.Errorf("identifiers are used up at %d", end)
	}
	w.IDs = idBlock{next: end - size + 1, end: end + 1, taken: now}
	return nil
}

// Take returns the first of n consecutive identifiers.
func (b *idBlock) Take(n int) int64 {
	first := b.next
	b.next += int64(n)
	return first
}

// NextNumber takes one number from the counter of a noun, in the caller's transaction.
func NextNumber(ctx context.Context, a Querier, noun string) (id int64, err error) {
	return NextNumbers(ctx, a, noun, 1)
}

// NextNumbers takes n numbers from the counter of a noun, and returns the last one.
func NextNumbers(ctx context.Context, a Querier, noun string, n int) (last int64, err error) {
	found, err := QueryOne(ctx, a, `update counter set next = next + $2 where noun = $1 returning next`, []any{noun, n}, &last)
	if err == nil && !found {
		err = fmt.Errorf("no counter for %q", noun)
	}
	return last, err
}
