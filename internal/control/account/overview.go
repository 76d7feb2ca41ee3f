package account

import (
	"context"
	"fmt"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"time"

	"puntuale"
)

// ClientRow is a client in a partner's list.
type ClientRow struct {
	puntuale.Client
	puntuale.ClientStatus
	Ended bool // true: the client's last day has passed
}

// ClientSearch is a request for a part of the list of clients.
type ClientSearch struct {
	Text  string
	State string          // active, suspended, expired, expiring or empty; "": any
	Plan  puntuale.PlanID // 0: any
	Page  request.Page
}

// soon is a number of days. A client counts as expiring if at most this many days remain until the client's last day.
const soon = 60

// maxExpiring bounds the list of expiring clients.
const maxExpiring = 1000

// FindClients lists the partner's clients, ordered by name, with their status. Codes: invalid.
func (p *Partner) FindClients(ctx context.Context, s ClientSearch) ([]ClientRow, string, error) {
	now := p.accounts.clock.Now()
	filter, faults := p.clientFilter(s, now)
	s.Page.Unknown = append(s.Page.Unknown, faults...)
	found, next, err := request.List(s.Page, func(page puntuale.Page) ([]puntuale.Client, string, error) {
		return p.tenant.FindClients(ctx, filter, page)
	})
	if err != nil {
		return nil, "", fmt.Errorf("look for clients: %w", err)
	}
	rows, err := p.rows(ctx, found, now)
	return rows, next, err
}

// CountClients counts the clients that FindClients lists on all pages, up to [puntuale.MaxCounted]. all is true if n is the
// complete count. Codes: invalid.
func (p *Partner) CountClients(ctx context.Context, s ClientSearch) (n int, all bool, err error) {
	filter, faults := p.clientFilter(s, p.accounts.clock.Now())
	if err := faults.Err(); err != nil {
		return 0, false, err
	}
	if n, all, err = p.tenant.CountClients(ctx, filter, puntuale.MaxCounted); err != nil {
		return 0, false, fmt.Errorf("count clients: %w", err)
	}
	return n, all, nil
}

// clientStates are the states by which clients can be listed; "": any.
var clientStates = []puntuale.ClientState{"", puntuale.StateActive, puntuale.StateSuspended, puntuale.StateExpired, puntuale.StateExpiring, puntuale.StateEmpty}

// CountClientStates counts the partner's clients in each state of a [ClientSearch], whatever its text. No index has the states,
// so each count reads all clients of the partner. It returns nil if there are more than [puntuale.MaxCounted].
func (p *Partner) CountClientStates(ctx context.Context) (map[puntuale.ClientState]int, error) {
	counts := map[puntuale.ClientState]int{}
	for _, state := range clientStates {
		n, all, err := p.CountClients(ctx, ClientSearch{State: string(state)})
		if err != nil || !all {
			return nil, err
		}
		counts[state] = n
	}
	return counts, nil
}

func (p *Partner) clientFilter(s ClientSearch, now time.Time) (filter puntuale.ClientFilter, f request.Faults) {
	var words []string
	for _, state := range clientStates {
		words = append(words, string(state))
	}
	f.Word("query.state", s.State, words...)
	f.Text("query.q", s.Text, puntuale.MaxName)
	today := p.accounts.control.Today(now)
	return puntuale.ClientFilter{Text: s.Text, State: puntuale.ClientState(s.State), Today: today, Until: today.AddDays(soon), Plan: s.Plan}, f
}

// ClientNames returns the names of the partner's clients with these ids, by one query. It omits deleted clients, and
// clients of other partners.
func (p *Partner) ClientNames(ctx context.Context, ids []puntuale.ClientID) (map[puntuale.ClientID]string, error) {
	names, err := p.tenant.ClientNames(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read names of clients: %w", err)
	}
	return names, nil
}

// rows returns the clients with their status.
func (p *Partner) rows(ctx context.Context, found []puntuale.Client, now time.Time) ([]ClientRow, error) {
	days := make([]puntuale.ClientDay, len(found))
	for i, c := range found {
		days[i] = puntuale.ClientDay{Client: c.ID, Day: p.accounts.control.DayOf(c, now)}
	}
	pulses, err := p.tenant.Pulses(ctx, days)
	if err != nil {
		return nil, fmt.Errorf("read how clients are: %w", err)
	}
	rows := make([]ClientRow, len(found))
	for i, c := range found {
		rows[i] = ClientRow{c, pulses[c.ID], !c.ExpiresAt.IsZero() && !now.Before(c.ExpiresAt)}
	}
	return rows, nil
}

// Row returns one client with its status. Codes: not_found.
func (p *Partner) Row(ctx context.Context, id string) (ClientRow, error) {
	account, err := p.Account(ctx, id)
	if err != nil {
		return ClientRow{}, err
	}
	rows, err := p.rows(ctx, []puntuale.Client{account}, p.accounts.clock.Now())
	if err != nil {
		return ClientRow{}, err
	}
	return rows[0], nil
}

// Expiring lists the clients whose last day is from 30 days ago to 60 days ahead, ordered by this day.
func (p *Partner) Expiring(ctx context.Context) ([]ClientRow, error) {
	now := p.accounts.clock.Now()
	today := p.accounts.control.Today(now)
	found, err := p.tenant.Expiring(ctx, today.AddDays(-soon/2), today.AddDays(soon), maxExpiring)
	if err != nil {
		return nil, fmt.Errorf("look for expiring clients: %w", err)
	}
	return p.rows(ctx, found, now)
}

// Totals counts three kinds of messages for each day: sent, failed, and still to be sent. It counts the messages of one
// client, or of all clients if client is "". daysBack and ahead are days before and after today, at most 400 each. The
// list contains every day. Codes: not_found.
func (p *Partner) Totals(ctx context.Context, client string, daysBack, ahead int) ([]puntuale.DayTotal, error) {
	now := p.accounts.clock.Now()
	today, id := p.accounts.control.Today(now), puntuale.ClientID(0)
	if client != "" {
		account, err := p.Account(ctx, client)
		if err != nil {
			return nil, err
		}
		id, today = account.ID, p.accounts.control.DayOf(account, now)
	}
	return control.Totals(ctx, p.tenant, id, today, now, daysBack, ahead)
}

// Day returns the current day in the default zone of new clients.
func (p *Partner) Day() puntuale.Date { return p.accounts.control.Today(p.accounts.clock.Now()) }

// Results reads a report about all clients of the partner, or about one of them. It has no contents of messages. Codes:
// not_found (the client).
func (p *Partner) Results(ctx context.Context, client puntuale.ClientID, f puntuale.ResultFilter) (puntuale.ResultReport, error) {
	read := p.tenant.Results
	if client != 0 {
		if _, err := p.tenant.Client(ctx, client); err != nil {
			return puntuale.ResultReport{}, fmt.Errorf("read client %d: %w", client, err)
		}
		read = p.accounts.tenants.Tenant(client).Results
	}
	found, err := read(ctx, f, p.accounts.clock.Now())
	if err != nil {
		return found, fmt.Errorf("read results: %w", err)
	}
	for i := range found.All {
		found.All[i].Buttons = nil
	}
	found.Total.Buttons = nil
	return found, nil
}
