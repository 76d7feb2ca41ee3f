package page

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/view"
)

// Codes of the faults that this file reports.
const (
	faultCallerRole     puntuale.ReasonCode = "caller.role"
	faultFormCrossSite  puntuale.ReasonCode = "form.cross_site"
	faultFormTooLarge   puntuale.ReasonCode = "form.too_large"
	faultFormUnreadable puntuale.ReasonCode = "form.unreadable"
)

// Errors that only pages return.
var (
	ErrSignIn = &puntuale.Error{Code: puntuale.CodeUnauthorized, Reason: puntuale.Because(puntuale.FaultSigninNobody)}
	errRole   = &puntuale.Error{Code: puntuale.CodeForbidden, Reason: puntuale.Because(faultCallerRole)}
	errCross  = &puntuale.Error{Code: puntuale.CodeForbidden, Reason: puntuale.Because(faultFormCrossSite)}
	ErrNoPage = puntuale.NotFound(puntuale.NoPage)
	errMethod = &puntuale.Error{Code: httpkit.CodeMethod, Reason: puntuale.Because(puntuale.FaultCallMethod)}
)

func Unreadable(err error) error {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: puntuale.Because(faultFormTooLarge), Err: err}
	}
	return &puntuale.Error{Code: puntuale.CodeUnreadable, Reason: puntuale.Because(faultFormUnreadable), Err: err}
}

// Refusal returns the error and its status if a form can show the error. For any other error it returns nil.
func Refusal(err error) (*puntuale.Error, int) {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return nil, 0
	}
	switch e.Code {
	case puntuale.CodeInvalid, puntuale.CodeConflict, puntuale.CodeBusy, puntuale.CodeQuotaReached, puntuale.CodeCapReached, puntuale.CodeRateLimited:
		return e, httpkit.Status(e.Code)
	case puntuale.CodePrecondition: // a form does not send If-Match, so the shown text must not name this header
		return e, http.StatusConflict
	case puntuale.CodeForbidden:
		if !errors.Is(err, errRole) && !errors.Is(err, errCross) {
			return e, httpkit.Status(e.Code)
		}
	}
	return nil, 0
}

// Below removes a member from the locations of an error's faults. With the member "pace", "body.pace.per_day" becomes
// "body.per_day". It is for forms whose fields have no such part in their names.
func Below(err error, member string) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || len(e.Faults) == 0 {
		return err
	}
	moved := *e
	moved.Faults = slices.Clone(e.Faults)
	for i := range moved.Faults {
		moved.Faults[i].Location = strings.Replace(moved.Faults[i].Location, "."+member+".", ".", 1)
	}
	return &moved
}

// fail answers a request with an error. The page says in the reader's language what went wrong and what to do. The page
// is the same for a missing thing and for another client's thing.
func (v *Request) fail(err error) {
	if v.Answered {
		v.Site.logger.ErrorContext(v.Ctx(), "an answer broke off", "request_id", v.Frame.Request, "error", err)
		return
	}
	if v.Ctx().Err() != nil { // the reader closed the connection
		httpkit.NewProblem(v.Ctx(), v.Site.logger, err).Write(v.Writer)
		return
	}
	if errors.Is(err, ErrSignIn) {
		v.toSignIn()
		return
	}
	if errors.Is(err, account.ErrOver) {
		v.Toast("bad", v.T("login.over"), "")
		_ = v.Redirect(v.SignInAddress()) // this only sets headers, so it cannot fail
		return
	}
	if errors.Is(err, account.ErrSuspended) && !v.Partial() {
		err = v.ShowAs(http.StatusForbidden, view.Suspended(v.Person.Host().Partner.Name))
		if err == nil {
			return
		}
	}
	p := httpkit.NewProblem(v.Ctx(), v.Site.logger, err) // NewProblem logs the error if the operator must act
	if after := p.GetHeaders().Get("Retry-After"); after != "" {
		v.Writer.Header().Set("Retry-After", after)
	}
	kind, detail := errorKind(p.Status), ""
	e, _ := errors.AsType[*puntuale.Error](err)
	if e != nil && (kind == "422" || kind == "409") {
		detail, kind = v.Frame.Language.Fault(FirstFault(e)), "409"
	}
	if errors.Is(err, errCross) {
		kind = "cross"
	} else if e != nil && e.Code == puntuale.CodeForbidden && !errors.Is(err, errRole) {
		detail = v.Frame.Language.Fault(e.Reason)
	}
	if v.Partial() { // the open page stays unchanged, and shows the error as a toast
		text := v.T("error." + kind + ".heading")
		if detail != "" {
			text = detail
		}
		v.Writer.Header().Set("HX-Reswap", "none")
		v.trigger("toast", map[string]string{"text": text, "tone": "bad"})
		v.Answered = true
		v.Writer.WriteHeader(p.Status)
		return
	}
	if p.Status < http.StatusInternalServerError {
		v.orient()
	}
	if err := v.ShowAs(p.Status, view.ErrorPage(kind, strconv.Itoa(p.Status), detail)); err != nil {
		if v.Ctx().Err() == nil { // otherwise the reader closed the connection
			v.Site.logger.ErrorContext(v.Ctx(), "an error page could not be shown", "request_id", v.Frame.Request, "error", err)
		}
		p.Write(v.Writer)
	}
}

// orient sets the navigation of an error page. If the person may see the client in the path, the navigation is this
// client's. Otherwise it is the navigation of the person's first page.
func (v *Request) orient() {
	if v.Person == nil || v.Frame.Nav != nil {
		return
	}
	if v.Client == nil && v.Partner == nil {
		v.Client = v.nearestClient()
	}
	v.route = nil // a missing page and another client's page must look the same
	v.settle()
}

// nearestClient returns the client whose navigation an error page shows. For a client's user this is the user's own
// client. For a partner's user it is the client in the path, if the user entered this client's dashboard. Otherwise the
// result is nil.
func (v *Request) nearestClient() *control.Client {
	own := v.Person.User().Client
	id := own.String()
	if own == 0 {
		rest, ok := strings.CutPrefix(v.HTTP.URL.Path, "/c/")
		if !ok {
			return nil
		}
		id, _, _ = strings.Cut(rest, "/")
	}
	c, err := v.Person.Client(v.Ctx(), id)
	if err != nil || own == 0 && !v.Entered(c.ID()) {
		return nil
	}
	return c
}

// errorKind returns the name of the error page for a status.
func errorKind(status int) string {
	switch status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusConflict, http.StatusRequestEntityTooLarge,
		http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return strconv.Itoa(status)
	case http.StatusBadRequest:
		return "400"
	}
	return "500"
}

// toSignIn redirects to the sign-in page. After the sign-in, the person returns to the present page.
func (v *Request) toSignIn() {
	address := v.SignInAddress()
	if v.HTTP.Method == http.MethodGet && !v.Partial() && v.HTTP.URL.Path != "/" {
		address += "?" + url.Values{"next": {v.HTTP.URL.RequestURI()}}.Encode()
	} else if from := v.cameFrom(); from != "" {
		address += "?" + url.Values{"next": {from}}.Encode()
	}
	_ = v.Redirect(address) // this only sets headers, so it cannot fail
}

// cameFrom returns the path in the header Referer: the page of this service on which the person acted. It returns "" if
// the header names another site, a sign-in page or a ticket.
func (v *Request) cameFrom() string {
	return cameFrom(v.HTTP)
}

func cameFrom(r *http.Request) string {
	u, err := url.Parse(r.Referer())
	if err != nil || u.Host == "" || u.Host != r.Host || strings.HasPrefix(u.Path, "/login") || strings.HasPrefix(u.Path, "/p/") || u.Path == "/ticket" {
		return ""
	}
	if from := u.RequestURI(); OwnAddress(from) {
		return from
	}
	return ""
}

// recovered shows an error page if the handler panicked.
func (v *Request) recovered() {
	reason := recover()
	if reason == nil {
		return
	}
	if reason == http.ErrAbortHandler { //nolint:errorlint // net/http compares this value in the same way
		panic(reason)
	}
	v.fail(fmt.Errorf("panic: %v\n%s", reason, debug.Stack()))
}

// FirstFault returns the reason of the error's first fault. If the error has no faults, it returns the reason of the
// error itself.
func FirstFault(e *puntuale.Error) puntuale.Reason {
	if len(e.Faults) > 0 {
		return e.Faults[0].Reason()
	}
	return e.Reason
}

// Lost turns an error about an address into "not found". Such an error occurs only if a person edited the address.
func Lost(err error) error {
	if puntuale.CodeOf(err) == puntuale.CodeInvalid {
		return errors.Join(ErrNoPage, err)
	}
	return err
}
