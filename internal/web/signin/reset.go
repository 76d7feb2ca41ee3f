package signin

import (
	"net/http"

	"puntuale"
	"puntuale/internal/control/account"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// resetRoutes are the pages for a forgotten password. The first page sends a link by e-mail. The second page, which the
// link opens, sets a new password. The pages exist only if the service sends e-mails.
var resetRoutes = []page.Route{
	page.Get("/forgot", page.Anyone, 0, forgotPage),
	page.Post("/forgot", page.Anyone, 0, page.Unaudited, forgot),
	page.Get("/p/{slug}/forgot", page.Anyone, 0, forgotPage),
	page.Post("/p/{slug}/forgot", page.Anyone, 0, page.Unaudited, forgot),
	page.Get("/reset", page.Anyone, 0, resetPage),
	page.Post("/reset", page.Anyone, 0, page.Unaudited, reset), // the handler itself writes the audit log
}

// forgotAddress returns the address of the forgot page for the present sign-in page. It returns "" if the service sends
// no e-mails.
func forgotAddress(v *page.Request) string {
	switch slug := v.Path("slug"); {
	case !v.Site.Accounts.Mails():
		return ""
	case slug != "":
		return "/p/" + slug + "/forgot"
	}
	return "/forgot"
}

// signInBeside returns the address of the sign-in page for the present forgot page.
func signInBeside(v *page.Request) string {
	if slug := v.Path("slug"); slug != "" {
		return "/p/" + slug
	}
	return "/login"
}

// resetPartner returns the partner whose users may reset a password on this page. It fails if the service sends no
// e-mails.
func resetPartner(v *page.Request) (puntuale.PartnerID, error) {
	if !v.Site.Accounts.Mails() {
		return 0, page.ErrNoPage
	}
	return knownPartner(v)
}

func forgotPage(v *page.Request) error {
	if _, err := resetPartner(v); err != nil {
		return err
	}
	return v.Show(Forgot(view.NewForm(), forgotAddress(v), signInBeside(v)))
}

// forgot sends a link by e-mail. Its answer is the same for every address, so that it does not reveal which users
// exist.
func forgot(v *page.Request) error {
	partner, err := resetPartner(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	err = v.Site.Accounts.AskReset(v.Ctx(), account.ResetRequest{
		Partner: partner, Email: f.Value("email"), Language: v.Frame.Language.Code, Address: v.Caller().Address,
	})
	if err != nil {
		action, door := forgotAddress(v), signInBeside(v)
		return v.ShowRefused(err, f, ForgotForm(f, action, door), Forgot(f, action, door), "email")
	}
	return v.Whole(ForgotAsked(signInBeside(v)))
}

func resetPage(v *page.Request) error {
	p, err := v.Site.Accounts.Resetting(v.Ctx(), v.Query("t"))
	if err != nil {
		return resetSpent(v, err)
	}
	v.Frame.Look = page.LookOf(p.Host())
	return v.Show(Reset(view.NewForm("t", v.Query("t")), p.User().Email))
}

// resetSpent shows the page for a link that is not valid any more.
func resetSpent(v *page.Request, err error) error {
	if puntuale.CodeOf(err) != puntuale.CodeUnauthorized {
		return err
	}
	if v.Partial() {
		return v.Redirect("/reset") // without a secret in the address, this page says that the link is not valid
	}
	return v.ShowAs(http.StatusNotFound, ResetSpent(v.SignInAddress(), v.Site.Accounts.Mails()))
}

func reset(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	holder, err := v.Site.Accounts.Resetting(v.Ctx(), f.Value("t"))
	if err != nil {
		return resetSpent(v, err)
	}
	v.Frame.Look = page.LookOf(holder.Host())
	p, err := v.Site.Accounts.Reset(v.Ctx(), f.Value("t"), f.Value("password"))
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeUnauthorized:
		return resetSpent(v, err)
	case err != nil:
		email := holder.User().Email
		return v.ShowRefused(err, f, ResetForm(f, email), Reset(f, email), "password")
	}
	if err := p.Note(v.Ctx(), p.User().Client, "user.reset", p.User().Email, v.Caller().Address); err != nil {
		return err
	}
	return passed(v, p, p.Begin(puntuale.UnfinishedSignIn))
}
