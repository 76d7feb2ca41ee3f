package devicecommand

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"puntuale/internal/client"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	message := json.RawMessage(`{"message_id": 12, "text": "perché"}`)
	for text, want := range map[string]struct {
		outcome client.Outcome
		detail  string
		fails   bool
	}{
		`true`: {client.Sent, "", false},
		`cat`:  {client.Sent, string(message), false},
		`echo; echo " queued as 7 "; echo more; echo errors >&2`: {client.Sent, "queued as 7", false},
		`echo no such number >&2; exit 65`:                       {client.Refused, "no such number", false},
		`echo no line; exit 75`:                                  {client.Returned, "no line", false},
		`exit 3`:                                                 {client.Unknown, "the command ended with exit status 3", false},
		`echo half; exit 1`:                                      {client.Unknown, "half", false},
		`kill -9 $$`:                                             {client.Unknown, "the command ended with signal: killed", false},
		`exec /nowhere/send`:                                     {client.Unknown, "", true},
		`printf '\377ab'; head -c 1000 /dev/zero | tr '\0' x`: {client.Sent, "ab" + strings.Repeat("x", 298), false},
		`head -c 100000 /dev/zero | tr '\0' '\n'; echo x`:     {client.Sent, "", false},
	} {
		outcome, detail, err := Command(text, time.Minute, io.Discard)(message)
		if outcome != want.outcome || (err != nil) != want.fails || !want.fails && detail != want.detail {
			t.Errorf("%s: %s, %q, %v", text, outcome, detail, err)
		}
	}
}

// TestCommandTakesTooLong: a slow command is killed with all its children, and does not delay the device.
func TestCommandTakesTooLong(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "never")
	outcome, detail, err := Command(`mkfifo `+pipe+`; echo begun; cat `+pipe+` & wait`, 300*time.Millisecond, io.Discard)(json.RawMessage(`{}`))
	if outcome != client.Unknown || detail != "killed after 300ms: begun" || err != nil {
		t.Errorf("%s, %q, %v", outcome, detail, err)
	}
}
