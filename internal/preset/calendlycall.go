package preset

import (
	"strings"

	"puntuale"
)

// calendly reads a call of Calendly. A move is two calls in any order: the old invitee is canceled, with rescheduled and
// new_invitee, and a new one is created, with old_invitee.
func (c *call) calendly() (a Appointment, reason puntuale.ReasonCode) {
	a = Appointment{
		Reference: invitee(c.text("payload.uri")), AsOf: moment(c.text("created_at", "payload.updated_at")),
		Date: moment(c.text("payload.scheduled_event.start_time")), Zone: c.text("payload.timezone"),
		Name: c.text("payload.name", "payload.first_name"), Email: c.text("payload.email"), Service: c.text("payload.scheduled_event.name"),
	}
	call := ""
	if c.text("payload.scheduled_event.location.type") == "outbound_call" { // the host calls the person
		call = "payload.scheduled_event.location.location"
	}
	a.Phones = c.phones("question", "answer", append([]string{"payload.text_reminder_number", "payload.scheduled_event.text_reminder_number"}, paths(call)...)...)
	switch c.text("event") {
	case "invitee.created":
		a.Former = invitee(c.text("payload.old_invitee"))
	case "invitee.canceled":
		a.Status = puntuale.BookingCancelled
		a.Moved = c.text("payload.rescheduled") == "true" && c.text("payload.new_invitee") != ""
	case "invitee_no_show.created", "invitee_no_show.deleted":
		if at := invitee(c.text("payload.invitee")); at != "" { // the uri may be that of the no-show itself
			a.Reference = at
		}
		if a.Status = puntuale.BookingNoShow; c.text("event") == "invitee_no_show.deleted" {
			a.Status = puntuale.BookingArrived // the host takes back that nobody came
		}
	case "":
		return a, puntuale.FiringNotProgram
	default:
		return a, puntuale.FiringOtherCall
	}
	return a, ""
}

// invitee returns the reference of an invitee. Its address ends with …/invitees/ID.
func invitee(uri string) string {
	_, id, found := strings.Cut(uri, "/invitees/")
	if !found {
		return ""
	}
	return reference("calendly", id)
}
