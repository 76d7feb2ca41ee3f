package result

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// States of a row of result_client.
const (
	stateCounting = 0
	stateCounted  = 1
	stateDeleted  = 2
)

// afterMessages is the place when all messages of a client are counted, and its bookings are not. Below it, the place is
// -1 less the id of the booking that was counted last.
const afterMessages = -1

// CountAll lets the counter count all messages of an installation that has no counts, as the migration does.
const CountAll = `insert into result_client (client_id, generation, shown)
 select k.id, 1, 1 from client k where k.deleted_at = 0 and (exists (select 1 from message m where m.client_id = k.id) or exists (select 1 from booking b where b.client_id = k.id)) on conflict do nothing`

// CountBookings lets the counter count the bookings of an installation that has counts of messages only, as the migration
// does.
const CountBookings = `insert into result_client (client_id, generation, shown, place)
 select k.id, 1, 1, -1 from client k where k.deleted_at = 0 and exists (select 1 from booking b where b.client_id = k.id)
 on conflict (client_id) do update set place = case when result_client.state = 1 then -1 else result_client.place end, state = case when result_client.state = 2 then 2 else 0 end`

// Recount makes the counter count all messages of a client again; 0: of all clients. Reports show what was counted
// before, until this has ended. Messages in the archive keep their counts. It returns how many clients are concerned.
func (s *Counter) Recount(ctx context.Context, client puntuale.ClientID, now time.Time) (clients int64, err error) {
	err = s.db.Write(ctx, 0, func(ctx context.Context, a engine.Querier) error {
		if err := Lock(ctx, a); err != nil {
			return err
		}
		clients, err = a.Exec(ctx, `insert into result_client as g (client_id, generation, shown, state, began_at)
 select k.id, 2, 1, 0, $2::bigint from client k where k.deleted_at = 0 and ($1 = 0 or k.id = $1)
 on conflict (client_id) do update set generation = g.generation + 1, place = 0, state = 0, began_at = excluded.began_at where g.state <> 2`, client, engine.Micros(now))
		if err != nil {
			return err
		}
		// What an interrupted count left has no generation that anybody reads.
		_, err = a.Exec(ctx, `delete from result_month where ($1 = 0 or client_id = $1) and generation <> 0 and exists (select 1 from result_client g
 where g.client_id = result_month.client_id and result_month.generation not in (g.shown, g.generation))`, client)
		return err
	})
	if err == nil && client != 0 && clients == 0 {
		err = puntuale.NotFound(puntuale.NoClient)
	}
	return clients, engine.PublicError(err)
}

// RecountBookings makes the counter count the bookings of a client again, because the client moves to another time zone in
// the same transaction, which began with [Lock]. Only bookings without a zone of their own move, and reports show each one
// on its day of before until then. A count of everything that has not come to the bookings yet needs nothing.
func RecountBookings(ctx context.Context, a engine.Querier, client puntuale.ClientID, now time.Time) error {
	_, err := a.Exec(ctx, `insert into result_client as g (client_id, generation, shown, place, state, began_at) select $1::bigint, 1, 1, -1, 0, $2::bigint
 where exists (select 1 from booking b where b.client_id = $1)
 on conflict (client_id) do update set place = case when g.state = 1 or g.place < 0 then -1 else g.place end, began_at = case when g.state = 1 then excluded.began_at else g.began_at end, state = 0
 where g.state <> 2`, client, engine.Micros(now))
	if err != nil {
		return fmt.Errorf("count bookings in another time zone: %w", err)
	}
	return nil
}

// recount goes on with a client whose messages are counted again.
func recount(ctx context.Context, a engine.Querier, limit int) (more bool, err error) {
	var client puntuale.ClientID
	var place int64
	var state int
	found, err := engine.QueryOne(ctx, a, `select client_id, place, state from result_client where state <> 1 order by client_id limit 1`, nil, &client, &place, &state)
	if err != nil || !found {
		return false, err
	}
	if state == stateDeleted {
		return true, forget(ctx, a, client, limit)
	}
	text, next := `select $1::bigint, id from message where client_id = $1 and id > $2 order by id limit $3`, int64(afterMessages)
	if place < 0 {
		text, next = `select $1::bigint, -id from booking where client_id = $1 and id > $2 order by id limit $3`, 0
	}
	units, err := engine.QueryAll(ctx, a, text, []any{client, max(place, afterMessages-place), limit}, func(r engine.Row, m *unitRef) error { return r.Scan(&m.Client, &m.ID) })
	if err != nil {
		return false, fmt.Errorf("read messages to count again: %w", err)
	}
	if len(units) == limit {
		if next = int64(units[limit-1].ID); next < 0 {
			next += afterMessages
		}
	}
	if err := count(ctx, a, units); err != nil {
		return false, err
	}
	if next != 0 {
		_, err = a.Exec(ctx, `update result_client set place = $2 where client_id = $1`, client, next)
		return true, err
	}
	if _, err := a.Exec(ctx, `update result_client set place = 0, state = 1, shown = generation where client_id = $1 and state = 0`, client); err != nil {
		return false, err
	}
	_, err = a.Exec(ctx, `delete from result_month where client_id = $1 and generation <> 0 and generation <> (select g.generation from result_client g where g.client_id = $1)`, client)
	return true, err
}

// ClientDeleted lets the counter remove the counts of a client that is being deleted, in the same transaction. The counter
// does it, because a server may be counting the client's messages now.
func ClientDeleted(ctx context.Context, a engine.Querier, client puntuale.ClientID) error {
	if _, err := a.Exec(ctx, `insert into result_client (client_id, generation, shown, state) values ($1, 1, 1, 2) on conflict (client_id) do update set state = 2`, client); err != nil {
		return fmt.Errorf("remove a client's results: %w", err)
	}
	return nil
}

// forget removes rows of a deleted client.
func forget(ctx context.Context, a engine.Querier, client puntuale.ClientID, limit int) error {
	left := int64(0)
	for _, statement := range []string{
		`delete from result_month where client_id = $1 and (month, key_id, generation) in (select o.month, o.key_id, o.generation from result_month o where o.client_id = $1 order by o.month, o.key_id, o.generation limit $2)`,
		`delete from result_key where client_id = $1 and id in (select o.id from result_key o where o.client_id = $1 order by o.id limit $2)`,
		`delete from result_message where client_id = $1 and message_id in (select o.message_id from result_message o where o.client_id = $1 order by o.message_id limit $2)`,
		`delete from result_answer where client_id = $1 and message_id in (select o.message_id from result_answer o where o.client_id = $1 order by o.message_id limit $2)`,
		`delete from link where client_id = $1 and (run_id, step, n) in (select o.run_id, o.step, o.n from link o where o.client_id = $1 order by o.run_id, o.step, o.n limit $2)`,
	} {
		n, err := a.Exec(ctx, statement, client, limit)
		if err != nil {
			return fmt.Errorf("remove a client's results: %w", err)
		}
		left += n
	}
	if left > 0 {
		return nil
	}
	_, err := a.Exec(ctx, `delete from result_client where client_id = $1`, client)
	return err
}

// Leave moves the counts of messages to those of the archive, before the messages leave the database in the same
// transaction. All messages of their runs leave. It returns false, and changes nothing, while all messages of the client
// are being counted again: then the messages must stay.
func Leave(ctx context.Context, a engine.Querier, client puntuale.ClientID, messages []puntuale.MessageID) (bool, error) {
	if err := Lock(ctx, a); err != nil {
		return false, err
	}
	generation, state := 1, stateCounted
	if _, err := engine.QueryOne(ctx, a, `select generation, state from result_client where client_id = $1`, []any{client}, &generation, &state); err != nil {
		return false, err
	}
	switch state {
	case stateCounting:
		return false, nil
	case stateDeleted:
		return true, nil
	}
	if err := countNoted(ctx, a, client, messages); err != nil {
		return false, err
	}
	refs := engine.Column(messages, func(id *puntuale.MessageID) puntuale.MessageRef { return puntuale.MessageRef{Client: client, ID: *id} })
	engine.Sort(refs, compareRefs)
	c := &countBatch{a: a, cells: map[cellKey]*cell{}}
	if err := c.moveTo(ctx, refs, generation, 0); err != nil {
		return false, fmt.Errorf("count messages of the archive: %w", err)
	}
	for _, table := range []string{"result_message", "result_answer"} {
		if _, err := a.Exec(ctx, `delete from `+table+` where client_id = $1 and message_id in (select u.i from $u(i bigint))`, client, engine.Columns{
			engine.Column(messages, func(id *puntuale.MessageID) int64 { return int64(*id) }),
		}); err != nil {
			return false, fmt.Errorf("count messages of the archive: %w", err)
		}
	}
	return true, nil
}

// countNoted counts those of the messages that were noted and are not counted yet.
func countNoted(ctx context.Context, a engine.Querier, client puntuale.ClientID, messages []puntuale.MessageID) error {
	leaving := make(map[puntuale.MessageID]bool, len(messages))
	for _, id := range messages {
		leaving[id] = true
	}
	var some []puntuale.MessageRef
	if err := a.Query(ctx, `select messages from result_change where client_id = $1`, []any{client}, func(r engine.Row) error {
		var row []byte
		if err := r.Scan(&row); err != nil {
			return err
		}
		ids, err := noted(row)
		for _, id := range ids {
			if leaving[id] {
				some = append(some, puntuale.MessageRef{Client: client, ID: id})
			}
		}
		return err
	}); err != nil {
		return fmt.Errorf("look for messages to count: %w", err)
	}
	return count(ctx, a, some)
}

// moveTo moves the counts of units from one generation to another.
func (c *countBatch) moveTo(ctx context.Context, units []unitRef, from, to int) error {
	type row struct {
		unitCount
		client puntuale.ClientID
		key    int64
	}
	rows, err := engine.QueryAll(ctx, c.a, `select x.client_id, x.key_id, x.day, x.marks, x.hour, x.words from $u(c bigint, i bigint) cross join result_message x
 where x.client_id = u.c and x.message_id = u.i and x.generation = $1`, []any{from, refColumns(units)}, func(r engine.Row, x *row) error {
		return r.Scan(&x.client, &x.key, &x.day, &x.marks, &x.hour, &x.words)
	})
	if err != nil {
		return err
	}
	cells := func(x row) (cellKey, cellKey) {
		return cellKey{x.client, x.day / 100, x.key, from}, cellKey{x.client, x.day / 100, x.key, to}
	}
	for _, x := range rows {
		before, after := cells(x)
		c.cells[before], c.cells[after] = newCell(), newCell()
	}
	if err := c.readCells(ctx); err != nil {
		return err
	}
	for _, x := range rows {
		before, after := cells(x)
		c.cells[before].add(x.unitCount, -1)
		c.cells[after].add(x.unitCount, 1)
	}
	return c.writeCells(ctx)
}
