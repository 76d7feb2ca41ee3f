package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/store/engine"
)

// listener keeps a connection that listens for wakeups. If the connection is lost, the listener opens another one.
// Without wakeups nothing arrives on the connection, so the listener regularly checks whether PostgreSQL still answers.
// The connection monitor ignores this connection.
type listener struct {
	cfg      *pgx.ConnConfig
	watch    *engine.Monitor
	logger   *slog.Logger
	notifier *notifier
	wakeup   puntuale.Wakeup

	echoes uint64 // how many of this process's own notifications came back
	noEcho bool   // true: own notifications do not come back, and this was logged
	lost   bool   // true: the connection is lost, and this was logged
	stop   context.CancelFunc
	done   chan struct{}
}

const (
	listenProbe = 10 * time.Second // after this silence, the listener sends a query to check whether PostgreSQL answers
	listenWait  = 5 * time.Second  // how long the listener waits for the answer to this query
	listenPause = 250 * time.Millisecond
	maxListen   = 2 * time.Second // longest wait before the listener tries again to listen
)

// Listen calls wakeup for each wakeup of another node, until the store is closed. Call Listen at most once for each
// store. wakeup must not block. Wakeups are lost while the database cannot be reached. They never arrive behind a
// connection pooler in transaction mode. On SQLite there are no wakeups.
func (s *Fleet) Listen(wakeup puntuale.Wakeup) {
	if s.notifier == nil || s.listener != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	cfg := s.notifier.cfg.Copy()
	cfg.RuntimeParams["application_name"] = s.Name + listenName
	s.listener = &listener{
		cfg: cfg, watch: s.Monitor, logger: s.Config.Logger, notifier: s.notifier, wakeup: wakeup, stop: stop, done: make(chan struct{}),
	}
	go s.listener.loop(ctx)
}

func (l *listener) close() {
	if l == nil {
		return
	}
	l.stop()
	<-l.done
}

func (l *listener) loop(ctx context.Context) {
	defer close(l.done)
	for pause := listenPause; ; pause = min(2*pause, maxListen) {
		listened, err := l.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if listened {
			pause = listenPause
		}
		if !l.lost {
			l.lost = true
			l.logger.Warn("other servers are not heard; what is due is found by looking", "error", err)
		}
		if clock.System().Sleep(ctx, pause) != nil {
			return
		}
	}
}

// listen opens a connection and reads from it until it fails. listened reports whether the connection had begun to
// listen.
func (l *listener) listen(ctx context.Context) (listened bool, err error) {
	if err := l.watch.Unreachable(); err != nil {
		return false, err
	}
	ctx, free := l.watch.Bind(ctx)
	defer free()
	conn, err := pgx.ConnectConfig(ctx, l.cfg)
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	defer closeConn(conn)
	if err := within(ctx, listenWait, func(ctx context.Context) error {
		_, err := conn.Exec(ctx, "listen "+wakeupChannel)
		return err
	}); err != nil {
		return false, fmt.Errorf("listen: %w", err)
	}
	if l.lost {
		l.lost = false
		l.logger.Info("other servers are heard again")
	}
	began, before, echoes := l.notifier.sent.Load(), l.notifier.sent.Load(), l.echoes
	for {
		var n *string
		err := within(ctx, listenProbe, func(ctx context.Context) error {
			got, err := conn.WaitForNotification(ctx)
			if err == nil {
				n = &got.Payload
			}
			return err
		})
		switch {
		case err == nil:
			l.receive(*n)
		case ctx.Err() != nil || conn.IsClosed():
			return true, err
		default:
			if err := within(ctx, listenWait, conn.Ping); err != nil {
				return true, fmt.Errorf("ask: %w", err)
			}
			l.checkEchoes(before > began, l.echoes > echoes)
			before = l.notifier.sent.Load()
		}
	}
}

func within(ctx context.Context, wait time.Duration, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return do(ctx)
}

func (l *listener) receive(payload string) {
	origin, words, _ := strings.Cut(payload, " ")
	if origin == l.notifier.origin {
		l.echoes++
		return
	}
	readPayload(words, l.wakeup)
}

// checkEchoes logs a warning if this process does not receive its own wakeups.
func (l *listener) checkEchoes(notified, received bool) {
	switch {
	case received:
		l.noEcho = false
	case notified && !l.noEcho:
		l.noEcho = true
		l.logger.Warn("wake-ups between servers do not arrive, so messages may leave up to a second late: is there a pooler before PostgreSQL that works by transaction?")
	}
}
