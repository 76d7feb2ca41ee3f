package search

import (
	"context"
	"net/url"
	"strconv"

	"puntuale/internal/control/search"
	"puntuale/internal/web/view"
)

// Result is what the page of a search shows.
type Result struct {
	Text    string // "": nothing was searched yet
	Address string // of the page
	Form    *view.Form
	Found   search.Found
}

// count returns how many rows the result has.
func (r Result) count() (n int) {
	for _, g := range search.Groups {
		n += r.Found.Count(g)
	}
	return n
}

// all returns the address of the list in which a group goes on.
func (r Result) all(ctx context.Context, g search.Group) string {
	base := view.Base(ctx)
	switch g {
	case search.Clients:
		return "/partner?" + url.Values{"q": {r.Text}}.Encode()
	case search.People:
		return base + "/contacts?" + url.Values{"q": {r.Text}}.Encode()
	case search.Messages:
		if len(r.Found.People) == 1 {
			return base + "/messages?" + url.Values{"phone": {r.Found.People[0].Phone}}.Encode()
		}
		return base + "/messages?" + url.Values{"text": {r.Text}}.Encode()
	case search.Campaigns, search.Templates:
		return base + "/" + string(g)
	default:
		return base + "/" + string(g) + "?" + url.Values{"text": {r.Text}}.Encode()
	}
}

// place returns the address of a thing that was found by its name.
func place(ctx context.Context, g search.Group, id int64) string {
	if g == search.Clients {
		return "/partner/clients/" + strconv.FormatInt(id, 10)
	}
	return view.Base(ctx) + "/" + string(g) + "/" + strconv.FormatInt(id, 10)
}

// icons are the icons of the groups, as in the navigation.
var icons = map[search.Group]string{
	search.Clients: "users", search.People: "user", search.Messages: "messages", search.Bookings: "calendar-event",
	search.Sequences: "list", search.Campaigns: "users", search.Templates: "template",
}

// hint returns the text key of what can be searched: a partner's own pages know only clients.
func hint(ctx context.Context) string {
	if view.Base(ctx) == "" {
		return "find.hint_clients"
	}
	return "find.hint"
}
