package web

import (
	"time"

	"puntuale"
	"puntuale/internal/web/view"
)

// calendarRoutes show what is to leave, by week and by day.
var calendarRoutes = []route{
	{"GET /c/{client}/calendar", clientSide, puntuale.Reader, "", (*site).calendar},
}

// How many messages of a day are shown, in a week and alone.
const (
	weekRows = 8
	dayRows  = 400
)

func (s *site) calendar(v *visit) error {
	today := puntuale.DateOf(v.now().In(v.frame.Zone))
	day, err := puntuale.ParseDate(v.query("day"))
	if err != nil || day.Before(today.AddDays(-366)) || today.AddDays(366*(puntuale.HorizonYears+1)).Before(day) {
		day = today
	}
	c := view.CalendarPage{Day: day, Today: today, Alone: v.query("view") == "day"}
	from, days, most := monday(day), 7, weekRows
	if c.Alone {
		from, days, most = day, 1, dayRows
	}
	agenda, err := v.client.Agenda(v.ctx(), from, days, most)
	if err != nil {
		return err
	}
	c.Next = agenda.Next
	for _, d := range agenda.Days {
		c.Days = append(c.Days, view.AgendaDay(d))
	}
	return v.show(view.Calendar(c))
}

// monday is the first day of a day's week.
func monday(d puntuale.Date) puntuale.Date {
	weekday := int(d.At(12*time.Hour, time.UTC).Weekday()+6) % 7
	return d.AddDays(-weekday)
}
