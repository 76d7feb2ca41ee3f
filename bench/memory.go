package main

import (
	"context"
	"errors"
	"time"
)

func resident(engine string, pending int) string {
	if pending == 0 {
		return onEngine("resident memory of the server, idle", engine)
	}
	return onEngine("resident memory of the server, "+count(pending)+" pending", engine)
}

// memory measures the memory of a running server while it sends and answers. No other measurement runs at the same
// time.
func (b *bench) memory(ctx context.Context) (failed error) {
	for _, engine := range b.engines() {
		for _, pending := range append([]int{0}, b.pending...) {
			if pending > 0 && pending < 3*b.rows || pending > 1_000_000 && !b.first() {
				continue
			}
			failed = errors.Join(failed, b.residentMemory(ctx, engine, pending))
		}
	}
	return failed
}

func (b *bench) residentMemory(ctx context.Context, engine string, pending int) error {
	f, err := b.fixture(ctx, engine, pending)
	if err != nil {
		return err
	}
	defer f.close()
	s, err := b.server(ctx, f)
	if err != nil {
		return err
	}
	defer s.stop()
	select {
	case <-time.After(b.settle):
	case <-ctx.Done():
		return ctx.Err()
	}
	now, err := s.memory("VmRSS")
	if err == nil {
		b.sheet.note(resident(engine, pending), mebibytes, now)
	}
	return err
}
