package engine

import (
	"context"
	"fmt"
	"time"

	"puntuale"
)

// idBlock is a writer's stock of identifiers for messages and runs. All blocks come from one counter. The counter
// counts microseconds since the beginning of 2026. It may be ahead of the database's clock, but not behind it. So
// identifiers grow with time, stay below 2^53 for 285 years, and do not reveal how many messages exist. When a writer
// takes a new block, it drops the rest of its old block.
type idBlock struct {
	next, end int64
	taken     time.Time
}

const (
	blockSize = 65536
	// blockAge is how long a writer uses one block. If a writer used an older block, a message could get a smaller id than
	// messages that another writer stored much earlier.
	blockAge = 10 * time.Second
)

// TakeBlock takes $1 identifiers from the counter, and returns the last of them. If the counter is behind the
// database's clock, the statement first sets the counter to the clock's time.
const TakeBlock = `
update id_block set next = greatest(next, $clock - 1767225600000000) + $1::bigint where one = 1 returning next`

// Stock makes sure that the block contains at least n identifiers. If necessary, it takes a new block.
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

// Take removes n consecutive identifiers from the block, and returns the first.
func (b *idBlock) Take(n int) int64 {
	first := b.next
	b.next += int64(n)
	return first
}

// NextNumber takes one number from the counter named noun, in the caller's transaction.
func NextNumber(ctx context.Context, a Querier, noun string) (id int64, err error) {
	return NextNumbers(ctx, a, noun, 1)
}

// NextNumbers takes n numbers from the counter named noun, and returns the last.
func NextNumbers(ctx context.Context, a Querier, noun string, n int) (last int64, err error) {
	found, err := QueryOne(ctx, a, `update counter set next = next + $2 where noun = $1 returning next`, []any{noun, n}, &last)
	if err == nil && !found {
		err = fmt.Errorf("no counter for %q", noun)
	}
	return last, err
}
