package account

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

const oneDay = 24 * time.Hour

// eventDays lists on which days a client gets an event. Each value is a number of days before the last day of service.
var eventDays = [...]int{7, 3, 0}

// afterEndEvent is the number of the event after the end of service. The events of eventDays have the numbers 1 to 3.
const afterEndEvent = len(eventDays) + 1

// DueExpiries finds the clients that must get an event about the end of their service. $1 is the present time. An end
// before $2 causes no event any more.
const DueExpiries = `
select k.id from client k where k.expires_at > $2 and k.expires_at <= $1::bigint + 691200000000 and k.deleted_at = 0 and ` + dueExpiryEvent + ` > ` + lastExpiryEvent + `
order by k.id limit $3`

const (
	// expires_at is the end of the last day. So each limit is a value of eventDays plus one day: 1, 4 and 8 days.
	dueExpiryEvent = `case when k.expires_at <= $1::bigint then 4 when k.expires_at <= $1::bigint + 86400000000 then 3 when k.expires_at <= $1::bigint + 345600000000 then 2 else 1 end`

	lastExpiryEvent = `case when k.expiry_told_at = k.expires_at then k.expiry_told else 0 end`

	lockExpiries = `
select k.id, k.expires_on, k.expires_at, ` + lastExpiryEvent + ` from $u(c bigint) join client k on k.id = u.c
where k.expires_at > 0 and k.deleted_at = 0 order by k.id for no key update of k`
)

// expiry is the end of a client's service.
type expiry struct {
	client   puntuale.ClientID
	last     puntuale.Date
	at       time.Time
	reported int // number of the last event that the client got; 0: none
}

// dueEvent returns the number of the last event that is due, or 0 if no event is due.
func (e *expiry) dueEvent(now time.Time) (number int) {
	if !now.Before(e.at) {
		return afterEndEvent
	}
	for i, days := range eventDays {
		if e.daysLeft(now) <= days {
			number = i + 1
		}
	}
	return number
}

// daysLeft returns the number of days until the last day of service.
func (e *expiry) daysLeft(now time.Time) int {
	return max(int((e.at.Sub(now)+oneDay-1)/oneDay)-1, 0)
}

// TellExpiries writes events to clients before and after the end of their service. Several nodes may call it at the
// same time. After an outage it writes only the last event that is due. If the end of service changes, the client can
// get each event again.
func (s *Accounts) TellExpiries(ctx context.Context, now time.Time) error {
	for {
		due, err := engine.QueryAll(ctx, s.MaintenanceReads, DueExpiries, []any{engine.Micros(now), engine.Micros(now.Add(-puntuale.KeepEvents)), engine.Chunk},
			engine.ScanOne[puntuale.ClientID])
		if err != nil {
			return engine.PublicError(fmt.Errorf("look for clients whose service ends: %w", err))
		}
		if len(due) == 0 {
			return nil
		}
		if err := s.TenantWriters[0].Do(ctx, engine.Single(s.Writes, func(ctx context.Context, a engine.Querier) error {
			return tellExpiries(ctx, a, due, now)
		}), false); err != nil {
			return fmt.Errorf("tell clients that their service ends: %w", err)
		}
		if len(due) < engine.Chunk {
			return nil
		}
	}
}

func tellExpiries(ctx context.Context, a engine.Querier, due []puntuale.ClientID, now time.Time) error {
	all, err := engine.QueryAll(ctx, a, lockExpiries, []any{engine.Columns{engine.Column(due, func(c *puntuale.ClientID) int64 { return int64(*c) })}},
		func(r engine.Row, e *expiry) error {
			return r.Scan(&e.client, date{&e.last}, engine.ScanTime(&e.at), &e.reported)
		})
	if err != nil {
		return fmt.Errorf("lock clients: %w", err)
	}
	var facts []outbox.Fact
	var expiries []expiry
	for _, e := range all {
		number := e.dueEvent(now)
		if number <= e.reported {
			continue // another node has written this event
		}
		e.reported = number
		expiries = append(expiries, e)
		f, err := e.fact(now)
		if err != nil {
			return err
		}
		facts = append(facts, f)
	}
	if len(expiries) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `update client set expiry_told = u.t, expiry_told_at = u.a from $u(c bigint, t smallint, a bigint) where client.id = u.c`, engine.Columns{
		engine.Column(expiries, func(e *expiry) int64 { return int64(e.client) }),
		engine.Column(expiries, func(e *expiry) int64 { return int64(e.reported) }),
		engine.Column(expiries, func(e *expiry) int64 { return engine.Micros(e.at) }),
	}); err != nil {
		return fmt.Errorf("store which events clients got: %w", err)
	}
	return outbox.Tell(ctx, a, now, facts...)
}

func (e *expiry) fact(now time.Time) (outbox.Fact, error) {
	f := outbox.Fact{Client: e.client, Type: puntuale.EventAccountExpired}
	members := struct {
		Last string `json:"expiration_date"`
		Days *int   `json:"days,omitempty"`
	}{Last: e.last.String()}
	if e.reported < afterEndEvent {
		f.Type, members.Days = puntuale.EventAccountExpiring, new(e.daysLeft(now))
	}
	var err error
	f.Detail, err = outbox.Detail(members)
	return f, err
}
