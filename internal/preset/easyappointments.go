package preset

import (
	"strconv"
	"strings"
	"time"

	"puntuale"
)

// easyAppointments reads a call of Easy!Appointments. Its calls have only the customer's id. A program between the two
// may add the member customer, as the program's own API answers it.
func (c *call) easyAppointments() (a Appointment, reason puntuale.ReasonCode) {
	a = Appointment{
		Reference: reference("easyappointments", c.text("payload.id")), Date: wallClock(c.text("payload.start_datetime", "payload.start")),
		Zone:   c.text("payload.provider.timezone"),
		Phones: c.phones("", "", "payload.customer.phone", "payload.customer.phone_number", "payload.customer.mobile_number"),
		Name: strings.TrimSpace(c.text("payload.customer.firstName", "payload.customer.first_name") + " " +
			c.text("payload.customer.lastName", "payload.customer.last_name")),
		Email: c.text("payload.customer.email"), Service: c.text("payload.service.name"),
	}
	deleted := false
	switch c.text("action") {
	case "appointment_save", "appointment_create", "appointment_update":
		switch words := strings.ToLower(c.text("payload.status")); { // a free text of the site
		case strings.Contains(words, "cancel"), strings.Contains(words, "annullat"), strings.Contains(words, "disdett"):
			a.Status = puntuale.BookingCancelled
		case strings.HasPrefix(words, "no") && strings.HasSuffix(words, "show"):
			a.Status = puntuale.BookingNoShow
		case words == "draft" || words == "bozza":
			return a, puntuale.FiringWaits
		}
	case "appointment_delete":
		deleted, a.Status = true, puntuale.BookingCancelled
	case "":
		return a, puntuale.FiringNotProgram
	default: // unavailability_save, customer_save and others
		return a, puntuale.FiringOtherCall
	}
	a.AsOf = saved(c.text("payload.update_datetime", "payload.create_datetime", "payload.book_datetime"), deleted)
	return a, ""
}

const wall = "2006-01-02 15:04:05"

func wallClock(text string) string {
	if _, err := time.Parse(wall, text); err != nil {
		return ""
	}
	return text
}

// saved returns how new a call is, as a number: twice the seconds of the site's clock. A deletion repeats the time of the
// last save, but is newer.
func saved(text string, deleted bool) string {
	at, err := time.Parse(wall, text)
	if err != nil {
		return ""
	}
	n := 2 * at.Unix()
	if deleted {
		n++
	}
	return strconv.FormatInt(n, 10)
}
