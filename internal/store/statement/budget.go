package statement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/queue"
)

// A budget needs the sum of a month at any time. So each message of a client with a budget has a row with the amount with
// which it is in the sum. A change of the message changes row and sum together: an outcome, a price that the network told
// later, a failure after all. The transactions that change messages do not know of budgets. They only note the message for
// reports, and who counts for reports calls [Statements.Spend].
//
// [Statements.KeepBudgets] compares sums with budgets. If a budget is used up, client.marketing_from says until when
// marketing waits. A claim reads this column with the client's other permissions.
//
// Locks: the budget, then messages, then the client.

// MessagePrice returns what the network bills for a message, in millionths of the currency of the list of prices. It returns
// false if the list has no price for it.
type MessagePrice func(puntuale.BilledMessage) (amount int64, known bool)

// PriceMessages sets the list of prices with which budgets are counted, and its currency. Budgets in another currency are not
// counted, and hold nothing back. Call it before the first message is counted.
func (s *Statements) PriceMessages(price MessagePrice, currency string) {
	s.price, s.currency = price, currency
}

// Bits of budget.told.
const (
	toldLow = 1
	toldOut = 2
)

// budgetRow is a budget with what is needed to keep it.
type budgetRow struct {
	puntuale.Budget
	zone, clientZone string
	place            puntuale.BilledMessage
	generation, told int64
	heldTo, letAt    time.Time
	marketingFrom    time.Time // of the client
}

const budgetColumns = `b.client_id, coalesce(b.amount, 0), b.currency, b.spent, b.unpriced, b.began_at, b.ends_at, b.counted, b.generation, b.zone, b.place_at, b.place_id, b.told, b.held_to, b.let_at,
 k.zone, k.marketing_from`

func scanBudget(r engine.Row, b *budgetRow) error {
	return r.Scan(&b.Client, &b.Amount, &b.Currency, &b.Spent, &b.Unpriced, engine.ScanTime(&b.Began), engine.ScanTime(&b.Ends), engine.ScanBool(&b.Counted), &b.generation, &b.zone,
		engine.ScanTime(&b.place.Done), &b.place.ID, &b.told, engine.ScanTime(&b.heldTo), engine.ScanTime(&b.letAt), &b.clientZone, engine.ScanTime(&b.marketingFrom))
}

// ClientDeleted removes what budgets know of a client that is being deleted, in the same transaction. The rows of its
// messages go soon after.
func ClientDeleted(ctx context.Context, a engine.Querier, client puntuale.ClientID) error {
	for _, statement := range []string{
		`update budget set amount = null, generation = generation + 1 where client_id = $1`,
		`delete from free_service where client_id = $1`,
	} {
		if _, err := a.Exec(ctx, statement, client); err != nil {
			return fmt.Errorf("remove a client's budget: %w", err)
		}
	}
	return nil
}

// Budget returns a client's budget; Amount 0: it has none.
func (s *Statements) Budget(ctx context.Context, client puntuale.ClientID) (puntuale.Budget, error) {
	var b budgetRow
	all, err := engine.QueryAll(ctx, s.db.CallReads, `select `+budgetColumns+` from budget b join client k on k.id = b.client_id where b.client_id = $1 and b.amount is not null`, []any{client}, scanBudget)
	if err != nil {
		return b.Budget, engine.PublicError(fmt.Errorf("read a budget: %w", err))
	}
	if len(all) > 0 {
		b = all[0]
	}
	b.Client, b.Month = client, puntuale.MonthIn(b.Began, b.zone)
	return b.Budget, nil
}

// SetBudget sets the amount and currency of a client's budget. Amount 0 removes it. Marketing that waits leaves soon after,
// if the new amount is not used up. Codes: not_found.
func (s *Statements) SetBudget(ctx context.Context, client puntuale.ClientID, amount int64, currency string, now time.Time) error {
	return s.db.FeedWriter.Do(ctx, engine.Single(s.budget, func(ctx context.Context, a engine.Querier) error {
		var zone string
		found, err := engine.QueryOne(ctx, a, `select k.zone from client k where k.id = $1 and k.deleted_at = 0`, []any{client}, &zone)
		if err := engine.ThereOr(found, err, puntuale.NoClient); err != nil {
			return err
		}
		if err := ChangeBudget(ctx, a, client, zone, amount, currency, now); err != nil {
			return err
		}
		return errors.Join(s.keep(ctx, a, client, now), letFirstLeave(ctx, a, client, now))
	}).ForOwner(int64(client)), false)
}

// ChangeBudget sets the amount and currency of a client's budget in the caller's transaction, before the transaction locks
// the client. Amount 0 removes it. [Statements.KeepBudgets] does the rest soon after.
func ChangeBudget(ctx context.Context, a engine.Querier, client puntuale.ClientID, zone string, amount int64, currency string, now time.Time) error {
	statement, args := `update budget set amount = null, told = 0 where client_id = $1`, []any{client}
	if amount > 0 {
		began, ends := monthOf(now, zone)
		// A budget that had no amount, or another currency, was not counted. The month is then counted from its beginning.
		statement = `insert into budget as g (client_id, amount, currency, zone, began_at, ends_at) values ($1, $2, $3, $4, $5, $6)
 on conflict (client_id) do update set amount = excluded.amount, told = 0, currency = excluded.currency,
 ends_at = case when g.amount is null or g.currency <> excluded.currency then 0 else g.ends_at end`
		args = append(args, amount, currency, zone, engine.Micros(began), engine.Micros(ends))
	}
	if _, err := a.Exec(ctx, statement, args...); err != nil {
		return fmt.Errorf("set a budget: %w", err)
	}
	return nil
}

// Budgets returns the amounts and currencies of the budgets of clients. It omits clients without a budget.
func (p PartnerStatements) Budgets(ctx context.Context, clients []puntuale.ClientID) (map[puntuale.ClientID]puntuale.Budget, error) {
	found, err := engine.QueryAll(ctx, p.db.CallReads, `select b.client_id, b.amount, b.currency from $u(i bigint) join budget b on b.client_id = u.i
 join client k on k.id = b.client_id and k.partner_id = $1 where b.amount is not null`,
		[]any{p.partner, engine.Columns{engine.Column(clients, func(id *puntuale.ClientID) int64 { return int64(*id) })}},
		func(r engine.Row, b *puntuale.Budget) error { return r.Scan(&b.Client, &b.Amount, &b.Currency) })
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read budgets: %w", err))
	}
	all := make(map[puntuale.ClientID]puntuale.Budget, len(found))
	for _, b := range found {
		all[b.Client] = b
	}
	return all, nil
}

// monthOf returns when the month of a moment begins and ends in a zone.
func monthOf(now time.Time, name string) (began, ends time.Time) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		zone = time.UTC
	}
	month := puntuale.MonthIn(now, name)
	return month.Begin(zone).UTC(), month.Add(1).Begin(zone).UTC()
}

// Spend counts messages that changed, for clients with a budget. Messages that are gone keep their amounts.
func (s *Statements) Spend(ctx context.Context, a engine.Querier, changed []puntuale.MessageRef) error {
	if s.price == nil {
		return nil
	}
	of := map[puntuale.ClientID][]puntuale.MessageID{}
	for _, m := range changed {
		if m.ID > 0 { // the others are bookings
			of[m.Client] = append(of[m.Client], m.ID)
		}
	}
	clients := make([]int64, 0, len(of))
	for id := range of {
		clients = append(clients, int64(id))
	}
	slices.Sort(clients)
	budgets, err := engine.QueryAll(ctx, a, `select `+budgetColumns+` from $u(c bigint) join budget b on b.client_id = u.c join client k on k.id = b.client_id
 where b.amount is not null and b.currency = $1 order by b.client_id for update of b`, []any{s.currency, engine.Columns{clients}}, scanBudget)
	if err != nil {
		return fmt.Errorf("read budgets: %w", err)
	}
	for _, b := range budgets {
		ids := of[b.Client] // a message may have been noted several times
		slices.Sort(ids)
		ids = slices.Compact(ids)
		messages, err := s.OfClient(b.Client).readBilled(ctx, a, billedOf, []any{b.Client, engine.Columns{engine.Column(ids, func(id *puntuale.MessageID) int64 { return int64(*id) })}})
		if err != nil {
			return fmt.Errorf("read messages of a budget: %w", err)
		}
		if err := s.spend(ctx, a, &b, messages); err != nil {
			return fmt.Errorf("count messages of a budget: %w", err)
		}
	}
	return nil
}

// spentAmount is the amount with which a message is in the sum of a month.
type spentAmount struct {
	id      int64
	amount  int64
	unknown bool // the list has no price for the message; it is not in the sum
}

// spend brings the rows of messages and the sum of the budget up to date. The budget is locked.
func (s *Statements) spend(ctx context.Context, a engine.Querier, b *budgetRow, messages []puntuale.BilledMessage) error {
	before := map[int64]spentAmount{}
	if err := a.Query(ctx, `select x.message_id, coalesce(x.amount, 0), case when x.amount is null then 1 else 0 end from $u(i bigint) cross join budget_message x
 where x.client_id = $1 and x.message_id = u.i and x.generation = $2`, []any{b.Client, b.generation, engine.Columns{
		engine.Column(messages, func(m *puntuale.BilledMessage) int64 { return int64(m.ID) }),
	}}, func(r engine.Row) error {
		var x spentAmount
		err := r.Scan(&x.id, &x.amount, engine.ScanBool(&x.unknown))
		before[x.id] = x
		return err
	}); err != nil {
		return err
	}
	var rows []spentAmount
	var sum, unpriced int64
	for _, m := range messages {
		was, counted := before[int64(m.ID)]
		is := spentAmount{id: int64(m.ID)}
		switch {
		case m.Phone == "" && m.Charge.Country == "" && counted && m.Sent: // a version that did not keep the country erased the person
			is = was
		case m.Sent && !m.Sandbox && m.Network == puntuale.Official && !m.Done.Before(b.Began) && m.Done.Before(b.Ends):
			amount, known := s.price(m)
			is.amount, is.unknown = amount, !known
		case !counted:
			continue
		}
		if counted && is == was {
			continue
		}
		sum, unpriced = sum+is.amount-was.amount, unpriced+engine.Bit(is.unknown)-engine.Bit(was.unknown)
		rows = append(rows, is)
	}
	if len(rows) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `insert into budget_message (client_id, message_id, generation, amount)
 select $1::bigint, u.i, $2::bigint, case when u.k = 1 then null else u.a end from $u(i bigint, a bigint, k smallint) where true
 on conflict (client_id, generation, message_id) do update set amount = excluded.amount`, b.Client, b.generation, engine.Columns{
		engine.Column(rows, func(x *spentAmount) int64 { return x.id }), engine.Column(rows, func(x *spentAmount) int64 { return x.amount }),
		engine.Column(rows, func(x *spentAmount) int64 { return engine.Bit(x.unknown) }),
	}); err != nil {
		return err
	}
	_, err := a.Exec(ctx, `update budget set spent = spent + $2, unpriced = unpriced + $3 where client_id = $1`, b.Client, sum, unpriced)
	return err
}

// openBudgets finds the budgets with work for [Statements.KeepBudgets]: those that are not counted, near their end or used
// up, whose month is over, or whose client has another zone; and clients whose marketing waits.
const openBudgets = `select b.client_id from budget b join client k on k.id = b.client_id
 where b.client_id > $1 and k.deleted_at = 0 and (k.marketing_from > $2 or b.held_to <> 0
 or b.amount is not null and (b.counted = 0 or b.ends_at <= $2 or b.zone <> k.zone or b.spent >= b.amount / 100 * $3))
 order by b.client_id limit $4`

// together is how many budgets one look finds, and how many messages one transaction counts or lets leave.
const together = 1000

// settleTime is how long a dispatcher may take to postpone a message that a claim refused.
const settleTime = time.Minute

// KeepBudgets begins new months, counts what left before a budget was set, and compares the sums with the budgets: it tells
// people, holds marketing back, and lets it leave again. It calls wake for sessions with messages that may leave now. Any
// number of nodes may call it at the same time.
func (s *Statements) KeepBudgets(ctx context.Context, now time.Time, wake puntuale.Wakeup) error {
	var problems []error
	for after := puntuale.ClientID(0); s.price != nil; {
		all, err := engine.QueryAll(ctx, s.db.DispatchReads, openBudgets, []any{after, engine.Micros(now), puntuale.BudgetWarning, together}, engine.ScanOne[puntuale.ClientID])
		if err != nil {
			return engine.PublicError(fmt.Errorf("look for budgets: %w", err))
		}
		for _, client := range all {
			after = client
			if err := s.keepBudget(ctx, client, now, wake); err != nil {
				problems = append(problems, fmt.Errorf("keep the budget of client %d: %w", client, err))
			}
		}
		if len(all) < together || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(problems...)
}

// keepBudget works on one budget until nothing is left to do, one transaction after another.
func (s *Statements) keepBudget(ctx context.Context, client puntuale.ClientID, now time.Time, wake puntuale.Wakeup) error {
	do := func(run func(context.Context, engine.Querier) error) error {
		return s.db.FeedWriter.Do(ctx, engine.Single(s.budget, run).ForOwner(int64(client)), false)
	}
	for more, let := true, false; more && ctx.Err() == nil; {
		b, err := readBudget(ctx, s.db.DispatchReads, client, "")
		if err != nil || b == nil {
			return engine.PublicError(err)
		}
		var sessions []puntuale.SessionID
		switch next := s.judged(b, now); {
		case next.changes(b):
			err = do(func(ctx context.Context, a engine.Querier) error { return s.keep(ctx, a, client, now) })
		case b.Amount > 0 && !b.Counted && b.Currency == s.currency:
			err = do(func(ctx context.Context, a engine.Querier) error { return s.countBefore(ctx, a, client) })
		case !b.heldTo.IsZero() && !let:
			err = do(func(ctx context.Context, a engine.Querier) (err error) {
				sessions, let, err = letLeave(ctx, a, client, now)
				return err
			})
		default:
			more = false
		}
		if err != nil {
			return err
		}
		for _, id := range sessions {
			wake(id, now)
		}
	}
	return nil
}

func readBudget(ctx context.Context, a engine.Querier, client puntuale.ClientID, lock string) (*budgetRow, error) {
	all, err := engine.QueryAll(ctx, a, `select `+budgetColumns+` from budget b join client k on k.id = b.client_id where b.client_id = $1 and k.deleted_at = 0`+lock, []any{client}, scanBudget)
	if err != nil {
		return nil, fmt.Errorf("read a budget: %w", err)
	}
	if len(all) == 0 {
		return nil, nil //nolint:nilnil // the client never had a budget, or was deleted
	}
	return &all[0], nil
}

// clocks is more than the clocks of servers ever differ.
const clocks = 24 * time.Hour

// judged returns the budget as it must be now.
func (s *Statements) judged(b *budgetRow, now time.Time) *budgetRow {
	next := *b
	if b.Amount == 0 || b.Currency != s.currency {
		next.hold(time.Time{}, now)
		return &next
	}
	mistaken := now.Add(clocks).Before(b.Began) // the month was begun by a clock that was wrong
	if !mistaken && now.Before(b.Began) {
		now = b.Began // the clock is a little behind that which began the month
	}
	if b.zone != b.clientZone || !now.Before(b.Ends) || mistaken {
		if !now.Before(b.Ends) || mistaken {
			next.told = 0
		}
		next.generation++
		next.zone, next.Counted, next.Spent, next.Unpriced, next.place = b.clientZone, false, 0, 0, puntuale.BilledMessage{}
		next.Began, next.Ends = monthOf(now, b.clientZone)
		return &next // marketing goes on to wait until the messages of the other month are counted, or until its moment
	}
	switch {
	case !b.Counted:
	case b.Used():
		next.hold(b.Ends, now)
		next.told |= toldOut | toldLow
	default:
		next.hold(time.Time{}, now)
		if b.Percent() >= puntuale.BudgetWarning {
			next.told |= toldLow
		}
	}
	return &next
}

// hold sets until when marketing waits. If that is sooner than before, messages that wait must leave.
func (b *budgetRow) hold(until, now time.Time) {
	if b.marketingFrom.After(now) && until.Before(b.marketingFrom) {
		b.heldTo, b.letAt = b.marketingFrom, now
	}
	if !b.marketingFrom.After(now) && until.IsZero() {
		return // the moment has passed; nothing waits for it
	}
	b.marketingFrom = until
}

// changes reports whether a judged budget differs from the stored one.
func (b *budgetRow) changes(stored *budgetRow) bool { return *b != *stored }

// keep judges a budget, and writes and tells what changed.
func (s *Statements) keep(ctx context.Context, a engine.Querier, client puntuale.ClientID, now time.Time) error {
	b, err := readBudget(ctx, a, client, ` for update of b`)
	if err != nil || b == nil {
		return err
	}
	next := s.judged(b, now)
	if !next.changes(b) {
		return nil
	}
	if _, err := a.Exec(ctx, `update budget set zone = $2, began_at = $3, ends_at = $4, spent = $5, unpriced = $6, counted = $7, place_at = $8, place_id = $9, told = $10, held_to = $11, let_at = $12, generation = $13 where client_id = $1`,
		client, next.zone, engine.Micros(next.Began), engine.Micros(next.Ends), next.Spent, next.Unpriced, engine.Bit(next.Counted), engine.Micros(next.place.Done), int64(next.place.ID),
		next.told, engine.Micros(next.heldTo), engine.Micros(next.letAt), next.generation); err != nil {
		return fmt.Errorf("write a budget: %w", err)
	}
	if !next.marketingFrom.Equal(b.marketingFrom) {
		if _, err := a.Exec(ctx, `update client set marketing_from = $2 where id = $1`, client, engine.Micros(next.marketingFrom)); err != nil {
			return fmt.Errorf("hold marketing back: %w", err)
		}
	}
	kind := puntuale.EventBudgetLow
	switch told := next.told &^ b.told; {
	case told == 0:
		return nil
	case told&toldOut != 0:
		kind = puntuale.EventBudgetOut
	}
	var hidden int64 // the client may not know the network's prices
	if _, err := engine.QueryOne(ctx, a, `select case when s.prices = '{}' then 0 else 1 end from client k join statement_price s on s.partner_id = k.partner_id where k.id = $1`, []any{client}, &hidden); err != nil {
		return fmt.Errorf("look for the partner's prices: %w", err)
	}
	detail, err := outbox.Detail(struct {
		Month    string `json:"month"`
		Percent  int    `json:"percent"`
		Amount   string `json:"amount"`
		Spent    string `json:"spent"`
		Currency string `json:"currency"`
		Ends     string `json:"ends_at"`
		Hidden   bool   `json:"hidden,omitempty"`
	}{puntuale.MonthIn(next.Began, next.zone).String(), next.Percent(), puntuale.Money(next.Amount), puntuale.Money(next.Spent), next.Currency, outbox.Moment(next.Ends), hidden == 1})
	if err != nil {
		return err
	}
	return outbox.Tell(ctx, a, now, outbox.Fact{Client: client, Type: kind, Detail: detail})
}

// countBefore counts some of the messages that left in the month before its budget was counted. Messages that change
// meanwhile are noted, and counted by [Statements.Spend].
func (s *Statements) countBefore(ctx context.Context, a engine.Querier, client puntuale.ClientID) error {
	b, err := readBudget(ctx, a, client, ` for update of b`)
	if err != nil || b == nil || b.Counted {
		return err
	}
	after, id := engine.Micros(b.Began)-1, int64(puntuale.MaxID)
	if b.place.ID != 0 {
		after, id = engine.Micros(b.place.Done), int64(b.place.ID)
	}
	messages, err := s.OfClient(client).readBilled(ctx, a, billed+sentThen+` order by m.done_at, m.id limit $5`, []any{client, after, id, engine.Micros(b.Ends), together})
	if err != nil {
		return fmt.Errorf("read what left before: %w", err)
	}
	if err := s.spend(ctx, a, b, messages); err != nil {
		return fmt.Errorf("count what left before: %w", err)
	}
	if len(messages) < together {
		_, err = a.Exec(ctx, `update budget set counted = 1 where client_id = $1`, client)
		return err
	}
	last := messages[len(messages)-1]
	_, err = a.Exec(ctx, `update budget set place_at = $2, place_id = $3 where client_id = $1`, client, engine.Micros(last.Done), int64(last.ID))
	return err
}

// WaitingMarketing finds marketing that waits for a budget, in the order in which it was due. The stored reason is in the text, so
// that databases use the index of only these messages.
const WaitingMarketing = `select m.client_id, m.id from message m
 where m.client_id = $1 and m.state = 0 and m.detail = '["budget"]' and m.next_at > $2 and m.next_at <= $3 and m.intent = 0 order by m.due_at, m.id limit $4`

// letLeave makes messages due again that waited because the budget was used up, and returns their sessions. They leave in
// the order in which they were due. A dispatcher may still postpone a message that it refused just before. So the work ends
// only after settleTime; done says that nothing is left for now.
func letLeave(ctx context.Context, a engine.Querier, client puntuale.ClientID, now time.Time) (sessions []puntuale.SessionID, done bool, err error) {
	b, err := readBudget(ctx, a, client, ` for update of b`)
	if err != nil || b == nil || b.heldTo.IsZero() {
		return nil, true, err
	}
	refs, err := engine.QueryAll(ctx, a, WaitingMarketing, []any{client, engine.Micros(now), engine.Micros(b.heldTo.Add(puntuale.MarketingSpread)), together}, queue.ScanRef)
	if err != nil {
		return nil, false, fmt.Errorf("look for marketing that waits: %w", err)
	}
	if len(refs) > 0 {
		slices.SortFunc(refs, queue.CompareRefs)
		if err := queue.LockMessages(ctx, a, refs); err != nil {
			return nil, false, err
		}
		all, err := engine.QueryAll(ctx, a, `update message set next_at = message.due_at, detail = '' from $u(c bigint, i bigint)
 where message.client_id = u.c and message.id = u.i and message.state = 0 and message.intent = 0 and message.detail = '["budget"]' returning message.session_id`,
			[]any{queue.RefColumns(refs)}, engine.ScanOne[puntuale.SessionID])
		if err != nil {
			return nil, false, fmt.Errorf("let marketing leave: %w", err)
		}
		slices.Sort(all)
		sessions = slices.Compact(all)
	}
	done = len(refs) < together
	if done && now.Sub(b.letAt) > settleTime {
		_, err = a.Exec(ctx, `update budget set held_to = 0 where client_id = $1 and held_to = $2`, client, engine.Micros(b.heldTo))
	}
	return sessions, done, err
}

// letFirstLeave makes the first messages due again in the transaction that raises a budget. So what campaigns feed from then
// on is behind them.
func letFirstLeave(ctx context.Context, a engine.Querier, client puntuale.ClientID, now time.Time) error {
	_, _, err := letLeave(ctx, a, client, now)
	return err
}

// MaintainStatements removes rows of months that are over.
func (s *Statements) MaintainStatements(ctx context.Context, now time.Time) error {
	return errors.Join(s.maintainBudgets(ctx), s.maintainParts(ctx, now))
}

func (s *Statements) maintainBudgets(ctx context.Context) error {
	type row struct {
		puntuale.MessageRef
		generation int64
	}
	return engine.Purge(ctx, s.db, "amounts of budgets", `select x.client_id, x.message_id, x.generation from budget b cross join budget_message x
 where x.client_id = b.client_id and x.generation < b.generation and b.client_id > $1 limit $2`, 0,
		func(r engine.Row, x *row) error { return r.Scan(&x.Client, &x.ID, &x.generation) },
		func(a, b row) int {
			return cmp.Or(queue.CompareRefs(a.MessageRef, b.MessageRef), cmp.Compare(a.generation, b.generation))
		},
		func(ctx context.Context, a engine.Querier, part []row) error {
			_, err := a.Exec(ctx, `delete from budget_message where (client_id, message_id, generation) in (select u.c, u.i, u.g from $u(c bigint, i bigint, g bigint))`, engine.Columns{
				engine.Column(part, func(x *row) int64 { return int64(x.Client) }), engine.Column(part, func(x *row) int64 { return int64(x.ID) }),
				engine.Column(part, func(x *row) int64 { return x.generation }),
			})
			return err
		})
}
