package logging

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"puntuale/internal/clock"
)

// refusedLine is the message that httpkit logs for every call that it answers with "unavailable".
const refusedLine = "request refused: unavailable"

// calm is how long no call may have been refused before an answered call ends the outage. Therefore, a store that fails
// repeatedly causes only one outage.
const calm = 5 * time.Second

// Outage writes two lines for all refusals while the store does not answer. The first line is the first refusal, with
// its cause. The second line comes at the end, and contains the number of refusals. One line for each refusal would
// hide the cause and fill the disk.
type Outage struct {
	clock  clock.Clock
	logger *slog.Logger

	mu          sync.Mutex
	began, last time.Time // zero: there is no outage
	refused     int
}

// NewOutage returns an Outage that waits for the first refusal. It writes its own lines to the logger.
func NewOutage(c clock.Clock, logger *slog.Logger) *Outage { return &Outage{clock: c, logger: logger} }

// Watching returns a logger that counts repeated refusals instead of writing them.
func (o *Outage) Watching(logger *slog.Logger) *slog.Logger {
	return slog.New(outageHandler{logger.Handler(), o})
}

// Answered must be called for every answer of the API.
func (o *Outage) Answered(route string, status int) {
	if status != http.StatusOK || !strings.Contains(route, " /api/") { // only a successful answer of the API proves that the store works
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.clock.Now(); o.refused > 0 && now.Sub(o.last) >= calm {
		o.end(now, "calls are answered again")
	}
}

// Stopped must be called when the server stops. If an outage has not ended, Stopped logs how many requests were refused.
func (o *Outage) Stopped() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refused > 0 {
		o.end(o.clock.Now(), "stopped while calls were refused")
	}
}

func (o *Outage) end(now time.Time, task string) {
	o.logger.Warn(task, "refused", o.refused, "since", o.began, "lasted", now.Sub(o.began)) //nolint:sloglint // the variable task has one of two constants
	o.began, o.last, o.refused = time.Time{}, time.Time{}, 0
}

// first counts a refusal and reports whether it begins an outage.
func (o *Outage) first() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = o.clock.Now()
	if o.refused == 0 {
		o.began = o.last
	}
	o.refused++
	return o.refused == 1
}

type outageHandler struct {
	slog.Handler
	outage *Outage
}

func (h outageHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == refusedLine && !h.outage.first() {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h outageHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return outageHandler{h.Handler.WithAttrs(attrs), h.outage}
}

func (h outageHandler) WithGroup(name string) slog.Handler {
	return outageHandler{h.Handler.WithGroup(name), h.outage}
}
