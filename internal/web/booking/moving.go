package booking

import (
	"errors"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// moveRoutes give a booking another date.
var moveRoutes = []page.Route{
	page.Get("/c/{client}/bookings/{id}/move", page.ClientSide, puntuale.Staff, askToMove),
	page.Post("/c/{client}/bookings/{id}/move", page.ClientSide, puntuale.Staff, "booking.move", move),
}

// A date as people write it, with and without a time of day.
const (
	dayAndTime = "02/01/2006 15:04"
	onlyDay    = "02/01/2006"
)

// moving reads the booking in the path.
func moving(v *page.Request) (control.BookingView, Moving, error) {
	found, err := v.Client.BookingWith(v.Ctx(), v.Path("id"))
	if err != nil {
		return found, Moving{}, err
	}
	rows, _, err := rowsOf(v, []puntuale.Booking{found.Booking})
	if err != nil {
		return found, Moving{}, err
	}
	if rows[0].Sequence == "" { // without its sequence, nothing says which messages the new date needs
		return found, Moving{}, puntuale.NotFound(puntuale.NoSequence)
	}
	return found, Moving{Row: rows[0]}, nil
}

func askToMove(v *page.Request) error {
	found, m, err := moving(v)
	if err != nil {
		return err
	}
	at := found.Date.In(zoneOf(v, found.Booking))
	m.Form = view.NewForm("date", at.Format(time.DateOnly), "time", at.Format("15:04"), "tell", "on", "next", listPage(v, v.Query("next")))
	return v.Show(Move(m))
}

// zoneOf returns the zone in which a booking's dates are reckoned.
func zoneOf(v *page.Request, b puntuale.Booking) *time.Location {
	if zone, err := time.LoadLocation(b.Zone); b.Zone != "" && err == nil {
		return zone
	}
	return v.Frame.Zone
}

// move shows what a new date does to the messages, and saves it only after the person saw this. The form contains what was
// on the screen. If the present difference belongs to another state or date, move shows the difference first.
func move(v *page.Request) error {
	found, m, err := moving(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	m.Form = f
	f.Values.Set("next", listPage(v, f.Value("next")))
	do := f.Value("do")
	v.Quiet = do != "save"
	call, err := moveCall(v, found.Booking, f)
	if err != nil {
		return moveRefused(v, err, m, do)
	}
	call.DryRun = true
	planned, err := v.Client.PutBooking(v.Ctx(), call)
	if err != nil {
		return moveRefused(v, atDate(err, call), m, do)
	}
	details, err := detailsOf(v, found.Steps)
	if err != nil {
		return err
	}
	m.Difference = differenceOf(view.With(v.Ctx(), v.Frame), planned, details)
	m.Difference.Reopened = found.Status != planned.Status
	m.Past, m.Same = !planned.Date.After(v.Now()), planned.Date.Equal(found.Date)
	m.Seen = string(found.Version()) + " " + planned.Date.UTC().Format(time.RFC3339) + " " + f.Value("tell")
	switch {
	case do == "look":
		return v.Show(MovePreview(m))
	case do == "save" && f.Value("seen") == m.Seen && !m.Same:
		return saveMove(v, found, m, call)
	case do == "save":
		v.Quiet, m.Changed = true, !m.Same
	}
	if v.Partial() {
		return v.Show(MoveForm(m))
	}
	return v.Show(Move(m))
}

func saveMove(v *page.Request, found control.BookingView, m Moving, call control.BookingCall) error {
	call.DryRun, call.Known = false, []puntuale.Version{found.Version()}
	next := nextPage(v, m.Form.Value("next"), found.ID)
	done, err := v.Client.PutBooking(v.Ctx(), call)
	if puntuale.CodeOf(err) == puntuale.CodePrecondition { // another change came between the two calls
		return refused(v, err, next)
	}
	if err != nil {
		return moveRefused(v, atDate(err, call), m, "save")
	}
	v.SetAuditTarget(found.ID.String())
	date := ""
	for name := range call.Fields {
		date = name
	}
	v.Say("booking.done.moved", undoAddress(v, found.Booking, done, date, next), "Who", called(v, found.Booking), "When", view.Dated(view.With(v.Ctx(), v.Frame), done.Date))
	return v.Redirect(next)
}

// moveCall returns the call that gives a booking the date in the form.
func moveCall(v *page.Request, b puntuale.Booking, f *view.Form) (control.BookingCall, error) {
	call := control.BookingCall{Reference: b.Reference, Silent: !f.Is("tell", "on"), Door: puntuale.DoorPage}
	day, at := strings.TrimSpace(f.Value("date")), strings.TrimSpace(f.Value("time"))
	if day == "" {
		return call, puntuale.Invalid(puntuale.Fault{Location: "body.date", Code: puntuale.FaultRequired})
	}
	text := day
	if when, err := time.Parse(time.DateOnly+" 15:04", day+" "+at); err == nil {
		text = when.Format(dayAndTime)
	} else if when, err := time.Parse(time.DateOnly, day); err == nil && at == "" {
		text = when.Format(onlyDay)
	} else if at != "" {
		text += " " + at
	}
	fields, err := dateField(v, b, text)
	call.Fields = fields
	return call, err
}

// moveRefused shows the form again with its faults. While the person still types, it shows no faults.
func moveRefused(v *page.Request, err error, m Moving, do string) error {
	if e, _ := page.Refusal(err); e != nil && do == "look" {
		return v.Show(MovePreview(m))
	}
	return v.ShowRefused(err, m.Form, MoveForm(m), Move(m), "date", "time")
}

// atDate changes the location of a fault of the main date into the form's field.
func atDate(err error, call control.BookingCall) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || e.Code != puntuale.CodeInvalid {
		return err
	}
	named := *e
	named.Faults = slices.Clone(e.Faults)
	for i, f := range named.Faults {
		if _, main := call.Fields[strings.TrimPrefix(f.Location, "body.")]; main {
			named.Faults[i].Location = "body.date"
		}
	}
	return &named
}
