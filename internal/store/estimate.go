package store

import (
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

// addressedSince counts the people that Addressed lists, but for all sessions of the business together.
const addressedSince = `select count(distinct m.phone) from message m
 where m.client_id = $1 and m.done_at >= $3 and m.outcome = 1 and m.intent_at >= $3 and m.phone <> ''
 and (m.session_id = $2 or m.session_id in (select o.session_id from official i join official o on o.client_id = i.client_id and o.account = i.account
  where i.client_id = $1 and i.session_id = $2 and i.account <> ''))` + outsideWindow

// SessionLoad counts what the session sent since the given time. A check calls SessionLoad only once, because
// SessionLoad reads all outcomes of the client since that time.
func (t tenant) SessionLoad(ctx context.Context, id puntuale.SessionID, since time.Time) (l puntuale.SessionUsage, err error) {
	var kind puntuale.ConnectionType
	found, err := engine.QueryOne(ctx, t.lists(), `select s.type, coalesce(o.reach_limit, 0) from session s left join official o on o.client_id = s.client_id and o.session_id = s.id
 where s.client_id = $1 and s.id = $2 and s.deleted_at = 0`, []any{t.id, id}, &kind, &l.Portfolio)
	if err := engine.FoundOr(found, err, puntuale.NoSession); err != nil {
		return l, err
	}
	args := []any{t.id, id, engine.Micros(since)}
	if _, err := engine.QueryOne(ctx, t.lists(), `select count(*) from message m where m.client_id = $1 and m.session_id = $2 and m.done_at >= $3 and m.outcome = 1`, args, &l.Sent); err != nil {
		return l, engine.PublicError(fmt.Errorf("count what a session sent: %w", err))
	}
	if kind == puntuale.Official {
		if _, err := engine.QueryOne(ctx, t.lists(), addressedSince, append(args, puntuale.ServiceWindow.Microseconds()), &l.Addressed); err != nil {
			return l, engine.PublicError(fmt.Errorf("count whom a session addressed: %w", err))
		}
		return l, nil
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
