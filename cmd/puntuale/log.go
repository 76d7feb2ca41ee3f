package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"time"

	"github.com/lmittmann/tint"
)

// newLogger writes for people on a terminal, JSON lines elsewhere. No API key gets out, whoever logs it: keys travel in
// addresses, and addresses end up in errors.
func newLogger(w io.Writer, terminal bool, level slog.Level) *slog.Logger {
	if terminal {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, ReplaceAttr: attribute}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: attribute}))
}

// attribute is the last look at every attribute, and at the message, before it is written: keys are cut out, and
// durations get their unit.
func attribute(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindDuration:
		return slog.String(a.Key, a.Value.Duration().String())
	case slog.KindString, slog.KindAny:
		for _, text := range texts(a.Value.Any()) {
			if keyShape.MatchString(text) {
				return slog.String(a.Key, keyShape.ReplaceAllString(text, "$1…"))
			}
		}
	default: // numbers and times
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

// keyShape finds what looks like a key by its prefix, and whatever stands where a key belongs.
var keyShape = regexp.MustCompile(`(?i)(\b[pc]k_|api_key(?:=|%3d)|\bbearer )[^&#\s"'\\<>,;)\]}…]+`)
