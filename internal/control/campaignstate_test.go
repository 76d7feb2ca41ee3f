package control

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/campaign"
)

// A panic in a check is an error of this check, which its call gets, and does not end the server.
func TestPanicOfCheckIsAnError(t *testing.T) {
	t.Parallel()
	c := &Client{control: &Control{logger: slog.New(slog.DiscardHandler)}, account: puntuale.Client{ID: 7}}
	left := make(chan struct{})
	check := &campaign.Check{Now: func() time.Time { panic("a bad list") }}
	err := <-c.runCheck(t.Context(), 9, check, func() { close(left) })
	if err == nil || !strings.Contains(err.Error(), "a bad list") {
		t.Errorf("the call got %v", err)
	}
	<-left // the check has given its place back
	c.control.checks.Wait()
}
