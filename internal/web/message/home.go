package message

import (
	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/page"
)

// homeRoutes contains the first page of a client's dashboard.
var homeRoutes = []page.Route{
	page.Get("/c/{client}", page.ClientSide, puntuale.Reader, home),
}

// home shows the first page of a client's dashboard: the client's day.
func home(v *page.Request) error {
	today, err := v.Client.Today(v.Ctx())
	if err != nil {
		return err
	}
	restored, err := v.Client.Restored(v.Ctx())
	if err != nil {
		return err
	}
	page := HomePage{Restored: restored, Account: v.Client.Account(), Day: today.Day, Total: today.Total, Pulse: today.Pulse, Ended: today.Ended, Uncertain: today.Uncertain, Partly: today.Partly, Upcoming: today.Upcoming, Next: today.Next, Settled: today.Settled, Unlisted: today.Unlisted}
	if page.Unwanted, err = v.Client.Unwanted(v.Ctx(), today.Upcoming); err != nil {
		return err
	}
	for i := range page.Bookings {
		if page.Bookings[i], err = v.Client.CountBookings(v.Ctx(), today.Day.AddDays(i), 1); err != nil {
			return err
		}
	}
	for _, f := range today.Failures {
		page.Failures = append(page.Failures, Failure(f))
	}
	shown := [][]puntuale.MessageDetail{today.Ended, today.Uncertain, today.Upcoming}
	for _, f := range today.Failures {
		shown = append(shown, f.Messages)
	}
	if err := v.NameRecipients(shown...); err != nil {
		return err
	}
	for _, x := range today.Sessions {
		page.Sessions = append(page.Sessions, sessionView(x))
	}
	if v.Query("part") == "today" {
		return v.Show(HomeToday(page))
	}
	return v.Show(Home(page))
}

// sessionView converts a session into the form that pages about messages use.
func sessionView(s control.Session) SeenSession {
	return SeenSession{ID: s.ID, Name: s.Name, State: s.State, Number: s.Number, Hint: s.Hint, Sandbox: s.Sandbox}
}
