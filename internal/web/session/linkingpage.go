package session

import (
	"context"
	"net/http"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// linkingRoutes are the pages with which people link numbers without signing in, and the actions of those who make them.
// The address is the secret, so all who know it may open the page. A chat's preview fetches every address: only the
// button begins to link.
var linkingRoutes = []page.Route{
	page.Get(control.LinkingPath+"{code}", page.Anyone, 0, linkingPage),
	page.Post(control.LinkingPath+"{code}", page.Anyone, 0, page.Unaudited, startLinking), // control writes the entry, because nobody is signed in
	page.Get(control.LinkingPath+"{code}/live", page.Anyone, 0, liveLinking),
	page.Post("/c/{client}/sessions/{id}/page", page.ClientSide, puntuale.Staff, "session.page", offerPage),
	page.Post("/c/{client}/sessions/{id}/page/end", page.ClientSide, puntuale.Staff, "session.page_end", endPage),
}

// LinkingView is what a linking page shows.
type LinkingView struct {
	*control.LinkingPage
	URL  string     // of the page
	Form *view.Form // nil, unless the page shows it again after a refusal
}

// version returns the version of the page's changing part.
func (l LinkingView) version() string {
	if l.LinkingPage == nil || !l.Open {
		return overVersion
	}
	return l.Version()
}

// overVersion is the version of a page that does not work any more.
const overVersion = "over"

// ending returns the last digits of the linked number, by which its owner knows it.
func (l LinkingView) ending() string {
	const shown = 4
	if len(l.Number) < 2*shown {
		return ""
	}
	return l.Number[len(l.Number)-shown:]
}

// openLinking finds the page in the path. If there is none, the frame has the look of the host that was called, and the
// LinkingView has no page.
func openLinking(v *page.Request) (LinkingView, error) {
	h := v.Writer.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	found, err := v.Site.Control.LinkingPage(v.Ctx(), v.Path("code"))
	switch puntuale.CodeOf(err) {
	case "":
		v.Frame.Look = page.LookOf(found.Host)
	case puntuale.CodeNotFound:
		found, err = nil, v.DressAsHost()
	}
	return LinkingView{LinkingPage: found, URL: control.LinkingPath + v.Path("code")}, err
}

// over shows that the page does not work: 404 if there never was one or another took its place, and 410 if it was used
// or its time is over.
func over(v *page.Request, l LinkingView) error {
	status := http.StatusGone
	if l.LinkingPage == nil {
		status = http.StatusNotFound
	}
	return v.WholeAs(status, LinkingOver(l))
}

func linkingPage(v *page.Request) error {
	l, err := openLinking(v)
	if err != nil {
		return err
	}
	if l.version() == overVersion {
		return over(v, l)
	}
	if v.Query("by") == string(puntuale.PairCode) && l.ByCode() {
		return v.Show(LinkingByCode(l))
	}
	return v.Show(LinkingPage(l))
}

func startLinking(v *page.Request) error {
	l, err := openLinking(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	if l.version() == overVersion {
		return over(v, l)
	}
	method := f.Value("method")
	err = l.Start(v.Ctx(), method, strings.TrimSpace(f.Value("phone")), control.AddressText(v.Caller().Address))
	if err == nil {
		return v.Redirect(l.URL)
	}
	again, missing := openLinking(v)
	if missing != nil {
		return missing
	}
	if again.version() == overVersion { // somebody linked the number, or ended the page
		return over(v, again)
	}
	l.Form = f
	if method == string(puntuale.PairCode) && l.ByCode() {
		return v.ShowRefused(err, f, LinkingCodeForm(l), LinkingByCode(l), "phone")
	}
	return v.ShowRefused(err, f, LinkingForm(l), LinkingPage(l))
}

// liveLinking sends the changing part of the page, at each new code and at each change of state. When the number is
// linked, those who look at the page see it. Everybody who comes later sees only that the page was used.
func liveLinking(v *page.Request) error {
	l, err := openLinking(v)
	if err != nil {
		return err
	}
	if !v.WantsEvents() {
		return v.Redirect(l.URL)
	}
	known := v.KnownVersion("shown")
	if l.version() == known && known == overVersion { // the browser connects again, although it shows the end
		v.Answered = true
		v.Writer.WriteHeader(http.StatusGone)
		return nil
	}
	watched := l.version() != overVersion || l.LinkingPage != nil && l.Shown(known) // the browser may have slept while the number was linked
	return v.Events(func(ctx context.Context) (version, content string, err error) {
		if known == overVersion {
			return "", "", page.ErrShown
		}
		if l.LinkingPage != nil {
			if err := l.Await(ctx, known); err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
				return "", "", err
			}
		}
		l.LinkingPage, err = v.Site.Control.LinkingPage(ctx, v.Path("code")) // another page may have taken its place
		if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return "", "", err
		}
		v.Frame.Now = v.Site.Control.Now()
		known = l.version()
		switch {
		case known != overVersion:
			content, err = v.Rendered(LinkingInside(l))
		case l.LinkingPage != nil && l.Used && l.linked() && watched:
			content, err = v.Rendered(linkingDone(l))
		default:
			content, err = v.Rendered(linkingEnd(l))
		}
		return known, content, err
	})
}

// linked reports whether the session is linked now.
func (l LinkingView) linked() bool {
	return l.State == puntuale.LinkLinked || l.State == puntuale.LinkOnline
}

// offerPage makes a linking page. Its address is only in this answer.
func offerPage(v *page.Request) error {
	made, err := v.Client.OfferLinkingPage(v.Ctx(), v.Path("id"), page.ReadAt(v.HTTP))
	if v.SetAuditTarget(v.Path("id")); puntuale.CodeOf(err) == puntuale.CodeBusy { // the earlier page has ended
		v.Note()
	}
	o, missing := oneSession(v, v.Path("id"))
	if missing != nil {
		return missing
	}
	if err != nil {
		o.OfferForm = view.NewForm()
		return v.ShowRefused(err, o.OfferForm, OfferForm(o), Session(o))
	}
	v.Writer.Header().Set("Cache-Control", "no-store")
	o.PageAddress = made.Address
	return v.Whole(Session(o))
}

func endPage(v *page.Request) error {
	v.SetAuditTarget(v.Path("id"))
	after, err := v.Client.EndLinkingPage(v.Ctx(), v.Path("id"))
	if puntuale.CodeOf(err) == puntuale.CodeBusy { // the page has ended
		v.Note()
	}
	if err != nil {
		return err
	}
	v.Say("linking.ended", "")
	return v.Redirect(sessionURL(v, after.ID))
}
