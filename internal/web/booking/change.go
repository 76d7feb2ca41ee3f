package booking

import (
	"encoding/json"
	"net/url"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// changeRoutes set the status of a booking.
var changeRoutes = []page.Route{
	page.Post("/c/{client}/bookings/{id}/confirm", page.ClientSide, puntuale.Staff, "booking.confirm", setTo(puntuale.BookingConfirmed)),
	page.Post("/c/{client}/bookings/{id}/arrived", page.ClientSide, puntuale.Staff, "booking.arrived", setTo(puntuale.BookingArrived)),
	page.Post("/c/{client}/bookings/{id}/no-show", page.ClientSide, puntuale.Staff, "booking.no_show", setTo(puntuale.BookingNoShow)),
	page.Post("/c/{client}/bookings/{id}/cancel", page.ClientSide, puntuale.Staff, "booking.cancel", setTo(puntuale.BookingCancelled)),
	page.Post("/c/{client}/bookings/{id}/reopen", page.ClientSide, puntuale.Staff, "booking.reopen", setTo(puntuale.BookingOpen)),
	page.Post("/c/{client}/bookings/{id}/undo", page.ClientSide, puntuale.Staff, "booking.undo", undo),
}

// setTo returns the handler that sets a status. The form has the version that the person saw, because a page may set every
// status, even of a booking that the person has cancelled.
func setTo(status puntuale.BookingStatus) func(*page.Request) error {
	return func(v *page.Request) error {
		before, err := v.Client.BookingWith(v.Ctx(), v.Path("id"))
		if err != nil {
			return err
		}
		f, err := v.Form()
		if err != nil {
			return err
		}
		next := nextPage(v, f.Value("next"), before.ID)
		done, err := v.Client.PutBooking(v.Ctx(), control.BookingCall{
			Reference: before.Reference, Status: status.String(), Silent: f.Value("tell") == "no", Known: page.Versions(f), Door: puntuale.DoorPage,
		})
		if err != nil {
			return refused(v, err, next)
		}
		v.SetAuditTarget(before.ID.String())
		if v.Quiet = !done.Changed; done.Changed {
			v.Say("booking.done."+status.String(), undoAddress(v, before.Booking, done, "", next), "Who", called(v, before.Booking))
		}
		return v.Redirect(next)
	}
}

// refused says on the next page why a button did nothing.
func refused(v *page.Request, err error, next string) error {
	e, _ := page.Refusal(err)
	if e == nil {
		return err
	}
	v.Quiet = true
	words := v.Frame.Language.Fault(page.FirstFault(e))
	if e.Code == puntuale.CodePrecondition {
		words = v.T("booking.changed")
	}
	v.Toast("bad", words, "")
	return v.Redirect(next)
}

// undoAddress returns the address that puts a booking back to what it was. date is the field of the main date if the change
// moved it, or "".
func undoAddress(v *page.Request, before puntuale.Booking, done control.BookingAnswer, date, next string) string {
	q := url.Values{"status": {before.Status.String()}, "version": {string(done.Version())}, "next": {next}}
	if date != "" {
		q.Set("date", fieldText(before.Fields[date]))
	}
	return v.Frame.Place.Base + "/bookings/" + before.ID.String() + "/undo?" + q.Encode()
}

// undo puts a booking back to its former date and status, if nobody has changed it since. The date comes first, because a
// new date takes a confirmation back. The status is put back silently: the person has been told of it before.
func undo(v *page.Request) error {
	b, err := v.Client.BookingWith(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	next := nextPage(v, v.Query("next"), b.ID)
	known, changed := []puntuale.Version{puntuale.Version(v.Query("version"))}, false
	put := func(call control.BookingCall) error {
		call.Reference, call.Known, call.Door = b.Reference, known, puntuale.DoorPage
		done, err := v.Client.PutBooking(v.Ctx(), call)
		known, changed = []puntuale.Version{done.Version()}, changed || done.Changed
		return err
	}
	if date := v.Query("date"); date != "" {
		fields, err := dateField(v, b.Booking, date)
		if err != nil {
			return err
		}
		if err := put(control.BookingCall{Fields: fields}); err != nil {
			return refused(v, err, next)
		}
	}
	if status := v.Query("status"); status != "" {
		if err := put(control.BookingCall{Status: status, Silent: true}); err != nil {
			err := refused(v, err, next)
			v.Quiet = !changed
			return err
		}
	}
	v.SetAuditTarget(b.ID.String())
	if v.Quiet = !changed; changed {
		v.Say("booking.undone", "", "Who", called(v, b.Booking))
	}
	return v.Redirect(next)
}

// dateField returns the member of a call that sets the main date. Codes: not_found, if the sequence was deleted.
func dateField(v *page.Request, b puntuale.Booking, date string) (map[string]json.RawMessage, error) {
	s, err := v.Client.Sequence(v.Ctx(), b.Sequence.String())
	if err != nil {
		return nil, err
	}
	return fieldsOf(map[string]string{s.Booking: date}), nil
}

// fieldsOf returns fields as the members of a call.
func fieldsOf(texts map[string]string) map[string]json.RawMessage {
	all := make(map[string]json.RawMessage, len(texts))
	for name, text := range texts {
		if raw, err := json.Marshal(text); err == nil {
			all[name] = raw
		}
	}
	return all
}

// called returns the name of a booking's person, or the phone.
func called(v *page.Request, b puntuale.Booking) string {
	if name := nameIn(b); name != "" {
		return name
	}
	if err := v.NamePeople(b.Phone); err != nil { // the phone is enough
		return view.Grouped(b.Phone)
	}
	ctx := view.With(v.Ctx(), v.Frame)
	return view.Or(view.NameOf(ctx, b.Phone), view.ShownPhone(ctx, b.Phone))
}

// nextPage returns the page to which an action leads back: the list at the address, or else the booking's own page. In a
// list, the browser shows the booking's row.
func nextPage(v *page.Request, address string, id puntuale.BookingID) string {
	if list := listPage(v, address); list != "" {
		return list + "#b" + id.String()
	}
	return v.Frame.Place.Base + "/bookings/" + id.String()
}

// listPage returns the address if it is one of the list of bookings, or "" if it is not.
func listPage(v *page.Request, address string) string {
	address, _, _ = strings.Cut(address, "#")
	if path, _, _ := strings.Cut(address, "?"); page.OwnAddress(address) && path == v.Frame.Place.Base+"/bookings" {
		return address
	}
	return ""
}
