package reply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"puntuale"
	"puntuale/internal/store/engine"
)

// ReplyRules reads the triggers of some clients' active rules that wait for replies (kind 1).
const ReplyRules = `select a.client_id, a.trigger_text from $u(c bigint) cross join automation a where a.client_id = u.c and a.active = 1 and a.kind = 1`

// await is for clients that store only replies of known persons (the setting "known"). If an unknown person writes a
// trigger word of an active rule, await marks the person as known. Otherwise the message would not be stored, and the
// rule could not act. Rules without words are ignored, because a linked phone also receives its owner's private chats.
func (b *inboundBatch) await(ctx context.Context) error {
	unknownPeople := map[puntuale.ClientID][]*inbound{}
	for _, x := range b.rows {
		if x.Mark != "" && !x.known && x.Keep == puntuale.KeepKnownReplies && x.Says != nil {
			unknownPeople[x.Client] = append(unknownPeople[x.Client], x)
		}
	}
	if len(unknownPeople) == 0 {
		return nil
	}
	clients := slices.Sorted(maps.Keys(unknownPeople))
	if err := b.a.Query(ctx, ReplyRules, []any{engine.Columns{
		engine.Column(clients, func(id *puntuale.ClientID) int64 { return int64(*id) }),
	}}, func(r engine.Row) error {
		var client puntuale.ClientID
		var t puntuale.Trigger
		var fault error // a rule that cannot be decoded has no words
		err := r.Scan(engine.ScanFaulty(&fault, &client, engine.ScanJSON(&t))...)
		if err == nil && fault == nil {
			for _, x := range unknownPeople[client] {
				x.known = x.known || x.Says(t.Words)
			}
		}
		return err
	}); err != nil {
		return fmt.Errorf("read rules for replies: %w", err)
	}
	return nil
}
