package page

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/a-h/templ"
	"github.com/alexedwards/scs/v2"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/web/language"
	"puntuale/internal/web/static"
	"puntuale/internal/web/view"
)

// Request is one request for a page, and the person who makes it.
type Request struct {
	Site    *Site
	Writer  http.ResponseWriter
	HTTP    *http.Request
	Visits  *scs.SessionManager
	route   *Route
	Person  *account.Person  // nil: nobody is signed in
	Partner *account.Partner // nil: the page is not on the partner's side
	Client  *control.Client  // nil: the page is not on the client's side
	Frame   *view.Frame
	Pass    *admission.Permit
	Memory  *admission.MemoryGrant // counts the memory that the request uses

	target   string // the object that the audit log names for the action
	Quiet    bool   // true: no entry in the audit log, because the handler changed nothing or wrote the entry itself
	Answered bool
	bare     bool // true: the request was refused before the visit was read
}

type requestKey struct{}

func withRequest(ctx context.Context, v *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, v)
}

func requestOf(ctx context.Context) *Request {
	v, _ := ctx.Value(requestKey{}).(*Request)
	return v
}

// homeZone is the time zone of pages that do not belong to a client.
var homeZone = func() *time.Location {
	zone, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		return time.UTC
	}
	return zone
}()

func (s *Site) newRequest(w http.ResponseWriter, r *http.Request) *Request {
	f := &view.Frame{
		Language: acceptedLanguage(r), Zone: homeZone, Now: s.Control.Now(), Path: r.URL.Path, Request: httpkit.RequestID(r.Context()),
		Look: view.Look{Name: "Puntuale"}, From: cameFrom(r),
		LargeDocuments: s.Control.MostUploaded() > puntuale.MaxFileBytes,
	}
	if returnTo := r.URL.Query()["back"]; len(returnTo) <= view.MaxBack {
		f.Back = returnTo
	}
	if c, err := r.Cookie("theme"); err == nil && (c.Value == "dark" || c.Value == "light") {
		f.Theme = c.Value
	}
	return &Request{Site: s, Writer: w, HTTP: r, Visits: s.visits(r), Frame: f}
}

// acceptedLanguage returns the language of a reader who has not signed in: from the cookie, or from the browser's
// settings.
func acceptedLanguage(r *http.Request) *language.Language {
	if c, err := r.Cookie("language"); err == nil {
		if l := language.Named(c.Value); l != nil {
			return l
		}
	}
	return language.Accepted(r.Header.Get("Accept-Language"))
}

func (v *Request) Ctx() context.Context { return v.HTTP.Context() }
func (v *Request) Now() time.Time       { return v.Frame.Now }

// Caller returns where the request comes from.
func (v *Request) Caller() httpkit.Caller { return httpkit.CallerOf(v.HTTP) }

// Path returns the named part of the path. Query returns the named parameter of the address.
func (v *Request) Path(name string) string  { return v.HTTP.PathValue(name) }
func (v *Request) Query(name string) string { return v.HTTP.URL.Query().Get(name) }

// T returns a text in the reader's language.
func (v *Request) T(key string, pairs ...any) string { return v.Frame.Language.T(key, pairs...) }

// ReadAs shows a number as a list has it and as it is stored. phone "" means that the text is not a number.
func (v *Request) ReadAs(written, phone string) string {
	switch {
	case written == "" || written == phone:
		return phone
	case phone == "":
		return written + " → " + v.T("campaign.refused.invalid_phone")
	}
	var all []string
	for one := range strings.SplitSeq(phone, ", ") {
		all = append(all, view.Grouped(one))
	}
	return written + " → " + strings.Join(all, ", ")
}

// Partial reports whether htmx sent the request and expects only a part of a page.
func (v *Request) Partial() bool { return v.HTTP.Header.Get("HX-Request") == "true" }

// Bounds for readers who have not signed in: the size of a body, and the time in which the body must arrive. The last
// bound is the number of a form's fields, for every reader.
const (
	anonymousBody   = 16 << 10 // the largest body, in bytes
	anonymousWithin = 10 * time.Second
	maxFields       = 10_000
)

// body reads the request's body. While the body arrives, other requests may use the seat. A person who has not signed
// in gets no new seat, because sign-ins have a separate queue. Codes: too_large, unreadable, overloaded, rate_limited.
func (v *Request) body() (content []byte, err error) {
	maxBytes := int64(admission.MaxBody)
	if v.Person == nil {
		maxBytes = anonymousBody
		defer admission.ReadWithin(v.Writer, v.HTTP, anonymousWithin)()
	}
	v.Pass.LeaveSeat()
	if content, err = admission.ReadBody(v.Writer, v.HTTP, maxBytes, v.Memory); err != nil {
		return nil, err
	}
	if v.Person != nil {
		_, err = v.Pass.Return(v.Ctx())
	}
	return content, err
}

const faultFormTooManyFields puntuale.ReasonCode = "form.too_many_fields"

// Form reads the form of the request. Codes: too_large, unreadable, overloaded, rate_limited.
func (v *Request) Form() (*view.Form, error) {
	content, err := v.body()
	if err != nil {
		return nil, err
	}
	if bytes.Count(content, []byte("&")) >= maxFields {
		return nil, &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: puntuale.Because(faultFormTooManyFields)}
	}
	v.HTTP.Body = io.NopCloser(bytes.NewReader(content))
	if strings.HasPrefix(v.HTTP.Header.Get("Content-Type"), "multipart/form-data") {
		err = v.HTTP.ParseMultipartForm(admission.MaxBody)
	} else {
		err = v.HTTP.ParseForm()
	}
	if err != nil {
		return nil, Unreadable(err)
	}
	return &view.Form{Values: clean(v.HTTP.PostForm)}, nil
}

// File returns a file of a form, or nil if the person chose no file. If the file is larger than limit, File returns its
// first limit+1 bytes, so that the caller can refuse it.
func (v *Request) File(name string, limit int64) ([]byte, error) {
	part, _, err := v.HTTP.FormFile(name)
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		return nil, nil
	}
	if err != nil {
		return nil, Unreadable(err)
	}
	defer part.Close()
	content, err := io.ReadAll(io.LimitReader(part, limit+1))
	if err != nil {
		return nil, Unreadable(err)
	}
	if len(content) == 0 {
		return nil, nil
	}
	return content, nil
}

// clean normalizes line ends, and replaces bytes that are not text.
func clean(values url.Values) url.Values {
	for name, all := range values {
		for i, text := range all {
			values[name][i] = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
		}
	}
	return values
}

// Show answers with a page, or with a part of one.
func (v *Request) Show(c templ.Component) error { return v.ShowAs(http.StatusOK, c) }

// Whole answers a form with another page, which replaces the whole present page.
func (v *Request) Whole(c templ.Component) error { return v.WholeAs(http.StatusOK, c) }

// WholeAs is Whole with another status.
func (v *Request) WholeAs(status int, c templ.Component) error {
	if v.Partial() {
		v.Writer.Header().Set("HX-Retarget", "#main")
		v.Writer.Header().Set("HX-Reselect", "#main")
		v.Writer.Header().Set("HX-Reswap", "outerHTML show:window:top")
	}
	return v.ShowAs(status, c)
}

// buffers are reused for pages. A page is first written into a buffer, so that an error in the middle of a page can
// still become an error page.
var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// putBuffer saves a buffer for the next page. It does not save large buffers, because few pages need them.
func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= 256<<10 {
		buffers.Put(b)
	}
}

func (v *Request) ShowAs(status int, c templ.Component) error {
	b := buffers.Get().(*bytes.Buffer)
	defer putBuffer(b)
	b.Reset()
	if !v.Partial() && !v.bare {
		v.Frame.Toasts = append(v.Frame.Toasts, v.toasts()...)
	}
	if err := c.Render(view.With(v.Ctx(), v.Frame), b); err != nil {
		return err
	}
	if status < http.StatusBadRequest { // a refusal needs little memory, and must be sent even if no memory is free
		if err := v.Memory.Take(2 * int64(b.Len())); err != nil {
			return err
		}
	}
	v.Pass.LeaveSeat() // the request has no seat while the answer is sent, because the reader may be slow
	v.Answered = true
	h := v.Writer.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	content := b.Bytes()
	h.Add("Vary", "Accept-Encoding")
	if b.Len() > 1400 && static.TakesGzip(v.HTTP) {
		h.Set("Content-Encoding", "gzip")
		squeezed := buffers.Get().(*bytes.Buffer)
		defer putBuffer(squeezed)
		squeezed.Reset()
		z := zippers.Get().(*gzip.Writer)
		defer zippers.Put(z)
		z.Reset(squeezed)
		_, _ = z.Write(content) // writing to memory cannot fail
		_ = z.Close()
		content = squeezed.Bytes()
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	v.Writer.WriteHeader(status)
	_, _ = v.Writer.Write(content) // this fails only if the reader closed the connection or reads too slowly
	return nil
}

var zippers = sync.Pool{New: func() any { z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return z }}

// ShowRefused shows a form again, with the faults in err. To htmx it sends the argument part, and to a browser without
// scripts it sends the argument page. fields are the names of the form's fields; see [view.Form.Take]. If err is not a
// fault of the form, ShowRefused returns err.
func (v *Request) ShowRefused(err error, f *view.Form, part, page templ.Component, fields ...string) error {
	e, status := Refusal(err)
	if e == nil || v.Ctx().Err() != nil { // if the request was given up, err may be only a result of that
		return err
	}
	v.Quiet = true
	f.Take(v.Frame.Language, e, fields...)
	if e.Code == puntuale.CodeRateLimited {
		v.Writer.Header().Set("Retry-After", httpkit.RetryAfter(e.RetryAfter))
		f.Message = v.T("form.wait", "Time", v.Frame.Language.Span(e.RetryAfter.Round(time.Second)))
	}
	if v.Partial() {
		return v.ShowAs(status, part)
	}
	return v.ShowAs(status, page)
}

// Redirect sends the browser to another page.
func (v *Request) Redirect(address string) error {
	v.Answered = true
	if v.Partial() {
		v.Writer.Header().Set("HX-Redirect", address)
		v.Writer.WriteHeader(http.StatusOK)
		return nil
	}
	http.Redirect(v.Writer, v.HTTP, address, http.StatusSeeOther)
	return nil
}

// SetAuditTarget names the object of an action for the audit log. target is an identifier or a name. It must not be a
// phone number, a text or a key.
func (v *Request) SetAuditTarget(target string) { v.target = target }

// Note writes the action into the audit log, unless the handler set Quiet. It is called for a handler that succeeds. A
// handler that fails after a part of its action calls it itself.
func (v *Request) Note() {
	if v.route.Audit == "" || v.route.Audit == Unaudited || v.Quiet || v.Person == nil {
		return
	}
	var client puntuale.ClientID
	if v.Client != nil {
		client = v.Client.ID()
	} else {
		client = v.Person.User().Client
	}
	// Write the entry even if the reader closed the connection, because the action is done.
	if err := v.Person.Note(context.WithoutCancel(v.Ctx()), client, v.route.Audit, v.target, v.Caller().Address); err != nil {
		v.Site.logger.ErrorContext(v.Ctx(), "what was done in a dashboard could not be noted", "request_id", v.Frame.Request, "action", v.route.Audit, "error", err)
	}
}

// Say makes the next page show a text about the finished action. undo is an address, and a POST to this address undoes
// the action. undo is "" if the action cannot be undone.
func (v *Request) Say(key, undo string, pairs ...any) { v.Toast("ok", v.T(key, pairs...), undo) }

func (v *Request) Toast(tone, text, undo string) {
	all := append(v.waiting(), view.Toast{Text: text, Tone: tone, Undo: undo})
	content, err := json.Marshal(all)
	if err == nil {
		v.Visits.Put(v.Ctx(), keyToasts, string(content))
	}
}

func (v *Request) waiting() (all []view.Toast) {
	_ = json.Unmarshal([]byte(v.Visits.GetString(v.Ctx(), keyToasts)), &all) // if nothing is stored, there is nothing to show
	return all
}

// toasts returns the texts that the next page must show, and removes them from the visit.
func (v *Request) toasts() []view.Toast {
	all := v.waiting()
	if len(all) > 0 {
		v.Visits.Remove(v.Ctx(), keyToasts)
	}
	return all
}

// trigger makes htmx send an event with a value to the page's body element.
func (v *Request) trigger(event string, value any) {
	text, err := json.Marshal(map[string]any{event: value})
	if err == nil {
		v.Writer.Header().Set("HX-Trigger", string(text))
	}
}

// dress fills the frame with the data of the signed-in person.
func (v *Request) dress() {
	u, f := v.Person.User(), v.Frame
	if l := language.Named(u.Language); l != nil {
		f.Language = l
	}
	reader := view.Who{ID: u.ID.String(), Name: u.Name, Email: u.Email, Role: u.Role, Side: puntuale.PartnerSide}
	if reader.Name == "" {
		reader.Name = u.Email
	}
	if u.Client != 0 {
		reader.Side = puntuale.ClientSide
	}
	f.Who = &reader
	f.Look = LookOf(v.Person.Host())
}

// LookOf returns the look of a partner's pages.
func LookOf(h puntuale.Host) view.Look {
	l := view.Look{Name: h.Brand.Name}
	if l.Name == "" {
		l.Name = h.Partner.Name
	}
	base := "/brand/" + strconv.FormatInt(int64(h.Partner.ID), 10) + "/" + h.Brand.Mark
	if h.Brand.LogoKind != "" {
		l.Logo = base + "/logo"
	}
	if h.Brand.Colour != "" {
		l.Style = base + "/style.css"
	}
	return l
}

// DressAsHost gives the page the look of the partner whose host was called, if it is a partner's.
func (v *Request) DressAsHost() error {
	h, err := v.Site.Accounts.PartnerAt(v.Ctx(), v.HTTP.Host, "")
	switch puntuale.CodeOf(err) {
	case "":
		v.Frame.Look = LookOf(h)
	case puntuale.CodeNotFound:
	default:
		return err
	}
	return nil
}

// settle fills the frame with the data of the present dashboard.
func (v *Request) settle() {
	f := v.Frame
	if v.Client != nil {
		account := v.Client.Account()
		f.Place = &view.Dashboard{
			Base: "/c/" + account.ID.String(), Name: account.Name, Entered: v.Person.User().Client == 0, Suspended: account.Suspended,
			Expired: !account.ExpiresAt.IsZero() && !v.Now().Before(account.ExpiresAt),
		}
		if zone, err := time.LoadLocation(account.Zone); err == nil {
			f.Zone = zone
		}
	}
	if v.Client == nil && v.Person != nil && !v.Partial() { // the menu of a client's user is the same on the person's own pages
		if own := v.Person.User().Client; own != 0 {
			if c, err := v.Person.Client(v.Ctx(), own.String()); err == nil { // a suspended client has no pages
				f.Own = c.Account().Name
				f.Unread, _ = c.UnreadReplies(v.Ctx()) // if the number cannot be read, the menu shows no number
			}
		}
	}
	if v.Client != nil && !v.Partial() { // a part of a page has no menu
		v.Frame.Unread, _ = v.Client.UnreadReplies(v.Ctx()) // if the number cannot be read, the menu shows no number
	}
	if v.Person != nil && !v.Partial() {
		f.Notices, _ = v.Person.UnreadNotices(v.Ctx(), view.MaxUnread) // if the number cannot be read, the bell shows no number
	}
	f.Nav, f.Find = v.Site.navigation(v), v.Site.search(v)
}
