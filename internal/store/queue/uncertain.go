package queue

import (
	"context"
	"fmt"
	"strconv"

	"puntuale"
	"puntuale/internal/store/engine"
)

// isUncertain is [puntuale.Message.Uncertain] as a condition, for statements that update the table message.
var isUncertain = `message.intent > 0 and message.next_at > message.intent_at and not (message.intent >= ` + strconv.FormatInt(puntuale.DeviceToken, 10) + ` and message.detail = '')`

// UncertainBefore finds those of the given messages that are uncertain now, or were uncertain at an earlier time.
var UncertainBefore = `
select message.client_id, message.id from $u(c bigint, i bigint) cross join message
where message.client_id = u.c and message.id = u.i and ` + isUncertain + `
union all
select u.c, u.i from $u(c bigint, i bigint) cross join event h where h.client_id = u.c and h.message_id = u.i and h.kind = 'uncertain'
union all
select u.c, u.i from $u(c bigint, i bigint) cross join outbox_event e where e.client_id = u.c and e.subject = u.i
 and e.type = ` + strconv.Itoa(int(puntuale.EventMessageUncertain))

// uncertainBefore locks the messages, and returns those that are uncertain now or were uncertain earlier. For these
// messages, the event was already written and must not be written again. sorted must be in the order of locks.
func uncertainBefore(ctx context.Context, a engine.Querier, sorted []puntuale.MessageRef) (map[puntuale.MessageRef]bool, error) {
	if len(sorted) == 0 {
		return nil, nil //nolint:nilnil // without messages there is nothing to look for
	}
	if err := LockMessages(ctx, a, sorted); err != nil {
		return nil, err
	}
	known := map[puntuale.MessageRef]bool{}
	if err := a.Query(ctx, UncertainBefore, []any{RefColumns(sorted)}, func(r engine.Row) error {
		var ref puntuale.MessageRef
		err := ScanRef(r, &ref)
		known[ref] = true
		return err
	}); err != nil {
		return nil, fmt.Errorf("look for uncertain messages: %w", err)
	}
	return known, nil
}
