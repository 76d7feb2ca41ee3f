package account

import (
	"context"
	"fmt"
	"strings"

	"puntuale"
	"puntuale/internal/store/engine"
)

// FindClients lists clients by name. Codes: invalid (the cursor).
func (p Partner) FindClients(ctx context.Context, f puntuale.ClientFilter, page puntuale.Page) ([]puntuale.Client, string, error) {
	last, limit, err := engine.ReadCursor(puntuale.Page{Limit: page.Limit, Cursor: page.Cursor}, "clients")
	if err != nil {
		return nil, "", err
	}
	where, args := p.soughtClients(f, limit+1)
	if last > 0 { // rows of deleted clients stay in the table, so the cursor's row always exists
		args = append(args, last)
		where += fmt.Sprintf(` and (lower(c.name), c.id) > (select lower(x.name), x.id from client x where x.partner_id = $1 and x.id = $%d)`, len(args))
	}
	all, err := engine.QueryAll(ctx, p.s.ListReads, `select `+ClientColumns+` from client c where `+where+` order by lower(c.name), c.id limit $2`, args, scanClient)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("look for clients: %w", err))
	}
	all, next := engine.CutPage(all, limit, "clients", func(c *puntuale.Client) int64 { return int64(c.ID) })
	return all, next, nil
}

// CountClients counts the clients that FindClients lists, up to limit. all reports whether n is the complete count.
func (p Partner) CountClients(ctx context.Context, f puntuale.ClientFilter, limit int) (n int, all bool, err error) {
	where, args := p.soughtClients(f, limit+1)
	if _, err := engine.QueryOne(ctx, p.s.ListReads, `select count(*) from (select c.id from client c where `+where+` limit $2) as found`, args, &n); err != nil {
		return 0, false, engine.PublicError(fmt.Errorf("count clients: %w", err))
	}
	return min(n, limit), n <= limit, nil
}

// soughtClients returns the condition of the clients that a filter finds, and the values of a statement that reads at most
// limit ($2) of them.
func (p Partner) soughtClients(f puntuale.ClientFilter, limit int) (where string, args []any) {
	args = []any{p.id, limit}
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	where = `c.partner_id = $1 and c.deleted_at = 0`
	if text := strings.TrimSpace(f.Text); text != "" {
		like := arg("%" + likely.Replace(strings.ToLower(text)) + "%")
		where += ` and (lower(c.name) like ` + like + ` escape '!' or lower(c.email) like ` + like + ` escape '!' or c.phone like ` + like + ` escape '!')`
	}
	if f.Plan != 0 {
		where += ` and c.plan_id = ` + arg(f.Plan)
	}
	switch f.State {
	case puntuale.StateActive:
		where += ` and c.suspended = 0 and (c.expires_on = 0 or c.expires_on >= ` + arg(dayNumber(f.Today)) + `)`
	case puntuale.StateSuspended:
		where += ` and c.suspended = 1`
	case puntuale.StateExpired:
		where += ` and c.expires_on > 0 and c.expires_on < ` + arg(dayNumber(f.Today))
	case puntuale.StateExpiring:
		where += ` and c.expires_on >= ` + arg(dayNumber(f.Today)) + ` and c.expires_on <= ` + arg(dayNumber(f.Until))
	case puntuale.StateEmpty:
		where += ` and c.credits <= 0`
	}
	return where, args
}

// likely escapes a text for LIKE, so that its special characters have no effect.
var likely = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

// Pulses returns the status of each client on the client's day in the argument days. It leaves out clients of other
// partners.
func (p Partner) Pulses(ctx context.Context, days []puntuale.ClientDay) (map[puntuale.ClientID]puntuale.ClientStatus, error) {
	found := make(map[puntuale.ClientID]puntuale.ClientStatus, len(days))
	if len(days) == 0 {
		return found, nil
	}
	columns := engine.Columns{
		engine.Column(days, func(d *puntuale.ClientDay) int64 { return int64(d.Client) }),
		engine.Column(days, func(d *puntuale.ClientDay) int64 { return int64(dayNumber(d.Day)) }),
	}
	err := p.s.ListReads.Query(ctx, `select c.id, coalesce((select g.used from api_usage g where g.client_id = c.id and g.day = u.d), 0)
 from $u(c bigint, d integer) cross join client c where c.id = u.c and c.partner_id = $1 and c.deleted_at = 0`, []any{p.id, columns}, func(rows engine.Row) error {
		var id puntuale.ClientID
		var pulse puntuale.ClientStatus
		err := rows.Scan(&id, &pulse.Used)
		found[id] = pulse
		return err
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read calls of clients: %w", err))
	}
	err = p.s.ListReads.Query(ctx, `select s.client_id, s.sandbox, s.way, s.link, s.owner from $u(c bigint, d integer)
 join session s on s.client_id = u.c join client c on c.id = s.client_id
 where c.partner_id = $1 and c.deleted_at = 0 and s.deleted_at = 0`, []any{p.id, columns}, func(rows engine.Row) error {
		var id puntuale.ClientID
		var s puntuale.Session
		if err := rows.Scan(&id, engine.ScanBool(&s.Sandbox), &s.Way, &s.Link.State, &s.Owner); err != nil {
			return err
		}
		pulse := found[id]
		pulse.Sessions++
		switch state := s.LinkOf(); {
		case state == puntuale.LinkOnline && (s.Sandbox || s.Owner != 0 || s.ByDevice()):
			pulse.Online++
		case state == puntuale.LinkPairing && s.Owner != 0:
			pulse.Pairing++
		}
		found[id] = pulse
		return nil
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read sessions of clients: %w", err))
	}
	return found, nil
}

// ClientNames returns the names of clients. It leaves out deleted clients, and clients of other partners.
func (p Partner) ClientNames(ctx context.Context, ids []puntuale.ClientID) (map[puntuale.ClientID]string, error) {
	names := make(map[puntuale.ClientID]string, len(ids))
	if len(ids) == 0 {
		return names, nil
	}
	err := p.s.ListReads.Query(ctx, `select c.id, c.name from $u(c bigint) cross join client c where c.id = u.c and c.partner_id = $1 and c.deleted_at = 0`, []any{
		p.id, engine.Columns{engine.Column(ids, func(id *puntuale.ClientID) int64 { return int64(*id) })},
	}, func(r engine.Row) error {
		var id puntuale.ClientID
		var name string
		err := r.Scan(&id, &name)
		names[id] = name
		return err
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read names of clients: %w", err))
	}
	return names, nil
}

// Expiring returns at most limit clients whose last day of service is in the given range of days. The first and the
// last day of the range belong to it. The clients are sorted by this day, then by name.
func (p Partner) Expiring(ctx context.Context, from, to puntuale.Date, limit int) ([]puntuale.Client, error) {
	all, err := engine.QueryAll(ctx, p.s.ListReads, `select `+ClientColumns+` from client c where c.partner_id = $1 and c.deleted_at = 0
 and c.expires_on >= $2 and c.expires_on <= $3 order by c.expires_on, lower(c.name), c.id limit $4`,
		[]any{p.id, dayNumber(from), dayNumber(to), limit}, scanClient)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for expiring clients: %w", err))
	}
	return all, nil
}
