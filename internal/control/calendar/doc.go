// Package calendar executes what clients ask for about their calendars: feeds of appointments, whose entries become
// bookings. It also changes these bookings for the reader of feeds, through the same verb as a call.
package calendar
