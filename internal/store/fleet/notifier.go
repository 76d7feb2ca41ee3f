package fleet

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/store/engine"
)

// Nodes wake each other with NOTIFY on a separate connection, after the commit that made something due. NOTIFY inside
// the commit would halve the rate of commits, because PostgreSQL takes one lock for all commits with NOTIFY. While a
// notification is being sent, the notifier collects new wakeups. The next notification contains all of them. A wakeup
// may be lost, so all listeners also poll.
const wakeupChannel = "puntuale_hint"

// Suffixes of the connections' names in pg_stat_activity.
const (
	wakeupName = " hints"
	listenName = " listens"
)

const (
	wakeupPace  = 50 * time.Millisecond // time between notifications, so at most 20 a second
	maxWakeups  = 4096                  // largest number of sessions whose wakeups wait to be sent; the poll finds the messages of other sessions
	wakeupBytes = 7900                  // largest size of one payload in bytes; PostgreSQL accepts less than 8,000
	tellWait    = 2 * time.Second       // how long it may take to send one notification
	lastWait    = time.Second           // how long it may take to send the last notification, or to close a connection
)

// notifier sends wakeups. Its goroutine opens the connection at the first wakeup.
type notifier struct {
	cfg    *pgx.ConnConfig
	watch  *engine.Monitor
	logger *slog.Logger
	origin string        // first word of this process's payloads, by which the process recognises them
	sent   atomic.Uint64 // number of notifications that were sent

	mu      sync.Mutex
	waiting map[puntuale.SessionID]pendingWakeup
	wake    chan struct{} // has a value while wakeups wait

	conn   *pgx.Conn // only the notifier's goroutine uses it; nil: not open yet
	failed bool      // true: the last notification failed, and this was logged
	stop   context.CancelFunc
	done   chan struct{}
}

// pendingWakeup collects the wakeups of one session that wait to be sent.
type pendingWakeup struct {
	changed    bool
	first      time.Time // earliest due time; zero: the wakeups contain no due time
	horizonEnd time.Time // latest due time
}

func (s *Fleet) newNotifier() (*notifier, error) {
	cfg, err := s.PostgresConfig(s.Config.Database, map[string]string{"synchronous_commit": "off"})
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams["application_name"] += wakeupName
	return startNotifier(cfg, s.Monitor, s.Config.Logger), nil
}

func startNotifier(cfg *pgx.ConnConfig, w *engine.Monitor, logger *slog.Logger) *notifier {
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // preparing a statement would cost a round trip on each new connection
	ctx, stop := context.WithCancel(context.Background())
	t := &notifier{
		cfg: cfg, watch: w, logger: logger, origin: rand.Text()[:8], waiting: map[puntuale.SessionID]pendingWakeup{},
		wake: make(chan struct{}, 1), stop: stop, done: make(chan struct{}),
	}
	go t.loop(ctx)
	return t
}

// Notify wakes the other nodes, because a message of a session is due at the time in the argument due. If due is zero,
// the session changed. Session 0 means that owners of sessions changed. Notify never blocks. Call it only after the
// change is on disk. On SQLite it does nothing, because only one process dispatches.
func (s *Fleet) Notify(session puntuale.SessionID, due time.Time) {
	if s.notifier != nil {
		s.notifier.add(session, due)
	}
}

func (t *notifier) add(session puntuale.SessionID, due time.Time) {
	t.mu.Lock()
	n, known := t.waiting[session]
	if !known && len(t.waiting) >= maxWakeups {
		t.mu.Unlock()
		return
	}
	n.changed = n.changed || due.IsZero()
	if due.After(n.horizonEnd) {
		n.horizonEnd = due
	}
	if !due.IsZero() && (n.first.IsZero() || due.Before(n.first)) {
		n.first = due
	}
	t.waiting[session] = n
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// close sends the waiting wakeups, closes the connection, and ends the goroutine. Each of these takes at most lastWait.
func (t *notifier) close() {
	if t == nil {
		return
	}
	t.stop()
	<-t.done
}

func (t *notifier) loop(ctx context.Context) {
	defer close(t.done)
	defer t.drop()
	for {
		select {
		case <-ctx.Done():
		case <-t.wake:
		}
		if ctx.Err() != nil {
			t.send(context.WithoutCancel(ctx), lastWait)
			return
		}
		pause := wakeupPace
		if !t.send(ctx, tellWait) {
			pause = time.Second
		}
		_ = clock.System().Sleep(ctx, pause) // Sleep ends early only if ctx ends; the next round checks ctx
	}
}

// send sends all waiting wakeups, and reports whether the database accepted them. Wakeups that the database refused are
// dropped.
func (t *notifier) send(ctx context.Context, within time.Duration) bool {
	payloads := t.take()
	if len(payloads) == 0 {
		return true
	}
	if t.watch.Unreachable() != nil {
		return false
	}
	ending := ctx
	ctx, free := t.watch.Bind(ctx)
	defer free()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	old := t.conn != nil
	err := t.notify(ctx, payloads)
	if err != nil && old { // try once more, because an old connection may have been broken for a long time
		err = t.notify(ctx, payloads)
	}
	if err != nil && ending.Err() != nil { // the error is caused by the end of this process, not by the database
		last, cancel := context.WithTimeout(context.WithoutCancel(ending), lastWait)
		err = t.notify(last, payloads)
		cancel()
	}
	switch {
	case err == nil:
		t.sent.Add(1)
		t.failed = false
	case !t.failed:
		t.failed = true
		t.logger.Warn("other servers were not woken; they find by themselves what is due", "error", err)
	}
	return err == nil
}

func (t *notifier) notify(ctx context.Context, payloads []string) (err error) {
	if t.conn == nil {
		if t.conn, err = pgx.ConnectConfig(ctx, t.cfg); err != nil {
			t.conn = nil
			return err
		}
	}
	if _, err = t.conn.Exec(ctx, "select pg_notify($1, p) from unnest($2::text[]) p", wakeupChannel, payloads); err != nil {
		t.drop()
	}
	return err
}

func (t *notifier) drop() {
	closeConn(t.conn)
	t.conn = nil
}

// closeConn closes a connection that may be broken.
func closeConn(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWait)
	defer cancel()
	_ = conn.Close(ctx) // the connection is closed even after an error
}

// take removes the waiting wakeups, and returns payloads that contain them.
func (t *notifier) take() (payloads []string) {
	t.mu.Lock()
	waiting := t.waiting
	t.waiting = map[puntuale.SessionID]pendingWakeup{}
	t.mu.Unlock()
	text := t.origin
	for session, n := range waiting {
		word := " " + n.word(session)
		if n.first.Before(n.horizonEnd) {
			word += " " + pendingWakeup{horizonEnd: n.first}.word(session)
		}
		if len(text)+len(word) > wakeupBytes {
			payloads = append(payloads, text)
			text = t.origin
		}
		text += word
	}
	if len(waiting) > 0 {
		payloads = append(payloads, text)
	}
	return payloads
}

// A payload is the sender's origin followed by words, separated by blanks. A word is the id of a session, usually
// followed by "." and the time at which a message is due. If the session also changed, the word has "!" instead of ".".
// A word without a time means that the session changed. If a session has several due times, there is one word for the
// latest and one word for the earliest. Numbers have base 36. Times are in microseconds of the Unix epoch.
const numerals = 36

func (n pendingWakeup) word(session puntuale.SessionID) string {
	word := strconv.FormatInt(int64(session), numerals)
	switch {
	case n.horizonEnd.IsZero():
		return word
	case n.changed:
		word += "!"
	default:
		word += "."
	}
	return word + strconv.FormatInt(n.horizonEnd.UnixMicro(), numerals)
}

// readPayload calls wakeup for each word of a payload. For a word with "!", it calls wakeup twice: once for the change,
// and once for the due time. It ignores words that it cannot read.
func readPayload(words string, wakeup puntuale.Wakeup) {
	for word := range strings.FieldsSeq(words) {
		id, moment := word, ""
		at := strings.IndexAny(word, ".!")
		if at >= 0 {
			id, moment = word[:at], word[at+1:]
		}
		session, err := strconv.ParseInt(id, numerals, 64)
		if err != nil || session < 0 {
			continue
		}
		if at < 0 || word[at] == '!' {
			wakeup(puntuale.SessionID(session), time.Time{})
		}
		if micro, err := strconv.ParseInt(moment, numerals, 64); err == nil {
			wakeup(puntuale.SessionID(session), time.UnixMicro(micro).UTC())
		}
	}
}
