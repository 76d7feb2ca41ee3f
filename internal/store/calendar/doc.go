// Package calendar stores the calendars of clients, and the entries that were read in them.
//
// A node owns a calendar while it reads it, as long as the node has its lease (package fleet). TakeCalendars gives the
// reading a number. Every later statement of the reading names this number, so that nothing of a reading is stored after
// another node took over, or after a person changed the calendar.
package calendar
