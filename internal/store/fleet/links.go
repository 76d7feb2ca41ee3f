package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// setLinks stores links of sessions. Only the owner may do this. Fence checks the node's lease first. Then this
// statement checks for each row that the node owns the session. A linked number ends the session's linking page, which
// works once.
const setLinks = `
update session set link_at = case when u.b > 0 then u.b when session.link = u.l and session.link_condition = u.k then session.link_at else $2::bigint end,
 page_until = case when u.l in (3, 4) then 0 else session.page_until end, page_starts = case when u.l in (3, 4) then 0 else session.page_starts end, link = u.l, number = u.n, link_detail = u.d, code = u.c, code_until = u.e,
 link_condition = u.k, limited_until = u.m, told = u.t
from $u(s bigint, l smallint, n text, d text, c bytea, e bigint, k smallint, m bigint, b bigint, t smallint)
where session.id = u.s and session.owner = $1 and session.deleted_at = 0`

func (s *Fleet) SetLinks(ctx context.Context, node puntuale.NodeID, now time.Time, links map[puntuale.SessionID]puntuale.Link) error {
	if len(links) == 0 {
		return nil
	}
	sessions := slices.Sorted(maps.Keys(links))
	column := func(f func(l puntuale.Link) int64) []int64 {
		return engine.Column(sessions, func(id *puntuale.SessionID) int64 { return f(links[*id]) })
	}
	text := func(f func(l puntuale.Link) string) []string {
		return engine.Column(sessions, func(id *puntuale.SessionID) string { return f(links[*id]) })
	}
	return s.asOwner(ctx, node, func(ctx context.Context, a engine.Querier) error {
		owned, err := engine.QueryAll(ctx, a, `select `+publishedColumns+` from $u(s bigint) join session on session.id = u.s
 where session.owner = $1 and session.deleted_at = 0 order by session.id for no key update of session`,
			[]any{node, SessionColumn(sessions)}, scanPublished)
		if err != nil {
			return fmt.Errorf("lock sessions: %w", err)
		}
		var facts []outbox.Fact
		known := make(map[puntuale.SessionID]publishedState, len(owned))
		for i := range owned {
			s := &owned[i]
			more, err := s.become(links[s.ID], now)
			if err != nil {
				return err
			}
			known[s.ID], facts = s.reported, append(facts, more...)
		}
		_, err = a.Exec(ctx, setLinks, node, engine.Micros(now), engine.Columns{
			engine.Column(sessions, func(id *puntuale.SessionID) int64 { return int64(*id) }),
			column(func(l puntuale.Link) int64 { return int64(l.State) }),
			text(func(l puntuale.Link) string { return l.Number }),
			text(func(l puntuale.Link) string { return l.Detail.Stored() }),
			engine.Column(sessions, func(id *puntuale.SessionID) []byte { return []byte(links[*id].Code) }),
			column(func(l puntuale.Link) int64 { return engine.Micros(l.Until) }),
			column(func(l puntuale.Link) int64 { return int64(l.Condition) }),
			column(func(l puntuale.Link) int64 { return engine.Micros(l.Limited) }),
			column(func(l puntuale.Link) int64 { return engine.Micros(l.Since) }),
			engine.Column(sessions, func(id *puntuale.SessionID) int64 { return int64(known[*id]) }),
		})
		if err != nil {
			return fmt.Errorf("store links: %w", err)
		}
		return outbox.Tell(ctx, a, now, facts...)
	})
}
