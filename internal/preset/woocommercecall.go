package preset

import (
	"strconv"
	"strings"
	"time"

	"puntuale"
)

// wooCommerce reads a booking of WooCommerce Bookings, as its API answers it, or the call of an action webhook, which has
// only the booking's id. A program on the site may add the order's member billing, and the site's timezone.
func (c *call) wooCommerce() (a Appointment, reason puntuale.ReasonCode) {
	if action := c.text("action"); action != "" {
		return c.wooAction(action)
	}
	switch {
	case c.text("webhook_id") != "": // the test when a webhook is saved
		return a, puntuale.FiringOtherCall
	case c.text("start") == "" && c.text("order_key", "line_items[0].id") != "": // an order, which has no date
		return a, puntuale.FiringOtherCall
	case c.text("start") == "":
		return a, puntuale.FiringNotProgram
	}
	a = Appointment{
		Reference: reference("woocommerce", c.text("id")), Date: siteTime(c.text("start")), Zone: c.text("timezone"),
		Phones: c.phones("", "", "billing.phone", "customer.phone"), AsOf: wholeNumber(c.text("date_modified")),
		Name:  strings.TrimSpace(c.text("billing.first_name") + " " + c.text("billing.last_name")),
		Email: c.text("billing.email"), Service: c.text("product_name"),
	}
	switch c.text("attendance_status") {
	case "no-show", "no_show":
		a.Status = puntuale.BookingNoShow
	case "checked-in", "checked_in":
		a.Status = puntuale.BookingArrived
	default:
		reason = a.wooStatus(c.text("status"))
	}
	return a, reason
}

// wooAction reads {"action": "woocommerce_booking_cancelled", "arg": 55}.
func (c *call) wooAction(action string) (a Appointment, reason puntuale.ReasonCode) {
	status, found := strings.CutPrefix(action, "woocommerce_booking_")
	if !found {
		return a, puntuale.FiringOtherCall
	}
	a.Reference = reference("woocommerce", wholeNumber(c.text("arg")))
	return a, a.wooStatus(status)
}

func (a *Appointment) wooStatus(status string) puntuale.ReasonCode {
	switch status {
	case "confirmed", "paid":
		a.Status = puntuale.BookingOpen
	case "cancelled":
		a.Status = puntuale.BookingCancelled
	case "unpaid", "pending-confirmation", "in-cart":
		return puntuale.FiringWaits
	default: // complete only says that the time is over; was-in-cart is no booking any more
		return puntuale.FiringOtherCall
	}
	return ""
}

// siteTime returns a time that the site writes as if its own clock were UTC.
func siteTime(text string) string {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return ""
	}
	return time.Unix(seconds, 0).UTC().Format(wall)
}

func wholeNumber(text string) string {
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return ""
	}
	return text
}
