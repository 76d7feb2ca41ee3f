package account

import (
	"net/url"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control/account"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// partnerRoutes are the pages of a partner's dashboard, except the pages about one client.
var partnerRoutes = []page.Route{
	page.Get("/partner", page.PartnerSide, puntuale.Reader, clients),
	page.Get("/partner/expiries", page.PartnerSide, puntuale.Reader, expiries),
	page.Get("/partner/totals", page.PartnerSide, puntuale.Reader, totals),
	page.Get("/partner/brand", page.PartnerSide, puntuale.Owner, brand),
	page.Post("/partner/brand", page.PartnerSide, puntuale.Owner, "brand.change", changeBrand),
	page.Post("/partner/brand/host", page.PartnerSide, puntuale.Owner, "brand.host", proveHost),
	page.Get("/partner/audit", page.PartnerSide, puntuale.Owner, partnerAudit),
	page.Post("/partner/clients/{id}/enter", page.PartnerSide, puntuale.Reader, page.Unaudited, enterClient), // the handler itself writes the audit log of the client
}

// clients shows the partner's first page, with the list of its clients. While a person types a search, htmx sends the
// request again, and clients sends only the list.
func clients(v *page.Request) error {
	f := view.NewForm("q", v.Query("q"), "state", v.Query("state"))
	search := account.ClientSearch{Text: v.Query("q"), State: v.Query("state"), Page: request.Page{Limit: page.RowsOfPage, Cursor: v.Query("cursor")}}
	rows, next, err := v.Partner.FindClients(v.Ctx(), search)
	if err != nil {
		return page.Lost(err)
	}
	list := ClientList{Rows: clientRows(rows), Cursor: v.Query("cursor"), Next: next, Narrowed: search.Text != "" || search.State != ""}
	list.URL = "/partner"
	if list.Narrowed {
		list.URL += "?" + url.Values{"q": {search.Text}, "state": {search.State}}.Encode()
	}
	if list.Count, err = page.Total(v.Partner.CountClients(v.Ctx(), search)); err != nil {
		return err
	}
	if v.Partial() {
		return v.Show(ClientTable(list))
	}
	if list.States, err = v.Partner.CountClientStates(v.Ctx()); err != nil {
		return err
	}
	return v.Show(Clients(f, list))
}

func clientRows(rows []account.ClientRow) []ClientRow {
	all := make([]ClientRow, len(rows))
	for i, r := range rows {
		all[i] = ClientRow{Client: r.Client, ClientStatus: r.ClientStatus, Ended: r.Ended}
	}
	return all
}

// expiries shows the clients whose service ends soon.
func expiries(v *page.Request) error {
	rows, err := v.Partner.Expiring(v.Ctx())
	if err != nil {
		return err
	}
	return v.Show(Expiries(clientRows(rows), puntuale.DateOf(v.Now().In(v.Frame.Zone))))
}

// The number of days that the chart of totals shows, before and after today.
const (
	daysBack  = 29
	daysAhead = 7
)

func totals(v *page.Request) error {
	days, err := v.Partner.Totals(v.Ctx(), "", daysBack, daysAhead)
	if err != nil {
		return err
	}
	return v.Show(Totals(days))
}

func brand(v *page.Request) error {
	l, err := looks(v)
	if err != nil {
		return err
	}
	f := brandForm(l.Host.Brand)
	return v.Show(Brand(f, l))
}

func brandForm(b puntuale.Brand) *view.Form {
	return view.NewForm(view.Version, string(b.Version()), "name", b.Name, "colour", b.Colour, "host", b.Host)
}

// looks returns the partner's brand, and the DNS record that proves the partner's host name.
func looks(v *page.Request) (Looks, error) {
	h, err := v.Partner.Host(v.Ctx())
	if err != nil {
		return Looks{}, err
	}
	l := Looks{Host: h, Look: page.LookOf(h)}
	if name := h.Brand.Host; name != "" && !h.Brand.Confirmed {
		proof := v.Partner.HostProof(name)
		l.ProofName, l.ProofText = proof.Name, proof.Text
	}
	return l, nil
}

func changeBrand(v *page.Request) error {
	f, logo, err := v.Upload("logo", account.MaxLogo)
	if err != nil {
		return err
	}
	change := account.BrandChange{Name: f.Value("name"), Colour: f.Value("colour"), Host: f.Value("host"), Logo: logo, NoLogo: f.Is("no_logo", "on"), Known: page.Versions(f)}
	if f.Is("own_colour", "on") {
		change.Colour = ""
	}
	if err := v.Partner.SetBrand(v.Ctx(), change); err != nil {
		l, readErr := looks(v)
		if readErr != nil {
			return readErr
		}
		if puntuale.CodeOf(err) == puntuale.CodeConflict {
			err = puntuale.Invalid(puntuale.Fault{Location: "body.host", Code: puntuale.FaultPartnerHostTaken})
		}
		if v.Compare(err, f, l.Host.Brand.Version(), "/partner/brand") {
			v.Differ(f, brandForm(l.Host.Brand), page.Label{Name: "name", Key: "brand.name"}, page.Label{Name: "colour", Key: "brand.colour"}, page.Label{Name: "host", Key: "brand.host"})
		}
		return v.ShowRefused(err, f, BrandForm(f, l), Brand(f, l), "name", "colour", "host", "logo")
	}
	v.Say("brand.done", "")
	return v.Redirect("/partner/brand")
}

// proveHost looks up the DNS record that proves the partner's host name.
func proveHost(v *page.Request) error {
	l, err := looks(v)
	if err != nil {
		return err
	}
	if err := v.Partner.ProveHost(v.Ctx()); err != nil {
		h := l.Host.Brand
		f := brandForm(h)
		l.HostForm = view.NewForm()
		return v.ShowRefused(err, l.HostForm, HostForm(l), Brand(f, l), "proof")
	}
	v.SetAuditTarget(l.Host.Brand.Host)
	v.Say("brand.host_done", "", "Host", l.Host.Brand.Host)
	return v.Redirect("/partner/brand")
}

// enterClient gives the partner's user access to a client's dashboard in this visit.
func enterClient(v *page.Request) error {
	account, err := v.Partner.Account(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	if !v.Entered(account.ID) {
		if err := v.Person.Note(v.Ctx(), account.ID, "client.enter", account.Name, v.Caller().Address); err != nil {
			return err
		}
		v.Visits.Put(v.Ctx(), page.KeyEntered, append(slices.Clone(v.EnteredList()), int64(account.ID)))
	}
	next, base := f.Value("next"), "/c/"+account.ID.String()
	if path, _, _ := strings.Cut(next, "?"); !page.OwnAddress(next) || !page.Within(path, base) {
		next = base
	}
	return v.Redirect(next)
}
