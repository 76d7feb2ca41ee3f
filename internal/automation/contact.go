package automation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"puntuale"
)

// Contacts takes at most takeAtOnce triggers of changed contacts, and updates the stored dates of these contacts. It returns the number of
// triggers.
func (r *Runner) Contacts(ctx context.Context) (int, error) {
	all, within := ctx, r.Clock.Now().Add(workWithin)
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	now := r.Clock.Now().Truncate(time.Microsecond)
	taken, err := r.Store.TakeContacts(ctx, r.Node(), now, takeAtOnce)
	if err != nil || len(taken) == 0 {
		return 0, err
	}
	byClient := map[puntuale.ClientID][]puntuale.TakenTrigger{}
	for _, t := range taken {
		byClient[t.Client] = append(byClient[t.Client], t)
	}
	order := slices.Sorted(maps.Keys(byClient))
	clients, err := r.clients(ctx, order)
	if err != nil {
		return 0, err
	}
	var failures []error
	for _, id := range order {
		if !r.Clock.Now().Before(within) {
			break // the triggers of the other clients come back when their lease ends
		}
		w := &clientWork{Runner: r, id: id, now: now, client: clients[id]}
		if err := w.within(all, func(ctx context.Context) error { return w.followContacts(ctx, byClient[id]) }); err != nil {
			failures = append(failures, fmt.Errorf("client %d: %w", id, err))
		}
	}
	return len(taken), errors.Join(failures...)
}

// followContacts updates the stored dates of changed contacts for the client's rules, in several small transactions.
func (w *clientWork) followContacts(ctx context.Context, all []puntuale.TakenTrigger) error {
	zone, err := time.LoadLocation(w.client.Zone)
	if err != nil {
		zone = time.UTC
	}
	var failures []error
	for len(all) > 0 && ctx.Err() == nil {
		rows, calls := w.Bound()
		n := min(len(all), max(1, rows/contactRows))
		if i := slices.IndexFunc(all[:n], func(t puntuale.TakenTrigger) bool { return t.Attempts > 0 }); i >= 0 {
			n = max(1, i) // a trigger that failed before is tried alone
		}
		begun := w.Clock.Now()
		if err := puntuale.Recovered(func() error {
			return w.Store.FollowContacts(ctx, w.id, all[:n], w.now, func(rule puntuale.ActiveAutomation, value string, from time.Time) puntuale.Date {
				return NextDay(rule.Trigger.Repeat, value, puntuale.DateOf(from.In(zone)))
			})
		}); err != nil {
			failures = append(failures, err)
			w.attemptFailed(ctx, err, all[:n])
		}
		if all = all[n:]; calls && len(all) > 0 {
			if err := w.rest(ctx, begun, 1); err != nil {
				return err
			}
		}
	}
	return errors.Join(failures...)
}

// contactRows is how many rows a changed contact usually changes: the dates of a few rules, and the messages for the old date.
const contactRows = 4
