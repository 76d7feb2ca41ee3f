package control

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// These constants bound the lists of the dashboard's first page, in rows.
const (
	todayRows   = 12
	todayFailed = 200

	failedOf     = 5_000  // of so many latest outcomes, failures are read first
	failedOfMost = 50_000 // and at most of so many
)

// Today is what the dashboard's first page shows about the client's current day.
type Today struct {
	Day       puntuale.Date
	Total     puntuale.DayTotal
	Pulse     puntuale.ClientStatus
	Ended     []puntuale.MessageDetail // the messages that ended last, newest first
	Uncertain []puntuale.MessageDetail // the latest attempts whose outcome is uncertain, newest first
	Partly    bool                     // true: too many messages wait, so Uncertain is incomplete
	Upcoming  []puntuale.MessageDetail // messages due before midnight, and late messages, soonest first
	Next      *puntuale.MessageDetail  // the first message of a later day; set only if Upcoming is empty
	Failures  []Failure                // the most frequent reason first
	Settled   int64                    // failed messages that somebody has already sent again
	Unlisted  int64                    // failed messages that are neither in Failures nor settled, because there are too many
	Sessions  []Session
}

// Failure is one reason why messages did not leave, with the latest messages that failed for this reason.
type Failure struct {
	Reason   puntuale.Reason // the sentence that the contract calls risposta
	Messages []puntuale.MessageDetail
}

// Today returns the messages of the client's current day: sent, failed and pending.
func (c *Client) Today(ctx context.Context) (Today, error) {
	loc, err := c.zone()
	if err != nil {
		return Today{}, err
	}
	now := c.control.clock.Now()
	t := Today{Day: puntuale.DateOf(now.In(loc))}
	begin, end := t.Day.At(0, loc), request.Midnight(t.Day, loc)
	var failed []puntuale.MessageDetail
	for _, read := range []func() error{
		func() (err error) { t.Ended, err = c.tenant.Ended(ctx, begin, end, 0, todayRows); return },
		func() error { return c.open(ctx, &t, end) },
		func() (err error) { t.Pulse, err = c.Pulse(ctx); return },
		func() (err error) { t.Sessions, err = c.everySession(ctx); return },
		func() error {
			days, err := c.Totals(ctx, 0, 0)
			if len(days) > 0 {
				t.Total = days[0]
			}
			return err
		},
		func() (err error) { failed, err = c.failedToday(ctx, begin, end, t.Total.Failed); return },
	} {
		if err := read(); err != nil {
			return Today{}, fmt.Errorf("read today's messages: %w", err)
		}
	}
	if len(t.Upcoming) == 0 {
		if t.Next, err = c.next(ctx, end); err != nil {
			return Today{}, err
		}
	}
	t.Failures = failures(failed)
	t.Settled = int64(len(failed))
	for _, f := range t.Failures {
		t.Settled -= int64(len(f.Messages))
	}
	t.Unlisted = max(0, t.Total.Failed-int64(len(failed)))
	return t, nil
}

// failedToday returns the latest messages that did not leave, if the day has some. Usually they are among the latest
// outcomes. Only if some are missing, failedToday reads more of the day.
func (c *Client) failedToday(ctx context.Context, begin, end time.Time, total int64) (failed []puntuale.MessageDetail, err error) {
	for _, of := range []int{failedOf, failedOfMost} {
		if int64(len(failed)) >= min(total, todayFailed) {
			break
		}
		if failed, err = c.tenant.Ended(ctx, begin, end, of, todayFailed); err != nil {
			return nil, err
		}
	}
	return failed, nil
}

// open reads the latest attempts whose outcome is uncertain, and the messages that are due before the argument end.
func (c *Client) open(ctx context.Context, t *Today, end time.Time) error {
	attempts, all, err := c.uncertain(ctx)
	if err != nil {
		return err
	}
	t.Partly = !all
	if t.Uncertain, err = c.attempts(ctx, attempts[:min(todayRows, len(attempts))]); err != nil {
		return err
	}
	t.Upcoming, err = c.leaving(ctx, attempts, time.Time{}, end, todayRows)
	return err
}

// uncertain lists the attempts whose outcome is uncertain, the latest first, and reports whether the list is complete.
// The next check of some attempts was due less than a minute ago and may still run. The list includes these attempts,
// too.
func (c *Client) uncertain(ctx context.Context) ([]puntuale.UncertainAttempt, bool, error) {
	return c.tenant.Uncertain(ctx, c.control.clock.Now().Add(-time.Minute))
}

// attempts returns the messages of the given attempts, in the same order.
func (c *Client) attempts(ctx context.Context, uncertain []puntuale.UncertainAttempt) ([]puntuale.MessageDetail, error) {
	if len(uncertain) == 0 {
		return nil, nil
	}
	ids := make([]puntuale.MessageID, len(uncertain))
	for i := range uncertain {
		ids[i] = uncertain[i].ID
	}
	return c.tenant.Details(ctx, ids)
}

// leaving lists the messages that are due at or after the argument from, and before the argument to. It omits uncertain
// messages. The store lists uncertain messages, too, because they are still open. But at their due time the dispatcher
// only checks their outcome again.
func (c *Client) leaving(ctx context.Context, uncertain []puntuale.UncertainAttempt, from, to time.Time, limit int) ([]puntuale.MessageDetail, error) {
	more := 0
	for _, u := range uncertain {
		if !u.Next.Before(from) && u.Next.Before(to) {
			more++
		}
	}
	found, err := c.tenant.Upcoming(ctx, from, to, limit+min(more, maxAside))
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(m puntuale.MessageDetail) bool { return m.Uncertain() })
	return found[:min(limit, len(found))], nil
}

// maxAside bounds how many uncertain messages [Client.leaving] reads in addition to its limit.
const maxAside = 400

// maxSessionPages bounds how many pages of sessions everySession reads.
const maxSessionPages = 100

// everySession returns all the client's sessions, in the order of their ids.
func (c *Client) everySession(ctx context.Context) (all []Session, err error) {
	p := request.Page{Limit: strconv.Itoa(request.MaxPageRows)}
	for range maxSessionPages {
		var rows []Session
		if rows, p.Cursor, err = c.Sessions(ctx, p); err != nil {
			return nil, err
		}
		if all = append(all, rows...); p.Cursor == "" {
			break
		}
	}
	return all, nil
}

// next returns the first message that is due at or after the argument from, or nil if there is none.
func (c *Client) next(ctx context.Context, from time.Time) (*puntuale.MessageDetail, error) {
	uncertain, _, err := c.uncertain(ctx)
	if err != nil {
		return nil, fmt.Errorf("list uncertain messages: %w", err)
	}
	found, err := c.leaving(ctx, uncertain, from, c.control.clock.Now().AddDate(puntuale.HorizonYears+1, 0, 0), 1)
	if err != nil {
		return nil, fmt.Errorf("read the next message: %w", err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &found[0], nil
}

// failures groups failed messages by reason.
func failures(all []puntuale.MessageDetail) []Failure {
	var found []Failure
	for _, m := range all {
		if m.State == puntuale.Rescheduled {
			continue // a person has already dealt with this message
		}
		reason := m.Response()
		i := slices.IndexFunc(found, func(f Failure) bool { return f.Reason.Equal(reason) })
		if i < 0 {
			found, i = append(found, Failure{Reason: reason}), len(found)
		}
		found[i].Messages = append(found[i].Messages, m)
	}
	slices.SortStableFunc(found, func(a, b Failure) int { return len(b.Messages) - len(a.Messages) })
	return found
}

// Story is one message with its history.
type Story struct {
	puntuale.MessageDetail
	Events  []puntuale.MessageEvent  // oldest first
	Resent  []puntuale.MessageID     // the messages that resends of this message created, oldest first
	Earlier []puntuale.MessageDetail // the messages that this message replaced when its due time changed, oldest first, without contents
	Later   *puntuale.MessageDetail  // the message that replaced this one when its due time changed; nil: none
	Session Session                  // if the ID is 0, the session was deleted
}

// Story returns one message. Codes: not_found.
func (c *Client) Story(ctx context.Context, id string) (Story, error) {
	wanted, err := puntuale.ParseID[puntuale.MessageID](id)
	if err != nil {
		return Story{}, puntuale.NotFound(puntuale.NoMessage)
	}
	found, err := c.tenant.Details(ctx, []puntuale.MessageID{wanted})
	if err != nil {
		return Story{}, fmt.Errorf("read message %d: %w", wanted, err)
	}
	if len(found) == 0 {
		return Story{}, puntuale.NotFound(puntuale.NoMessage)
	}
	if err := c.tellWays(ctx, found); err != nil {
		return Story{}, err
	}
	s := Story{MessageDetail: found[0]}
	if s.Events, err = c.tenant.MessageEvents(ctx, wanted); err != nil {
		return Story{}, fmt.Errorf("read the events of message %d: %w", wanted, err)
	}
	if s.Resent, err = c.tenant.ResentAs(ctx, s.Run, wanted); err != nil {
		return Story{}, fmt.Errorf("read what message %d was sent again as: %w", wanted, err)
	}
	if err := c.moves(ctx, &s); err != nil {
		return Story{}, err
	}
	if s.Session, err = c.Session(ctx, s.MessageDetail.Session.String()); err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
		return Story{}, err
	}
	return s, nil
}

// maxMoves bounds how many changes of the due time a Story contains.
const maxMoves = 50

// moves sets Earlier and Later in the story. It reads the messages that this message replaced when its due time
// changed, and the message that replaced this message.
func (c *Client) moves(ctx context.Context, s *Story) error {
	for at := s.ResentFrom; at != 0 && len(s.Earlier) < maxMoves; at = s.Earlier[len(s.Earlier)-1].ResentFrom {
		found, err := c.Before(ctx, at)
		if err != nil {
			return err
		}
		if m, ok := found[at]; !ok || !m.Moved() {
			break
		}
		s.Earlier = append(s.Earlier, found[at])
	}
	slices.Reverse(s.Earlier)
	if !s.Moved() || len(s.Resent) == 0 {
		return nil
	}
	id := s.Resent[len(s.Resent)-1]
	found, err := c.Before(ctx, id)
	if m, ok := found[id]; ok {
		s.Later = &m
	}
	return err
}

// Before returns the given messages that exist, without their contents. Lists use it to show which message a move
// replaced.
func (c *Client) Before(ctx context.Context, ids ...puntuale.MessageID) (map[puntuale.MessageID]puntuale.MessageDetail, error) {
	all := make(map[puntuale.MessageID]puntuale.MessageDetail, len(ids))
	if len(ids) == 0 {
		return all, nil
	}
	found, err := c.tenant.Outlines(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read messages that were moved: %w", err)
	}
	for _, m := range found {
		all[m.ID] = m
	}
	return all, nil
}

// Moved is a pending message after a move to another due time.
type Moved struct {
	ID     puntuale.MessageID // the id of the new message, because a move creates a new message
	Due    time.Time          // when the message will leave; it may be later than the caller asked, because of the window
	Before time.Time          // the message's due time before the move
}

// Move changes the due time of a pending message. The new time must be in the future. day is YYYY-MM-DD and at is
// HH:MM, in the client's zone. Move refuses a message that is in flight or has ended. Codes: not_found; invalid;
// conflict; cap_reached; forbidden.
func (c *Client) Move(ctx context.Context, id, day, at string) (Moved, error) {
	var f request.Faults
	if strings.TrimSpace(day) == "" {
		f.Add("body.date", puntuale.FaultRequired, nil)
	}
	if strings.TrimSpace(at) == "" {
		f.Add("body.time", puntuale.FaultRequired, nil)
	}
	zone, err := c.zone()
	if err != nil {
		return Moved{}, err
	}
	now := c.control.clock.Now()
	moments := ResendCall{Date: day, Time: at}.moments(&f, now, zone)
	if err := f.Err(); err != nil {
		return Moved{}, err
	}
	return c.move(ctx, id, now, zone, puntuale.Pending, "body.date", moments.momentsOf)
}

// MoveTo gives a pending message a new due time. If the time is past, MoveTo uses the current time. If the time is
// outside the message's window, MoveTo uses the next time inside the window. Callers use MoveTo to undo a move. A time
// beyond the horizon is a fault at query.at (invalid).
func (c *Client) MoveTo(ctx context.Context, id string, at time.Time) (Moved, error) {
	return c.backTo(ctx, id, puntuale.Pending, "query.at", func(*puntuale.MessageDetail) time.Time { return at })
}

// Restore undoes a cancellation. The message leaves at its due time, or now if this time has passed, and always inside
// its window. Codes: not_found; conflict if the message is not cancelled; cap_reached, forbidden.
func (c *Client) Restore(ctx context.Context, id string) (Moved, error) {
	return c.backTo(ctx, id, puntuale.Cancelled, "", func(d *puntuale.MessageDetail) time.Time { return d.Next })
}

// backTo changes a message's due time to the result of the argument at. The message must be in the given state. Faults
// of the new time are reported at location.
func (c *Client) backTo(ctx context.Context, id string, state puntuale.State, location string, at func(*puntuale.MessageDetail) time.Time) (Moved, error) {
	zone, err := c.zone()
	if err != nil {
		return Moved{}, err
	}
	now := c.control.clock.Now()
	return c.move(ctx, id, now, zone, state, location, func(d *puntuale.MessageDetail, loc *time.Location) puntuale.ResendMessage {
		r := puntuale.ResendMessage{ID: d.ID, Desired: at(d), Due: at(d)}
		if r.Due.Before(now) {
			r.Desired, r.Due = now, now
		}
		if due, ok := d.Window.Next(r.Due, loc); ok {
			r.Due = due
		}
		r.ValidUntil = d.Deadline(r.Due)
		return r
	})
}

const faultMessageChanged puntuale.ReasonCode = "message.changed"

// move gives a message the times that the function moments returns. The message must be in the given state. Faults of
// the times are reported at location.
func (c *Client) move(ctx context.Context, id string, now time.Time, zone *time.Location, state puntuale.State, location string,
	moments func(*puntuale.MessageDetail, *time.Location) puntuale.ResendMessage,
) (Moved, error) {
	if err := c.MayCreate(); err != nil {
		return Moved{}, err
	}
	wanted, err := puntuale.ParseID[puntuale.MessageID](id)
	if err != nil {
		return Moved{}, puntuale.NotFound(puntuale.NoMessage)
	}
	found, err := c.tenant.Outlines(ctx, []puntuale.MessageID{wanted})
	if err != nil {
		return Moved{}, fmt.Errorf("read message %d: %w", wanted, err)
	}
	if len(found) == 0 {
		return Moved{}, puntuale.NotFound(puntuale.NoMessage)
	}
	if found[0].State != state {
		return Moved{}, &puntuale.Error{Code: puntuale.CodeConflict, Reason: puntuale.Because(faultMessageChanged)}
	}
	loc, err := c.control.zones.Load(found[0].Zone)
	if err != nil {
		loc = zone // data of an older version may contain an unknown zone
	}
	m := moments(&found[0], loc)
	var f request.Faults
	f.Horizon(location, m.Due, now)
	if err := f.Err(); err != nil {
		return Moved{}, err
	}
	r := puntuale.Resend{Day: puntuale.DateOf(now.In(zone)), Now: now, Move: state == puntuale.Pending, Messages: []puntuale.ResendMessage{m}}
	resent, err := c.tenant.Resend(ctx, r)
	if err != nil {
		return Moved{}, fmt.Errorf("move message %d: %w", wanted, untilMidnight(err, request.Midnight(r.Day, zone).Sub(now)))
	}
	c.control.wakeup(found[0].Session, m.Due)
	return Moved{ID: resent.IDs[0], Due: m.Due, Before: found[0].Planned()}, nil
}

// Agenda contains the messages that are due on each of several days.
type Agenda struct {
	Days   []AgendaDay
	Next   *puntuale.MessageDetail // the first later message; set only if no message is due on these days
	Partly bool                    // true: too many messages wait, so some uncertain ones may be listed at the time of their next check
}

// AgendaDay contains the messages that are due on one day.
type AgendaDay struct {
	Day      puntuale.Date
	Count    int
	Hours    [24]int                  // the count by hour, in the client's zone
	Messages []puntuale.MessageDetail // first the uncertain ones, in the order of their attempts, then the others, in the order of their due times
}

// These constants bound the first day of an agenda: how many days before or after today it may be. No message is due
// beyond the horizon.
const (
	agendaBack  = 366
	agendaAhead = 366 * (puntuale.HorizonYears + 1)
)

// MaxAgendaDays bounds the days that [Client.Agenda] returns.
const MaxAgendaDays = 42

// Agenda returns the messages that are due on each of several days. from is the first day. days is the number of days,
// at most MaxAgendaDays. Each day lists at most limit messages, and never more than one page of a list. Days beyond
// the horizon are empty.
func (c *Client) Agenda(ctx context.Context, from puntuale.Date, days, limit int) (Agenda, error) {
	loc, err := c.zone()
	if err != nil {
		return Agenda{}, err
	}
	days, limit = max(1, min(days, MaxAgendaDays)), max(0, min(limit, request.MaxPageRows))
	today := puntuale.DateOf(c.control.clock.Now().In(loc))
	if first := today.AddDays(-agendaBack); from.Before(first) {
		from = first
	}
	if last := today.AddDays(agendaAhead); last.Before(from) {
		from = last
	}
	a := Agenda{Days: make([]AgendaDay, days)}
	counts, err := c.tenant.UpcomingCounts(ctx, from.At(0, loc), request.Midnight(from.AddDays(days-1), loc))
	if err != nil {
		return Agenda{}, fmt.Errorf("count pending messages: %w", err)
	}
	if len(counts) == 0 {
		if a.Next, err = c.next(ctx, time.Time{}); err != nil {
			return Agenda{}, err
		}
	}
	uncertain, all, err := c.uncertain(ctx)
	if err != nil {
		return Agenda{}, fmt.Errorf("list uncertain messages: %w", err)
	}
	a.Partly = !all
	for i := range a.Days {
		d := &a.Days[i]
		d.Day = from.AddDays(i)
		for _, n := range counts {
			if local := n.Begin.In(loc); puntuale.DateOf(local) == d.Day {
				d.Count += n.N
				d.Hours[local.Hour()] += n.N
			}
		}
		onDay := d.place(uncertain, loc)
		if d.Count == 0 || limit == 0 {
			continue
		}
		if d.Messages, err = c.attempts(ctx, onDay[:min(limit, len(onDay))]); err != nil {
			return Agenda{}, fmt.Errorf("list uncertain messages: %w", err)
		}
		leaving, err := c.leaving(ctx, uncertain, d.Day.At(0, loc), request.Midnight(d.Day, loc), limit-len(d.Messages))
		if err != nil {
			return Agenda{}, fmt.Errorf("list pending messages: %w", err)
		}
		d.Messages = append(d.Messages, leaving...)
	}
	return a, nil
}

// place counts each uncertain message on the day of its attempt, instead of the day of its next check. It returns the
// uncertain messages whose attempts were on the day d.Day, in the order of these attempts.
func (d *AgendaDay) place(uncertain []puntuale.UncertainAttempt, loc *time.Location) (onDay []puntuale.UncertainAttempt) {
	for _, u := range slices.Backward(uncertain) {
		if next := u.Next.In(loc); puntuale.DateOf(next) == d.Day {
			d.Count--
			d.Hours[next.Hour()]--
		}
		if at := u.At.In(loc); puntuale.DateOf(at) == d.Day {
			d.Count++
			d.Hours[at.Hour()]++
			onDay = append(onDay, u)
		}
	}
	d.Count = max(0, d.Count) // a message may have ended after it was counted
	for h := range d.Hours {
		d.Hours[h] = max(0, d.Hours[h])
	}
	return onDay
}

// CountMessages counts the messages that a query finds, up to limit. all is true if n is the complete count. Codes:
// invalid.
func (c *Client) CountMessages(ctx context.Context, q MessageQuery, limit int) (n int, all bool, err error) {
	var f request.Faults
	filter, err := c.filter(&f, q)
	if err == nil {
		err = f.Err()
	}
	if err != nil {
		return 0, false, err
	}
	n, all, err = c.tenant.CountMessages(ctx, filter, limit)
	if err == nil && n == 0 && !all { // the bounded search found no message, so the store must search without a bound
		filter.Look = 0
		n, all, err = c.tenant.CountMessages(ctx, filter, limit)
	}
	if err != nil {
		return 0, false, fmt.Errorf("count messages: %w", err)
	}
	return n, all, nil
}

// Version returns a text that changes when the lists of the client's messages change. It may miss some changes; see
// [puntuale.Tenant].
func (c *Client) Version(ctx context.Context) (string, error) {
	text, err := c.tenant.Version(ctx)
	if err != nil {
		return "", fmt.Errorf("look for changes of messages: %w", err)
	}
	return text, nil
}

// Chat returns the messages that the simulated network received from a sandbox session. It returns at most one page of
// a list, the newest first. Phone "" means all phones. The phone may have any usual form. Codes: not_found if the
// session does not exist or is no sandbox; invalid.
func (c *Client) Chat(ctx context.Context, session, phone string, limit int) (Session, []puntuale.SandboxMessage, error) {
	s, err := c.Session(ctx, session)
	if err != nil {
		return Session{}, nil, err
	}
	if !s.Sandbox {
		return Session{}, nil, puntuale.NotFound(puntuale.NoSession)
	}
	var f request.Faults
	f.Text("query.phone", phone, puntuale.MaxPersonID)
	if err := f.Err(); err != nil {
		return Session{}, nil, err
	}
	if number := c.person(&f, "query.phone", phone).Names[0]; phone != "" && len(f) == 0 {
		phone = number
	}
	rows, err := c.tenant.SandboxChat(ctx, s.ID, phone, max(1, min(limit, request.MaxPageRows)))
	if err != nil {
		return Session{}, nil, fmt.Errorf("list what the sandbox received: %w", err)
	}
	return s, rows, nil
}

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

// Pulse returns the number of calls that a client made today, and the state of its sessions.
func (c *Client) Pulse(ctx context.Context) (puntuale.ClientStatus, error) {
	day := c.control.DayOf(c.account, c.control.clock.Now())
	found, err := c.control.tenants.Partner(c.account.Partner).Pulses(ctx, []puntuale.ClientDay{{Client: c.account.ID, Day: day}})
	if err != nil {
		return puntuale.ClientStatus{}, fmt.Errorf("read how the client is: %w", err)
	}
	return found[c.account.ID], nil
}
