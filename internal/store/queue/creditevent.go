package queue

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// creditMark stores which credit events were already written for a client.
type creditMark struct {
	topped   int64 // the credits after the last top-up; 0: not stored yet
	reported int8  // bits of the column client.credits_told
}

// lowMark is the number of credits at which the event "credits are low" is written: a tenth of the last top-up, but at
// least 1.
func (m creditMark) lowMark() int64 { return max(m.topped/10, 1) }

// eventsAfterFall returns the events to write after credits were taken, and the new creditMark. Each event is written
// only once after a top-up. Otherwise each message that takes the last credit and gives it back would cause the same
// event again.
func (m creditMark) eventsAfterFall(before, left int64) (creditMark, []puntuale.EventType) {
	var types []puntuale.EventType
	if m.topped == 0 {
		m.topped = before
	}
	if m.reported&toldSoon == 0 && left <= m.lowMark() {
		types, m.reported = append(types, puntuale.EventCreditLow), m.reported|toldSoon
	}
	if m.reported&toldOver == 0 && left <= 0 {
		types, m.reported = append(types, puntuale.EventCreditOut), m.reported|toldOver
	}
	return m, types
}

// creditChange is a change of one client's credits, with the events to write.
type creditChange struct {
	client puntuale.ClientID
	left   int64
	mark   creditMark
	types  []puntuale.EventType
}

// tellCredits stores the new creditMarks and writes the events. The caller's transaction has locked the clients' rows.
func tellCredits(ctx context.Context, a engine.Querier, at time.Time, all []creditChange) error {
	if len(all) == 0 {
		return nil
	}
	type T = *creditChange
	if _, err := a.Exec(ctx, `update client set credits_topped = u.p, credits_told = u.t from $u(c bigint, p bigint, t smallint) where client.id = u.c`, engine.Columns{
		engine.Column(all, func(t T) int64 { return int64(t.client) }),
		engine.Column(all, func(t T) int64 { return t.mark.topped }),
		engine.Column(all, func(t T) int64 { return int64(t.mark.reported) }),
	}); err != nil {
		return fmt.Errorf("note what clients were told of their credits: %w", err)
	}
	var facts []outbox.Fact
	for _, t := range all {
		detail, err := outbox.Detail(struct {
			Credits int64 `json:"credits"`
		}{t.left})
		if err != nil {
			return err
		}
		for _, kind := range t.types {
			facts = append(facts, outbox.Fact{Client: t.client, Type: kind, Detail: detail})
		}
	}
	return outbox.Tell(ctx, a, at, facts...)
}

// TellSetCredits writes the events that follow when somebody sets a client's credits. nil means unlimited. More credits
// count as a top-up. The caller's transaction has locked the client's row.
func TellSetCredits(ctx context.Context, a engine.Querier, at time.Time, client puntuale.ClientID, before, after *int64) error {
	t := creditChange{client: client}
	switch {
	case before == after || before != nil && after != nil && *before == *after:
		return nil
	case after == nil: // unlimited credits cannot run out, so there is no event
	case before == nil || *after > *before:
		t.left, t.mark.topped = *after, *after
		if *after <= 0 {
			t.mark, t.types = t.mark.eventsAfterFall(0, 0)
		}
	default:
		if _, err := engine.QueryOne(ctx, a, `select credits_topped, credits_told from client where id = $1`, []any{client}, &t.mark.topped, &t.mark.reported); err != nil {
			return fmt.Errorf("read what a client was told of its credits: %w", err)
		}
		t.left = *after
		t.mark, t.types = t.mark.eventsAfterFall(*before, *after)
	}
	return tellCredits(ctx, a, at, []creditChange{t})
}
