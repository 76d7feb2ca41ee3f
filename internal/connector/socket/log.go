//go:build !nosocket

package socket

import (
	"context"
	"fmt"
	"log/slog"

	waLog "go.mau.fi/whatsmeow/util/log"
)

// quiet logs the library's messages at debug level, because they contain people's numbers. It drops the library's own
// debug messages, because they contain whole stanzas with codes and keys.
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

// silent stops the encryption library from writing to standard error. That library also returns the same facts as
// errors.
type silent struct{}

func (silent) Debug(string, string)   {}
func (silent) Info(string, string)    {}
func (silent) Warning(string, string) {}
func (silent) Error(string, string)   {}
func (silent) Configure(string)       {}
