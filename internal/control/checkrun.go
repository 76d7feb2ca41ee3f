package control

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"puntuale"
	"puntuale/internal/campaign"
)

// runCheck runs a campaign's check apart from the call, which may stop waiting for it. The result gets the error of the
// check. A check that fails after its call ended is only logged, and the next call begins a new check. The check ends
// when the server begins to stop; see [Control.Wait].
func (c *Client) runCheck(ctx context.Context, id puntuale.CampaignID, check *campaign.Check, leave func()) <-chan error {
	ended := make(chan error, 1)
	apart, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxCheckTime)
	done := make(chan struct{})
	go func() {
		select {
		case <-c.control.stopping:
			cancel()
		case <-done:
		}
	}()
	c.control.checks.Go(func() {
		defer leave()
		defer cancel()
		defer close(done)
		err := recovered(func() error { return check.Run(apart) })
		if err != nil && apart.Err() == nil {
			slog.Error("the check of a campaign failed", "campaign_id", int64(id), "client_id", int64(c.ID()), "error", err)
		}
		select {
		case <-c.control.stopping: // the call answers with what was checked until now
			err = nil
		default:
		}
		ended <- err
	})
	return ended
}

// recovered turns a panic into an error, so that one bad campaign does not end the server.
func recovered(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a panic: %v\n%s", r, debug.Stack())
		}
	}()
	return do()
}

// Wait waits for checks that no call waits for any more, but not longer than ctx. The checks end soon after the server
// began to stop. Call Wait before the store is closed.
func (c *Control) Wait(ctx context.Context) {
	ended := make(chan struct{})
	go func() { defer close(ended); c.checks.Wait() }()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
