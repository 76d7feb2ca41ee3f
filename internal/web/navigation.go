package web

import (
	"strings"

	"puntuale"
	"puntuale/internal/web/view"
)

// place is a page that may stand in the navigation. It does once the table of routes has it, and for whom it is.
type place struct {
	group, title, icon string
	path               string // of the route; for a client's pages with {client}
	first              bool   // also in a phone's bar, which has room for four
}

// places are the navigations, in order.
var places = []place{
	{"", "nav.clients", "users", "/partner", true},
	{"", "nav.expiries", "calendar-due", "/partner/expiries", true},
	{"", "nav.totals", "chart-bar", "/partner/totals", true},
	{"nav.group.partner", "nav.users", "user", "/partner/users", false},
	{"nav.group.partner", "nav.brand", "palette", "/partner/brand", false},
	{"nav.group.partner", "nav.audit", "history", "/partner/audit", false},

	{"", "nav.home", "home", "/c/{client}", true},
	{"", "nav.sequences", "list", "/c/{client}/sequences", true},
	{"", "nav.messages", "messages", "/c/{client}/messages", true},
	{"", "nav.calendar", "calendar", "/c/{client}/calendar", true},
	{"nav.group.content", "nav.templates", "template", "/c/{client}/templates", false},
	{"nav.group.content", "nav.blacklist", "ban", "/c/{client}/blacklist", false},
	{"nav.group.sending", "nav.sessions", "device-mobile", "/c/{client}/sessions", false},
	{"nav.group.sending", "nav.usage", "chart-bar", "/c/{client}/usage", false},
	{"nav.group.account", "nav.keys", "key", "/c/{client}/keys", false},
	{"nav.group.account", "nav.users", "users", "/c/{client}/users", false},
	{"nav.group.account", "nav.audit", "history", "/c/{client}/audit", false},
}

// navigation is what a person may reach from where they are. On a person's own pages it is that of their home.
func (s *site) navigation(v *visit) []view.Group {
	base, which := "", partnerSide
	switch {
	case v.client != nil:
		base, which = "/c/"+v.client.ID().String(), clientSide
	case v.person.User().Client != 0:
		base, which = "/c/"+v.person.User().Client.String(), clientSide
	}
	role := v.person.User().Role
	var groups []view.Group
	best := -1 // the item whose path is the longest beginning of the page's
	var active *view.Item
	for _, p := range places {
		if !s.hasPage(p.path, which, role) {
			continue
		}
		address := strings.Replace(p.path, "/c/{client}", base, 1)
		if len(groups) == 0 || groups[len(groups)-1].Title != p.group {
			groups = append(groups, view.Group{Title: p.group, Items: make([]view.Item, 0, len(places))})
		}
		g := &groups[len(groups)-1]
		g.Items = append(g.Items, view.Item{Title: p.title, Icon: p.icon, URL: address, First: p.first})
		if within(v.frame.Path, address) && len(address) > best {
			best, active = len(address), &g.Items[len(g.Items)-1]
		}
	}
	if active != nil {
		active.Active = true
	}
	return groups
}

func (s *site) hasPage(path string, which side, role puntuale.Role) bool {
	for i := range s.routes {
		if r := &s.routes[i]; r.side == which && r.method() == "GET" && r.path() == path && role >= r.role {
			return true
		}
	}
	return false
}

func within(path, page string) bool { return path == page || strings.HasPrefix(path, page+"/") }
