package account

import (
	"context"
	"fmt"
	"puntuale/internal/control/request"
	"time"

	"puntuale"
)

// Refill refills the credits of clients whose moment has come. Any number of nodes may call it at any time. Each refill
// takes place once, even a late one.
func (c *Accounts) Refill(ctx context.Context) (int, error) {
	now := c.clock.Now()
	n, err := c.partners.Refill(ctx, now, func(account puntuale.Client) time.Time {
		loc, err := c.zones.Load(account.Zone)
		if err != nil {
			loc = time.UTC // the program knew the zone when it was set, and does not know it now
		}
		return nextRefill(account, loc, now)
	})
	if err != nil {
		return n, fmt.Errorf("refill credits: %w", err)
	}
	return n, nil
}

// nextRefill returns the first moment after now at which a client's credits are refilled. Refills take place at local
// midnight, each month or each year, on the day of the month on which the client was created. In a shorter month it is
// the month's last day; for 29 February it is 28 February. The zero time means never.
func nextRefill(account puntuale.Client, loc *time.Location, now time.Time) time.Time {
	months := map[string]int{puntuale.RefillMonthly: 1, puntuale.RefillYearly: 12}[account.Refill]
	if months == 0 {
		return time.Time{}
	}
	created, today := puntuale.DateOf(account.Created.In(loc)), puntuale.DateOf(now.In(loc))
	passed := (today.Year-created.Year)*12 + int(today.Month) - int(created.Month)
	for n := max(0, passed/months-1); ; n++ {
		day := created.AddMonths(n * months) // counted from the creation day, so that one short month does not move the day in later months
		at := request.Midnight(day.AddDays(-1), loc)
		if n > 0 && at.After(now) {
			return at
		}
	}
}
