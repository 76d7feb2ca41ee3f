package page

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/view"
)

// A visit ends when it was idle for idleLife, and in any case after wholeLife. The service's own clock measures both.
const (
	idleLife  = 24 * time.Hour
	wholeLife = 14 * 24 * time.Hour
	touch     = 5 * time.Minute // the time of the last request is stored at most this often
)

// Names of the stored values of a visit.
const (
	keyUser    = "user"    // the id of the signed-in user
	keyStamp   = "stamp"   // the user's stamp at the sign-in; if the user has a higher stamp now, the visit ends
	keyBegun   = "begun"   // the time of the sign-in, in Unix seconds
	keySeen    = "seen"    // the time of the last request, in Unix seconds
	keyProgram = "program" // the browser as it names itself, at the last stored request
	keyAddress = "address" // the browser's IP address, at the last stored request
	KeyEntered = "entered" // clients whose dashboards the partner's user entered
	keyToasts  = "toasts"  // texts that the next page must show
	KeyPending = "pending" // sign-ins that wait for a choice or a code: JSON of []puntuale.PendingStep
	KeyNext    = "next"    // the page that the person wanted to see
	KeySecret  = "secret"  // while a second factor is being set up: JSON of secondStep
)

// newVisits returns a manager of visits. The store gets only a hash of the token that the browser has.
func (s *Site) newVisits(secure bool) *scs.SessionManager {
	m := scs.New()
	m.Store = visitStore{s.Accounts}
	m.Lifetime = wholeLife
	m.HashTokenInStore = true
	m.Cookie.Name = "puntuale"
	if secure {
		m.Cookie.Name = "__Host-puntuale"
	}
	m.Cookie.Secure, m.Cookie.HttpOnly, m.Cookie.SameSite, m.Cookie.Path, m.Cookie.Persist = secure, true, http.SameSiteLaxMode, "/", true
	m.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) {
		s.newRequest(w, r).fail(err)
	}
	return m
}

// visits returns the manager of visits for a request over http or over https.
func (s *Site) visits(r *http.Request) *scs.SessionManager {
	if httpkit.CallerOf(r).Secure {
		return s.secure
	}
	return s.plain
}

// visitStore stores visits in the service's store.
type visitStore struct{ accounts *account.Accounts }

var _ scs.CtxStore = visitStore{}

func (v visitStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	return v.accounts.Visit(ctx, token)
}

func (v visitStore) CommitCtx(ctx context.Context, token string, data []byte, _ time.Time) error {
	// Store the visit even if the browser closed the connection, because the request's action is done.
	var user int64
	if _, values, err := (scs.GobCodec{}).Decode(data); err == nil {
		user, _ = values[keyUser].(int64)
	}
	return v.accounts.KeepVisit(context.WithoutCancel(ctx), token, data, puntuale.UserID(user), wholeLife)
}

func (v visitStore) DeleteCtx(ctx context.Context, token string) error {
	return v.accounts.EndVisit(context.WithoutCancel(ctx), token)
}

// The type must also have methods without a context, but the visit manager never calls these.
func (v visitStore) Find(token string) ([]byte, bool, error) {
	return v.FindCtx(context.Background(), token)
}
func (v visitStore) Commit(token string, data []byte, expires time.Time) error {
	return v.CommitCtx(context.Background(), token, data, expires)
}
func (v visitStore) Delete(token string) error { return v.DeleteCtx(context.Background(), token) }

// identify finds the signed-in person, if there is one. It ends a visit whose time is over, or whose
// user or stamp is no longer valid.
func (v *Request) identify() error {
	m, ctx := v.Visits, v.Ctx()
	id := m.GetInt64(ctx, keyUser)
	if id == 0 {
		return nil
	}
	now := v.Now()
	begun, seen := time.Unix(m.GetInt64(ctx, keyBegun), 0), time.Unix(m.GetInt64(ctx, keySeen), 0)
	if now.Sub(begun) >= wholeLife || now.Sub(seen) >= idleLife {
		return m.Destroy(ctx)
	}
	p, err := v.Site.Accounts.Person(ctx, puntuale.UserID(id), m.GetInt64(ctx, keyStamp))
	if puntuale.CodeOf(err) == puntuale.CodeUnauthorized {
		return m.Destroy(ctx)
	}
	if err != nil {
		return err
	}
	if now.Sub(seen) >= touch {
		v.seen()
	}
	v.Person = p
	v.dress()
	return nil
}

// maxProgram bounds how much of a browser's own name a visit stores, in bytes.
const maxProgram = 300

// seen stores the time of this request, and from where it came.
func (v *Request) seen() {
	m, ctx, program := v.Visits, v.Ctx(), v.HTTP.UserAgent()
	m.Put(ctx, keySeen, v.Now().Unix())
	m.Put(ctx, keyProgram, strings.ToValidUTF8(program[:min(len(program), maxProgram)], ""))
	m.Put(ctx, keyAddress, control.AddressText(v.Caller().Address))
}

// OpenVisits lists the browsers in which the person is signed in: this one, then the one that was used last.
func (v *Request) OpenVisits() ([]view.OpenVisit, error) {
	stored, err := v.Person.Visits(v.Ctx())
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte(v.Visits.Token(v.Ctx()))) // as the manager hashes it for the store
	here := base64.RawURLEncoding.EncodeToString(hash[:])
	var all []view.OpenVisit
	for _, s := range stored {
		_, values, err := (scs.GobCodec{}).Decode(s.Data)
		if err != nil {
			continue // a visit that cannot be read cannot be used either
		}
		number := func(key string) int64 { n, _ := values[key].(int64); return n }
		text := func(key string) string { t, _ := values[key].(string); return t }
		o := view.OpenVisit{Token: s.Token, Program: text(keyProgram), Address: text(keyAddress), Begun: time.Unix(number(keyBegun), 0), Seen: time.Unix(number(keySeen), 0), Here: s.Token == here}
		if number(keyStamp) != v.Person.User().Stamp || v.Now().Sub(o.Begun) >= wholeLife || v.Now().Sub(o.Seen) >= idleLife {
			continue // it is over, although it is still stored
		}
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b view.OpenVisit) int {
		if a.Here != b.Here {
			return map[bool]int{true: -1, false: 1}[a.Here]
		}
		return b.Seen.Compare(a.Seen)
	})
	return all, nil
}

// Begin signs a person in, and gives the visit a new token. The old token becomes invalid, because somebody else may
// know it. The function arrived records the sign-in. Its arguments are the browser's cookie and address.
func (v *Request) Begin(p *account.Person, arrived func(ctx context.Context, browser string, from netip.Addr) error) error {
	m, ctx := v.Visits, v.Ctx()
	if err := m.RenewToken(ctx); err != nil {
		return err
	}
	for _, key := range []string{KeyPending, KeyEntered, KeySecret} {
		m.Remove(ctx, key)
	}
	u := p.User()
	m.Put(ctx, keyUser, int64(u.ID))
	m.Put(ctx, keyStamp, u.Stamp)
	m.Put(ctx, keyBegun, v.Now().Unix())
	v.seen()
	v.Person = p
	if err := arrived(ctx, v.Device(), v.Caller().Address); err != nil {
		return err
	}
	if err := v.keepDevice(); err != nil {
		return err
	}
	return p.Note(ctx, u.Client, "signin", "", v.Caller().Address)
}

// KeepValid keeps this visit valid, after all other visits of the person were ended.
func (v *Request) KeepValid(stamp int64) error {
	if err := v.Visits.RenewToken(v.Ctx()); err != nil {
		return err
	}
	v.Visits.Put(v.Ctx(), keyStamp, stamp)
	return v.keepDevice()
}

// deviceCookie returns the name of the cookie that records which users signed in with this browser. See
// [account.Person.Browser].
func (v *Request) deviceCookie() string {
	if v.Caller().Secure {
		return "__Host-device"
	}
	return "device"
}

// Device returns the value of the cookie that deviceCookie names, or "" if the browser has no such cookie.
func (v *Request) Device() string {
	c, err := v.HTTP.Cookie(v.deviceCookie())
	if err != nil {
		return ""
	}
	return c.Value
}

// keepDevice sets the cookie that deviceCookie names, so that the next sign-in recognizes the browser.
func (v *Request) keepDevice() error {
	value, err := v.Person.Browser(v.Device())
	if err != nil {
		return err
	}
	http.SetCookie(v.Writer, &http.Cookie{Name: v.deviceCookie(), Value: value, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: v.Caller().Secure}) //nolint:gosec // over plain http a browser refuses a Secure cookie
	return nil
}

// Entered reports whether the partner's user has entered the client's dashboard.
func (v *Request) Entered(id puntuale.ClientID) bool {
	for _, e := range v.EnteredList() {
		if e == int64(id) {
			return true
		}
	}
	return false
}

func (v *Request) EnteredList() []int64 {
	all, _ := v.Visits.Get(v.Ctx(), KeyEntered).([]int64)
	return all
}
