package control

import (
	"context"
	"time"
)

// feedLag is how long after a moment something may still be committed that bears it. A feed that somebody follows says
// nothing final about the last two seconds: neither where the next page begins nor that a period is complete.
const feedLag = 2 * time.Second

// follow reads a part of a feed. read also returns the moment up to which its answer claims to be complete: zero when it
// claims nothing. Until that is feedLag ago the answer waits, at most as long as that, and is read again.
func (c *Client) follow(ctx context.Context, read func(now time.Time) (complete time.Time, err error)) error {
	for left := feedLag; ; {
		now := c.control.clock.Now()
		complete, err := read(now)
		if err != nil || complete.IsZero() {
			return err
		}
		wait := min(complete.Add(feedLag).Sub(now), left)
		if wait <= 0 {
			return nil
		}
		if err := c.control.clock.Sleep(ctx, wait); err != nil {
			return err
		}
		left -= wait
	}
}
