package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
)

// call is one request with a valid key: its caller, and the parts of the request.
type call struct {
	client  *control.Client  // set if the key is a client's
	partner *account.Partner // set if the key is a partner's
	key     string           // the caller's key; it seals a stored answer that contains a secret
	device  *control.Device  // set if the key is a device's token
	scope   string           // method and path; an idempotency key is valid only for these
	body    []byte           // without byte order mark; nil: the request had no body
	query   url.Values       // the query, as [api.edge] rewrote it
	unknown []puntuale.Fault // faults of a strict call's query: unknown parameters, and parameters with two different values
	refused []puntuale.Fault // faults of the body's members that can be read but are not allowed, after the body was decoded
	header  http.Header      // the header of the answer
	match   []string         // the request's header If-Match, unchanged
	file    io.Reader        // the body of an upload
	kind    string           // the content type of file
	pass    *admission.Permit
	account *admission.MemoryGrant // counts the memory that this call uses
}

type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// object reads the body as a JSON object. Codes: unreadable.
func (c *call) object() (*object, error) { return readObject(c.body, httpkit.MaxValues) }

// unhurried prepares a call that reads or writes very much data. It gives the call's seat back to the gate. In the
// returned context, the admission deadline never passes.
func (c *call) unhurried(ctx context.Context) context.Context {
	c.pass.LeaveSeat()
	return puntuale.WithAdmissionDeadline(ctx, puntuale.NewAdmissionDeadline(nil, false))
}

// byteOrderMark is removed from the beginning of a body.
var byteOrderMark = []byte("\xef\xbb\xbf")

// enter admits a call. It checks in the documented order of refusals: key, side and state of the account, size of the
// body, query. The call needs a seat at the gate before its key is looked up. Without this, too many simultaneous
// look-ups would delay all answers. known contains the names of the operation's query parameters. The map known is
// filled later, when the operation is documented.
func (a *api) enter(side puntuale.Side, op operation, known map[string]bool) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		httpkit.Annotate(r.Context(), slog.String("operation", op.id))
		key, err := presentedKey(r)
		if err != nil {
			a.refuse(w, r, a.unknownCaller(r, err))
			return
		}
		hash, _, plausible := auth.ParseKey(key)
		pass, patient := (*admission.Permit)(nil), r.Context()
		if plausible { // the key has the right form; for any other key, the store is not asked, and admit refuses the call
			caller, found := a.callerKeys.callerOf(hash)
			if !found {
				caller, err = httpkit.UnknownCaller(r), a.admits.UnknownCallers.Check(httpkit.UnknownCaller(r))
			}
			if err == nil {
				pass, patient, err = a.admits.Gate.Enter(r.Context(), caller, op.priority())
			}
			if err != nil {
				a.turnAway(w, r, err)
				return
			}
			defer pass.Leave()
		}
		c, err := a.admit(patient, r, key, side, op)
		a.callerKeys.found(hash, c, err)
		if err != nil {
			pass.LeaveSeat() // the refusal may be delayed, and other calls need the seat
		}
		if puntuale.CodeOf(err) == puntuale.CodeOverloaded {
			a.turnAway(w, r, err)
			return
		}
		if err != nil {
			a.refuse(w, r, a.unknownCaller(r, err))
			return
		}
		admission.Owned(r.Context(), c.owningPartner(), c.callerKey())
		c.pass, c.account = pass, a.admits.Budget.Open(c.callerKey())
		defer c.account.Close()
		if patient, err = a.read(patient, w, r, c, op, known); err != nil {
			a.refuseRead(patient, w, r, c, err)
			return
		}
		c.scope, c.header, c.match = r.Method+" "+r.URL.Path, w.Header(), r.Header.Values("If-Match")
		next(huma.WithContext(ctx, context.WithValue(patient, callKey{}, c)))
	}
}

// read reads the call's body and query. While the body arrives, the call has no seat, so that other calls can use it.
func (a *api) read(ctx context.Context, w http.ResponseWriter, r *http.Request, c *call, op operation, known map[string]bool) (context.Context, error) {
	if a.admits.Budget != nil && op.takesMemory() {
		ctx = puntuale.WithMemoryGrant(ctx, c.account)
	}
	if op.upload > 0 {
		c.pass.LeaveSeat() // each transaction of the upload waits for its own seat
		c.file = admission.ReadOn(w, r, a.now)
		ctx = puntuale.WithAdmissionDeadline(ctx, puntuale.NewAdmissionDeadline(nil, false)) // the time in which the file arrives must not count as waiting for the server
	}
	if op.body == nil || r.ContentLength == 0 {
		return ctx, c.read(w, r, op, known)
	}
	if err := admission.CheckLength(r, op.bodyLimit()); err != nil {
		return ctx, err
	}
	c.pass.LeaveSeat()
	if err := c.read(w, r, op, known); err != nil {
		return ctx, err
	}
	return c.pass.Return(ctx)
}

// refuseRead refuses a call whose body could not be read, or that got no seat after its body had arrived.
func (a *api) refuseRead(ctx context.Context, w http.ResponseWriter, r *http.Request, c *call, err error) {
	switch puntuale.CodeOf(err) {
	case puntuale.CodeOverloaded, puntuale.CodeRateLimited:
	default:
		err = c.confirmed(ctx, err)
	}
	c.pass.LeaveSeat()
	a.refuse(w, r, err)
}

// unknownCaller returns the error for a call without a valid key. The error is rate_limited if the caller sent too many
// such calls.
func (a *api) unknownCaller(r *http.Request, err error) error {
	if puntuale.CodeOf(err) != puntuale.CodeUnauthorized {
		return err
	}
	if early := a.admits.UnknownCallers.Take(httpkit.UnknownCaller(r)); early != nil {
		httpkit.Quieten(r.Context())
		return early
	}
	return err
}

// takesMemory reports whether an operation's answer, or the data that it reads, may be long. It returns false for
// operations that make changes in several transactions, because lack of memory must not stop them in the middle.
func (op operation) takesMemory() bool { return op.method == http.MethodGet || op.proven != nil }

// admit finds the caller by the key, and limits how often the caller may call. Codes: unauthorized, forbidden,
// rate_limited.
func (a *api) admit(ctx context.Context, r *http.Request, key string, side puntuale.Side, op operation) (*call, error) {
	var c *call
	var err error
	caller, known := (*control.Caller)(nil), false
	if op.proven != nil && op.proven(r) {
		if caller, known = a.control.Recognize(key); known {
			c, err = a.received(caller, side, op, r)
			known = err == nil
		}
	}
	if !known {
		if caller, err = a.control.Authenticate(ctx, key); err == nil {
			c, err = a.received(caller, side, op, r)
		}
		if err != nil {
			return nil, err
		}
	}
	c.key = key
	switch {
	case c.partner != nil:
		side = puntuale.PartnerSide
		httpkit.Annotate(r.Context(), slog.Int64("partner_id", int64(c.partner.ID())))
	case c.device != nil:
		httpkit.Annotate(r.Context(), slog.Int64("client_id", int64(c.device.Owner())), slog.Int64("device_id", int64(c.device.ID)))
	case c.client != nil:
		side = puntuale.ClientSide
		httpkit.Annotate(r.Context(), slog.Int64("client_id", int64(c.client.ID())))
	}
	return c, a.pace.Take(pacedKey{side, caller.Key()})
}

// received returns the call of a caller, or an error if the caller may not make this call. Codes: forbidden.
func (a *api) received(caller *control.Caller, side puntuale.Side, op operation, r *http.Request) (c *call, err error) {
	c = &call{}
	if side == eitherSide {
		side = puntuale.ClientSide // its refusal is also the one for a device's token
		if caller.Side() == puntuale.PartnerSide {
			side = puntuale.PartnerSide
		}
	}
	switch side {
	case puntuale.PartnerSide:
		c.partner, err = a.accounts.Partner(caller)
		return c, err
	case puntuale.DeviceSide:
		c.device, err = caller.Device()
		return c, err
	case puntuale.ClientSide:
	}
	if c.client, err = caller.Client(); err == nil && op.creates != nil && op.creates(r) {
		err = c.client.MayCreate()
	}
	return c, err
}

// confirmed returns the error for a refused call. The server may have found the client in memory, and the client may
// have lost its rights since. In this case confirmed returns the refusal for the lost rights. If the server stops, it
// cannot ask the store any more.
func (c *call) confirmed(ctx context.Context, err error) error {
	if c.client == nil || errors.Is(err, puntuale.ErrStopping) {
		return err
	}
	if refused := c.client.Confirm(ctx); refused != nil {
		return refused
	}
	return err
}

// Codes of the faults that this file reports.
const (
	faultCallNotDecoded       puntuale.ReasonCode = "call.not_decoded"
	faultCallTwiceDifferently puntuale.ReasonCode = "call.twice_differently"
	faultCallUnknownParameter puntuale.ReasonCode = "call.unknown_parameter"
	faultCallUnreadable       puntuale.ReasonCode = "call.unreadable"
	faultCallerTwoKeys        puntuale.ReasonCode = "caller.two_keys"
)

// read reads the body of a call and checks its query. Codes: too_large, unreadable.
func (c *call) read(w http.ResponseWriter, r *http.Request, op operation, known map[string]bool) error {
	switch {
	case op.upload > 0:
		if err := admission.CheckLength(r, op.upload); err != nil {
			return err
		}
		c.kind = r.Header.Get("Content-Type")
	case op.body == nil:
		if err := admission.CheckLength(r, admission.MaxBody); err != nil {
			return err
		}
	default:
		body, err := admission.ReadBody(w, r, op.bodyLimit(), c.account)
		if err != nil {
			return err
		}
		if len(body) > 0 {
			c.body = bytes.TrimPrefix(body, byteOrderMark)
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return unreadable(puntuale.Fault{Location: "query", Code: faultCallNotDecoded})
	}
	c.query = query
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !utf8.ValidString(name + strings.Join(query[name], "")) {
			return unreadable(puntuale.Fault{Location: "query", Code: faultCallNotUTF8})
		}
		if !op.strict || name == "api_key" {
			continue
		}
		if !known[name] {
			c.refuse("query."+name, faultCallUnknownParameter)
		} else if !strings.HasSuffix(name, "[]") {
			c.unknown = append(c.unknown, c.repeated(name)...)
		}
	}
	return nil
}

// repeated finds query parameters that come several times with different values. The caller can mean only one of the
// values, so this is a fault.
func (c *call) repeated(names ...string) (faults []puntuale.Fault) {
	for _, name := range names {
		values := c.query[name]
		if i := slices.IndexFunc(values, func(value string) bool { return value != values[0] }); i > 0 {
			faults = append(faults, puntuale.Fault{Location: "query." + name, Code: faultCallTwiceDifferently, Value: values[i]})
		}
	}
	return faults
}

// allow accepts query parameters that the document does not name: it removes them from the faults of a strict call.
func (c *call) allow(names ...string) {
	c.unknown = slices.DeleteFunc(c.unknown, func(f puntuale.Fault) bool {
		return slices.Contains(names, strings.TrimPrefix(f.Location, "query."))
	})
}

// presentedKey returns the key in a request's header or query. Codes: unauthorized if the request has two different
// keys.
func presentedKey(r *http.Request) (string, error) {
	shown := r.URL.Query()["api_key"]
	for _, header := range r.Header.Values("Authorization") {
		if scheme, key, ok := strings.Cut(header, " "); ok && strings.EqualFold(scheme, "Bearer") {
			shown = append(shown, strings.TrimSpace(key))
		}
	}
	key := ""
	for _, next := range shown {
		switch {
		case key == "":
			key = next
		case next != "" && !auth.SameKey(key, next):
			return "", &puntuale.Error{Code: puntuale.CodeUnauthorized, Reason: puntuale.Because(faultCallerTwoKeys)}
		}
	}
	return key, nil
}

// createsAlways reports true. Operations that always create or send use it as their creates function.
func createsAlways(*http.Request) bool { return true }

func unreadable(faults ...puntuale.Fault) error {
	return &puntuale.Error{Code: puntuale.CodeUnreadable, Reason: puntuale.Because(faultCallUnreadable), Faults: faults}
}

// bodyLimit returns how many bytes the operation's body may have.
func (op *operation) bodyLimit() int64 { return cmp.Or(op.bodyBytes, admission.MaxBody) }

// spend counts the bytes of a client's call that may store its body; see [control.MaxStoredBytes]. refund takes them
// back. The verbs that read uploads count them. Calls that prevent sends are never refused, so they do not count.
// Codes: rate_limited.
func (c *call) spend(ctx context.Context, op operation) (refund func(), err error) {
	none := func() {}
	if dry, _ := wantsDry(c.query); dry || c.client == nil || op.prevents || op.method == http.MethodGet || len(c.body) == 0 {
		return none, nil
	}
	return c.client.Spend(ctx, int64(len(c.body)))
}
