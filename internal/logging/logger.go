package logging

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"time"

	"github.com/lmittmann/tint"
)

// New returns a logger that writes text for people on a terminal, and JSON lines elsewhere. It removes API keys from
// every line, whatever code logs them. Keys are in URLs, and URLs are in errors. A line about a panic has level error and
// the stack.
func New(w io.Writer, terminal bool, level slog.Level) *slog.Logger {
	if terminal {
		return slog.New(panicHandler{tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, ReplaceAttr: attribute})})
	}
	return slog.New(panicHandler{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: attribute})})
}

// Lowered returns a logger that writes lines of level info at level debug.
func Lowered(logger *slog.Logger) *slog.Logger { return slog.New(lowered{logger.Handler()}) }

type lowered struct{ slog.Handler }

func (h lowered) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, lowerLevel(level))
}

func (h lowered) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lowerLevel(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h lowered) WithAttrs(attrs []slog.Attr) slog.Handler {
	return lowered{h.Handler.WithAttrs(attrs)}
}
func (h lowered) WithGroup(name string) slog.Handler { return lowered{h.Handler.WithGroup(name)} }

func lowerLevel(level slog.Level) slog.Level {
	if level == slog.LevelInfo {
		return slog.LevelDebug
	}
	return level
}

// attribute is called for every attribute, and for the message, before it is written. It removes keys, and formats
// durations with their unit.
func attribute(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindDuration:
		return slog.String(a.Key, a.Value.Duration().String())
	case slog.KindString, slog.KindAny:
		for _, text := range texts(a.Value.Any()) {
			if keyShape.MatchString(text) {
				return slog.String(a.Key, WithoutKeys(text))
			}
		}
	default: // numbers and times contain no key
	}
	return a
}

// texts returns the forms in which a handler may write a value.
func texts(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []byte:
		return []string{string(v)}
	case error, fmt.Stringer:
		return []string{fmt.Sprint(v)}
	}
	forms := []string{fmt.Sprintf("%+v", value)}
	if encoded, err := json.Marshal(value); err == nil {
		forms = append(forms, string(encoded))
	}
	return forms
}

// keyShape matches texts that begin like a key, and any text in a place where a key should be.
var keyShape = regexp.MustCompile(`(?i)(\b[pc]k_|api_key(?:=|%3d)|\bbearer )[^&#\s"'\\<>,;)\]}…]+`)

// WithoutKeys removes texts that look like a key. This protects keys that somebody pasted in a wrong place.
func WithoutKeys(text string) string { return keyShape.ReplaceAllString(text, "$1…") }
