package calendar

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/calendar"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// account is a client, for the reader of its calendars.
type account struct {
	*Owner
	zone *time.Location
	own  []string // the client's own numbers
}

// Account returns a client, for the reader of its calendars. Codes: not_found, forbidden (it may not plan messages).
func (d *Calendars) Account(ctx context.Context, id puntuale.ClientID) (calendar.Account, error) {
	client, err := d.cfg.Control.OfNetwork(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := client.MayCreate(); err != nil {
		return nil, err
	}
	a := &account{Owner: d.OfClient(client)}
	if a.zone, err = d.zones.Load(client.Account().Zone); err != nil {
		return nil, fmt.Errorf("load a client's zone: %w", err)
	}
	sessions, _, err := client.Sessions(ctx, request.Page{Limit: "1000"})
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		a.own = append(a.own, s.Number)
	}
	if phone, err := request.ParseRecipient(client.Account().Phone, client.Account().Region); err == nil {
		a.own = append(a.own, phone)
	}
	return a, nil
}

// Address opens the address of a calendar.
func (d *Calendars) Address(c *puntuale.Calendar) (string, error) {
	address, err := d.cfg.Vault.Open(puntuale.SealedCalendar, c.SealPlace(), c.Sealed)
	if err != nil {
		return "", fmt.Errorf("open the address of calendar %d: %w", c.ID, err)
	}
	return string(address), nil
}

func (a *account) Zone() *time.Location { return a.zone }

func (a *account) Rules(c *puntuale.Calendar) calendar.Rules {
	return calendar.Rules{PhoneFrom: c.PhoneFrom, Own: a.own, Country: a.client.Account().Region, AllDay: c.AllDay}
}

func (a *account) Erased(ctx context.Context, references []string) (map[string]bool, error) {
	return a.client.ErasedReferences(ctx, references)
}

// Names of the fields that a calendar fills, besides the main date. Texts may use the other names, too.
const (
	fieldName  = "nome"
	fieldTitle = "titolo"
	fieldPlace = "luogo"
)

var otherNames = map[string]string{"name": fieldName, "title": fieldTitle, "location": fieldPlace, "place": fieldPlace}

// unfilled returns the fields that the messages of a sequence need, but that no calendar fills.
func unfilled(s control.Sequence) (names []string) {
	filled := []string{s.Booking, fieldName, fieldTitle, fieldPlace}
	for _, f := range s.Fields {
		if f.Required && otherNames[f.Name] == "" && !slices.Contains(filled, f.Name) {
			names = append(names, "{{"+f.Name+"}}")
		}
	}
	return names
}

// Book makes or changes the booking of an entry. A booking that is there keeps its sequence. One whose date was past, and
// still is, stays as it is.
func (a *account) Book(ctx context.Context, c *puntuale.Calendar, e *puntuale.CalendarEntry, silent bool) error {
	if _, err := a.client.Spend(ctx, int64(len(e.Title)+len(e.Place)+bookingBytes)); err != nil {
		return err
	}
	call := a.call(c, e)
	call.Silent, call.Status, call.Phone = silent, puntuale.BookingOpen.String(), e.Phone
	sequence := c.Sequence
	found, err := a.client.NamedBookings(ctx, []string{e.Reference})
	if err != nil {
		return err
	}
	if stored, ok := found[e.Reference]; ok {
		if now := a.cfg.Clock.Now(); !stored.Date.After(now) && !e.Start.After(now) {
			return nil
		}
		sequence = stored.Sequence
	} else {
		call.Sequence = c.Sequence.String()
	}
	s, err := a.client.Sequence(ctx, sequence.String())
	if err != nil {
		return err
	}
	call.Fields = map[string]json.RawMessage{fieldName: text(e.Name), fieldTitle: text(e.Title), fieldPlace: text(e.Place)}
	for _, f := range s.Fields {
		if own := otherNames[f.Name]; own != "" && f.Name != s.Booking {
			call.Fields[f.Name] = call.Fields[own]
		}
	}
	call.Fields[s.Booking] = text(dateOf(e, a.zone))
	call.Body, _ = json.Marshal(call.Fields) // encoding texts cannot fail
	_, err = a.client.PutBooking(ctx, call)
	return err
}

// bookingBytes is what a booking takes in the database, besides its texts.
const bookingBytes = 1 << 10

// dateOf returns the main date of an entry. An entry without a time has only a day.
func dateOf(e *puntuale.CalendarEntry, zone *time.Location) string {
	if e.AllDay {
		return e.Start.In(zone).Format(time.DateOnly)
	}
	return e.Start.In(zone).Format(time.RFC3339)
}

// Unbook cancels a booking. One that does not exist any more needs nothing.
func (a *account) Unbook(ctx context.Context, c *puntuale.Calendar, e *puntuale.CalendarEntry, silent bool) error {
	call := a.call(c, e)
	call.Silent = silent
	_, err := a.client.CancelBooking(ctx, call)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return nil
	}
	return err
}

// call names the booking of an entry. The number of the reading orders the changes, so that a reader that was slow cannot
// undo what a newer one did.
func (a *account) call(c *puntuale.Calendar, e *puntuale.CalendarEntry) control.BookingCall {
	order, _ := json.Marshal(c.Reading) // encoding a number cannot fail
	return control.BookingCall{Reference: e.Reference, Door: puntuale.DoorCalendar, AsOf: order}
}

func text(s string) json.RawMessage {
	if s == "" {
		return json.RawMessage("null")
	}
	raw, _ := json.Marshal(s) // encoding a text cannot fail
	return raw
}
