package engine

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"puntuale/internal/clock"
)

// checkpointer copies SQLite's log into its file, beside the writer. Without it, one commit in some thousands would copy the log, and all
// calls would wait for 20 to 60 ms. A commit must copy the last pages itself, because only then the log begins anew.
type checkpointer struct {
	db     *sql.DB
	clock  clock.Clock
	wake   chan struct{} // holds a value after a commit
	last   atomic.Bool   // whether the writer should copy the last pages
	cancel context.CancelFunc
	done   chan struct{}
}

// Bounds of SQLite's log, in pages. With a smaller checkpointFrom, pages that change often would be copied more often.
const (
	CheckpointFrom  = 2000                  // the checkpointer begins to copy
	CheckpointLast  = 400                   // few enough for the writer
	CheckpointEnd   = 4000                  // the writer copies the last pages
	checkpointEach  = 20000                 // every commit copies, if the checkpointer is too slow
	checkpointEvery = 20 * time.Millisecond // between two looks at the log
)

// startCheckpointer uses a pool of one connection.
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

// committed says that the log may have grown, and copies the last pages if it is time. The writer calls it between two transactions, with
// its connection.
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
	_ = err // the next transaction uses the same files, and gets the same error
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

// copy copies until few pages are left. A reader in the middle of a long list keeps newer pages from being copied.
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

// pages returns how many pages the log has, and how many of them are in the file. The mode noop only counts them. The mode passive copies,
// and does not wait for other users.
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
