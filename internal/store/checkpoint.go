package store

import (
	"context"
	"database/sql"
	"fmt"
)

// checkpointer copies SQLite's log into its file beside the writer. Otherwise one commit in thousands does that, and all
// calls wait for it, 20 to 60 ms. The writer's own checkpoint, which begins the log anew, then has little left to copy.
type checkpointer struct {
	db     *sql.DB
	wake   chan struct{} // holds one sign that something was committed
	cancel context.CancelFunc
	done   chan struct{}
}

// Pages of SQLite's log. A smaller checkpointPages writes a page that changes often more often to the file.
const (
	checkpointPages = 2000 // from which the checkpointer copies
	checkpointRest  = 200  // few enough for the writer
	checkpointOwn   = 4000 // from which a commit copies what is left
)

// startCheckpointer uses a pool of one connection.
func startCheckpointer(db *sql.DB) *checkpointer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &checkpointer{db: db, wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
	go c.loop(ctx)
	return c
}

// committed tells that the log may have grown. It never blocks.
func (c *checkpointer) committed() {
	if c == nil {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *checkpointer) close() {
	if c == nil {
		return
	}
	c.cancel()
	<-c.done
}

func (c *checkpointer) loop(ctx context.Context) {
	defer close(c.done)
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
		// An error is the writer's to meet: its own commits read the same files, and its own checkpoint is still there.
		for left, err := c.pages(ctx, "noop"); err == nil && left > checkpointRest; left, err = c.pages(ctx, "passive") {
		}
	}
}

// pages returns how many pages of the log are not in the file, or 0 while the log is short. Mode is SQLite's: noop only
// counts, passive copies and waits for nobody.
func (c *checkpointer) pages(ctx context.Context, mode string) (int, error) {
	var busy, log, copied int
	if err := c.db.QueryRowContext(ctx, "pragma wal_checkpoint("+mode+")").Scan(&busy, &log, &copied); err != nil {
		return 0, fmt.Errorf("copy the log into the file: %w", err)
	}
	if busy != 0 || log < checkpointPages {
		return 0, nil
	}
	return log - copied, nil
}
