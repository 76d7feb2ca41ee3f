package page

import (
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/view"
)

// item is a page of the navigation. An entry is shown if the page has a route and the reader may see the page.
type item struct {
	group, title, icon string
	path               string              // the route's path; a client's page has {client} in it
	first              bool                // the entry is also in the bar on a phone, which has room for four pages
	also               string              // the path of a second route; the entry is also marked on its page and on the pages below; "": none
	counts             bool                // the entry shows how many people wait for an answer
	has                func(*Request) bool // reports whether the reader gets this entry; nil: every reader does
}

// items are the pages of all navigations, in order.
var items = []item{
	{title: "nav.clients", icon: "users", path: "/partner", first: true},
	{title: "nav.expiries", icon: "calendar-due", path: "/partner/expiries", first: true},
	{title: "nav.plans", icon: "list", path: "/partner/plans"},
	{title: "nav.totals", icon: "chart-bar", path: "/partner/totals", first: true},
	{title: "nav.results", icon: "chart-bar", path: "/partner/results"},
	{title: "nav.statements", icon: "coin", path: "/partner/statements"},
	{group: "nav.group.partner", title: "nav.users", icon: "user", path: "/partner/users"},
	{group: "nav.group.partner", title: "nav.keys", icon: "key", path: "/partner/keys"},
	{group: "nav.group.partner", title: "nav.webhooks", icon: "plug-connected", path: "/partner/webhooks"},
	{group: "nav.group.partner", title: "nav.brand", icon: "palette", path: "/partner/brand"},
	{group: "nav.group.partner", title: "nav.audit", icon: "history", path: "/partner/audit"},

	{title: "nav.home", icon: "home", path: "/c/{client}", first: true},
	{title: "nav.bookings", icon: "calendar-event", path: "/c/{client}/bookings", also: "/c/{client}/calendars", first: true},
	{title: "nav.sequences", icon: "list", path: "/c/{client}/sequences", also: "/c/{client}/start"},
	{title: "nav.campaigns", icon: "users", path: "/c/{client}/campaigns"},
	{title: "nav.automations", icon: "sparkles", path: "/c/{client}/automations"},
	{title: "nav.messages", icon: "messages", path: "/c/{client}/messages", first: true},
	{title: "nav.replies", icon: "inbox", path: "/c/{client}/replies", first: true, counts: true},
	{title: "nav.contacts", icon: "user", path: "/c/{client}/contacts", also: "/c/{client}/person"},
	{title: "nav.calendar", icon: "calendar", path: "/c/{client}/calendar"},
	{title: "nav.results", icon: "chart-bar", path: "/c/{client}/results"},
	{group: "nav.group.content", title: "nav.templates", icon: "template", path: "/c/{client}/templates"},
	{group: "nav.group.content", title: "nav.files", icon: "photo", path: "/c/{client}/files"},
	{group: "nav.group.content", title: "nav.blacklist", icon: "ban", path: "/c/{client}/blacklist"},
	{group: "nav.group.sending", title: "nav.sessions", icon: "device-mobile", path: "/c/{client}/sessions"},
	{group: "nav.group.sending", title: "nav.phone", icon: "message-circle", path: "/c/{client}/phone", also: "/c/{client}/sessions/{id}/phone", has: (*Request).simulates},
	{group: "nav.group.sending", title: "nav.usage", icon: "chart-bar", path: "/c/{client}/usage"},
	{group: "nav.group.sending", title: "nav.statements", icon: "coin", path: "/c/{client}/statements"},
	{group: "nav.group.account", title: "nav.settings", icon: "settings", path: "/c/{client}/settings"},
	{group: "nav.group.account", title: "nav.keys", icon: "key", path: "/c/{client}/keys"},
	{group: "nav.group.account", title: "nav.webhooks", icon: "plug-connected", path: "/c/{client}/webhooks"},
	{group: "nav.group.account", title: "nav.users", icon: "users", path: "/c/{client}/users"},
	{group: "nav.group.account", title: "nav.audit", icon: "history", path: "/c/{client}/audit"},
}

// navigation returns the pages that the person can reach from the present page. On a person's own pages, it is the
// navigation of the person's first page.
func (s *Site) navigation(v *Request) []view.Group {
	base, side := dashboard(v)
	role := v.Person.User().Role
	var groups []view.Group
	best := -1 // the length of the longest path of an item with which the page's path begins
	var active *view.Item
	for _, p := range items {
		if !s.hasPage(p.path, side, role) || p.has != nil && !p.has(v) {
			continue
		}
		address := strings.Replace(p.path, "/c/{client}", base, 1)
		if len(groups) == 0 || groups[len(groups)-1].Title != p.group {
			groups = append(groups, view.Group{Title: p.group, Items: make([]view.Item, 0, len(items))})
		}
		g := &groups[len(groups)-1]
		g.Items = append(g.Items, view.Item{Title: p.title, Icon: p.icon, URL: address, First: p.first, Counts: p.counts})
		if v.route == nil || v.Frame.Path == base+"/search" { // no entry is marked for a page that does not exist, and for the search
			continue
		}
		length := len(address)
		if p.also != "" && Within(v.route.Path(), p.also) {
			length = len(v.Frame.Path)
		} else if !Within(v.Frame.Path, address) {
			continue
		}
		if length > best {
			best, active = length, &g.Items[len(g.Items)-1]
		}
	}
	if active != nil {
		active.Active = true
	}
	return groups
}

// dashboard returns the beginning of the addresses of the dashboard whose navigation a page shows, and its side. On a
// person's own pages it is the person's own dashboard.
func dashboard(v *Request) (base string, side Side) {
	switch {
	case v.Client != nil:
		return "/c/" + v.Client.ID().String(), ClientSide
	case v.Person.User().Client != 0:
		return "/c/" + v.Person.User().Client.String(), ClientSide
	}
	return "/partner", PartnerSide
}

// search returns the address of the search in the present dashboard.
func (s *Site) search(v *Request) string {
	base, _ := dashboard(v)
	return base + "/search"
}

func (s *Site) hasPage(path string, side Side, role puntuale.Role) bool {
	for i := range s.routes {
		if r := &s.routes[i]; r.Side == side && r.Method() == "GET" && r.Path() == path && role >= r.Role {
			return true
		}
	}
	return false
}

func Within(path, page string) bool { return path == page || strings.HasPrefix(path, page+"/") }

// Sandboxes returns the simulated sessions of the client whose pages are shown. The default session comes first.
func (v *Request) Sandboxes() (found []control.Session, err error) {
	c := v.Client
	if c == nil { // the page is one of the person's own pages
		if c, err = v.Person.Client(v.Ctx(), v.Person.User().Client.String()); err != nil {
			return nil, err
		}
	}
	all, _, err := c.Sessions(v.Ctx(), request.Page{})
	for _, s := range all {
		switch {
		case s.Sandbox && s.Default:
			found = slices.Insert(found, 0, s)
		case s.Sandbox:
			found = append(found, s)
		}
	}
	return found, err
}

// simulates reports whether the client has a simulated phone. If the sessions cannot be read, it reports false, so that
// the menu has no entry for the phone.
func (v *Request) simulates() bool {
	if v.Partial() { // a part of a page has no menu
		return false
	}
	found, err := v.Sandboxes()
	return err == nil && len(found) > 0
}
