package person

import (
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// consentRoutes are the pages of a person's consent.
var consentRoutes = []page.Route{
	page.Post("/c/{client}/person/consent", page.ClientSide, puntuale.Staff, "person.consent", addConsent),
}

// ledgerRows is the number of the ledger's entries that a page shows.
const ledgerRows = "50"

func consentPage(v *page.Request, phone string) (p ConsentPage, err error) {
	p = ConsentPage{Phone: phone, Form: view.NewForm("phone", phone, "purpose", puntuale.PurposeMarketing.String(), "change", puntuale.ConsentGrant.String())}
	if p.Holds, err = v.Client.ConsentStatuses(v.Ctx(), phone); err != nil {
		return p, err
	}
	s, err := v.Client.Settings(v.Ctx())
	if err != nil {
		return p, err
	}
	p.Required = s.Consent == puntuale.ConsentRequired
	p.Ledger, p.Next, err = v.Client.Consents(v.Ctx(), phone, request.Page{Limit: ledgerRows, Cursor: v.Query("ledger")})
	return p, err
}

func addConsent(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	phone := f.Value("phone")
	entered, err := v.Client.AddConsent(v.Ctx(), control.ConsentCall{
		Phone: phone, Purpose: f.Value("purpose"), Change: f.Value("change"), Source: strings.TrimSpace(f.Value("source")), Words: strings.TrimSpace(f.Value("words")),
	}, control.Once[puntuale.Consent]{})
	if err != nil {
		known, missing := v.Client.Known(phone)
		if missing != nil {
			return err
		}
		p, missing := personPage(v, known)
		if missing != nil {
			return missing
		}
		p.Consent.Form = f
		return v.ShowRefused(err, f, ConsentForm(p.Consent), Person(p), "purpose", "change", "source", "words")
	}
	v.SetAuditTarget(entered.Purpose.String() + " " + entered.Change.String())
	v.Say("consent.entered", "")
	return v.Redirect(personAddress(v, phone))
}
