package signin

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control/account"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/language"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// signinRoutes are the pages of signing in and out, and the first page.
var signinRoutes = []page.Route{
	page.Get("/{$}", page.Anyone, 0, front),
	page.Get("/login", page.Anyone, 0, loginPage),
	page.Post("/login", page.Anyone, 0, page.Unaudited, login), // the handler itself writes the audit log
	page.Get("/login/code", page.Anyone, 0, codePage),
	page.Post("/login/code", page.Anyone, 0, page.Unaudited, code),
	page.Get("/login/choose", page.Anyone, 0, choosePage),
	page.Post("/login/choose", page.Anyone, 0, page.Unaudited, choose),
	page.Get("/p/{slug}", page.Anyone, 0, loginPage),
	page.Post("/p/{slug}", page.Anyone, 0, page.Unaudited, login),
	page.Get("/ticket", page.Anyone, 0, ticketPage),
	page.Post("/ticket", page.Anyone, 0, page.Unaudited, ticket),
	page.Post("/logout", page.SignedIn, puntuale.Reader, "signout", logout),
	page.Post("/language", page.Anyone, 0, page.Unaudited, speak),
	page.Post("/leave", page.PartnerSide, puntuale.Reader, "client.leave", leave),
}

// front redirects a signed-in person to the person's first page, and any other reader to a sign-in page.
func front(v *page.Request) error {
	if v.Person == nil {
		return v.Redirect(v.SignInAddress())
	}
	return v.Redirect(homeOf(v.Person))
}

// keepLooks stores in a cookie the partner whose pages the person saw. Pages that belong to no partner show this
// partner's brand. The cookie gives no rights.
func keepLooks(v *page.Request, p *account.Person) { v.KeepSlug(p.Host().Partner.Slug) }

// dressAsBefore gives a page that belongs to no partner the brand in the cookie httpkit.BrandCookie.
func dressAsBefore(v *page.Request) error {
	slug := httpkit.SlugIn(v.HTTP, httpkit.BrandCookie)
	if slug == "" {
		return nil
	}
	h, err := v.Site.Accounts.PartnerAt(v.Ctx(), "", slug)
	if err == nil {
		v.Frame.Look = page.LookOf(h)
	} else if puntuale.CodeOf(err) != puntuale.CodeNotFound {
		return err
	}
	return nil
}

// rememberSignIn stores in a cookie on which partner's page a person signed in.
func rememberSignIn(v *page.Request) {
	c := &http.Cookie{Name: page.SignInCookie, Value: v.Path("slug"), Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: v.Caller().Secure} //nolint:gosec // the slug is no secret, and over plain http a browser refuses a Secure cookie
	if c.Value == "" {
		if _, err := v.HTTP.Cookie(page.SignInCookie); err != nil {
			return
		}
		c.MaxAge = -1
	}
	http.SetCookie(v.Writer, c)
}

// homeOf returns the address of a person's first page.
func homeOf(p *account.Person) string {
	if c := p.User().Client; c != 0 {
		return "/c/" + c.String()
	}
	return "/partner"
}

// knownPartner returns the partner of a sign-in page, by the slug in the path or by the host name. It returns 0 if
// there is no such partner.
func knownPartner(v *page.Request) (puntuale.PartnerID, error) {
	slug := v.Path("slug")
	h, err := v.Site.Accounts.PartnerAt(v.Ctx(), v.HTTP.Host, slug)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound && slug == "":
		return 0, dressAsBefore(v)
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return 0, page.ErrNoPage
	case err != nil:
		return 0, err
	}
	v.Frame.Look = page.LookOf(h)
	return h.Partner.ID, nil
}

func loginPage(v *page.Request) error {
	if v.Person != nil && v.Path("slug") == "" {
		return v.Redirect(homeOf(v.Person))
	}
	if _, err := knownPartner(v); err != nil {
		return err
	}
	return v.Show(Login(view.NewForm("next", v.Query("next")), v.Frame.Path, forgotAddress(v)))
}

func login(v *page.Request) error {
	partner, err := knownPartner(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	people, err := v.Site.Accounts.SignIn(v.Ctx(), account.SignIn{
		Partner: partner, Email: f.Value("email"), Password: f.Value("password"), Address: v.Caller().Address, Browser: v.Device(),
	})
	if err != nil {
		return notIn(v, err, f)
	}
	rememberSignIn(v)
	v.Visits.Put(v.Ctx(), page.KeyNext, f.Value("next"))
	steps := make([]puntuale.PendingStep, len(people))
	for i, p := range people {
		steps[i] = p.Begin(puntuale.UnfinishedSignIn)
	}
	if len(people) == 1 {
		return passed(v, people[0], steps[0])
	}
	if err := await(v, steps); err != nil {
		return err
	}
	return v.Redirect("/login/choose")
}

// notIn shows the sign-in page again. Its text is the same for every reason. More exact reasons are shown only after a
// correct password.
func notIn(v *page.Request, err error, f *view.Form) error {
	part, page := LoginForm(f, v.Frame.Path, forgotAddress(v)), Login(f, v.Frame.Path, forgotAddress(v))
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeUnauthorized:
		f.Refuse("password", v.T("login.wrong"))
	case errors.Is(err, account.ErrWeak):
		f.Refuse("password", v.T("login.weak"))
	default:
		return v.ShowRefused(err, f, part, page)
	}
	if v.Partial() {
		return v.ShowAs(http.StatusUnprocessableEntity, part)
	}
	return v.ShowAs(http.StatusUnprocessableEntity, page)
}

// await stores sign-ins that wait for a choice or a code. The visit gets a new token.
func await(v *page.Request, steps []puntuale.PendingStep) error {
	if err := v.Visits.RenewToken(v.Ctx()); err != nil {
		return err
	}
	content, err := json.Marshal(steps)
	if err != nil {
		return err
	}
	v.Visits.Put(v.Ctx(), page.KeyPending, string(content))
	return nil
}

// passed continues a sign-in after a correct password. If the person has a second factor, it asks for a code.
func passed(v *page.Request, p *account.Person, step puntuale.PendingStep) error {
	if enabled, _ := p.Second(); !enabled {
		return arrive(v, p)
	}
	if err := await(v, []puntuale.PendingStep{step}); err != nil {
		return err
	}
	return v.Redirect("/login/code")
}

// arrive signs a person in, and redirects to the page that the person wanted to see.
func arrive(v *page.Request, p *account.Person) error {
	next := v.Visits.PopString(v.Ctx(), page.KeyNext)
	if err := v.Begin(p, p.Arrived); err != nil {
		return err
	}
	return onward(v, p, next)
}

// onward redirects a signed-in person to the address next. If next is not an address of this service, onward redirects
// to the person's first page.
func onward(v *page.Request, p *account.Person, next string) error {
	keepLooks(v, p)
	if !page.OwnAddress(next) {
		next = homeOf(p)
	}
	return v.Redirect(next)
}

// awaited returns the people whose password was correct and who can still continue, each with the pending step. Codes:
// unauthorized, with [account.ErrOver] if the time of all pending steps is over.
func awaited(v *page.Request) (people []*account.Person, steps []puntuale.PendingStep, err error) {
	var kept []puntuale.PendingStep
	if json.Unmarshal([]byte(v.Visits.GetString(v.Ctx(), page.KeyPending)), &kept) != nil || len(kept) == 0 {
		return nil, nil, page.ErrSignIn
	}
	var endErr error
	for _, step := range kept {
		p, err := v.Site.Accounts.Resume(v.Ctx(), puntuale.UnfinishedSignIn, step)
		switch {
		case errors.Is(err, account.ErrOver):
			endErr = err
			continue
		case err != nil:
			return nil, nil, err
		}
		people, steps = append(people, p), append(steps, step)
	}
	if len(people) == 0 {
		v.Visits.Remove(v.Ctx(), page.KeyPending)
		return nil, nil, endErr
	}
	v.Frame.Look = view.Look{Name: "Puntuale"}
	if len(people) == 1 {
		v.Frame.Look = page.LookOf(people[0].Host())
	}
	return people, steps, nil
}

// awaitsCode returns the one person who must enter a code.
func awaitsCode(v *page.Request) (*account.Person, error) {
	people, _, err := awaited(v)
	if err == nil && len(people) != 1 {
		err = page.ErrSignIn
	}
	if err != nil {
		return nil, err
	}
	return people[0], nil
}

func choosePage(v *page.Request) error {
	people, _, err := awaited(v)
	if err != nil {
		return err
	}
	return v.Show(Choose(choices(people)))
}

func choices(people []*account.Person) (all []view.Option) {
	for _, p := range people {
		l := page.LookOf(p.Host())
		all = append(all, view.Option{Value: p.User().ID.String(), Text: l.Name, Hint: p.User().Name})
	}
	return all
}

func choose(v *page.Request) error {
	people, steps, err := awaited(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(people, func(p *account.Person) bool { return p.User().ID.String() == f.Value("user") })
	if at < 0 {
		return v.Redirect("/login/choose")
	}
	return passed(v, people[at], steps[at])
}

func codePage(v *page.Request) error {
	if _, err := awaitsCode(v); err != nil {
		return err
	}
	return v.Show(Code(view.NewForm(), v.SignInAddress()))
}

func code(v *page.Request) error {
	p, err := awaitsCode(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	if enabled, _ := p.Second(); !enabled { // an owner removed the second factor during this sign-in
		return arrive(v, p)
	}
	if err := p.SignInSecond(v.Ctx(), f.Value("code"), v.Caller().Address); err != nil {
		f.Values.Del("code")
		return v.ShowRefused(err, f, CodeForm(f, v.SignInAddress()), Code(f, v.SignInAddress()), "code")
	}
	return arrive(v, p)
}

// ticketPage asks for a confirmation before it uses a ticket. So a program that only opens addresses does not use the
// ticket up.
func ticketPage(v *page.Request) error {
	if !v.Caller().Local {
		return page.ErrNoPage
	}
	return v.Show(Ticket(v.Query("t")))
}

func ticket(v *page.Request) error {
	if !v.Caller().Local {
		return page.ErrNoPage
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	p, err := v.Site.Accounts.Redeem(v.Ctx(), puntuale.UnfinishedTicket, f.Value("t"))
	if puntuale.CodeOf(err) == puntuale.CodeUnauthorized {
		if v.Person != nil { // this browser has already used the ticket
			return v.Redirect(homeOf(v.Person))
		}
		return v.ShowAs(http.StatusNotFound, TicketSpent(v.SignInAddress()))
	}
	if err != nil {
		return err
	}
	next := v.Visits.PopString(v.Ctx(), page.KeyNext)
	if err := v.Begin(p, p.ArrivedByTicket); err != nil {
		return err
	}
	return onward(v, p, next)
}

func logout(v *page.Request) error {
	if err := v.Visits.Destroy(v.Ctx()); err != nil {
		return err
	}
	return v.Redirect(v.SignInAddress())
}

// speak changes the language. For a signed-in reader, speak stores the language in the account. For any other
// reader, it sets a cookie.
func speak(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	l := language.Named(f.Value("language"))
	if l == nil {
		return page.ErrNoPage
	}
	http.SetCookie(v.Writer, &http.Cookie{Name: "language", Value: l.Code, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: v.Caller().Secure}) //nolint:gosec // the language is no secret, and over plain http a browser refuses a Secure cookie
	if v.Person != nil {
		if err := v.Person.Speak(v.Ctx(), l.Code); err != nil {
			return err
		}
	}
	return v.Redirect(returnPath(v))
}

// returnPath returns the page from which the request came, if this page belongs to the service.
func returnPath(v *page.Request) string {
	from := v.HTTP.Header.Get("Referer")
	if at := strings.Index(from, "://"); at > 0 {
		host, rest, _ := strings.Cut(from[at+3:], "/")
		if host == v.HTTP.Host && page.OwnAddress("/"+rest) {
			return "/" + rest
		}
	}
	return "/"
}

// leave ends the partner's user's access to clients' dashboards in this visit.
func leave(v *page.Request) error {
	v.Visits.Remove(v.Ctx(), page.KeyEntered)
	return v.Redirect("/partner")
}
