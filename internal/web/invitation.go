package web

import (
	"net/http"

	"puntuale"
	"puntuale/internal/web/view"
)

// invitationRoutes are the page on which somebody who was invited sets a password. It has the looks of their partner.
var invitationRoutes = []Route{
	Get("/invitation", Anyone, 0, invitation),
	Post("/invitation", Anyone, 0, Unaudited, join), // notes who joined by itself
}

func invitation(v *Request) error {
	p, err := v.site.control.Invited(v.ctx(), v.query("t"))
	if err != nil {
		return spent(v, err)
	}
	v.frame.Look = LookOf(p.Host())
	return v.show(view.Invitation(view.NewForm("t", v.query("t")), p.User().Email))
}

// spent says of an invitation that it is worth nothing any more.
func spent(v *Request, err error) error {
	if puntuale.CodeOf(err) != puntuale.CodeUnauthorized {
		return err
	}
	if v.partial() {
		return v.Redirect("/invitation") // without a secret it says so
	}
	return v.showAs(http.StatusNotFound, view.InvitationSpent(v.SignInAddress()))
}

func join(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	invited, err := v.site.control.Invited(v.ctx(), f.Value("t"))
	if err != nil {
		return spent(v, err)
	}
	v.frame.Look = LookOf(invited.Host())
	p, err := v.site.control.Join(v.ctx(), f.Value("t"), f.Value("password"))
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeUnauthorized:
		return spent(v, err)
	case err != nil:
		email := invited.User().Email
		return v.again(err, f, view.InvitationForm(f, email), view.Invitation(f, email), "password")
	}
	if err := p.Note(v.ctx(), p.User().Client, "user.join", p.User().Email, v.caller().Address); err != nil {
		return err
	}
	return passed(v, p, p.Begin(puntuale.UnfinishedSignIn))
}
