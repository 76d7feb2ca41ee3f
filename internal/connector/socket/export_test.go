//go:build !nosocket

package socket

import (
	"context"

	"go.mau.fi/whatsmeow/store"

	"puntuale"
)

// Adopt links a session without a pairing. It calls link to give the new device to a number.
func (c *Connector) Adopt(ctx context.Context, session puntuale.SessionID, link func(*store.Device) error) error {
	d, err := c.devices(ctx)
	if err != nil {
		return err
	}
	device := d.fresh(session)
	if err := link(device); err != nil {
		return err
	}
	return device.Save(ctx)
}

// Sweep runs one sweep now. The sweep removes the keys of sessions that do not exist any more.
func (c *Connector) Sweep(ctx context.Context) error { return c.sweepOnce(ctx) }

// Waiting returns how many people a session's next query will ask about.
func (c *Connector) Waiting(session puntuale.SessionID) int {
	p := c.number(session).people
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}
