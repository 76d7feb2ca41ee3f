package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
)

// The simulated network's ledger. It knows nothing of the message rows, as the real network would not.

// received is a message on its way into the ledger.
type received struct {
	puntuale.SandboxMessage
	content string
	at      func() time.Time
}

// receiveWeight bounds the messages of one batch.
const receiveWeight = 1000

func newReceiveKind() *kind {
	return &kind{name: "sandbox", lane: laneSend, limit: receiveWeight, run: runReceive}
}

func (s *Store) Receive(ctx context.Context, m puntuale.SandboxMessage) error {
	content, err := toJSON(m.Content)
	if err != nil {
		return err
	}
	t := joined(s.kinds.receive, 1, &received{m, content, s.from(m.Received)})
	t.dated = true
	return s.ledger.perform(ctx, t, false)
}

func (s *Store) Received(ctx context.Context, client puntuale.ClientID, connectorID string) (bool, error) {
	var found int64
	there, err := one(ctx, s.look, `select 1 from sandbox_message where client_id = $1 and connector_id = $2`,
		[]any{client, connectorID}, &found)
	if err != nil {
		return false, outward(fmt.Errorf("look for a message in the sandbox: %w", err))
	}
	return there, nil
}

func runReceive(ctx context.Context, w *writer, tasks []*task) error {
	type id struct {
		client    puntuale.ClientID
		connector string
	}
	copies := map[id]int64{}
	var rows []*received
	for _, t := range tasks {
		m := t.body.(*received)
		k := id{m.Client, m.ConnectorID}
		if copies[k]++; copies[k] == 1 {
			rows = append(rows, m)
		}
	}
	slices.SortStableFunc(rows, func(a, b *received) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.ConnectorID, b.ConnectorID))
	})
	type R = *received
	_, err := w.link.exec(ctx, `
insert into sandbox_message as g (client_id, message_id, connector_id, phone, content, received_at, copies)
select u.c, u.m, u.k, u.p, u.t, u.a, u.n from $u(c bigint, m bigint, k text, p text, t text, a bigint, n bigint) where true
on conflict (client_id, connector_id) do update set copies = g.copies + excluded.copies`, batch{
		pick(rows, func(m *R) int64 { return int64((*m).Client) }),
		pick(rows, func(m *R) int64 { return int64((*m).Message) }),
		pick(rows, func(m *R) string { return (*m).ConnectorID }),
		pick(rows, func(m *R) string { return (*m).Phone }),
		pick(rows, func(m *R) string { return (*m).content }),
		pick(rows, func(m *R) int64 { return micros((*m).at()) }),
		pick(rows, func(m *R) int64 { return copies[id{(*m).Client, (*m).ConnectorID}] }),
	})
	if err != nil {
		return fmt.Errorf("receive messages: %w", err)
	}
	return nil
}

func (t tenant) SandboxMessages(ctx context.Context, p puntuale.Page) ([]puntuale.SandboxMessage, string, error) {
	last, limit, err := after(p, "sandbox")
	if err != nil {
		return nil, "", err
	}
	page, err := stretchOf(ctx, t.lists(), "sandbox", `select seq, octet_length(content)
 from sandbox_message where client_id = $1 and seq > $2 order by seq limit $3`, []any{t.id, last, limit + 1}, limit)
	if err != nil {
		return nil, "", outward(fmt.Errorf("list what the sandbox received: %w", err))
	}
	all, err := list(ctx, t.lists(), `select seq, client_id, message_id, connector_id, phone, content, received_at, copies
 from sandbox_message where client_id = $1 and seq > $2 and seq <= $3 order by seq`, []any{t.id, last, page.last}, scanReceived)
	if err != nil {
		return nil, "", outward(fmt.Errorf("list what the sandbox received: %w", err))
	}
	return all, page.next, nil
}
