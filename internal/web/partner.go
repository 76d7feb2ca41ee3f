package web

import (
	"net/url"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/view"
)

// partnerRoutes are the pages of a partner's dashboard, but for those of one client.
var partnerRoutes = []Route{
	Get("/partner", PartnerSide, puntuale.Reader, clients),
	Get("/partner/expiries", PartnerSide, puntuale.Reader, expiries),
	Get("/partner/totals", PartnerSide, puntuale.Reader, totals),
	Get("/partner/brand", PartnerSide, puntuale.Owner, brand),
	Post("/partner/brand", PartnerSide, puntuale.Owner, "brand.change", changeBrand),
	Post("/partner/brand/host", PartnerSide, puntuale.Owner, "brand.host", proveHost),
	Get("/partner/audit", PartnerSide, puntuale.Owner, partnerAudit),
	Post("/partner/clients/{id}/enter", PartnerSide, puntuale.Reader, Unaudited, enterClient), // notes it by itself, in the client's log
}

// clients is the partner's first page: the list of its clients. To htmx, which asks while one types, it is the list alone.
func clients(v *Request) error {
	f := view.NewForm("q", v.query("q"), "state", v.query("state"))
	search := control.ClientSearch{Text: v.query("q"), State: v.query("state"), Page: request.Page{Limit: rowsOfPage, Cursor: v.query("cursor")}}
	rows, next, err := v.partner.FindClients(v.ctx(), search)
	if err != nil {
		return lost(err)
	}
	list := view.ClientList{Rows: clientRows(rows), Cursor: v.query("cursor"), Next: next, Narrowed: search.Text != "" || search.State != ""}
	list.URL = "/partner"
	if list.Narrowed {
		list.URL += "?" + url.Values{"q": {search.Text}, "state": {search.State}}.Encode()
	}
	if v.partial() {
		return v.show(view.ClientTable(list))
	}
	return v.show(view.Clients(f, list))
}

func clientRows(rows []control.ClientRow) []view.ClientRow {
	all := make([]view.ClientRow, len(rows))
	for i, r := range rows {
		all[i] = view.ClientRow{Client: r.Client, Pulse: r.Pulse, Ended: r.Ended}
	}
	return all
}

// expiries is who must renew soon.
func expiries(v *Request) error {
	rows, err := v.partner.Expiring(v.ctx())
	if err != nil {
		return err
	}
	return v.show(view.Expiries(clientRows(rows), puntuale.DateOf(v.now().In(v.frame.Zone))))
}

// How many days the chart of totals shows.
const (
	daysBack  = 29
	daysAhead = 7
)

func totals(v *Request) error {
	days, err := v.partner.Totals(v.ctx(), "", daysBack, daysAhead)
	if err != nil {
		return err
	}
	return v.show(view.Totals(days))
}

func brand(v *Request) error {
	l, err := looks(v)
	if err != nil {
		return err
	}
	f := brandForm(l.Host.Brand)
	return v.show(view.Brand(f, l))
}

func brandForm(b puntuale.Brand) *view.Form {
	return view.NewForm(view.Version, string(b.Version()), "name", b.Name, "colour", b.Colour, "host", b.Host)
}

// looks is how the partner's pages look, and how it proves its host name.
func looks(v *Request) (view.Looks, error) {
	h, err := v.partner.Host(v.ctx())
	if err != nil {
		return view.Looks{}, err
	}
	l := view.Looks{Host: h, Look: LookOf(h)}
	if name := h.Brand.Host; name != "" && !h.Brand.Confirmed {
		proof := v.partner.HostProof(name)
		l.ProofName, l.ProofText = proof.Name, proof.Text
	}
	return l, nil
}

func changeBrand(v *Request) error {
	f, logo, err := v.upload("logo", control.MaxLogo)
	if err != nil {
		return err
	}
	change := control.BrandChange{Name: f.Value("name"), Colour: f.Value("colour"), Host: f.Value("host"), Logo: logo, NoLogo: f.Is("no_logo", "on"), Known: Versions(f)}
	if f.Is("own_colour", "on") {
		change.Colour = ""
	}
	if err := v.partner.SetBrand(v.ctx(), change); err != nil {
		l, readErr := looks(v)
		if readErr != nil {
			return readErr
		}
		if puntuale.CodeOf(err) == puntuale.CodeConflict {
			err = puntuale.Invalid(puntuale.Fault{Location: "body.host", Message: "another partner has this host name"})
		}
		if v.compare(err, f, l.Host.Brand.Version(), "/partner/brand") {
			v.differ(f, brandForm(l.Host.Brand), label{name: "name", key: "brand.name"}, label{name: "colour", key: "brand.colour"}, label{name: "host", key: "brand.host"})
		}
		return v.again(err, f, view.BrandForm(f, l), view.Brand(f, l), "name", "colour", "host", "logo")
	}
	v.say("brand.done", "")
	return v.Redirect("/partner/brand")
}

// proveHost looks for the DNS record that proves the partner's host name.
func proveHost(v *Request) error {
	l, err := looks(v)
	if err != nil {
		return err
	}
	if err := v.partner.ProveHost(v.ctx()); err != nil {
		h := l.Host.Brand
		f := brandForm(h)
		l.HostForm = view.NewForm()
		return v.again(err, l.HostForm, view.HostForm(l), view.Brand(f, l), "proof")
	}
	v.did(l.Host.Brand.Host)
	v.say("brand.host_done", "", "Host", l.Host.Brand.Host)
	return v.Redirect("/partner/brand")
}

// enterClient lets the partner's user into a client's dashboard.
func enterClient(v *Request) error {
	account, err := v.partner.Account(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	if !v.entered(account.ID) {
		if err := v.person.Note(v.ctx(), account.ID, "client.enter", account.Name, v.caller().Address); err != nil {
			return err
		}
		v.visits.Put(v.ctx(), keyEntered, append(slices.Clone(v.enteredList()), int64(account.ID)))
	}
	next, base := f.Value("next"), "/c/"+account.ID.String()
	if path, _, _ := strings.Cut(next, "?"); !ownAddress(next) || !within(path, base) {
		next = base
	}
	return v.Redirect(next)
}
