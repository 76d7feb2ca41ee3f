package logging

import (
	"context"
	"errors"
	"log/slog"

	"puntuale"
)

// panics writes every line with a [puntuale.PanicError] at level error and with the panic's stack, whatever level the caller
// chose. A panic is a fault in the program, so somebody must act. The stack is no part of the error's text, because reasons
// that clients read are made of this text.
type panics struct{ slog.Handler }

func (h panics) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, level) || level == slog.LevelWarn && h.Handler.Enabled(ctx, slog.LevelError)
}

func (h panics) Handle(ctx context.Context, r slog.Record) error {
	var p *puntuale.PanicError
	r.Attrs(func(a slog.Attr) bool {
		err, _ := a.Value.Any().(error)
		return !errors.As(err, &p)
	})
	if p != nil {
		r = r.Clone()
		r.Level = max(r.Level, slog.LevelError)
		r.AddAttrs(slog.String("stack", string(p.Stack)))
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h panics) WithAttrs(attrs []slog.Attr) slog.Handler { return panics{h.Handler.WithAttrs(attrs)} }
func (h panics) WithGroup(name string) slog.Handler       { return panics{h.Handler.WithGroup(name)} }
