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

// If PostgreSQL stops, its callers get an error at once. If it hangs, or the network drops everything, there is no answer. Then each call
// would wait for its own limit, and all other calls would wait behind it.
//
// The monitor notices that within about a second: no connection got an answer while the monitor's own small query waited. It then ends the
// context of all statements. Callers that read or wait are refused, as if the store had stopped. A transaction before COMMIT is lost, so
// nothing of it is stored. A transaction in COMMIT is in doubt, and its caller gets an error that says so. New calls are refused until a
// query is answered again.
type Monitor struct {
	db       *sql.DB
	logger   *slog.Logger
	answered atomic.Uint64 // counts the database's answers to all connections
	life     atomic.Pointer[connLife]
	conn     *sql.Conn   // the monitor's own; nil until it is open
	dialling atomic.Bool // conn is being opened, which has its own time limit
	stop     context.CancelFunc
	done     chan struct{}
}

// connLife is a period in which the database answers. When it stops answering, the context of the period ends with errAway.
type connLife struct {
	context.Context
	end context.CancelCauseFunc
}

const (
	watchTick   = 100 * time.Millisecond
	askEvery    = 3               // ticks between queries
	silenceMost = 8               // ticks without any answer while a query waits
	askAgain    = 2               // ticks between questions while the database is away
	askWait     = 1 * time.Second // for an answer on an open connection while the database is away
)

// errAway is the cause of errors that come because the database does not answer.
var errAway = errors.New("the database does not answer")

// startMonitor sends its queries on connections of db.
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

// close ends only the monitor. Statements under way go on.
func (w *Monitor) close() {
	if w == nil {
		return
	}
	w.stop()
	<-w.done
}

// context is the context of all statements. It ends when the database no longer answers. With a nil monitor it never ends.
func (w *Monitor) context() context.Context {
	if w == nil {
		return context.Background()
	}
	return w.life.Load().Context
}

// Bind joins a caller's context with the monitor's, until free is called.
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

// Away returns errAway while the database does not answer.
func (w *Monitor) Away() error { return context.Cause(w.context()) }

// heard notes how a statement ended. An answer shows that the database is alive. If an error comes from the database's silence, heard marks
// it with errAway.
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

// release ends the life and frees its context.
func (w *Monitor) release() {
	w.logger.Warn("the database does not answer")
	w.life.Load().end(errAway)
}

// present returns true when the database no longer answers, after it ended the life. It returns false when ctx ends. It counts time in
// ticks, one after the other, so that a sleep of the machine does not look like a silent database. Waiting for a new connection is not
// silence, but reaching connectTimeout is.
func (w *Monitor) present(ctx context.Context) bool {
	asked, cancel := context.WithCancel(ctx)
	defer cancel()
	answer := make(chan error, 1)
	var out bool
	var silent, quiet int
	last := w.answered.Load()
	for {
		if !out && quiet%askEvery == 0 {
			out = true
			go func() {
				answer <- w.ask(asked, 0)
			}()
		}
		fired, stop := clock.System().After(watchTick)
		select {
		case err := <-answer:
			stop()
			// Any other error is an answer, too, and its caller gets it.
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
				<-answer //nolint:errcheck // only its end matters now
			}
			return false
		case <-fired:
		}
		quiet++
		if now := w.answered.Load(); now != last || !out || w.dialling.Load() {
			last, silent = now, 0
			continue
		}
		if silent++; silent >= silenceMost {
			w.release()
			cancel()
			<-answer //nolint:errcheck // only its end matters now
			return true
		}
	}
}

// absent returns true when the database answers again, false when ctx ends.
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

// errNoConnection marks the error of making a connection.
var errNoConnection = errors.New("no connection")

func timedOut(err error) bool {
	return pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded)
}

// ask sends the query on the monitor's own connection, and opens one if there is none. wait bounds only the answer. With 0, only ctx bounds
// it.
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
	_ = w.conn.Raw(func(any) error { return driver.ErrBadConn }) // the connection is lost, or not needed any more
	_ = w.conn.Close()
	w.conn = nil
}
