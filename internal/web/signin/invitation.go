package signin

import (
	"net/http"

	"puntuale"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// invitationRoutes contains the page on which an invited user sets a password. The page shows the brand of the user's
// partner.
var invitationRoutes = []page.Route{
	page.Get("/invitation", page.Anyone, 0, invitation),
	page.Post("/invitation", page.Anyone, 0, page.Unaudited, acceptInvitation), // the handler itself writes the audit log
}

func invitation(v *page.Request) error {
	p, err := v.Site.Accounts.Invited(v.Ctx(), v.Query("t"))
	if err != nil {
		return spent(v, err)
	}
	v.Frame.Look = page.LookOf(p.Host())
	return v.Show(Invitation(view.NewForm("t", v.Query("t")), p.User().Email))
}

// spent shows the page for an invitation that is not valid any more.
func spent(v *page.Request, err error) error {
	if puntuale.CodeOf(err) != puntuale.CodeUnauthorized {
		return err
	}
	if v.Partial() {
		return v.Redirect("/invitation") // without a secret in the address, this page says that the link is not valid
	}
	return v.ShowAs(http.StatusNotFound, InvitationSpent(v.SignInAddress()))
}

func acceptInvitation(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	invited, err := v.Site.Accounts.Invited(v.Ctx(), f.Value("t"))
	if err != nil {
		return spent(v, err)
	}
	v.Frame.Look = page.LookOf(invited.Host())
	p, err := v.Site.Accounts.Join(v.Ctx(), f.Value("t"), f.Value("password"))
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeUnauthorized:
		return spent(v, err)
	case err != nil:
		email := invited.User().Email
		return v.ShowRefused(err, f, InvitationForm(f, email), Invitation(f, email), "password")
	}
	if err := p.Note(v.Ctx(), p.User().Client, "user.join", p.User().Email, v.Caller().Address); err != nil {
		return err
	}
	return passed(v, p, p.Begin(puntuale.UnfinishedSignIn))
}
