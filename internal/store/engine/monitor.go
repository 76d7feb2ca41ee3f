package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"puntuale/internal/clock"
)

// Monitor notices when PostgreSQL no longer answers. If PostgreSQL stops, callers get an error immediately. But if
// PostgreSQL hangs, or if the network loses everything, no answer comes. Without the monitor, each call would wait until
// its own time limit, and all other calls would wait behind it.
//
// The monitor sends small queries. If such a query waits for about a second and no connection gets an answer in this
// time, the database is silent. Then the monitor ends the context of all statements. Calls that read or wait are
// refused, as if PostgreSQL had stopped. A transaction before COMMIT is lost, so nothing of it is stored. A transaction
// during COMMIT is in doubt, and its caller gets an error that says so. New calls are refused until PostgreSQL answers
// a query again.
type Monitor struct {
	db       *sql.DB
	logger   *slog.Logger
	answered atomic.Uint64 // counts the answers on all connections
	life     atomic.Pointer[connLife]
	conn     *sql.Conn   // the monitor's own connection; nil: not open yet
	dialling atomic.Bool // true while the monitor opens conn, which has its own time limit
	stop     context.CancelFunc
	done     chan struct{}
}

// connLife is a period in which the database answers. It is a context that ends with errAway when the answers stop.
type connLife struct {
	context.Context
	end context.CancelCauseFunc
}

const (
	watchTick  = 100 * time.Millisecond
	askEvery   = 3               // how many ticks pass between two queries
	maxSilence = 8               // if a query waits and no answer comes for so many ticks, the database is silent
	askAgain   = 2               // how many ticks pass between two queries while the database is silent
	askWait    = 1 * time.Second // how long the monitor waits for an answer on an open connection while the database is silent
)

// errAway marks errors that occur because the database does not answer.
var errAway = errors.New("the database does not answer")

// startMonitor starts a monitor that sends its queries on a connection of db.
func startMonitor(db *sql.DB, logger *slog.Logger) *Monitor {
	ctx, stop := context.WithCancel(context.Background())
	w := &Monitor{db: db, logger: logger, stop: stop, done: make(chan struct{})}
	w.begin()
	go w.loop(ctx)
	return w
}

func (w *Monitor) begin() {
	l := &connLife{}
	l.Context, l.end = context.WithCancelCause(context.Background())
	w.life.Store(l)
}

// close stops the monitor. Running statements continue.
func (w *Monitor) close() {
	if w == nil {
		return
	}
	w.stop()
	<-w.done
}

// context returns the context for all statements. It ends when the database no longer answers. The context of a nil
// monitor never ends.
func (w *Monitor) context() context.Context {
	if w == nil {
		return context.Background()
	}
	return w.life.Load().Context
}

// Bind returns a context that ends when the caller's context or the monitor's context ends. The caller must call free.
func (w *Monitor) Bind(ctx context.Context) (joined context.Context, free func()) {
	if w == nil {
		return ctx, func() {}
	}
	joined, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(w.context(), func() { cancel(errAway) })
	return joined, func() {
		stop()
		cancel(nil)
	}
}

// Unreachable returns errAway while the database does not answer.
func (w *Monitor) Unreachable() error { return context.Cause(w.context()) }

// observe is called with the result of every statement. A result from the database shows that the database is alive. If
// the error is caused by the silence of the database, observe wraps it with errAway.
func (w *Monitor) observe(ctx context.Context, err error) error {
	switch {
	case w == nil:
		return err
	case err == nil:
		w.answered.Add(1)
		return nil
	case errors.Is(context.Cause(ctx), errAway):
		return fmt.Errorf("%w: %w", errAway, err)
	}
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		w.answered.Add(1)
	}
	return err
}

func (w *Monitor) loop(ctx context.Context) {
	defer close(w.done)
	defer w.drop()
	for w.present(ctx) {
		if !w.absent(ctx) {
			return
		}
		w.begin()
		w.logger.Warn("the database answers again")
	}
}

// release ends the context of all statements, because the database is silent.
func (w *Monitor) release() {
	w.logger.Warn("the database does not answer")
	w.life.Load().end(errAway)
}

// present watches a database that answers. When the database stops answering, present calls release and returns true.
// It returns false when ctx ends. It counts time in ticks, so that a sleep of the machine does not look like silence.
// Waiting for a new connection counts as silence only if connecting takes longer than connectTimeout.
func (w *Monitor) present(ctx context.Context) bool {
	probe, cancel := context.WithCancel(ctx)
	defer cancel()
	answer := make(chan error, 1)
	var out bool
	var silent, quiet int
	last := w.answered.Load()
	for {
		if !out && quiet%askEvery == 0 {
			out = true
			go func() {
				answer <- w.ask(probe, 0)
			}()
		}
		fired, stop := clock.System().After(watchTick)
		select {
		case err := <-answer:
			stop()
			// If connecting timed out and no connection got an answer, the database is silent. Any other error proves
			// that the database answers. The monitor ignores such an error, because callers get the same error
			// themselves.
			if errors.Is(err, errNoConnection) && timedOut(err) && w.answered.Load() == last {
				w.release()
				return true
			}
			out, silent, quiet = false, 0, 1
			continue
		case <-ctx.Done():
			stop()
			cancel()
			if out {
				// Wait until the goroutine of ask has ended.
				<-answer //nolint:errcheck // the goroutine has ended; its error does not matter
			}
			return false
		case <-fired:
		}
		quiet++
		if now := w.answered.Load(); now != last || !out || w.dialling.Load() {
			last, silent = now, 0
			continue
		}
		if silent++; silent >= maxSilence {
			w.release()
			cancel()
			// Wait until the goroutine of ask has ended.
			<-answer //nolint:errcheck // the goroutine has ended; its error does not matter
			return true
		}
	}
}

// absent returns true when the database answers again, or false when ctx ends.
func (w *Monitor) absent(ctx context.Context) bool {
	for {
		if w.ask(ctx, askWait) == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if clock.System().Sleep(ctx, askAgain*watchTick) != nil {
			return false
		}
	}
}

// errNoConnection marks errors from opening a connection.
var errNoConnection = errors.New("no connection")

func timedOut(err error) bool {
	return pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded)
}

// ask sends the query on the monitor's own connection, and opens this connection if necessary. wait limits the time for
// the answer, but not for opening the connection. If wait is 0, only ctx limits the time.
func (w *Monitor) ask(ctx context.Context, wait time.Duration) error {
	if w.conn == nil {
		w.dialling.Store(true)
		conn, err := w.db.Conn(ctx)
		w.dialling.Store(false)
		if err != nil {
			return fmt.Errorf("%w: %w", errNoConnection, err)
		}
		w.conn = conn
	}
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	_, err := w.conn.ExecContext(ctx, "select 1")
	if err != nil {
		w.drop()
	}
	return err
}

// drop closes the monitor's connection.
func (w *Monitor) drop() {
	if w.conn == nil {
		return
	}
	_ = w.conn.Raw(func(any) error { return driver.ErrBadConn }) // close the connection, because it is lost or not needed any more
	_ = w.conn.Close()
	w.conn = nil
}
