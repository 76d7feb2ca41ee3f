package queue

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// event is an entry of a message's history: a retry, a refusal, an uncertain outcome or a late receipt.
type event struct {
	puntuale.MessageRef
	kind   string
	detail puntuale.Reason
}

func writeEvents(ctx context.Context, a engine.Querier, at time.Time, events []event) error {
	if len(events) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `insert into event (client_id, message_id, at, kind, detail)
 select u.c, u.i, $1::bigint, u.k, u.d from $u(c bigint, i bigint, k text, d text)`, engine.Micros(at), engine.Columns{
		engine.Column(events, func(e *event) int64 { return int64(e.Client) }),
		engine.Column(events, func(e *event) int64 { return int64(e.ID) }),
		engine.Column(events, func(e *event) string { return e.kind }),
		engine.Column(events, func(e *event) string { return e.detail.Stored() }),
	}); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}
