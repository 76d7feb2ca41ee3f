package calendar

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/calendar"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// Config contains the parts of [New]. All must be set.
type Config struct {
	Control *control.Control
	Tenants puntuale.TenantStore
	Vault   *auth.Vault
	Clock   clock.Clock
	Refuses func(ctx context.Context, address string) puntuale.ReasonCode // returns why no feed can be read at an address, or ""
}

// Calendars gives access to the calendars of all clients. It is safe for concurrent use.
type Calendars struct {
	cfg   Config
	zones request.Zones
}

// New returns Calendars.
func New(cfg Config) *Calendars { return &Calendars{cfg: cfg} }

// Owner gives access to one client's calendars.
type Owner struct {
	cfg    Config
	client *control.Client
	store  puntuale.Tenant
}

// OfClient returns the calendars of a client.
func (d *Calendars) OfClient(c *control.Client) *Owner {
	return &Owner{d.cfg, c, d.cfg.Tenants.Uncounted(c.ID())}
}

// NewCalendar is a request to create or change a calendar. In a change, a nil member changes nothing.
type NewCalendar struct {
	Name      *string
	Address   *string
	Sequence  *string
	PhoneFrom []string // nil: the usual order, or no change
	AllDay    *bool
	Faults    []puntuale.Fault // that the calling package already found in the request
}

// Codes of the faults that this file reports.
const (
	faultNotAddress     puntuale.ReasonCode = "calendar.not_address"
	faultPrivate        puntuale.ReasonCode = "calendar.private"
	faultNotHTTPS       puntuale.ReasonCode = "calendar.not_https"
	faultNotSequence    puntuale.ReasonCode = "calendar.not_sequence"
	faultSourceRepeated puntuale.ReasonCode = "calendar.source_repeated"
	faultUnfilled       puntuale.ReasonCode = "calendar.unfilled" // {1}: the fields that the texts need and no calendar fills
)

// Create creates a calendar, which is read within seconds. It plans nothing before it is started. Codes: invalid,
// forbidden, conflict (a call with a different body used the idempotency key), quota_reached.
func (o *Owner) Create(ctx context.Context, r NewCalendar, once control.Once[puntuale.Calendar]) (puntuale.Calendar, error) {
	if err := o.client.MayCreate(); err != nil {
		return puntuale.Calendar{}, err
	}
	f := request.Faults(r.Faults)
	keyed, clash, err := once.Begin(ctx, o.store, &f)
	if err != nil {
		return puntuale.Calendar{}, err
	}
	c := puntuale.Calendar{Client: o.client.ID(), PhoneFrom: puntuale.CalendarSources(), Created: o.cfg.Clock.Now()}
	p, err := o.check(ctx, &f, &c, r)
	if err != nil {
		return c, err
	}
	for at, missing := range map[string]bool{"body.name": r.Name == nil, "body.url": r.Address == nil, "body.sequence": r.Sequence == nil} {
		if missing {
			f.Add(at, puntuale.FaultRequired, nil)
		}
	}
	slices.SortStableFunc(f, func(a, b puntuale.Fault) int { return cmp.Compare(a.Location, b.Location) })
	if err := f.Err(); err != nil {
		return c, err
	}
	if clash != nil {
		return c, clash
	}
	c = c.Apply(p, c.Created)
	made := func(stored any) puntuale.Calendar {
		c.ID, _ = stored.(puntuale.CalendarID)
		return c
	}
	id, err := o.store.CreateCalendar(ctx, c, keyed.Keep(made))
	if err != nil {
		return c, fmt.Errorf("create a calendar: %w", err)
	}
	return made(id), nil
}

// check parses the members of a request, and adds their faults to f. c is the calendar before the change.
func (o *Owner) check(ctx context.Context, f *request.Faults, c *puntuale.Calendar, r NewCalendar) (p puntuale.CalendarPatch, err error) {
	if r.Name != nil {
		p.Name = new(strings.TrimSpace(*r.Name))
		f.Required("body.name", *p.Name, puntuale.MaxName)
	}
	if r.Address != nil {
		o.address(ctx, f, c, &p, *r.Address)
	}
	if r.Sequence != nil {
		s, err := o.client.Sequence(ctx, *r.Sequence)
		switch code := puntuale.CodeOf(err); {
		case *r.Sequence == "":
			f.Add("body.sequence", puntuale.FaultRequired, nil)
		case code == puntuale.CodeNotFound || err == nil && s.Booking == "":
			f.Add("body.sequence", faultNotSequence, nil)
		case err != nil:
			return p, err
		case len(unfilled(s)) > 0:
			f.Add("body.sequence", faultUnfilled, nil, strings.Join(unfilled(s), ", "))
		default:
			p.Sequence = &s.ID
		}
	}
	if r.PhoneFrom != nil {
		if len(r.PhoneFrom) == 0 {
			f.Add("body.phone_from", puntuale.FaultRequired, nil)
		}
		f.Entries("body.phone_from", len(r.PhoneFrom), len(puntuale.CalendarSources()))
		for i, source := range r.PhoneFrom {
			f.Word(request.At("body.phone_from", i), source, puntuale.CalendarSources()...)
			if slices.Contains(r.PhoneFrom[:i], source) {
				f.Add(request.At("body.phone_from", i), faultSourceRepeated, source)
			}
		}
		p.PhoneFrom = r.PhoneFrom
	}
	p.AllDay = r.AllDay
	return p, nil
}

// address seals the address of a feed. Faults never contain it, because it may contain a secret.
func (o *Owner) address(ctx context.Context, f *request.Faults, c *puntuale.Calendar, p *puntuale.CalendarPatch, text string) {
	u, ok := calendar.ParseAddress(text)
	switch {
	case strings.TrimSpace(text) == "":
		f.Add("body.url", puntuale.FaultRequired, nil)
	case len(text) > puntuale.MaxCalendarAddress:
		f.Text("body.url", text, puntuale.MaxCalendarAddress)
	case !ok:
		f.Add("body.url", faultNotAddress, nil)
	default:
		switch o.cfg.Refuses(ctx, withoutUser(u)) {
		case puntuale.FaultWebhookPrivate:
			f.Add("body.url", faultPrivate, nil)
		case puntuale.FaultWebhookNotHTTPS:
			f.Add("body.url", faultNotHTTPS, nil)
		default:
			p.Host, p.Sealed = new(u.Hostname()), o.cfg.Vault.Seal(puntuale.SealedCalendar, c.SealPlace(), []byte(u.String()))
		}
	}
}

func withoutUser(u *url.URL) string {
	plain := *u
	plain.User = nil
	return plain.String()
}

// List returns all calendars, by id.
func (o *Owner) List(ctx context.Context) ([]puntuale.Calendar, error) {
	all, err := o.store.Calendars(ctx)
	if err != nil {
		return nil, fmt.Errorf("list calendars: %w", err)
	}
	return all, nil
}

// Calendar returns one calendar. Codes: not_found.
func (o *Owner) Calendar(ctx context.Context, id string) (puntuale.Calendar, error) {
	n, err := puntuale.ParseID[puntuale.CalendarID](id)
	if err != nil {
		return puntuale.Calendar{}, puntuale.NotFound(puntuale.NoCalendar)
	}
	c, err := o.store.Calendar(ctx, n)
	if err != nil {
		return c, fmt.Errorf("read calendar %d: %w", n, err)
	}
	return c, nil
}

// Update changes the members that the request contains. After another address, other sources or another choice about
// entries without time, the calendar must be started again. Codes: not_found, invalid, forbidden.
func (o *Owner) Update(ctx context.Context, id string, r NewCalendar) (puntuale.Calendar, error) {
	if err := o.client.MayCreate(); err != nil {
		return puntuale.Calendar{}, err
	}
	old, err := o.Calendar(ctx, id)
	if err != nil {
		return old, err
	}
	f := request.Faults(r.Faults)
	p, err := o.check(ctx, &f, &old, r)
	if err != nil {
		return old, err
	}
	if err := f.Err(); err != nil {
		return old, err
	}
	changed, err := o.store.UpdateCalendar(ctx, old.ID, p, o.cfg.Clock.Now())
	if err != nil {
		return old, fmt.Errorf("change calendar %d: %w", old.ID, err)
	}
	return changed, nil
}

// Delete deletes a calendar. Its bookings stay, with all that is planned for them. Codes: not_found.
func (o *Owner) Delete(ctx context.Context, id string) error {
	c, err := o.Calendar(ctx, id)
	if err != nil {
		return err
	}
	if err := o.store.DeleteCalendar(ctx, c.ID); err != nil {
		return fmt.Errorf("delete calendar %d: %w", c.ID, err)
	}
	return nil
}

// Entries lists what was read, by start; with problems, only what is no appointment. Codes: not_found, invalid.
func (o *Owner) Entries(ctx context.Context, id string, problems bool, page request.Page) ([]puntuale.CalendarEntry, string, error) {
	c, err := o.Calendar(ctx, id)
	if err != nil {
		return nil, "", err
	}
	rows, next, err := request.List(page, func(p puntuale.Page) ([]puntuale.CalendarEntry, string, error) {
		return o.store.CalendarEntries(ctx, c.ID, problems, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list the entries of calendar %d: %w", c.ID, err)
	}
	return rows, next, nil
}

// ReadNow lets a calendar be read as soon as possible, and returns when that is. Codes: not_found.
func (o *Owner) ReadNow(ctx context.Context, id string) (time.Time, error) {
	c, err := o.Calendar(ctx, id)
	if err != nil {
		return time.Time{}, err
	}
	at, err := o.store.ReadCalendarNow(ctx, c.ID, o.cfg.Clock.Now())
	if err != nil {
		return at, fmt.Errorf("read calendar %d now: %w", c.ID, err)
	}
	return at, nil
}

// Start starts a calendar: from now on, its entries are bookings. Codes: not_found, forbidden; conflict, if it was not
// read since its last change, or if its sequence was deleted or has fields now that no calendar fills.
func (o *Owner) Start(ctx context.Context, id string) (puntuale.Calendar, error) {
	if err := o.client.MayCreate(); err != nil {
		return puntuale.Calendar{}, err
	}
	c, err := o.Calendar(ctx, id)
	if err != nil {
		return c, err
	}
	s, err := o.client.Sequence(ctx, c.Sequence.String())
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return c, puntuale.Conflict(faultNotSequence)
	case err != nil:
		return c, err
	case len(unfilled(s)) > 0:
		return c, puntuale.Conflict(faultUnfilled, strings.Join(unfilled(s), ", "))
	}
	if c, err = o.store.StartCalendar(ctx, c.ID, o.cfg.Clock.Now()); err != nil {
		return c, fmt.Errorf("start a calendar: %w", err)
	}
	return c, nil
}

// CancelGone cancels the bookings of n entries that are gone at once, so many that a person must decide. Codes: not_found;
// conflict, if another number is gone now.
func (o *Owner) CancelGone(ctx context.Context, id string, n int) (puntuale.Calendar, error) {
	c, err := o.Calendar(ctx, id)
	if err != nil {
		return c, err
	}
	if c, err = o.store.CancelGone(ctx, c.ID, n, o.cfg.Clock.Now()); err != nil {
		return c, fmt.Errorf("cancel what is gone: %w", err)
	}
	return c, nil
}
