package logging

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
)

// accessLine is the message that httpkit logs for every answer.
const accessLine = "request"

// sampled drops most lines of the access log, but keeps all errors.
type sampled struct {
	slog.Handler
	share float64 // the fraction of lines that is written
	seen  *atomic.Uint64
}

// Sampled returns a logger that writes only a fraction of the answers in the access log: 1 means all, 0 means none.
func Sampled(logger *slog.Logger, share float64) *slog.Logger {
	if share >= 1 {
		return logger
	}
	return slog.New(sampled{logger.Handler(), share, &atomic.Uint64{}})
}

func (h sampled) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == accessLine && answered(&r) && !h.takes() {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// takes returns true for a fraction of its calls, at regular intervals. The field share is this fraction. With 0.01,
// takes returns true for each hundredth call.
func (h sampled) takes() bool {
	n := h.seen.Add(1)
	return uint64(float64(n)*h.share) != uint64(float64(n-1)*h.share)
}

// answered reports whether a line is about an answer that is not an error.
func answered(r *slog.Record) (yes bool) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "status" {
			return true
		}
		yes = a.Value.Kind() == slog.KindInt64 && a.Value.Int64() < http.StatusBadRequest
		return false
	})
	return yes
}

func (h sampled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sampled{h.Handler.WithAttrs(attrs), h.share, h.seen}
}

func (h sampled) WithGroup(name string) slog.Handler {
	return sampled{h.Handler.WithGroup(name), h.share, h.seen}
}
