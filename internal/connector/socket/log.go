//go:build !nosocket

package socket

import (
	"context"
	"fmt"
	"log/slog"

	waLog "go.mau.fi/whatsmeow/util/log"
)

// quiet logs what the library logs, but at debug level, because it names people's numbers. The library's own debug lines
// are dropped: they are the stanzas, with codes and keys.
type quiet struct{ log *slog.Logger }

var _ waLog.Logger = quiet{}

func (q quiet) Warnf(format string, args ...any)  { q.say("warning", format, args) }
func (q quiet) Errorf(format string, args ...any) { q.say("error", format, args) }
func (q quiet) Infof(format string, args ...any)  { q.say("info", format, args) }
func (q quiet) Debugf(string, ...any)             {}
func (q quiet) Sub(string) waLog.Logger           { return q }

func (q quiet) say(level, format string, args []any) {
	if q.log.Enabled(context.Background(), slog.LevelDebug) {
		q.log.Debug("whatsmeow", "level_there", level, "said", fmt.Sprintf(format, args...))
	}
}

// silent keeps the encryption library from writing to standard error. It returns the same facts as errors.
type silent struct{}

func (silent) Debug(string, string)   {}
func (silent) Info(string, string)    {}
func (silent) Warning(string, string) {}
func (silent) Error(string, string)   {}
func (silent) Configure(string)       {}
