package result

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Counter counts the messages of all clients. It is safe for concurrent use.
type Counter struct {
	db    *engine.DB
	kind  *engine.Kind
	spend BudgetCounter
}

// BudgetCounter counts messages that changed for the budgets of clients, in the counter's transaction.
type BudgetCounter func(ctx context.Context, a engine.Querier, changed []puntuale.MessageRef) error

// New returns the counter of a database.
func New(db *engine.DB, spend BudgetCounter) *Counter {
	return &Counter{db: db, spend: spend, kind: &engine.Kind{Name: "results", Priority: engine.PriorityFeed, Class: engine.ClassFeed, Background: true, GivesWay: true, Check: engine.RunAgain,
		Run: func(ctx context.Context, w *engine.Writer, tasks []*engine.Task) error {
			return tasks[0].Run(ctx, &w.Conn)
		}}}
}

// CountResults counts some of the messages that changed, or goes on with a client whose messages are counted again: about
// limit messages in one transaction. It returns false if nothing is left. Any number of nodes may call it at the same time.
func (s *Counter) CountResults(ctx context.Context, limit int) (more bool, err error) {
	var changed, open bool
	if _, err := engine.QueryOne(ctx, s.db.DispatchReads, `select case when exists (select 1 from result_change) then 1 else 0 end,
 case when exists (select 1 from result_client where state <> 1) then 1 else 0 end`, nil, engine.ScanBool(&changed), engine.ScanBool(&open)); err != nil {
		return false, engine.PublicError(fmt.Errorf("look for messages to count: %w", err))
	}
	for _, step := range []struct {
		wanted bool
		do     func(ctx context.Context, a engine.Querier, limit int) (bool, error)
	}{{changed, s.countChanges}, {open, recount}} {
		if !step.wanted {
			continue
		}
		again := false
		if err := s.db.FeedWriter.Do(ctx, engine.Single(s.kind, func(ctx context.Context, a engine.Querier) (err error) {
			if err := Lock(ctx, a); err != nil {
				return err
			}
			again, err = step.do(ctx, a, limit)
			return err
		}), false); err != nil {
			return false, err
		}
		more = more || again
	}
	return more, nil
}

// Lock makes this transaction the only one that counts, until it ends. It comes before the locks of budgets and clients.
func Lock(ctx context.Context, a engine.Querier) error {
	if _, err := a.Exec(ctx, `update result_counter set turn = turn + 1 where one = 1`); err != nil {
		return fmt.Errorf("wait for who counts results: %w", err)
	}
	return nil
}

// countChanges counts the messages of the oldest rows of changes.
func (s *Counter) countChanges(ctx context.Context, a engine.Querier, limit int) (more bool, err error) {
	var rows []int64
	var all []puntuale.MessageRef
	if err := a.Query(ctx, `select id, client_id, messages from result_change order by id limit $1`, []any{limit}, func(r engine.Row) error {
		var id int64
		var client puntuale.ClientID
		var messages []byte
		if err := r.Scan(&id, &client, &messages); err != nil {
			return err
		}
		if more = len(all) >= limit; more {
			return nil
		}
		ids, err := noted(messages)
		rows = append(rows, id)
		for _, id := range ids {
			all = append(all, puntuale.MessageRef{Client: client, ID: id})
		}
		return err
	}); err != nil {
		return false, fmt.Errorf("read messages to count: %w", err)
	}
	if err := s.spend(ctx, a, all); err != nil {
		return false, err
	}
	if err := count(ctx, a, all); err != nil {
		return false, err
	}
	if _, err := a.Exec(ctx, `delete from result_change where id in (select u.i from $u(i bigint))`, engine.Columns{rows}); err != nil {
		return false, fmt.Errorf("remove counted changes: %w", err)
	}
	return more || len(rows) == limit, nil
}

// unitRef is the identity of a unit: its first message, or a booking with its id below 0.
type unitRef = puntuale.MessageRef

func unitOfBooking(client puntuale.ClientID, id puntuale.BookingID) unitRef {
	return unitRef{Client: client, ID: -puntuale.MessageID(id)}
}

func isBooking(r unitRef) bool { return r.ID < 0 }

// countBatch is the count of some messages, in the transaction of who counts.
type countBatch struct {
	a     engine.Querier
	units map[unitRef]*unit
	order []unitRef
	cells map[cellKey]*cell
}

// unit is one unit, as it was counted and as it is.
type unit struct {
	unitRow
	key      int64 // of the unitCount that was counted
	was      unitCount
	counted  bool // was is part of the counts of the client's generation
	stored   bool // the unit has a row
	is       unitCount
	isKey    int64
	kept     int            // generation of the client
	zone     *time.Location // of a booking: its own, or else its client's
	runID    puntuale.RunID
	position int
}

type cellKey struct {
	client     puntuale.ClientID
	month      int
	key        int64
	generation int
}

func (k cellKey) compare(o cellKey) int {
	return cmp.Or(cmp.Compare(k.client, o.client), cmp.Compare(k.month, o.month), cmp.Compare(k.key, o.key), cmp.Compare(k.generation, o.generation))
}

// count counts the units of the messages as they are now. Messages that are gone are ignored.
func count(ctx context.Context, a engine.Querier, messages []puntuale.MessageRef) error {
	c := &countBatch{a: a, units: map[unitRef]*unit{}, cells: map[cellKey]*cell{}}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return c.find(ctx, messages) },
		c.readClients, c.readBookings, c.readMembers, c.readAnswers, c.readLinks, c.readCounted, c.decide, c.write, c.writeCells,
	} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("count results: %w", err)
		}
		if len(c.units) == 0 {
			return nil
		}
	}
	return nil
}

// find finds the units of the messages.
func (c *countBatch) find(ctx context.Context, messages []puntuale.MessageRef) error {
	slices.SortFunc(messages, compareRefs)
	messages = slices.Compact(messages)
	messages = slices.DeleteFunc(messages, func(r puntuale.MessageRef) bool {
		if isBooking(r) {
			c.units[r] = &unit{}
		}
		return isBooking(r)
	})
	if len(messages) > 0 {
		if err := c.a.Query(ctx, `select m.client_id, m.run_id, m.step from $u(c bigint, i bigint) cross join message m where m.client_id = u.c and m.id = u.i`,
			[]any{refColumns(messages)}, func(r engine.Row) error {
				var ref unitRef
				u := &unit{}
				if err := r.Scan(&ref.Client, &u.runID, &u.position); err != nil {
					return err
				}
				ref.ID = puntuale.MessageID(u.runID) + puntuale.MessageID(u.position)
				c.units[ref] = u
				return nil
			}); err != nil {
			return err
		}
	}
	c.order = slices.SortedFunc(maps.Keys(c.units), compareRefs)
	return nil
}

func compareRefs(a, b puntuale.MessageRef) int {
	return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.ID, b.ID))
}

func refColumns(refs []puntuale.MessageRef) engine.Columns {
	return engine.Columns{
		engine.Column(refs, func(r *puntuale.MessageRef) int64 { return int64(r.Client) }),
		engine.Column(refs, func(r *puntuale.MessageRef) int64 { return int64(r.ID) }),
	}
}

// readClients reads how far the clients are counted. The messages of deleted clients are not counted.
func (c *countBatch) readClients(ctx context.Context) error {
	clients := slices.Compact(engine.Column(c.order, func(r *unitRef) puntuale.ClientID { return r.Client }))
	generation, zones := map[puntuale.ClientID]int{}, map[puntuale.ClientID]*time.Location{}
	if err := c.a.Query(ctx, `select k.id, k.zone, coalesce(g.generation, 1) from $u(c bigint) cross join client k left join result_client g on g.client_id = k.id where k.id = u.c and k.deleted_at = 0`,
		[]any{engine.Columns{engine.Column(clients, func(id *puntuale.ClientID) int64 { return int64(*id) })}}, func(r engine.Row) error {
			var id puntuale.ClientID
			var zone string
			var n int
			err := r.Scan(&id, &zone, &n)
			generation[id], zones[id] = n, location(zone)
			return err
		}); err != nil {
		return err
	}
	c.order = slices.DeleteFunc(c.order, func(r unitRef) bool {
		n, ok := generation[r.Client]
		if c.units[r].kept, c.units[r].zone = n, zones[r.Client]; !ok {
			delete(c.units, r)
		}
		return !ok
	})
	return nil
}

// readBookings reads the bookings among the units.
func (c *countBatch) readBookings(ctx context.Context) error {
	of := slices.DeleteFunc(slices.Clone(c.order), func(r unitRef) bool { return !isBooking(r) })
	if len(of) == 0 {
		return nil
	}
	return c.a.Query(ctx, `select b.client_id, b.id, b.sequence_id, b.date_at, b.status, b.zone from $u(c bigint, i bigint) cross join booking b where b.client_id = u.c and b.id = -u.i`,
		[]any{refColumns(of)}, func(r engine.Row) error {
			var client puntuale.ClientID
			var id puntuale.BookingID
			var zone string
			b := &bookingRow{}
			err := r.Scan(&client, &id, &b.sequence, engine.ScanTime(&b.date), &b.status, &zone)
			u := c.units[unitOfBooking(client, id)]
			if u.booking = b; zone != "" {
				u.zone = location(zone)
			}
			return err
		})
}

const memberColumns = `m.client_id, m.run_id, m.step, m.id, m.session_id, m.due_at, m.state, m.outcome, m.reason, m.campaign_id, coalesce(g.delivered_at, 0), coalesce(g.read_at, 0),
 r.sequence_id, r.rule_id, r.zone, r.steps, case when r.steps = '' then r.content else '' end
from $u(c bigint, r bigint, s integer) cross join message m left join receipt g on g.client_id = m.client_id and g.message_id = m.id cross join run r`

// readMembers reads the messages of the units, with their runs and receipts.
func (c *countBatch) readMembers(ctx context.Context) error {
	of := slices.DeleteFunc(slices.Clone(c.order), isBooking)
	if len(of) == 0 {
		return nil
	}
	zones := map[string]*time.Location{}
	frozen := frozenSteps{}
	if err := c.a.Query(ctx, `select `+memberColumns+` where m.client_id = u.c and m.id = u.r + u.s and r.client_id = m.client_id and r.id = m.run_id
 union all select `+memberColumns+` where m.client_id = u.c and m.run_id = u.r and m.resent_from <> 0 and m.step = u.s and r.client_id = m.client_id and r.id = m.run_id`,
		[]any{engine.Columns{
			engine.Column(of, func(r *unitRef) int64 { return int64(r.Client) }),
			engine.Column(of, func(r *unitRef) int64 { return int64(c.units[*r].runID) }),
			engine.Column(of, func(r *unitRef) int64 { return int64(c.units[*r].position) }),
		}}, func(r engine.Row) error {
			var m member
			var x runRow
			var client puntuale.ClientID
			var run puntuale.RunID
			var position int
			var zone, steps, content string
			if err := r.Scan(&client, &run, &position, &m.id, &m.session, engine.ScanTime(&m.due), &m.state, &m.outcome, engine.ScanReason(&m.reason), &x.campaign,
				engine.ScanTime(&m.delivered), engine.ScanTime(&m.read), &x.sequence, &x.rule, &zone, &steps, &content); err != nil {
				return err
			}
			u := c.units[unitRef{Client: client, ID: puntuale.MessageID(run) + puntuale.MessageID(position)}]
			if u == nil {
				return nil
			}
			if u.members = append(u.members, m); len(u.members) > 1 {
				return nil
			}
			if zones[zone] == nil {
				zones[zone] = location(zone)
			}
			x.zone = zones[zone]
			x.step, x.template, x.variant = frozen.of(client, run, position, steps, content)
			u.run = x
			return nil
		}); err != nil {
		return err
	}
	for _, u := range c.units {
		slices.SortFunc(u.members, func(a, b member) int { return cmp.Compare(a.id, b.id) })
	}
	return nil
}

func location(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC // a run without a zone
	}
	return zone
}

// readAnswers reads what people did after the messages.
func (c *countBatch) readAnswers(ctx context.Context) error {
	var members []puntuale.MessageRef
	of := map[puntuale.MessageRef]*unit{}
	for _, ref := range c.order {
		for _, m := range c.units[ref].members {
			r := puntuale.MessageRef{Client: ref.Client, ID: m.id}
			members, of[r] = append(members, r), c.units[ref]
		}
	}
	return c.a.Query(ctx, `select w.client_id, w.message_id, w.kind, w.button from $u(c bigint, i bigint) cross join result_answer w where w.client_id = u.c and w.message_id = u.i`,
		[]any{refColumns(members)}, func(r engine.Row) error {
			var ref puntuale.MessageRef
			var kind int
			var a answer
			err := r.Scan(&ref.Client, &ref.ID, &kind, &a.button)
			a.optOut = kind == answerOptOut
			of[ref].answers = append(of[ref].answers, a)
			return err
		})
}

// readLinks reads which units have tracked links, and whether the person followed one.
func (c *countBatch) readLinks(ctx context.Context) error {
	return c.a.Query(ctx, `select l.client_id, l.run_id, l.step, l.clicked_at from $u(c bigint, r bigint, s integer) cross join link l
 where l.client_id = u.c and l.run_id = u.r and l.step = u.s`, []any{engine.Columns{
		engine.Column(c.order, func(r *unitRef) int64 { return int64(r.Client) }),
		engine.Column(c.order, func(r *unitRef) int64 { return int64(c.units[*r].runID) }),
		engine.Column(c.order, func(r *unitRef) int64 { return int64(c.units[*r].position) }),
	}}, func(r engine.Row) error {
		var client puntuale.ClientID
		var run puntuale.RunID
		var position, at int64
		err := r.Scan(&client, &run, &position, &at)
		if u := c.units[unitRef{Client: client, ID: puntuale.MessageID(run) + puntuale.MessageID(position)}]; u != nil {
			u.tracked, u.clicked = true, u.clicked || at != 0
		}
		return err
	})
}

// readCounted reads how the units were counted.
func (c *countBatch) readCounted(ctx context.Context) error {
	return c.a.Query(ctx, `select x.client_id, x.message_id, x.key_id, x.day, x.marks, x.hour, x.words, x.generation
 from $u(c bigint, i bigint) cross join result_message x where x.client_id = u.c and x.message_id = u.i`, []any{refColumns(c.order)}, func(r engine.Row) error {
		var ref unitRef
		var x unitCount
		var key int64
		var generation int
		if err := r.Scan(&ref.Client, &ref.ID, &key, &x.day, &x.marks, &x.hour, &x.words, &generation); err != nil {
			return err
		}
		u := c.units[ref]
		u.stored, u.key, u.was, u.counted = true, key, x, generation == u.kept
		return nil
	})
}

// decide decides how each unit is counted now, and finds the keys.
func (c *countBatch) decide(ctx context.Context) error {
	wanted := map[keyRef]int64{}
	for _, ref := range c.order {
		u := c.units[ref]
		if u.booking != nil {
			u.is = countOfBooking(*u.booking, u.zone)
		} else {
			u.is = countOf(u.unitRow)
		}
		if u.is.day != 0 {
			wanted[keyRef{ref.Client, u.is.key}] = 0
		}
	}
	if err := findKeys(ctx, c.a, wanted); err != nil {
		return err
	}
	told := map[toldKey]bool{}
	for _, ref := range c.order {
		u := c.units[ref]
		if u.is.day == 0 {
			continue
		}
		u.isKey = wanted[keyRef{ref.Client, u.is.key}]
		u.is.key = Key{} // from here on the id stands for it, as in the stored row
		if u.booking != nil {
			continue
		}
		for mark, bit := range toldBits {
			if u.is.marks&mark != 0 || bit == bitLinks && u.tracked {
				told[toldKey{ref.Client, u.isKey, bit}] = true
			}
		}
	}
	return noteTold(ctx, c.a, told)
}

// same reports whether the unit is counted as it is.
func (u *unit) same() bool {
	return u.counted && u.stored && u.key == u.isKey && u.was == u.is || !u.stored && u.is.day == 0
}

// write stores how the units are counted now, and collects the differences.
func (c *countBatch) write(ctx context.Context) error {
	c.order = slices.DeleteFunc(c.order, func(r unitRef) bool { return c.units[r].same() })
	var gone, kept []unitRef
	for _, ref := range c.order {
		u := c.units[ref]
		if u.is.day == 0 {
			gone = append(gone, ref)
		} else {
			kept = append(kept, ref)
		}
	}
	if err := c.collect(ctx); err != nil {
		return err
	}
	if len(gone) > 0 {
		if _, err := c.a.Exec(ctx, `delete from result_message where (client_id, message_id) in (select u.c, u.i from $u(c bigint, i bigint))`, refColumns(gone)); err != nil {
			return err
		}
	}
	if len(kept) == 0 {
		return nil
	}
	of := func(f func(*unit) int64) []int64 {
		return engine.Column(kept, func(r *unitRef) int64 { return f(c.units[*r]) })
	}
	_, err := c.a.Exec(ctx, `insert into result_message (client_id, message_id, key_id, day, marks, hour, words, generation)
 select u.c, u.i, u.k, u.d, u.m, u.h, u.w, u.g from $u(c bigint, i bigint, k bigint, d integer, m integer, h smallint, w text, g integer) where true
 on conflict (client_id, message_id) do update set key_id = excluded.key_id, day = excluded.day, marks = excluded.marks, hour = excluded.hour,
 words = excluded.words, generation = excluded.generation`, append(refColumns(kept),
		of(func(u *unit) int64 { return u.isKey }), of(func(u *unit) int64 { return int64(u.is.day) }), of(func(u *unit) int64 { return int64(u.is.marks) }),
		of(func(u *unit) int64 { return int64(u.is.hour) }), engine.Column(kept, func(r *unitRef) string { return c.units[*r].is.words }),
		of(func(u *unit) int64 { return int64(u.kept) })))
	return err
}

// collect reads the cells of the units, and changes them.
func (c *countBatch) collect(ctx context.Context) error {
	type change struct {
		cellKey
		unitCount
		n int64
	}
	var changes []change
	for _, ref := range c.order {
		u := c.units[ref]
		if u.counted {
			changes = append(changes, change{cellKey{ref.Client, u.was.day / 100, u.key, u.kept}, u.was, -1})
		}
		if u.is.day != 0 {
			changes = append(changes, change{cellKey{ref.Client, u.is.day / 100, u.isKey, u.kept}, u.is, 1})
		}
	}
	for _, x := range changes {
		c.cells[x.cellKey] = newCell()
	}
	if err := c.readCells(ctx); err != nil {
		return err
	}
	for _, x := range changes {
		c.cells[x.cellKey].add(x.unitCount, x.n)
	}
	return nil
}

func cellColumns(keys []cellKey) engine.Columns {
	return engine.Columns{
		engine.Column(keys, func(k *cellKey) int64 { return int64(k.client) }), engine.Column(keys, func(k *cellKey) int64 { return int64(k.month) }),
		engine.Column(keys, func(k *cellKey) int64 { return k.key }), engine.Column(keys, func(k *cellKey) int64 { return int64(k.generation) }),
	}
}

func (c *countBatch) readCells(ctx context.Context) error {
	if len(c.cells) == 0 {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(c.cells), cellKey.compare)
	return c.a.Query(ctx, `select x.client_id, x.month, x.key_id, x.generation, x.counts, x.hours, x.words from $u(c bigint, m integer, k bigint, g integer) cross join result_month x
 where x.client_id = u.c and x.month = u.m and x.key_id = u.k and x.generation = u.g`, []any{cellColumns(keys)}, func(r engine.Row) error {
		var k cellKey
		var days, hours, words []byte
		err := r.Scan(&k.client, &k.month, &k.key, &k.generation, &days, &hours, &words)
		if err == nil {
			c.cells[k], err = decodeCell(days, hours, words)
		}
		return err
	})
}

func (c *countBatch) writeCells(ctx context.Context) error {
	var kept, empty []cellKey
	var days, hours, words [][]byte
	for _, k := range slices.SortedFunc(maps.Keys(c.cells), cellKey.compare) {
		if c.cells[k].empty() {
			empty = append(empty, k)
			continue
		}
		d, h, w := c.cells[k].encode()
		kept, days, hours, words = append(kept, k), append(days, d), append(hours, h), append(words, w)
	}
	if len(empty) > 0 {
		if _, err := c.a.Exec(ctx, `delete from result_month where (client_id, month, key_id, generation) in (select u.c, u.m, u.k, u.g from $u(c bigint, m integer, k bigint, g integer))`,
			cellColumns(empty)); err != nil {
			return err
		}
	}
	if len(kept) == 0 {
		return nil
	}
	_, err := c.a.Exec(ctx, `insert into result_month (client_id, month, key_id, generation, counts, hours, words)
 select u.c, u.m, u.k, u.g, u.d, u.h, u.w from $u(c bigint, m integer, k bigint, g integer, d bytea, h bytea, w bytea) where true
 on conflict (client_id, month, key_id, generation) do update set counts = excluded.counts, hours = excluded.hours, words = excluded.words`,
		append(cellColumns(kept), days, hours, words))
	return err
}
