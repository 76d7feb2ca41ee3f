package message

import (
	"time"

	"puntuale"
	"puntuale/internal/web/page"
)

// calendarRoutes show pending messages by day, week and month.
var calendarRoutes = []page.Route{
	page.Get("/c/{client}/calendar", page.ClientSide, puntuale.Reader, calendar),
}

// How many messages of one day the calendar shows: in a week, and on the day's own page.
const (
	weekRows = 8
	dayRows  = 400
)

func calendar(v *page.Request) error {
	today := puntuale.DateOf(v.Now().In(v.Frame.Zone))
	day, err := puntuale.ParseDate(v.Query("day"))
	if err != nil || day.Before(today.AddDays(-366)) || today.AddDays(366*(puntuale.HorizonYears+1)).Before(day) {
		day = today
	}
	c := CalendarPage{Day: day, Today: today, View: CalendarWeek}
	from, days, limit := day, 7, weekRows
	switch v.Query("view") {
	case CalendarDay:
		c.View, days, limit = CalendarDay, 1, dayRows
	case CalendarMonth:
		c.View = CalendarMonth
		from, days, limit = wholeWeeks(day)
	}
	agenda, err := v.Client.Agenda(v.Ctx(), from, days, limit)
	if err != nil {
		return err
	}
	c.Next, c.Partly = agenda.Next, agenda.Partly
	var shown [][]puntuale.MessageDetail
	for _, d := range agenda.Days {
		c.Days = append(c.Days, AgendaDay(d))
		shown = append(shown, d.Messages)
	}
	if c.Unwanted, err = v.Client.Unwanted(v.Ctx(), shown...); err != nil {
		return err
	}
	if err := v.NameRecipients(shown...); err != nil {
		return err
	}
	return v.Show(Calendar(c))
}

// wholeWeeks returns the weeks that contain a day's month, beginning with a Monday. limit is 0, because a month shows
// only how many messages each day has.
func wholeWeeks(day puntuale.Date) (from puntuale.Date, days, limit int) {
	first := day.AddDays(1 - day.Day)
	from = monday(first)
	last := first.AddMonths(1).AddDays(-1)
	for days = 28; from.AddDays(days - 1).Before(last); days += 7 {
	}
	return from, days, 0
}

// monday returns the first day of a day's week.
func monday(d puntuale.Date) puntuale.Date {
	weekday := int(d.At(12*time.Hour, time.UTC).Weekday()+6) % 7
	return d.AddDays(-weekday)
}
