package control

import (
	"context"
	"fmt"
	"puntuale/internal/control/request"
	"time"

	"puntuale"
)

// SandboxMessages lists what the simulated network received of the client, oldest first. Nothing is missing before the
// end of a page that is followed by another; one that ends within the last two seconds waits. Codes: invalid.
func (c *Client) SandboxMessages(ctx context.Context, p request.Page) ([]puntuale.SandboxMessage, string, error) {
	rows, next, err := request.List(p, func(p puntuale.Page) (rows []puntuale.SandboxMessage, next string, err error) {
		err = c.follow(ctx, func(time.Time) (complete time.Time, err error) {
			rows, next, err = c.tenant.SandboxMessages(ctx, p)
			if next != "" {
				complete = rows[len(rows)-1].Received
			}
			return complete, err
		})
		return rows, next, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list sandbox messages: %w", err)
	}
	return rows, next, nil
}
