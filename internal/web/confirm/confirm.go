// Package confirm contains the page on which a person confirms or cancels an appointment. The page needs no sign-in and
// no scripts: the name in its address, which only the person's message contains, is enough.
package confirm

import (
	"net/http"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/language"
	"puntuale/internal/web/page"
)

// Routes are all pages of the package.
var Routes = []page.Route{
	page.Get(control.PagePath, page.Anyone, 0, show),
	page.Post(control.PagePath, page.Anyone, 0, page.Unaudited, answer), // the booking's history says what the person did
}

// PageView is what the page shows.
type PageView struct {
	puntuale.Booking
	Client  string // name of the client
	Zone    *time.Location
	Action  string // address that the form is sent to
	Name    string // of the page, for the form
	Unclear bool   // the answer changed nothing
	Past    bool   // the appointment's date has passed
}

// open finds the page that the request names. Previews of chats fetch the address, so finding it changes nothing.
func open(v *page.Request, name string) (*control.BookingPage, error) {
	h := v.Writer.Header()
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("Cache-Control", "no-store")
	found, err := v.Site.Control.BookingPage(v.Ctx(), name)
	if err != nil {
		return nil, err
	}
	v.Frame.Look = page.LookOf(found.Host)
	if l := language.Named(found.Language); l != nil {
		v.Frame.Language = l
	}
	v.Frame.Zone = found.Zone
	return found, nil
}

// over shows that there is no such page, or no longer.
func over(v *page.Request, err error) error {
	if puntuale.CodeOf(err) != puntuale.CodeNotFound {
		return err
	}
	return v.ShowAs(http.StatusNotFound, Over())
}

func show(v *page.Request) error {
	found, err := open(v, v.Query("t"))
	if err != nil {
		return over(v, err)
	}
	return v.Show(Appointment(PageView{
		Booking: found.Booking, Client: found.Client, Zone: found.Zone, Action: control.PagePath, Name: v.Query("t"),
		Unclear: v.Query("unclear") != "", Past: !found.Date.After(v.Frame.Now),
	}))
}

func answer(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	p, err := open(v, f.Value("t"))
	if err != nil {
		return over(v, err)
	}
	asked, err := strconv.ParseInt(f.Value("date"), 10, 64)
	if err != nil {
		asked = 0 // an unreadable date is another date, so the answer is only recorded
	}
	does := puntuale.ButtonEffect(f.Value("does"))
	clear, err := p.Answer(v.Ctx(), does, v.T("confirm.do."+string(does)), time.UnixMicro(asked))
	switch puntuale.CodeOf(err) {
	case "":
	case puntuale.CodeNotFound:
		return over(v, err)
	default:
		return err
	}
	after := control.PagePath + "?t=" + f.Value("t")
	if !clear {
		after += "&unclear=1"
	}
	return v.Redirect(after)
}
