// Package statement stores what clients used in a month, and reads the messages from which this is counted.
package statement

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// Statements stores the statements of all clients. Its methods are safe for concurrent use.
type Statements struct {
	db       *engine.DB
	work     *engine.Kind
	budget   *engine.Kind
	price    MessagePrice // nil: budgets are not counted
	currency string
}

// New returns the statements of a database.
func New(db *engine.DB) *Statements {
	s := &Statements{db: db, work: engine.NewSingle("statement", engine.PriorityFeed)}
	s.work.Check, s.work.Background = engine.RunAgain, true // a second run changes nothing
	s.budget = engine.NewSingle("budget", engine.PriorityFeed)
	s.budget.Check, s.budget.Background = engine.RunAgain, true // its transactions read again what they change
	return s
}

// OfClient gives access to one client's statements.
func (s *Statements) OfClient(id puntuale.ClientID) ClientStatements {
	return ClientStatements{s.db, s.work, id}
}

// PricesOf gives access to one partner's prices.
func (s *Statements) PricesOf(id puntuale.PartnerID) PartnerStatements {
	return PartnerStatements{s.db, id}
}

// UnclosedMonths returns clients whose statement of a month is neither frozen nor being counted, in the order of ids.
func (s *Statements) UnclosedMonths(ctx context.Context, month puntuale.Month, begin, end, now time.Time, after puntuale.ClientID, limit int) ([]puntuale.UnclosedMonth, error) {
	all, err := engine.QueryAll(ctx, s.db.MaintenanceReads, `select c.id, c.partner_id, c.zone from client c
 where c.id > $1 and c.created_at < $2 and (c.deleted_at = 0 or c.deleted_at >= $3)
 and not exists (select 1 from statement t where t.client_id = c.id and t.month = $4 and (t.frozen_at <> 0 or t.working_until > $5)) order by c.id limit $6`,
		[]any{after, engine.Micros(end), engine.Micros(begin), int64(month), engine.Micros(now), limit}, func(r engine.Row, u *puntuale.UnclosedMonth) error {
			return r.Scan(&u.Client, &u.Partner, &u.Zone)
		})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for months to close: %w", err))
	}
	return all, nil
}

// ClientStatements gives access to one client's statements.
type ClientStatements struct {
	db     *engine.DB
	work   *engine.Kind
	client puntuale.ClientID
}

// billedColumns are the columns that a billedRow scans.
const billedColumns = `m.id, m.done_at, s.type, s.sandbox, m.origin, m.purpose, m.phone, m.credit, m.outcome, m.run_id, m.step, m.session_id,
 coalesce(g.category, ''), coalesce(g.country, ''), coalesce(g.billable, 0), coalesce(g.charged_at, 0)`

// billed reads messages in the order of their outcomes, after a message. The two conditions that follow it choose the
// statement's own messages, and those that are corrections.
const billed = `select ` + billedColumns + `
 from message m cross join session s left join receipt g on g.client_id = m.client_id and g.message_id = m.id
 where m.client_id = $1 and (m.done_at, m.id) > ($2, $3) and m.done_at < $4 and m.outcome <> 0 and s.client_id = m.client_id and s.id = m.session_id`

// billedOf reads messages with given ids.
const billedOf = `select ` + billedColumns + `
 from $u(i bigint) cross join message m cross join session s left join receipt g on g.client_id = m.client_id and g.message_id = m.id
 where m.client_id = $1 and m.id = u.i and s.client_id = m.client_id and s.id = m.session_id`

const (
	sentThen = ` and m.outcome = 1`
	// chargedLater holds for messages whose charge became known later.
	chargedLater = ` and m.outcome = 1 and g.charged_at >= $6`
	// failedLater holds for messages that were sent, and that the network gave up later. Some of them arrived even later, and then
	// their new outcome counts.
	failedLater = ` and exists (select 1 from event e where e.client_id = m.client_id and e.message_id = m.id and e.kind = 'late refused')`
)

// stepRef is where the content of a message is, and which session sent it.
type stepRef struct {
	run     int64
	step    int
	session int64
}

// BilledMessages returns messages in the order of their outcomes. See [puntuale.BilledPeriod].
func (c ClientStatements) BilledMessages(ctx context.Context, p puntuale.BilledPeriod) ([]puntuale.BilledMessage, error) {
	after, id := engine.Micros(p.From)-1, int64(puntuale.MaxID)
	if p.After.ID != 0 {
		after, id = engine.Micros(p.After.Done), int64(p.After.ID)
	}
	condition, args := sentThen, []any{c.client, after, id, engine.Micros(p.To), p.Limit}
	switch {
	case p.Late:
		condition = failedLater
	case !p.ChargedFrom.IsZero():
		condition, args = chargedLater, append(args, engine.Micros(p.ChargedFrom))
	}
	all, err := c.readBilled(ctx, c.db.MaintenanceReads, billed+condition+` order by m.done_at, m.id limit $5`, args)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read the messages of a statement: %w", err))
	}
	for i := range all {
		all[i].Late = p.Late
	}
	return all, nil
}

// readBilled reads messages, and the categories of the approved templates of those of Official sessions.
func (c ClientStatements) readBilled(ctx context.Context, a engine.Querier, text string, args []any) ([]puntuale.BilledMessage, error) {
	var steps []stepRef
	all, err := engine.QueryAll(ctx, a, text, args, func(r engine.Row, m *puntuale.BilledMessage) error {
		var at stepRef
		var credit, outcome int
		err := r.Scan(&m.ID, engine.ScanTime(&m.Done), &m.Network, engine.ScanBool(&m.Sandbox), queue.ScanOrigin(&m.Origin), &m.Purpose, &m.Phone, &credit, &outcome, &at.run, &at.step, &at.session,
			&m.Charge.Category, &m.Charge.Country, engine.ScanBool(&m.Charge.Billable), engine.ScanTime(&m.ChargedAt))
		m.Credit, m.Sent = credit == 1, outcome == 1
		steps = append(steps, at)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, c.addTemplates(ctx, a, all, steps)
}

// addTemplates adds the categories of approved templates to messages of Official sessions.
func (c ClientStatements) addTemplates(ctx context.Context, a engine.Querier, all []puntuale.BilledMessage, steps []stepRef) error {
	wanted := map[int64][]int{}
	var runs []int64
	for i := range all {
		if all[i].Network != puntuale.Official || all[i].Sandbox {
			continue
		}
		run := steps[i].run
		if wanted[run] == nil {
			runs = append(runs, run)
		}
		wanted[run] = append(wanted[run], i)
	}
	if len(runs) == 0 {
		return nil
	}
	accounts, templates, err := c.readTemplates(ctx, a)
	if err != nil {
		return err
	}
	return a.Query(ctx, `select r.id, r.content from $u(i bigint) cross join run r where r.client_id = $1 and r.id = u.i`, []any{c.client, engine.Columns{runs}}, func(r engine.Row) error {
		var run int64
		var content string
		if err := r.Scan(&run, &content); err != nil {
			return err
		}
		var frozen []struct {
			Content struct {
				Official *struct {
					Name     string `json:"name"`
					Language string `json:"language"`
				} `json:"official"`
			} `json:"content"`
		}
		if json.Unmarshal([]byte(content), &frozen) != nil {
			return nil //nolint:nilerr // its messages count as those without a template; nobody else's count may wait for them
		}
		for _, i := range wanted[run] {
			if step := steps[i].step; step >= 0 && step < len(frozen) && frozen[step].Content.Official != nil {
				name := frozen[step].Content.Official.Name
				account, known := accounts[steps[i].session]
				if !known {
					account = anyAccount
				}
				t, _ := puntuale.ChooseLanguage(templates[templateKey{account, name}], name, frozen[step].Content.Official.Language, "")
				all[i].Template = strings.ToLower(t.Category)
			}
		}
		return nil
	})
}

// templateKey names the templates, one in each language, that a business has under a name.
type templateKey struct{ account, name string }

// anyAccount stands for the unknown business of a session that has no keys any more. Its templates are those of all businesses,
// as far as all of one name have one category.
const anyAccount = ""

// readTemplates reads the categories of the client's templates, and to which business each session belongs.
func (c ClientStatements) readTemplates(ctx context.Context, a engine.Querier) (accounts map[int64]string, templates map[templateKey][]puntuale.NetworkTemplate, err error) {
	accounts, templates = map[int64]string{}, map[templateKey][]puntuale.NetworkTemplate{}
	if err := a.Query(ctx, `select o.session_id, o.account from official o where o.client_id = $1`, []any{c.client}, func(r engine.Row) error {
		var session int64
		var account string
		err := r.Scan(&session, &account)
		accounts[session] = account
		return err
	}); err != nil {
		return nil, nil, err
	}
	categories := map[string]string{}
	if err := a.Query(ctx, `select t.account, t.name, t.language, t.status, t.category from network_template t where t.client_id = $1 order by t.account, t.name, t.language`,
		[]any{c.client}, func(r engine.Row) error {
			var key templateKey
			var t puntuale.NetworkTemplate
			err := r.Scan(&key.account, &key.name, &t.Language, &t.Status, &t.Category)
			t.Name = key.name
			templates[key] = append(templates[key], t)
			if known, found := categories[t.Name]; found && known != t.Category {
				t.Category = ""
			}
			categories[t.Name] = t.Category
			return err
		}); err != nil {
		return nil, nil, err
	}
	for _, key := range slices.SortedFunc(maps.Keys(templates), func(x, y templateKey) int {
		return cmp.Or(cmp.Compare(x.account, y.account), cmp.Compare(x.name, y.name))
	}) {
		if categories[key.name] != "" {
			anywhere := templateKey{anyAccount, key.name}
			templates[anywhere] = append(templates[anywhere], templates[key]...)
		}
	}
	return accounts, templates, nil
}

// Calls counts the client's calls of some days, the last one inclusive.
func (c ClientStatements) Calls(ctx context.Context, from, to puntuale.Date) (n int64, err error) {
	if _, err := engine.QueryOne(ctx, c.db.MaintenanceReads, `select coalesce(cast(sum(g.used) as bigint), 0) from api_usage g where g.client_id = $1 and g.day >= $2 and g.day <= $3`,
		[]any{c.client, int64(from.Int()), int64(to.Int())}, &n); err != nil {
		return 0, engine.PublicError(fmt.Errorf("count the calls of a month: %w", err))
	}
	return n, nil
}

// Statement returns the frozen statement of a month.
func (c ClientStatements) Statement(ctx context.Context, month puntuale.Month) (s puntuale.Statement, found bool, err error) {
	var frozen, counted time.Time
	found, err = engine.QueryOne(ctx, c.db.CallReads, `select t.frozen_at, t.counted_to, t.body from statement t where t.client_id = $1 and t.month = $2 and t.frozen_at <> 0`,
		[]any{c.client, int64(month)}, engine.ScanTime(&frozen), engine.ScanTime(&counted), engine.ScanJSON(&s))
	s.Client, s.Month, s.Frozen, s.CountedTo, s.Complete = c.client, month, frozen, counted, true
	if err != nil {
		return s, false, engine.PublicError(fmt.Errorf("read a statement: %w", err))
	}
	return s, found, nil
}

// ClaimStatement marks a month until a moment. It returns false if the month is frozen or another node counts it.
func (c ClientStatements) ClaimStatement(ctx context.Context, month puntuale.Month, now, until time.Time) (claimed bool, err error) {
	err = c.do(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `insert into statement (client_id, month, working_until) values ($1, $2, $3)
 on conflict (client_id, month) do update set working_until = excluded.working_until where statement.frozen_at = 0 and statement.working_until <= $4`,
			c.client, int64(month), engine.Micros(until), engine.Micros(now))
		claimed = n == 1
		return err
	})
	return claimed, err
}

// FreezeStatement stores a statement for ever, if its month is still marked until this moment.
func (c ClientStatements) FreezeStatement(ctx context.Context, s puntuale.Statement, until time.Time) (frozen bool, err error) {
	body, err := engine.ToJSON(s)
	if err != nil {
		return false, err
	}
	err = c.do(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update statement set frozen_at = $3, counted_to = $4, body = $5 where client_id = $1 and month = $2 and frozen_at = 0 and working_until = $6`,
			c.client, int64(s.Month), engine.Micros(s.Frozen), engine.Micros(s.CountedTo), body, engine.Micros(until))
		frozen = n == 1
		return err
	})
	return frozen, err
}

func (c ClientStatements) do(ctx context.Context, run func(context.Context, engine.Querier) error) error {
	return c.db.FeedWriter.Do(ctx, engine.Single(c.work, run).ForOwner(int64(c.client)), false)
}

// PartnerStatements gives access to one partner's prices.
type PartnerStatements struct {
	db      *engine.DB
	partner puntuale.PartnerID
}

// OwnPrices returns what the partner asks for messages.
func (p PartnerStatements) OwnPrices(ctx context.Context) (own puntuale.Prices, err error) {
	_, err = engine.QueryOne(ctx, p.db.CallReads, `select s.currency, s.prices from statement_price s where s.partner_id = $1`, []any{p.partner}, &own.Currency, engine.ScanJSON(&own.Each))
	if err != nil {
		return own, engine.PublicError(fmt.Errorf("read a partner's prices: %w", err))
	}
	return own, nil
}

// SetOwnPrices replaces what the partner asks for messages.
func (p PartnerStatements) SetOwnPrices(ctx context.Context, own puntuale.Prices) error {
	each, err := engine.ToJSON(own.Each)
	if err != nil {
		return err
	}
	return p.db.Write(ctx, -int64(p.partner), func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `insert into statement_price (partner_id, currency, prices) values ($1, $2, $3)
 on conflict (partner_id) do update set currency = excluded.currency, prices = excluded.prices`, p.partner, own.Currency, each)
		return err
	})
}

// FirstMonth returns the month, in the client's zone, in which the partner's first client was created, which may be deleted now;
// 0: there was none.
func (p PartnerStatements) FirstMonth(ctx context.Context) (month puntuale.Month, err error) {
	var created time.Time
	var zone string
	found, err := engine.QueryOne(ctx, p.db.CallReads, `select c.created_at, c.zone from client c where c.partner_id = $1 order by c.created_at limit 1`,
		[]any{p.partner}, engine.ScanTime(&created), &zone)
	if err != nil || !found {
		return 0, engine.PublicError(err)
	}
	return puntuale.MonthIn(created, zone), nil
}

// DeletedClients returns clients that were deleted in or after a month, or have a closed statement of it.
func (p PartnerStatements) DeletedClients(ctx context.Context, month puntuale.Month, after puntuale.ClientID, limit int) ([]puntuale.Client, error) {
	const zones = 14 * time.Hour
	all, err := engine.QueryAll(ctx, p.db.CallReads, `select c.id, c.partner_id, c.name, c.zone, c.created_at from client c
 where c.partner_id = $1 and c.id > $2 and c.deleted_at <> 0 and c.created_at < $3
 and (c.deleted_at >= $4 or exists (select 1 from statement t where t.client_id = c.id and t.month = $5 and t.frozen_at <> 0)) order by c.id limit $6`,
		[]any{p.partner, after, engine.Micros(month.Add(1).Begin(time.UTC).Add(zones)), engine.Micros(month.Begin(time.UTC).Add(-zones)), int64(month), limit}, func(r engine.Row, c *puntuale.Client) error {
			return r.Scan(&c.ID, &c.Partner, &c.Name, &c.Zone, engine.ScanTime(&c.Created))
		})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for deleted clients: %w", err))
	}
	return all, nil
}
