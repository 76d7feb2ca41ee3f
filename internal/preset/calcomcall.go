package preset

import "puntuale"

// calCom reads a call of Cal.com, or of Cal.diy. A moved appointment gets another uid, and its call names the old one.
func (c *call) calCom() (a Appointment, reason puntuale.ReasonCode) {
	id := func(paths ...string) string { return reference("calcom", c.text(paths...)) }
	a = Appointment{
		Reference: id("payload.uid", "payload.bookingUid"), AsOf: moment(c.text("createdAt")),
		Date: moment(c.text("payload.startTime")), Zone: c.text("payload.attendees[0].timeZone"),
		Name: c.text("payload.attendees[0].name", "payload.responses.name.value"), Email: c.text("payload.attendees[0].email"),
		Service: c.text("payload.eventTitle", "payload.type"),
	}
	call := ""
	if c.text("payload.responses.location.value.value") == "phone" { // the host calls the person
		call = "payload.responses.location.value.optionValue"
	}
	a.Phones = c.phones("label", "value", append([]string{
		"payload.responses.attendeePhoneNumber.value", "payload.responses.smsReminderNumber.value", "payload.smsReminderNumber", "payload.attendees[0].phoneNumber",
	}, paths(call)...)...)
	switch event := c.text("triggerEvent"); event {
	case "BOOKING_CREATED", "BOOKING_RESCHEDULED":
		if c.text("payload.status") == "PENDING" {
			return a, puntuale.FiringWaits
		}
		a.Former = id("payload.rescheduleUid")
	case "BOOKING_REQUESTED": // it is one when the host accepts it, which is a call of its own
		former := id("payload.rescheduleUid")
		if former == "" {
			return a, puntuale.FiringWaits
		}
		a.Reference, a.Status, a.Moved, a.Date = former, puntuale.BookingCancelled, true, moment(c.text("payload.rescheduleStartTime"))
	case "BOOKING_CANCELLED", "BOOKING_REJECTED":
		a.Status = puntuale.BookingCancelled
	case "BOOKING_NO_SHOW_UPDATED":
		if a.Status = puntuale.BookingNoShow; c.text("payload.attendees[0].noShow") != "true" {
			a.Status = puntuale.BookingArrived // the host takes back that nobody came
		}
	case "":
		return a, puntuale.FiringNotProgram
	default: // PING, BOOKING_PAID, MEETING_ENDED and others
		return a, puntuale.FiringOtherCall
	}
	return a, ""
}

// paths returns the paths that are not empty.
func paths(all ...string) (some []string) {
	for _, path := range all {
		if path != "" {
			some = append(some, path)
		}
	}
	return some
}
