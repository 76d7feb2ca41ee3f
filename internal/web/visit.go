package web

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
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/web/language"
	"puntuale/internal/web/static"
	"puntuale/internal/web/view"
)

// visit is one request for a page, and what is known of who makes it.
type visit struct {
	site    *site
	w       http.ResponseWriter
	r       *http.Request
	visits  *scs.SessionManager
	route   *route
	person  *control.Person  // nil: nobody is signed in
	partner *control.Partner // on the partner's side
	client  *control.Client  // on the client's side
	frame   *view.Frame
	pass    *admission.Permit
	account *admission.MemoryGrant // of what the request takes in memory

	target   string // what was done it to, for the audit log
	quiet    bool   // nothing was done
	answered bool
	bare     bool // nothing was read of the visit: it was turned away before
}

type visitKey struct{}

func withVisit(ctx context.Context, v *visit) context.Context {
	return context.WithValue(ctx, visitKey{}, v)
}

func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// home is the zone of pages that belong to no client.
var home = func() *time.Location {
	zone, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		return time.UTC
	}
	return zone
}()

func (s *site) newVisit(w http.ResponseWriter, r *http.Request) *visit {
	f := &view.Frame{
		Language: asked(r), Zone: home, Now: s.control.Now(), Path: r.URL.Path, Request: httpkit.RequestID(r.Context()),
		Look: view.Look{Name: "Puntuale"},
	}
	if back := r.URL.Query()["back"]; len(back) <= view.MostBack {
		f.Back = back
	}
	if c, err := r.Cookie("theme"); err == nil && (c.Value == "dark" || c.Value == "light") {
		f.Theme = c.Value
	}
	return &visit{site: s, w: w, r: r, visits: s.visits(r), frame: f}
}

// asked is the language of whoever has not signed in.
func asked(r *http.Request) *language.Language {
	if c, err := r.Cookie("language"); err == nil {
		if l := language.Named(c.Value); l != nil {
			return l
		}
	}
	return language.Asked(r.Header.Get("Accept-Language"))
}

func (v *visit) ctx() context.Context { return v.r.Context() }
func (v *visit) now() time.Time       { return v.frame.Now }

// caller is where the request comes from.
func (v *visit) caller() httpkit.Caller { return httpkit.CallerOf(v.r) }

// path returns a part of the path, query a parameter of the address.
func (v *visit) path(name string) string  { return v.r.PathValue(name) }
func (v *visit) query(name string) string { return v.r.URL.Query().Get(name) }

// t returns a text in the reader's language.
func (v *visit) t(key string, pairs ...any) string { return v.frame.Language.T(key, pairs...) }

// partial reports whether htmx asks, which wants a part of a page.
func (v *visit) partial() bool { return v.r.Header.Get("HX-Request") == "true" }

// What may be sent by somebody who has not signed in, and how long it may take; and how many fields a form may have.
const (
	strangerBody   = 16 << 10 // bytes
	strangerWithin = 10 * time.Second
	mostFields     = 10_000
)

// body reads what was sent. Others may have the place meanwhile; who has not signed in gets none again, for a sign-in waits
// in a queue of its own. Codes: too_large, unreadable, overloaded, rate_limited.
func (v *visit) body() (content []byte, err error) {
	most := int64(admission.MaxBody)
	if v.person == nil {
		most = strangerBody
		defer admission.ReadWithin(v.w, v.r, strangerWithin)()
	}
	v.pass.Rest()
	if content, err = admission.ReadBody(v.w, v.r, most, v.account); err != nil {
		return nil, err
	}
	if v.person != nil {
		_, err = v.pass.Return(v.ctx())
	}
	return content, err
}

// form reads what was sent. Codes: as body.
func (v *visit) form() (*view.Form, error) {
	content, err := v.body()
	if err != nil {
		return nil, err
	}
	if bytes.Count(content, []byte("&")) >= mostFields {
		return nil, &puntuale.Error{Code: puntuale.CodeTooLarge, Message: "the form has too many fields"}
	}
	v.r.Body = io.NopCloser(bytes.NewReader(content))
	if strings.HasPrefix(v.r.Header.Get("Content-Type"), "multipart/form-data") {
		err = v.r.ParseMultipartForm(admission.MaxBody)
	} else {
		err = v.r.ParseForm()
	}
	if err != nil {
		return nil, unreadable(err)
	}
	return &view.Form{Values: clean(v.r.PostForm)}, nil
}

// file returns a file of a form, nil where none was chosen. Of one that is too large it returns one byte too many, for
// whoever checks it.
func (v *visit) file(name string, limit int64) ([]byte, error) {
	part, _, err := v.r.FormFile(name)
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(err)
	}
	defer part.Close()
	content, err := io.ReadAll(io.LimitReader(part, limit+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if len(content) == 0 {
		return nil, nil
	}
	return content, nil
}

// clean makes what was typed into what was meant: lines end as everywhere, and what is no text is none.
func clean(values url.Values) url.Values {
	for name, all := range values {
		for i, text := range all {
			values[name][i] = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
		}
	}
	return values
}

// show answers with a page, or with a part of one.
func (v *visit) show(c templ.Component) error { return v.showAs(http.StatusOK, c) }

// whole answers a form with a page in the place of the one that it is on.
func (v *visit) whole(c templ.Component) error {
	if v.partial() {
		v.w.Header().Set("HX-Retarget", "#main")
		v.w.Header().Set("HX-Reselect", "#main")
		v.w.Header().Set("HX-Reswap", "outerHTML show:window:top")
	}
	return v.show(c)
}

// buffers are used again: a page is written at once, so that what goes wrong in its middle shows as an error.
var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// putBuffer keeps a buffer for the next page, unless it is one of the few that are large.
func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= 256<<10 {
		buffers.Put(b)
	}
}

func (v *visit) showAs(status int, c templ.Component) error {
	b := buffers.Get().(*bytes.Buffer)
	defer putBuffer(b)
	b.Reset()
	if !v.partial() && !v.bare {
		v.frame.Toasts = append(v.frame.Toasts, v.toasts()...)
	}
	if err := c.Render(view.With(v.ctx(), v.frame), b); err != nil {
		return err
	}
	if status < http.StatusBadRequest { // what is refused is short, and must be said
		if err := v.account.Take(2 * int64(b.Len())); err != nil {
			return err
		}
	}
	v.pass.Rest() // a slow reader needs no place
	v.answered = true
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	content := b.Bytes()
	h.Add("Vary", "Accept-Encoding")
	if b.Len() > 1400 && static.TakesGzip(v.r) {
		h.Set("Content-Encoding", "gzip")
		squeezed := buffers.Get().(*bytes.Buffer)
		defer putBuffer(squeezed)
		squeezed.Reset()
		z := zippers.Get().(*gzip.Writer)
		defer zippers.Put(z)
		z.Reset(squeezed)
		_, _ = z.Write(content) // writing to memory does not fail
		_ = z.Close()
		content = squeezed.Bytes()
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	v.w.WriteHeader(status)
	_, _ = v.w.Write(content) // fails only when the reader is gone
	return nil
}

var zippers = sync.Pool{New: func() any { z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return z }}

// again answers a form whose faults are in err: with its part to htmx, else with the whole page. fields are the form's;
// see [view.Form.Take]. Any other error is returned.
func (v *visit) again(err error, f *view.Form, part, page templ.Component, fields ...string) error {
	e, status := refusal(err)
	if e == nil {
		return err
	}
	v.quiet = true
	f.Take(v.frame.Language, e, fields...)
	if e.Code == puntuale.CodeRateLimited {
		v.w.Header().Set("Retry-After", httpkit.RetryAfter(e.RetryAfter))
		f.Message = v.t("form.wait", "Time", v.frame.Language.Span(e.RetryAfter.Round(time.Second)))
	}
	if v.partial() {
		return v.showAs(status, part)
	}
	return v.showAs(status, page)
}

// to leads on to another page.
func (v *visit) to(address string) error {
	v.answered = true
	if v.partial() {
		v.w.Header().Set("HX-Redirect", address)
		v.w.WriteHeader(http.StatusOK)
		return nil
	}
	http.Redirect(v.w, v.r, address, http.StatusSeeOther)
	return nil
}

// did names what something was done to, for the audit log: an identifier or a name, never a phone number, a text or a key.
func (v *visit) did(target string) { v.target = target }

// note tells the audit log, unless nothing was done.
func (v *visit) note() {
	if v.route.audit == "" || v.route.audit == unaudited || v.quiet || v.person == nil {
		return
	}
	var client puntuale.ClientID
	if v.client != nil {
		client = v.client.ID()
	} else {
		client = v.person.User().Client
	}
	// What was done was done, also for who went away meanwhile.
	if err := v.person.Note(context.WithoutCancel(v.ctx()), client, v.route.audit, v.target, v.caller().Address); err != nil {
		v.site.logger.ErrorContext(v.ctx(), "what was done in a dashboard could not be noted", "request_id", v.frame.Request, "action", v.route.audit, "error", err)
	}
}

// say puts a text on the next page: what was just done. undo is an address that takes it back when it is posted to; "" none.
func (v *visit) say(key, undo string, pairs ...any) { v.toast("ok", v.t(key, pairs...), undo) }

func (v *visit) toast(tone, text, undo string) {
	all := append(v.waiting(), view.Toast{Text: text, Tone: tone, Undo: undo})
	content, err := json.Marshal(all)
	if err == nil {
		v.visits.Put(v.ctx(), keyToasts, string(content))
	}
}

func (v *visit) waiting() (all []view.Toast) {
	_ = json.Unmarshal([]byte(v.visits.GetString(v.ctx(), keyToasts)), &all) // nothing there is nothing to say
	return all
}

// toasts takes what is to be said.
func (v *visit) toasts() []view.Toast {
	all := v.waiting()
	if len(all) > 0 {
		v.visits.Remove(v.ctx(), keyToasts)
	}
	return all
}

// trigger lets the page that htmx asks for know of something: an event on its body, with a value.
func (v *visit) trigger(event string, value any) {
	text, err := json.Marshal(map[string]any{event: value})
	if err == nil {
		v.w.Header().Set("HX-Trigger", string(text))
	}
}

// dress makes the frame the person's.
func (v *visit) dress() {
	u, f := v.person.User(), v.frame
	if l := language.Named(u.Language); l != nil {
		f.Language = l
	}
	who := view.Who{ID: u.ID.String(), Name: u.Name, Email: u.Email, Role: u.Role, Side: puntuale.PartnerSide}
	if who.Name == "" {
		who.Name = u.Email
	}
	if u.Client != 0 {
		who.Side = puntuale.ClientSide
	}
	f.Who = &who
	f.Look = look(v.person.Host())
}

// look is how a partner's pages look.
func look(h puntuale.Host) view.Look {
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

// settle makes the frame that of the place one is in.
func (v *visit) settle() {
	f := v.frame
	if v.client != nil {
		account := v.client.Account()
		f.Place = &view.Place{
			Base: "/c/" + account.ID.String(), Name: account.Name, Entered: v.person.User().Client == 0, Suspended: account.Suspended,
			Expired: !account.ExpiresAt.IsZero() && !v.now().Before(account.ExpiresAt),
		}
		if zone, err := time.LoadLocation(account.Zone); err == nil {
			f.Zone = zone
		}
	}
	f.Nav = v.site.navigation(v)
}
