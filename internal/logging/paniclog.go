package logging

import (
	"context"
	"errors"
	"log/slog"
)

// stackError is the error of a function that panicked; see puntuale.PanicError.
type stackError interface {
	error
	StackText() string
}

// panicHandler writes every line with a stackError among its own attributes at level error and with the panic's stack, also
// if the caller chose warn. A panic is a fault in the program, so somebody must act. The stack is no part of the error's text, because reasons
// that clients read are made of this text.
type panicHandler struct{ slog.Handler }

func (h panicHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, level) || level == slog.LevelWarn && h.Handler.Enabled(ctx, slog.LevelError)
}

func (h panicHandler) Handle(ctx context.Context, r slog.Record) error {
	var p stackError
	r.Attrs(func(a slog.Attr) bool {
		err, _ := a.Value.Any().(error)
		return !errors.As(err, &p)
	})
	if p != nil {
		r = r.Clone()
		r.Level = max(r.Level, slog.LevelError)
		r.AddAttrs(slog.String("stack", p.StackText()))
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h panicHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return panicHandler{h.Handler.WithAttrs(attrs)}
}
func (h panicHandler) WithGroup(name string) slog.Handler {
	return panicHandler{h.Handler.WithGroup(name)}
}
