package main

import (
	"context"
	"fmt"
	"time"

	"puntuale"
)

// callAll makes start calls without measuring. Each call is for a different recipient. The argument from is the index
// of the first recipient.
func (f *fixture) callAll(ctx context.Context, address string, connections, calls, from int, whole bool) error {
	_, err := f.drive(ctx, address, connections, calls, from, whole)
	return err
}

// drive makes start calls over connections that stay open. It returns how long all calls took together. Each connection
// waits for an answer before its next call.
func (f *fixture) drive(ctx context.Context, address string, connections, calls, from int, whole bool) (time.Duration, error) {
	open := make([]*caller, connections)
	for i := range open {
		c, err := dial(address)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		open[i] = c
	}
	paths := make([]string, len(f.clients))
	for i, c := range f.clients {
		paths[i] = "/api/start/" + c.sequence.String()
	}
	return each(calls, connections, func(worker, i int) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		i += from
		c, once := f.clients[i%len(f.clients)], ""
		if whole {
			once = fmt.Sprintf("call-%d", i)
		}
		body := fmt.Appendf(nil, `{"phone":"+39347%07d","nome":"Maria"}`, i)
		return open[worker].post(paths[i%len(paths)], c.key, once, body)
	})
}

// setCaps gives every client a daily cap that no measurement reaches.
func (f *fixture) setCaps(ctx context.Context) error {
	limit := int64(100_000_000)
	for _, c := range f.clients {
		if _, err := f.store.Partner(1).UpdateClient(ctx, c.id, puntuale.ClientPatch{Cap: puntuale.Change[*int64]{Set: true, To: &limit}}, time.Now()); err != nil {
			return fmt.Errorf("set a cap: %w", err)
		}
	}
	return nil
}
