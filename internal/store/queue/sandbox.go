package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// The functions in this file write and read the simulated network's ledger. They never read the message rows, because a
// real network does not have these rows.

// receivedMessage is a message that is written into the ledger.
type receivedMessage struct {
	puntuale.SandboxMessage
	content string
	at      func() time.Time
}

// receiveWeight is the largest number of messages in one batch.
const receiveWeight = 1000

func newReceiveKind() *engine.Kind {
	return &engine.Kind{Name: "sandbox", Priority: engine.PrioritySend, Limit: receiveWeight, Run: runReceive}
}

func (s *Queue) Receive(ctx context.Context, m puntuale.SandboxMessage) error {
	content, err := engine.ToJSON(m.Content)
	if err != nil {
		return err
	}
	t := engine.Joined(s.receive, 1, &receivedMessage{m, content, s.ClockAt(m.Received)})
	t.Timestamped = true
	return s.LedgerWriter.Do(ctx, t, false)
}

func (s *Queue) Received(ctx context.Context, client puntuale.ClientID, connectorID string) (bool, error) {
	var found int64
	exists, err := engine.QueryOne(ctx, s.DispatchReads, `select 1 from sandbox_message where client_id = $1 and connector_id = $2`,
		[]any{client, connectorID}, &found)
	if err != nil {
		return false, engine.PublicError(fmt.Errorf("look for a message in the sandbox: %w", err))
	}
	return exists, nil
}

func runReceive(ctx context.Context, w *engine.Writer, tasks []*engine.Task) error {
	type id struct {
		client    puntuale.ClientID
		connector string
	}
	copies := map[id]int64{}
	var rows []*receivedMessage
	for _, t := range tasks {
		m := t.Body.(*receivedMessage)
		k := id{m.Client, m.ConnectorID}
		if copies[k]++; copies[k] == 1 {
			rows = append(rows, m)
		}
	}
	slices.SortStableFunc(rows, func(a, b *receivedMessage) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.ConnectorID, b.ConnectorID))
	})
	type R = *receivedMessage
	_, err := w.Conn.Exec(ctx, `
insert into sandbox_message as g (client_id, message_id, connector_id, phone, content, received_at, copies)
select u.c, u.m, u.k, u.p, u.t, u.a, u.n from $u(c bigint, m bigint, k text, p text, t text, a bigint, n bigint) where true
on conflict (client_id, connector_id) do update set copies = g.copies + excluded.copies`, engine.Columns{
		engine.Column(rows, func(m *R) int64 { return int64((*m).Client) }),
		engine.Column(rows, func(m *R) int64 { return int64((*m).Message) }),
		engine.Column(rows, func(m *R) string { return (*m).ConnectorID }),
		engine.Column(rows, func(m *R) string { return (*m).Phone }),
		engine.Column(rows, func(m *R) string { return (*m).content }),
		engine.Column(rows, func(m *R) int64 { return engine.Micros((*m).at()) }),
		engine.Column(rows, func(m *R) int64 { return copies[id{(*m).Client, (*m).ConnectorID}] }),
	})
	if err != nil {
		return fmt.Errorf("receive messages: %w", err)
	}
	return nil
}
