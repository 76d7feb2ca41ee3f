package control

import (
	"context"
	"fmt"
	"time"

	"puntuale"
)

// Totals counts the client's messages by day. See the function [Totals].
func (c *Client) Totals(ctx context.Context, daysBack, ahead int) ([]puntuale.DayTotal, error) {
	now := c.control.clock.Now()
	tenant := c.control.tenants.Partner(c.account.Partner)
	return Totals(ctx, tenant, c.account.ID, c.control.DayOf(c.account, now), now, daysBack, ahead)
}

// maxTotalDays bounds how far totals reach back or ahead, in days. The store removes older counts of API calls.
const maxTotalDays = 400

// Totals counts the messages of one client by day. If id is 0, it counts the messages of all clients. daysBack and
// ahead say how many days before and after today the list contains. The list contains every day, even without messages.
func Totals(ctx context.Context, tenant puntuale.PartnerTenant, id puntuale.ClientID, today puntuale.Date, now time.Time, daysBack, ahead int) ([]puntuale.DayTotal, error) {
	daysBack, ahead = max(0, min(daysBack, maxTotalDays)), max(0, min(ahead, maxTotalDays))
	from, to := today.AddDays(-daysBack), today.AddDays(ahead)
	found, err := tenant.Totals(ctx, id, from, to, now)
	if err != nil {
		return nil, fmt.Errorf("count messages by day: %w", err)
	}
	all := make([]puntuale.DayTotal, 0, daysBack+ahead+1)
	for d := from; !to.Before(d); d = d.AddDays(1) {
		day := puntuale.DayTotal{Day: d}
		if len(found) > 0 && found[0].Day == d {
			day, found = found[0], found[1:]
		}
		all = append(all, day)
	}
	return all, nil
}

// Today returns the current day in the default zone of new clients. Pages without a client use it.
func (c *Control) Today(now time.Time) puntuale.Date {
	loc, err := c.zones.Load(puntuale.NewAccount(puntuale.AccountFull, puntuale.Date{}).Zone)
	if err != nil {
		loc = time.UTC
	}
	return puntuale.DateOf(now.In(loc))
}

// DayOf returns a client's current day.
func (c *Control) DayOf(account puntuale.Client, now time.Time) puntuale.Date {
	loc, err := c.zones.Load(account.Zone)
	if err != nil {
		loc = time.UTC
	}
	return puntuale.DateOf(now.In(loc))
}

// Pulse returns the number of calls that a client made today, and the state of its sessions.
func (c *Client) Pulse(ctx context.Context) (puntuale.ClientStatus, error) {
	day := c.control.DayOf(c.account, c.control.clock.Now())
	found, err := c.control.tenants.Partner(c.account.Partner).Pulses(ctx, []puntuale.ClientDay{{Client: c.account.ID, Day: day}})
	if err != nil {
		return puntuale.ClientStatus{}, fmt.Errorf("read how the client is: %w", err)
	}
	return found[c.account.ID], nil
}
