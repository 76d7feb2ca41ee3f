package web

import (
	"slices"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// partnerRoutes are the pages of a partner's dashboard.
var partnerRoutes = []route{
	{"GET /partner", partnerSide, puntuale.Reader, "", (*site).clients},
	{"POST /partner/clients/{id}/enter", partnerSide, puntuale.Reader, unaudited, (*site).enterClient}, // notes it by itself, in the client's log
}

// clients is the partner's first page: the list of its clients.
func (s *site) clients(v *visit) error {
	rows, next, err := v.partner.Clients(v.ctx(), control.Page{Limit: "50", Cursor: v.query("cursor")})
	if err != nil {
		return err
	}
	return v.show(view.Clients(rows, v.query("cursor"), next))
}

// enterClient lets the partner's user into a client's dashboard.
func (s *site) enterClient(v *visit) error {
	account, err := v.partner.Account(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	if !v.entered(account.ID) {
		if err := v.person.Note(v.ctx(), account.ID, "client.enter", account.Name); err != nil {
			return err
		}
		v.visits.Put(v.ctx(), keyEntered, append(slices.Clone(v.enteredList()), int64(account.ID)))
	}
	next, base := f.Value("next"), "/c/"+account.ID.String()
	if !ownAddress(next) || !within(next, base) {
		next = base
	}
	return v.to(next)
}

// askToEnter shows the partner's user that a page is in a client's dashboard, which is entered knowingly.
func (s *site) askToEnter(v *visit) error {
	account := v.client.Account()
	v.client = nil
	v.frame.Nav = s.navigation(v)
	return v.show(view.Enter(account, v.r.URL.RequestURI()))
}
