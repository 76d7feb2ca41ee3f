package reply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"puntuale"
	"puntuale/internal/store/engine"
)

// ReplyRules reads the triggers of active rules for replies (kind 1) of some clients.
const ReplyRules = `select a.client_id, a.trigger_text from $u(c bigint) cross join automation a where a.client_id = u.c and a.active = 1 and a.kind = 1`

// await marks messages of strangers as known if they are a word for which an active rule waits. The setting "known" keeps such replies, because
// a rule acts only on replies that are kept. A rule without words does not count: a linked phone also receives its owner's private chats.
func (b *inboundBatch) await(ctx context.Context) error {
	strangers := map[puntuale.ClientID][]*inbound{}
	for _, x := range b.rows {
		if x.Mark != "" && !x.known && x.Keep == puntuale.KeepKnownReplies && x.Says != nil {
			strangers[x.Client] = append(strangers[x.Client], x)
		}
	}
	if len(strangers) == 0 {
		return nil
	}
	clients := slices.Sorted(maps.Keys(strangers))
	if err := b.a.Query(ctx, ReplyRules, []any{engine.Columns{
		engine.Column(clients, func(id *puntuale.ClientID) int64 { return int64(*id) }),
	}}, func(r engine.Row) error {
		var client puntuale.ClientID
		var t puntuale.Trigger
		err := r.Scan(&client, engine.ScanJSON(&t))
		if err == nil {
			for _, x := range strangers[client] {
				x.known = x.known || x.Says(t.Words)
			}
		}
		return err
	}); err != nil {
		return fmt.Errorf("read rules for replies: %w", err)
	}
	return nil
}
