package account

import (
	"context"
	"fmt"
	"puntuale/internal/control/request"
	"time"

	"puntuale"
)

// Refill refills the credits of all clients whose refill is due. Any number of nodes may call Refill at any time. No
// refill takes place twice. If several refills of a client are late, one refill replaces them.
func (c *Accounts) Refill(ctx context.Context) (int, error) {
	now := c.clock.Now()
	n, err := c.partners.Refill(ctx, now, func(account puntuale.Client) time.Time {
		loc, err := c.zones.Load(account.Zone)
		if err != nil {
			loc = time.UTC // an earlier version of the program accepted this zone, and this version does not know the zone
		}
		return nextRefill(account, loc, now)
	})
	if err != nil {
		return n, fmt.Errorf("refill credits: %w", err)
	}
	return n, nil
}

// nextRefill returns the time of a client's first refill after now. Refills take place at local midnight, each month or
// each year, on the same day of the month as the client's creation. In a shorter month, this is the month's last day;
// for 29 February, it is 28 February. The zero time means never.
func nextRefill(account puntuale.Client, loc *time.Location, now time.Time) time.Time {
	months := map[string]int{puntuale.RefillMonthly: 1, puntuale.RefillYearly: 12}[account.Refill]
	if months == 0 {
		return time.Time{}
	}
	created, today := puntuale.DateOf(account.Created.In(loc)), puntuale.DateOf(now.In(loc))
	passed := (today.Year-created.Year)*12 + int(today.Month) - int(created.Month)
	for n := max(0, passed/months-1); ; n++ {
		day := created.AddMonths(n * months) // each day is counted from the creation day, so that a short month does not change the day in later months
		at := request.Midnight(day.AddDays(-1), loc)
		if n > 0 && at.After(now) {
			return at
		}
	}
}
