package engine

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"puntuale/internal/clock"
)

// checkpointer copies SQLite's log into the database file, in its own goroutine beside the writer. Without the
// checkpointer, one in a few thousand commits would copy the log, and all calls would wait for 20 to 60 ms. SQLite can
// write the log from its beginning again only when all pages of the log are copied. So the writer copies the last
// pages, between two commits.
type checkpointer struct {
	db     *sql.DB
	clock  clock.Clock
	wake   chan struct{} // has a value after each commit
	last   atomic.Bool   // asks the writer to copy the last pages
	cancel context.CancelFunc
	done   chan struct{}
}

// Limits of SQLite's log, in pages. If CheckpointFrom were smaller, pages that change often would be copied more often.
const (
	CheckpointFrom  = 10000                 // if the log is longer, the checkpointer begins to copy
	CheckpointLast  = 1000                  // if at most this many pages are left to copy, the checkpointer stops and leaves them to the writer
	CheckpointEnd   = 12000                 // if the log is longer, the writer copies the last pages
	checkpointEach  = 60000                 // if the log is longer, every commit copies the log, because the checkpointer is too slow
	checkpointEvery = 20 * time.Millisecond // time between two checks of the log
)

// startCheckpointer starts a checkpointer. db must be a pool of one connection.
func startCheckpointer(db *sql.DB, c clock.Clock) *checkpointer {
	ctx, cancel := context.WithCancel(context.Background())
	k := &checkpointer{db: db, clock: c, wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
	go k.loop(ctx)
	return k
}

func (k *checkpointer) close() {
	if k == nil {
		return
	}
	k.cancel()
	<-k.done
}

// committed wakes the checkpointer, because the log may have grown. If the field last is set, committed also copies the
// last pages. The writer calls committed between two transactions and passes its own connection.
func (k *checkpointer) committed(l *Conn) {
	if k == nil {
		return
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
	if l.conn == nil || !k.last.CompareAndSwap(true, false) {
		return
	}
	_, _, err := pages(context.Background(), l.conn, "passive")
	_ = err // not reported: the next transaction uses the same files and gets the same error
}

func (k *checkpointer) loop(ctx context.Context) {
	defer close(k.done)
	for {
		select {
		case <-k.wake:
		case <-ctx.Done():
			return
		}
		k.copy(ctx)
		if k.clock.Sleep(ctx, checkpointEvery) != nil {
			return
		}
	}
}

// copy copies pages until only a few are left. A reader in the middle of a long list prevents the copying of newer
// pages.
func (k *checkpointer) copy(ctx context.Context) {
	size, copied, err := pages(ctx, k.db, "noop")
	for err == nil && size >= CheckpointFrom && size-copied > CheckpointLast {
		before := copied
		if size, copied, err = pages(ctx, k.db, "passive"); copied <= before {
			return
		}
	}
	if err != nil || size >= CheckpointEnd {
		k.last.Store(true)
	}
}

// pages returns how many pages the log contains, and how many of them are already copied. The mode noop only counts. The
// mode passive copies, without waiting for other users.
func pages(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, mode string,
) (size, copied int, err error) {
	var busy int
	if err := db.QueryRowContext(ctx, "pragma wal_checkpoint("+mode+")").Scan(&busy, &size, &copied); err != nil {
		return 0, 0, fmt.Errorf("copy the log into the file: %w", err)
	}
	return size, copied, nil
}
