package control

import (
	"context"
	"fmt"

	"puntuale"
)

// SandboxMessages lists what the simulated network received of the client, oldest first. Codes: invalid.
func (c *Client) SandboxMessages(ctx context.Context, p Page) ([]puntuale.SandboxMessage, string, error) {
	rows, next, err := list(p, func(p puntuale.Page) ([]puntuale.SandboxMessage, string, error) {
		return c.tenant.SandboxMessages(ctx, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list sandbox messages: %w", err)
	}
	return rows, next, nil
}
