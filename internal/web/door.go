package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/language"
	"puntuale/internal/web/view"
)

// signinRoutes are the pages before and after all others.
var signinRoutes = []Route{
	Get("/{$}", Anyone, 0, front),
	Get("/login", Anyone, 0, loginPage),
	Post("/login", Anyone, 0, Unaudited, login), // notes who came in by itself
	Get("/login/code", Anyone, 0, codePage),
	Post("/login/code", Anyone, 0, Unaudited, code),
	Get("/login/choose", Anyone, 0, choosePage),
	Post("/login/choose", Anyone, 0, Unaudited, choose),
	Get("/p/{slug}", Anyone, 0, loginPage),
	Post("/p/{slug}", Anyone, 0, Unaudited, login),
	Get("/ticket", Anyone, 0, ticketPage),
	Post("/ticket", Anyone, 0, Unaudited, ticket),
	Post("/logout", SignedIn, puntuale.Reader, "signout", logout),
	Post("/language", Anyone, 0, Unaudited, speak),
	Post("/leave", PartnerSide, puntuale.Reader, "client.leave", leave),
}

// front leads everybody to where they belong.
func front(v *Request) error {
	if v.person == nil {
		return v.Redirect(v.SignInAddress())
	}
	return v.Redirect(homeOf(v.person))
}

// keepLooks remembers whose pages somebody saw, for those that belong to nobody. It decides nothing else.
func keepLooks(v *Request, p *control.Person) { v.KeepSlug(p.Host().Partner.Slug) }

// dressAsBefore gives a page that belongs to nobody the looks that the browser saw last.
func dressAsBefore(v *Request) error {
	slug := httpkit.SlugIn(v.HTTP, httpkit.LooksCookie)
	if slug == "" {
		return nil
	}
	h, err := v.site.control.PartnerAt(v.ctx(), "", slug)
	if err == nil {
		v.frame.Look = LookOf(h)
	} else if puntuale.CodeOf(err) != puntuale.CodeNotFound {
		return err
	}
	return nil
}

// keepDoor remembers by which page somebody came in.
func keepDoor(v *Request) {
	c := &http.Cookie{Name: doorCookie, Value: v.path("slug"), Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: v.caller().Secure} //nolint:gosec // it is no secret, and behind plain http there is no other way
	if c.Value == "" {
		if _, err := v.HTTP.Cookie(doorCookie); err != nil {
			return
		}
		c.MaxAge = -1
	}
	http.SetCookie(v.Writer, c)
}

// homeOf is the first page of a person.
func homeOf(p *control.Person) string {
	if c := p.User().Client; c != 0 {
		return "/c/" + c.String()
	}
	return "/partner"
}

// knownPartner finds the partner whose login page it is: by its slug in the path, or by its own host name. Nobody has to
// be found.
func knownPartner(v *Request) (puntuale.PartnerID, error) {
	slug := v.path("slug")
	h, err := v.site.control.PartnerAt(v.ctx(), v.HTTP.Host, slug)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound && slug == "":
		return 0, dressAsBefore(v)
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return 0, errNoPage
	case err != nil:
		return 0, err
	}
	v.frame.Look = LookOf(h)
	return h.Partner.ID, nil
}

func loginPage(v *Request) error {
	if v.person != nil && v.path("slug") == "" {
		return v.Redirect(homeOf(v.person))
	}
	if _, err := knownPartner(v); err != nil {
		return err
	}
	return v.show(view.Login(view.NewForm("next", v.query("next")), v.frame.Path))
}

func login(v *Request) error {
	partner, err := knownPartner(v)
	if err != nil {
		return err
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	people, err := v.site.control.SignIn(v.ctx(), control.SignIn{
		Partner: partner, Email: f.Value("email"), Password: f.Value("password"), Address: v.caller().Address, Browser: v.device(),
	})
	if err != nil {
		return notIn(v, err, f)
	}
	keepDoor(v)
	v.visits.Put(v.ctx(), keyNext, f.Value("next"))
	steps := make([]puntuale.Unfinished, len(people))
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

// notIn shows the login page again: the same words for every reason but those that only who knows the password meets.
func notIn(v *Request, err error, f *view.Form) error {
	part, page := view.LoginForm(f, v.frame.Path), view.Login(f, v.frame.Path)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeUnauthorized:
		f.Refuse("password", v.T("login.wrong"))
	case errors.Is(err, control.ErrWeak):
		f.Refuse("password", v.T("login.weak"))
	default:
		return v.again(err, f, part, page)
	}
	if v.partial() {
		return v.showAs(http.StatusUnprocessableEntity, part)
	}
	return v.showAs(http.StatusUnprocessableEntity, page)
}

// await keeps sign-ins that wait for a choice or a code, under a new token.
func await(v *Request, steps []puntuale.Unfinished) error {
	if err := v.visits.RenewToken(v.ctx()); err != nil {
		return err
	}
	content, err := json.Marshal(steps)
	if err != nil {
		return err
	}
	v.visits.Put(v.ctx(), keyPending, string(content))
	return nil
}

// passed goes on with a person whose password was right: to the second factor, where there is one.
func passed(v *Request, p *control.Person, step puntuale.Unfinished) error {
	if on, _ := p.Second(); !on {
		return arrive(v, p)
	}
	if err := await(v, []puntuale.Unfinished{step}); err != nil {
		return err
	}
	return v.Redirect("/login/code")
}

// arrive signs a person in and leads to where they wanted to go.
func arrive(v *Request, p *control.Person) error {
	next := v.visits.PopString(v.ctx(), keyNext)
	if err := v.begin(p); err != nil {
		return err
	}
	keepLooks(v, p)
	if !ownAddress(next) {
		next = homeOf(p)
	}
	return v.Redirect(next)
}

// awaited are the people whose password was right and who can still go on, each with the step. Codes: unauthorized, with
// [control.ErrOver] where there were some.
func awaited(v *Request) (people []*control.Person, steps []puntuale.Unfinished, err error) {
	var kept []puntuale.Unfinished
	if json.Unmarshal([]byte(v.visits.GetString(v.ctx(), keyPending)), &kept) != nil || len(kept) == 0 {
		return nil, nil, errSignIn
	}
	var over error
	for _, step := range kept {
		p, err := v.site.control.Resume(v.ctx(), puntuale.UnfinishedSignIn, step)
		switch {
		case errors.Is(err, control.ErrOver):
			over = err
			continue
		case err != nil:
			return nil, nil, err
		}
		people, steps = append(people, p), append(steps, step)
	}
	if len(people) == 0 {
		v.visits.Remove(v.ctx(), keyPending)
		return nil, nil, over
	}
	v.frame.Look = view.Look{Name: "Puntuale"}
	if len(people) == 1 {
		v.frame.Look = LookOf(people[0].Host())
	}
	return people, steps, nil
}

// awaitsCode is the one person who must give a code.
func awaitsCode(v *Request) (*control.Person, error) {
	people, _, err := awaited(v)
	if err == nil && len(people) != 1 {
		err = errSignIn
	}
	if err != nil {
		return nil, err
	}
	return people[0], nil
}

func choosePage(v *Request) error {
	people, _, err := awaited(v)
	if err != nil {
		return err
	}
	return v.show(view.Choose(choices(people)))
}

func choices(people []*control.Person) (all []view.Option) {
	for _, p := range people {
		l := LookOf(p.Host())
		all = append(all, view.Option{Value: p.User().ID.String(), Text: l.Name, Hint: p.User().Name})
	}
	return all
}

func choose(v *Request) error {
	people, steps, err := awaited(v)
	if err != nil {
		return err
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(people, func(p *control.Person) bool { return p.User().ID.String() == f.Value("user") })
	if at < 0 {
		return v.Redirect("/login/choose")
	}
	return passed(v, people[at], steps[at])
}

func codePage(v *Request) error {
	if _, err := awaitsCode(v); err != nil {
		return err
	}
	return v.show(view.Code(view.NewForm(), v.SignInAddress()))
}

func code(v *Request) error {
	p, err := awaitsCode(v)
	if err != nil {
		return err
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	if on, _ := p.Second(); !on { // an owner took it away meanwhile
		return arrive(v, p)
	}
	if err := p.SignInSecond(v.ctx(), f.Value("code"), v.caller().Address); err != nil {
		f.Values.Del("code")
		return v.again(err, f, view.CodeForm(f, v.SignInAddress()), view.Code(f, v.SignInAddress()), "code")
	}
	return arrive(v, p)
}

// ticketPage asks before it takes a ticket, so that nothing that only looks at addresses spends it.
func ticketPage(v *Request) error {
	if !v.caller().Local {
		return errNoPage
	}
	return v.show(view.Ticket(v.query("t")))
}

func ticket(v *Request) error {
	if !v.caller().Local {
		return errNoPage
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	p, err := v.site.control.Redeem(v.ctx(), puntuale.UnfinishedTicket, f.Value("t"))
	if puntuale.CodeOf(err) == puntuale.CodeUnauthorized {
		if v.person != nil { // the same link again, in the browser that it let in
			return v.Redirect(homeOf(v.person))
		}
		return v.showAs(http.StatusNotFound, view.TicketSpent(v.SignInAddress()))
	}
	if err != nil {
		return err
	}
	return arrive(v, p)
}

func logout(v *Request) error {
	if err := v.visits.Destroy(v.ctx()); err != nil {
		return err
	}
	return v.Redirect(v.SignInAddress())
}

// speak changes the language: of whoever signed in for good, of anybody else by a cookie.
func speak(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	l := language.Named(f.Value("language"))
	if l == nil {
		return errNoPage
	}
	http.SetCookie(v.Writer, &http.Cookie{Name: "language", Value: l.Code, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: v.caller().Secure}) //nolint:gosec // a language is no secret, and behind plain http there is no other way
	if v.person != nil {
		if err := v.person.Speak(v.ctx(), l.Code); err != nil {
			return err
		}
	}
	return v.Redirect(back(v))
}

// back is the page that a request came from, where that is one of ours.
func back(v *Request) string {
	from := v.HTTP.Header.Get("Referer")
	if at := strings.Index(from, "://"); at > 0 {
		host, rest, _ := strings.Cut(from[at+3:], "/")
		if host == v.HTTP.Host && ownAddress("/"+rest) {
			return "/" + rest
		}
	}
	return "/"
}

// leave leads the partner's user out of a client's dashboard.
func leave(v *Request) error {
	v.visits.Remove(v.ctx(), keyEntered)
	return v.Redirect("/partner")
}
