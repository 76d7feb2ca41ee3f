package booking

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// newBookingRoutes make a booking.
var newBookingRoutes = []page.Route{
	page.Get("/c/{client}/bookings/new", page.ClientSide, puntuale.Staff, newBooking),
	page.Post("/c/{client}/bookings", page.ClientSide, puntuale.Staff, "booking.create", createBooking),
}

// NewBooking is the page on which a person makes a booking.
type NewBooking struct {
	Form       *view.Form
	Sequences  []view.Option // those for bookings; empty: there is none
	Sequence   string        // the chosen one
	Fields     []puntuale.Field
	Day        string      // the day of the list from which the person came
	Difference *Difference // nil: something is still missing
	Past       bool        // the date has passed
}

// suggested is how many contacts a search proposes.
const suggested = "10"

func newBooking(v *page.Request) error {
	if v.Query("part") == "people" {
		found, err := people(v, v.Query("phone"))
		if err != nil {
			return err
		}
		return v.Show(People(found))
	}
	f := view.NewForm("phone", v.Query("phone"), "key", v.Frame.Request, "sequence", v.Query("sequence"), "day", v.Query("day"))
	n, err := newPage(v, f)
	if err != nil {
		return err
	}
	if err := n.fromContact(v); err != nil {
		return err
	}
	return v.Show(New(n))
}

// newPage reads what the form needs. Without a choice, the newest sequence for bookings is chosen.
func newPage(v *page.Request, f *view.Form) (n NewBooking, err error) {
	n.Form = f
	if day, err := puntuale.ParseDate(f.Value("day")); err == nil {
		n.Day = day.String()
	}
	if _, n.Sequences, err = page.BookingChoices(v); err != nil || len(n.Sequences) == 0 {
		return n, err
	}
	n.Sequence = cmp.Or(f.Value("sequence"), n.Sequences[0].Value)
	s, err := v.Client.Sequence(v.Ctx(), n.Sequence)
	if err == nil && s.Booking == "" {
		err = puntuale.NotFound(puntuale.NoSequence)
	}
	if err != nil {
		return n, err
	}
	n.Fields = s.Fields
	if at := "fields." + s.Booking; f.Values[at] == nil && n.Day != "" {
		f.Values.Set(at, proposed(v, n.Day))
	}
	return n, nil
}

// proposed returns the time of a day that the form proposes: nine o'clock, or else the next full hour.
func proposed(v *page.Request, day string) string {
	text := day + "T09:00"
	if next := v.Now().In(v.Frame.Zone).Truncate(time.Hour).Add(time.Hour).Format(view.Picker); text < next && next[:len(day)] == day {
		return next
	}
	return text
}

// people proposes contacts while a person types a name or a number.
func people(v *page.Request, text string) ([]puntuale.Contact, error) {
	text = strings.TrimSpace(text)
	if len([]rune(text)) < 2 {
		return nil, nil
	}
	q := control.ContactQuery{Name: text}
	if strings.Trim(text, "+0123456789 ()./-") == "" {
		q = control.ContactQuery{Phone: text + "*"}
	}
	found, _, err := v.Client.Contacts(v.Ctx(), q, request.Page{Limit: suggested})
	if puntuale.CodeOf(err) == puntuale.CodeInvalid { // nobody has such a name or number
		err = nil
	}
	return found, err
}

// fromContact fills empty fields with what the contact of the number says.
func (n *NewBooking) fromContact(v *page.Request) error {
	phone, err := v.Client.Known(n.Form.Value("phone"))
	if err != nil {
		return nil //nolint:nilerr // the person has not typed a whole number yet
	}
	known, err := v.Client.ContactsOf(v.Ctx(), phone)
	if err != nil {
		return err
	}
	c, ok := known[phone]
	if !ok {
		return nil
	}
	for _, field := range n.Fields {
		name, value := "fields."+field.Name, c.Fields[field.Name].Value
		if field.Name == "nome" || field.Name == "name" {
			value = cmp.Or(value, c.Name)
		}
		if strings.TrimSpace(n.Form.Value(name)) == "" && value != "" {
			n.Form.Values.Set(name, value)
		}
	}
	return nil
}

// createBooking shows what a new booking plans, and makes it. The form's key is the booking's reference, so that a second
// click makes no second booking.
func createBooking(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	do := f.Value("do")
	v.Quiet = do != "save"
	n, err := newPage(v, f)
	if err != nil {
		return err
	}
	if len(n.Sequences) == 0 {
		return v.Show(New(n))
	}
	if do == "who" {
		if err := n.fromContact(v); err != nil {
			return err
		}
	}
	values := n.values()
	call := control.BookingCall{Reference: f.Value("key"), Sequence: n.Sequence, Phone: f.Value("phone"), Fields: fieldsOf(values), Door: puntuale.DoorPage}
	values["phone"] = call.Phone
	if call.Body, err = json.Marshal(values); err != nil { // as a program would have sent it, so that pages find the name there
		return fmt.Errorf("write a call: %w", err)
	}
	switch made, err := v.Client.Booking(v.Ctx(), call.Reference); {
	case err == nil: // the second click
		v.Quiet = true
		return v.Redirect(v.Frame.Place.Base + "/bookings/" + made.ID.String())
	case puntuale.CodeOf(err) != puntuale.CodeNotFound:
		return err
	}
	call.DryRun = do != "save"
	done, err := v.Client.PutBooking(v.Ctx(), call)
	if e, _ := page.Refusal(err); e != nil && (do == "look" || do == "who") {
		err, done = nil, control.BookingAnswer{}
	}
	if err != nil {
		return v.ShowRefused(fielded(err), f, NewForm(n), New(n), n.names()...)
	}
	if !call.DryRun {
		v.SetAuditTarget(done.ID.String())
		ctx := view.With(v.Ctx(), v.Frame)
		v.Say("booking.made", "", "Who", called(v, done.Booking), "When", view.Dated(ctx, done.Date))
		return v.Redirect(List{Day: dayOf(ctx, done.Date), View: oneDay}.url(ctx) + "#b" + done.ID.String())
	}
	if done.Changed {
		n.Difference, n.Past = differenceOf(view.With(v.Ctx(), v.Frame), done, nil), !done.Date.After(v.Now())
	}
	switch {
	case do == "who":
		return v.Show(FilledFields(n))
	case do == "look":
		return v.Show(NewPreview(n))
	case v.Partial():
		return v.Show(NewForm(n))
	}
	return v.Show(New(n))
}

// values returns the fields that the form contains.
func (n NewBooking) values() map[string]string {
	all := map[string]string{}
	for _, field := range n.Fields {
		if text := view.Picked(n.Form.Value("fields." + field.Name)); strings.TrimSpace(text) != "" {
			all[field.Name] = text
		}
	}
	return all
}

// names returns the fields of the form, in the order of the page.
func (n NewBooking) names() []string {
	all := []string{"phone"}
	for _, field := range n.Fields {
		all = append(all, "fields."+field.Name)
	}
	return all
}

// fielded changes the locations of faults into names of the form's fields.
func fielded(err error) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || e.Code != puntuale.CodeInvalid {
		return err
	}
	named := *e
	named.Faults = slices.Clone(e.Faults)
	for i, f := range named.Faults {
		if name, ok := strings.CutPrefix(f.Location, "body."); ok && name != "phone" {
			named.Faults[i].Location = "body.fields." + name
		}
	}
	return &named
}
