package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

const contactsAmong = `select u.i, g.window_until, case when g.window_until > 0 or g.met_at > 0 then 1 else 0 end
 from $u(i bigint, p text) cross join contact g where g.client_id = $1 and g.phone = u.p and g.session_id = $2`

// KnownPersons returns what the session knows about the phones. It leaves out phones that the session does not
// know.
func (t tenant) KnownPersons(ctx context.Context, session puntuale.SessionID, phones []string) (map[string]puntuale.KnownPerson, error) {
	places, names, err := t.namesOfEach(ctx, phones, nil)
	if err != nil {
		return nil, err
	}
	found := map[string]puntuale.KnownPerson{}
	err = t.s.CallReads.Query(ctx, contactsAmong, []any{t.id, session, engine.Columns{places, names}}, func(rows engine.Row) error {
		var i int
		var c puntuale.KnownPerson
		err := rows.Scan(&i, engine.ScanTime(&c.Window), engine.ScanBool(&c.Known))
		if known := found[phones[i]]; known.Window.After(c.Window) {
			c.Window = known.Window
		}
		c.Known = c.Known || found[phones[i]].Known
		found[phones[i]] = c
		return err
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for contacts: %w", err))
	}
	return found, nil
}

// ofBusiness is a condition that is true for the sessions s.id whose limit the session $2 shares: those of its business at
// the network, and those of its portfolio, if the network told of one.
const ofBusiness = `(s.id = $2 or s.id in (select o.session_id from official i join official o on o.client_id = i.client_id and o.account = i.account
  where i.client_id = $1 and i.session_id = $2 and i.account <> '')
 or s.id in (select o.session_id from official_health i join official_health o on o.client_id = i.client_id and o.kind = i.kind and o.value = i.value
  where i.client_id = $1 and i.session_id = $2 and i.kind = 'portfolio'))`

// addressedSince lists the people that the business addressed outside their 24-hour windows.
const addressedSince = `select m.phone, max(m.intent_at) from message m
 where m.client_id = $1 and m.done_at >= $3 and m.outcome = 1 and m.outcome <> 0 and m.intent_at >= $3 and m.phone <> ''
 and m.session_id in (select s.id from session s where s.client_id = $1 and ` + ofBusiness + `)` + outsideWindow + ` group by m.phone`

// plannedUntil lists the people for whom the business has pending messages that will leave outside their 24-hour windows.
const plannedUntil = `select m.phone, min(m.next_at) from session s cross join message m
 where s.client_id = $1 and ` + ofBusiness + ` and s.deleted_at = 0 and m.session_id = s.id and m.state = 0 and m.priority in (0, 1) and m.next_at < $3 and m.phone <> ''
 and not exists (select 1 from contact c where c.client_id = m.client_id and c.phone = m.phone and c.session_id = m.session_id and c.window_until > m.next_at and c.window_until > $4)
 group by m.phone order by min(m.next_at) limit $5`

// Portfolio counts the people of an Official session's business. It reads all outcomes of the client's last 24 hours. It
// reads planned messages of at most one person more than the limit allows, because then there is no room anyway.
func (t tenant) Portfolio(ctx context.Context, id puntuale.SessionID, now time.Time) (puntuale.Portfolio, error) {
	var p puntuale.Portfolio
	if _, err := engine.QueryOne(ctx, t.lists(), `select o.reach_limit, h.session_id, h.chunks from official o cross join session s join official h on h.client_id = s.client_id and h.session_id = s.id
 where o.client_id = $1 and o.session_id = $2 and s.client_id = $1 and `+ofBusiness+` order by h.session_id limit 1`, []any{t.id, id}, &p.Limit, &p.Holder, &p.Chunks); err != nil {
		return p, engine.PublicError(fmt.Errorf("read a business's limit: %w", err))
	}
	all := map[string]*puntuale.PortfolioUse{}
	read := func(query string, args []any, set func(*puntuale.PortfolioUse, time.Time)) error {
		return t.lists().Query(ctx, query, append([]any{t.id, id}, args...), func(r engine.Row) error {
			var phone string
			var at time.Time
			err := r.Scan(&phone, engine.ScanTime(&at))
			if all[phone] == nil {
				all[phone] = &puntuale.PortfolioUse{}
			}
			set(all[phone], at)
			return err
		})
	}
	err := read(addressedSince, []any{engine.Micros(now.Add(-puntuale.ServicePeriod)), puntuale.ServiceWindow.Microseconds()}, func(u *puntuale.PortfolioUse, at time.Time) { u.Last = at })
	if err == nil {
		err = read(plannedUntil, []any{engine.Micros(now.Add(puntuale.ServicePeriod)), engine.Micros(now), cmp.Or(p.Limit, maxPlanned) + 1}, func(u *puntuale.PortfolioUse, at time.Time) { u.Next = at })
	}
	if err != nil {
		return p, engine.PublicError(fmt.Errorf("count whom a business addresses: %w", err))
	}
	uses := make([]puntuale.PortfolioUse, 0, len(all))
	for _, u := range all {
		uses = append(uses, *u)
	}
	counted := puntuale.PortfolioOf(p.Limit, uses, now)
	counted.Holder, counted.Chunks = p.Holder, p.Chunks
	return counted, nil
}

// maxPlanned bounds the people with planned messages that are counted for a business without a limit.
const maxPlanned = 10_000

// SessionLoad counts what the session sent since the given time. A check calls SessionLoad only once, because
// SessionLoad reads all outcomes of the client since that time.
func (t tenant) SessionLoad(ctx context.Context, id puntuale.SessionID, since time.Time) (l puntuale.SessionUsage, err error) {
	var kind puntuale.ConnectionType
	found, err := engine.QueryOne(ctx, t.lists(), `select s.type from session s where s.client_id = $1 and s.id = $2 and s.deleted_at = 0`, []any{t.id, id}, &kind)
	if err := engine.FoundOr(found, err, puntuale.NoSession); err != nil {
		return l, err
	}
	args := []any{t.id, id, engine.Micros(since)}
	if _, err := engine.QueryOne(ctx, t.lists(), `select count(*) from message m where m.client_id = $1 and m.session_id = $2 and m.done_at >= $3 and m.outcome = 1 and m.outcome <> 0`, args, &l.Sent); err != nil {
		return l, engine.PublicError(fmt.Errorf("count what a session sent: %w", err))
	}
	if kind == puntuale.Official {
		l.Portfolio, err = t.Portfolio(ctx, id, since.Add(puntuale.ServicePeriod))
		return l, err
	}
	if _, err := engine.QueryOne(ctx, t.lists(), `select count(*) from contact g where g.client_id = $1 and g.session_id = $2 and g.met_at >= $3 and g.phone not like '%@g.us'`, args, &l.Met); err != nil {
		return l, engine.PublicError(fmt.Errorf("count new contacts: %w", err))
	}
	return l, nil
}

// Charges counts the delivered messages of a campaign, by what the network billed.
func (t tenant) Charges(ctx context.Context, id puntuale.CampaignID) ([]puntuale.ChargeCount, error) {
	all, err := engine.QueryAll(ctx, t.s.CallReads, `select country, category, billable, messages from charge where client_id = $1 and campaign_id = $2
 order by country, category, billable`, []any{t.id, id}, func(rows engine.Row, c *puntuale.ChargeCount) error {
		return rows.Scan(&c.Country, &c.Category, engine.ScanBool(&c.Billable), &c.Messages)
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read charges: %w", err))
	}
	return all, nil
}
