package reply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"puntuale/internal/store/engine"
)

// conversationChange contains the changes that messages make in one conversation.
type conversationChange struct {
	client                 int64
	phone                  string
	last, unread, answered int64
}

// converse updates the conversations of the people who wrote. It also stores when the client's people answered a
// person. Automations need this time, even if the client stores no replies.
func (b *inboundBatch) converse(ctx context.Context) error {
	byConversation := map[seenKey]*conversationChange{}
	for _, x := range b.rows {
		kept := x.isReply()
		if x.Mark == "" || !kept && (!x.Own || !x.known) {
			continue
		}
		k := seenKey{int64(x.Client), x.Phone}
		g := byConversation[k]
		if g == nil {
			g = &conversationChange{client: int64(x.Client), phone: x.Phone}
			byConversation[k] = g
		}
		if kept {
			g.last, g.unread = max(g.last, x.id), g.unread+engine.Bit(!x.Own)
		}
		if x.Own {
			g.answered = max(g.answered, engine.Micros(x.at))
		}
	}
	if len(byConversation) == 0 {
		return nil
	}
	all := slices.SortedFunc(maps.Values(byConversation), func(x, y *conversationChange) int {
		return cmp.Or(cmp.Compare(x.client, y.client), cmp.Compare(x.phone, y.phone))
	})
	type G = *conversationChange
	if _, err := b.a.Exec(ctx, `insert into conversation as g (client_id, phone, last_id, unread, answered_at)
 select u.c, u.p, u.l, u.u, u.a from $u(c bigint, p text, l bigint, u bigint, a bigint) where true
 on conflict (client_id, phone) do update set last_id = greatest(g.last_id, excluded.last_id), unread = g.unread + excluded.unread,
 answered_at = greatest(g.answered_at, excluded.answered_at)`, engine.Columns{
		engine.Column(all, func(g *G) int64 { return (*g).client }),
		engine.Column(all, func(g *G) string { return (*g).phone }),
		engine.Column(all, func(g *G) int64 { return (*g).last }),
		engine.Column(all, func(g *G) int64 { return (*g).unread }),
		engine.Column(all, func(g *G) int64 { return (*g).answered }),
	}); err != nil {
		return fmt.Errorf("bring conversations up to date: %w", err)
	}
	return nil
}
