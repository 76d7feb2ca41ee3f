package web

import (
	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// homeRoutes is the first page of a client's dashboard.
var homeRoutes = []Route{
	Get("/c/{client}", ClientSide, puntuale.Reader, home),
}

// home is the first page of a client's dashboard: its day.
func home(v *Request) error {
	today, err := v.client.Today(v.ctx())
	if err != nil {
		return err
	}
	restored, err := v.client.Restored(v.ctx())
	if err != nil {
		return err
	}
	page := view.HomePage{Restored: restored, Account: v.client.Account(), Day: today.Day, Total: today.Total, Pulse: today.Pulse, Ended: today.Ended, Uncertain: today.Uncertain, Partly: today.Partly, Upcoming: today.Upcoming, Next: today.Next}
	if page.Unwanted, err = v.client.Unwanted(v.ctx(), today.Upcoming); err != nil {
		return err
	}
	for _, f := range today.Failures {
		page.Failures = append(page.Failures, view.Failure(f))
	}
	for _, x := range today.Sessions {
		page.Sessions = append(page.Sessions, seen(x))
	}
	if v.query("part") == "today" {
		return v.show(view.HomeToday(page))
	}
	return v.show(view.Home(page))
}

// seen is a session as pages about messages show it.
func seen(s control.Session) view.SeenSession {
	return view.SeenSession{ID: s.ID, Name: s.Name, State: s.State, Number: s.Number, Hint: s.Hint, Sandbox: s.Sandbox}
}
