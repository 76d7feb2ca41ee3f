package search

import (
	"context"
	"net/url"
	"strconv"

	"puntuale/internal/control/search"
	"puntuale/internal/web/view"
)

// The templates use these names, because templates must not import control.
type (
	group       = search.Group
	foundPerson = search.Person
)

const (
	clients   = search.Clients
	people    = search.People
	messages  = search.Messages
	bookings  = search.Bookings
	sequences = search.Sequences
	campaigns = search.Campaigns
	templates = search.Templates
)

var groups = search.Groups

// Result is what the page of a search shows.
type Result struct {
	Text    string // "": nothing was searched yet
	Address string // of the page
	Form    *view.Form
	Found   search.Result
}

// count returns how many rows the result has.
func (r Result) count() (n int) {
	for _, g := range groups {
		n += r.Found.Count(g)
	}
	return n
}

// noneKey returns the key of the text that says that nothing was found, or nothing yet.
func (r Result) noneKey() string {
	if len(r.Found.Partial) > 0 {
		return "find.none_yet"
	}
	return "find.none"
}

// worded returns the address of the list in which the search by words goes on.
func (r Result) worded(ctx context.Context, g group) string {
	return view.Base(ctx) + "/" + string(g) + "?" + url.Values{"text": {r.Text}}.Encode()
}

// all returns the address of the list in which a group goes on.
func (r Result) all(ctx context.Context, g group) string {
	base := view.Base(ctx)
	switch g {
	case clients:
		return "/partner?" + url.Values{"q": {r.Text}}.Encode()
	case people:
		return base + "/contacts?" + url.Values{"q": {r.Text}}.Encode()
	case messages:
		if len(r.Found.People) == 1 {
			return base + "/messages?" + url.Values{"phone": {r.Found.People[0].Phone}}.Encode()
		}
		return r.worded(ctx, g)
	case campaigns, templates:
		return base + "/" + string(g)
	default:
		return r.worded(ctx, g)
	}
}

// place returns the address of a thing that was found by its name.
func place(ctx context.Context, g group, id int64) string {
	if g == search.Clients {
		return "/partner/clients/" + strconv.FormatInt(id, 10)
	}
	return view.Base(ctx) + "/" + string(g) + "/" + strconv.FormatInt(id, 10)
}

// icons are the icons of the groups, as in the navigation.
var icons = map[group]string{
	clients: "users", people: "user", messages: "messages", bookings: "calendar-event",
	sequences: "list", campaigns: "users", templates: "template",
}

// hint returns the text key of what can be searched: a partner's own pages know only clients.
func hint(ctx context.Context) string {
	if view.Base(ctx) == "" {
		return "find.hint_clients"
	}
	return "find.hint"
}
