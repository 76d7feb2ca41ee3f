package web_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/request"
)

// setUpSecond sets up a second factor for the client's owner. It returns the secret and the recovery codes.
func setUpSecond(t *testing.T, v *visitor) (secret []byte, codes []string) {
	t.Helper()
	secret = shownSecret(t, v.get("/me/second").body)
	r := v.post("/me/second", url.Values{"code": {auth.Code(secret, v.w.clock.Now())}})
	codes = strings.Split(between(r.body, `<ul class="codes"><li>`, `</li></ul>`), "</li><li>")
	if r.status != http.StatusOK || len(codes) != 10 {
		t.Fatalf("%d, %d codes", r.status, len(codes))
	}
	v.w.clock.Advance(time.Minute) // a used code is not valid again, so wait for the next code
	return secret, codes
}

func shownSecret(t *testing.T, page string) []byte {
	t.Helper()
	return decode(t, strings.ReplaceAll(between(page, `class="secret-text">`, "<"), " ", ""))
}

// newPassword sets a user's password, as an operator may do.
func (w *world) newPassword(user puntuale.UserID) {
	w.t.Helper()
	u, _, err := w.store.UserByID(context.Background(), user)
	w.must(err)
	w.must(w.accounts.ResetUser(context.Background(), u, "tramonto sul lago", false))
}

// unfinished contains the kinds of pending steps, which one request begins and a later request finishes. begin begins
// the step, and returns a function that finishes the step. This function reports whether the step succeeded. If the
// step failed, the answer must contain the text in the member words.
var unfinished = map[puntuale.PendingStepKind]struct {
	begin func(t *testing.T, w *world) (finish func() (bool, answer))
	words string
}{
	puntuale.UnfinishedSignIn: {func(t *testing.T, w *world) func() (bool, answer) {
		_, codes := setUpSecond(t, w.visitor(w.clients[puntuale.Owner]))
		v := w.visitor(0)
		if r := v.post("/login", login("studio@example.com", password)); r.to() != "/login/code" {
			t.Fatalf("after the password: %d %s", r.status, r.to())
		}
		return func() (bool, answer) {
			r := v.post("/login/code", url.Values{"code": {codes[0]}})
			if r.to() == w.pages {
				return true, r
			}
			return false, v.get(r.to())
		}
	}, "Accedi di nuovo."},
	puntuale.UnfinishedSecond: {func(t *testing.T, w *world) func() (bool, answer) {
		v := w.visitor(w.clients[puntuale.Owner])
		secret := shownSecret(t, v.get("/me/second").body)
		return func() (bool, answer) {
			r := v.post("/me/second", url.Values{"code": {auth.Code(secret, w.clock.Now())}})
			if r.status == http.StatusOK {
				return true, r
			}
			return false, v.get(r.to())
		}
	}, ""},
	puntuale.UnfinishedTicket: {func(_ *testing.T, w *world) func() (bool, answer) {
		ticket := w.ticket(w.clients[puntuale.Owner])
		return func() (bool, answer) {
			r := w.visitor(0).post("/ticket", url.Values{"t": {ticket}})
			return r.to() == w.pages, r
		}
	}, "non vale più"},
	puntuale.UnfinishedInvitation: {func(_ *testing.T, w *world) func() (bool, answer) {
		text, err := w.accounts.Ticket(context.Background(), puntuale.UnfinishedInvitation, w.clients[puntuale.Owner])
		w.must(err)
		if r := w.visitor(0).post("/ticket", url.Values{"t": {text}}); r.status != http.StatusNotFound {
			w.t.Errorf("an invitation signs in: %d", r.status)
		}
		return func() (bool, answer) {
			if _, err := w.accounts.Holder(context.Background(), puntuale.UnfinishedInvitation, text); err != nil {
				return false, answer{body: err.Error()}
			}
			_, err := w.accounts.Redeem(context.Background(), puntuale.UnfinishedInvitation, text)
			return err == nil, answer{}
		}
	}, "signin.too_late"},
}

// TestUnfinishedSteps: each pending step succeeds before its deadline. It is refused with clear words after the
// deadline, after a change of the password, and after the user was removed.
func TestUnfinishedSteps(t *testing.T) {
	t.Parallel()
	for kind, step := range unfinished {
		for name, test := range map[string]struct {
			meanwhile func(w *world)
			works     bool
		}{
			"in time":            {func(w *world) { w.clock.Advance(kind.Lifetime() - time.Minute) }, true},
			"too late":           {func(w *world) { w.clock.Advance(kind.Lifetime()) }, false},
			"after a new secret": {func(w *world) { w.newPassword(w.clients[puntuale.Owner]) }, false},
			"of a removed user": {func(w *world) {
				p := w.newPartnerHandle()
				team, err := p.TeamOf(context.Background(), w.client.String())
				w.must(err)
				_, err = team.Change(context.Background(), w.clients[puntuale.Staff].String(), account.UserChange{Role: puntuale.Change[string]{Set: true, To: "owner"}})
				w.must(err)
				w.must(team.Delete(context.Background(), w.clients[puntuale.Owner].String()))
			}, false},
		} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				finish := step.begin(t, w)
				test.meanwhile(w)
				worked, r := finish()
				if worked != test.works {
					t.Fatalf("worked: %v; %d %s", worked, r.status, r.body)
				}
				if !worked && !strings.Contains(r.body, step.words) {
					t.Errorf("the refusal lacks %q: %s", step.words, r.body)
				}
			})
		}
	}
}

// TestChoosingEnds: the deadlines in TestUnfinishedSteps also apply to a person who must choose between two logins.
func TestChoosingEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	var ids []puntuale.UserID
	for _, p := range []*account.Partner{w.newPartner("Terza Agenzia", "terza@example.com"), w.newPartnerHandle()} {
		made, err := p.CreateClient(ctx, account.NewClient{Name: "Doppio", Email: "doppio@example.com", Password: password, Phone: "1"}, control.Once[account.CreatedClient]{})
		w.must(err)
		team, err := p.TeamOf(ctx, made.ID.String())
		w.must(err)
		users, err := team.Users(ctx)
		w.must(err)
		ids = append(ids, users[0].ID)
	}
	begin := func() *visitor {
		t.Helper()
		v := w.visitor(0)
		if r := v.post("/login", login("doppio@example.com", password)); r.to() != "/login/choose" {
			t.Fatalf("%d %s", r.status, r.to())
		}
		return v
	}
	late, v := begin(), begin()
	w.newPassword(ids[0])
	if r := v.post("/login/choose", url.Values{"user": {ids[0].String()}}); r.to() != "/login/choose" {
		t.Errorf("the one whose password was changed: %d %s", r.status, r.to())
	}
	if r := v.post("/login/choose", url.Values{"user": {ids[1].String()}}); !strings.HasPrefix(r.to(), "/c/") {
		t.Errorf("the other one: %d %s", r.status, r.to())
	}
	w.clock.Advance(puntuale.UnfinishedSignIn.Lifetime())
	if r := late.get("/login/choose"); r.to() != "/login" || !strings.Contains(late.get("/login").body, "Accedi di nuovo.") {
		t.Errorf("after ten minutes: %d %s", r.status, r.to())
	}
}

// TestSecondIsKept: a signed-in visit alone cannot replace or remove a second factor or its recovery codes. The person
// must also enter the password and a code. After a wrong code during the setup, the secret does not change.
func TestSecondIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Owner])
	pending := shownSecret(t, v.get("/me/second").body)
	for range 2 {
		r := v.post("/me/second", url.Values{"code": {"000000"}})
		if r.status != http.StatusUnprocessableEntity || !bytes.Equal(shownSecret(t, r.body), pending) {
			t.Fatalf("a wrong code: %d, another secret", r.status)
		}
	}
	if again := shownSecret(t, v.get("/me/second").body); !bytes.Equal(again, pending) {
		t.Error("looking again makes another secret")
	}
	secret, codes := setUpSecond(t, v)
	stored := func() puntuale.SecondFactor {
		u, _, err := w.store.UserByID(context.Background(), w.clients[puntuale.Owner])
		w.must(err)
		return u.Second
	}
	before := stored()
	other, err := auth.NewSecret()
	w.must(err)
	for _, code := range []string{"000000", auth.Code(other, w.clock.Now()), auth.Code(secret, w.clock.Now())} {
		r := v.post("/me/second", url.Values{"code": {code}})
		if r.to() != "/me" || strings.Contains(r.body, "secret-text") || !strings.Contains(v.get("/me").body, "è già attiva") {
			t.Errorf("replaced by a visit alone: %d %s", r.status, r.to())
		}
	}
	now := func() string { return auth.Code(secret, w.clock.Now()) }
	for _, path := range []string{"/me/second/end", "/me/second/codes"} {
		for what, f := range map[string]url.Values{
			"nothing": {}, "the password alone": {"present": {password}}, "a code alone": {"code": {now()}},
			"a wrong password": {"present": {"sbagliata"}, "code": {now()}}, "a wrong code": {"present": {password}, "code": {"000000"}},
		} {
			if r := v.post(path, f); r.status != http.StatusUnprocessableEntity || strings.Count(r.body, `class="fault"`) != 1 {
				t.Errorf("%s with %s: %d", path, what, r.status)
			}
			w.clock.Advance(puntuale.MaxWait) // after this time, no attempt needs to wait
		}
	}
	if after := stored(); !slices.Equal(after.Recovery, before.Recovery) || !bytes.Equal(after.Secret, before.Secret) {
		t.Fatal("the second factor is another one")
	}
	if r := v.post("/me/second/codes", url.Values{"present": {password}, "code": {now()}}); r.status != http.StatusOK {
		t.Errorf("new recovery codes: %d", r.status)
	}
	if r := v.post("/me/second/end", url.Values{"present": {password}, "code": {codes[0]}}); r.status != http.StatusUnprocessableEntity {
		t.Errorf("a recovery code of before: %d", r.status)
	}
	w.clock.Advance(time.Minute)
	if r := v.post("/me/second/end", url.Values{"present": {password}, "code": {now()}}); r.status != http.StatusSeeOther || stored().Enabled() {
		t.Errorf("removed: %d", r.status)
	}
}

// TestSecretIsSealed: the database's files never contain a second factor's secret in readable form, not even during the
// setup.
func TestSecretIsSealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secret, _ := setUpSecond(t, w.visitor(w.clients[puntuale.Owner]))
	var number int
	var name, file string
	w.must(w.sql.QueryRow("pragma database_list").Scan(&number, &name, &file))
	var content []byte
	for _, suffix := range []string{"", "-wal"} {
		part, err := os.ReadFile(file + suffix)
		w.must(err)
		content = append(content, part...)
	}
	if !bytes.Contains(content, []byte("studio@example.com")) {
		t.Fatal("these are not the database's files")
	}
	for form, text := range map[string][]byte{
		"as it is": secret, "in base32": []byte(auth.SecretText(secret)), "in base64": []byte(base64.StdEncoding.EncodeToString(secret))[:24],
	} {
		if bytes.Contains(content, text) {
			t.Errorf("the secret lies in the files %s", form)
		}
	}
}

// TestPairingEnds: a pairing that nobody finishes ends at its deadline, even if its node has not ended it.
func TestPairingEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	sessions, _, err := w.Client().Sessions(ctx, request.Page{})
	w.must(err)
	id, now := sessions[0].ID, w.clock.Now()
	code := w.vault.Seal(puntuale.SealedCode, id.SealPlace(), []byte(`{"method":"qr","text":"2@abc"}`))
	node, err := w.store.Join(ctx, time.Hour)
	w.must(err)
	_, err = w.sql.Exec("update session set link = $1, link_at = $2, owner = $6, code = $3, code_until = $4 where id = $5",
		puntuale.LinkPairing, now.UnixMicro(), code, now.Add(time.Hour).UnixMicro(), id, node)
	w.must(err)
	shown := func() control.Session {
		s, err := w.Client().Session(ctx, id.String())
		w.must(err)
		return s
	}
	w.clock.Advance(puntuale.UnfinishedPairing.Lifetime() - time.Minute)
	if s := shown(); s.State != puntuale.LinkPairing || s.Code == nil {
		t.Errorf("before the deadline: %v, %v", s.State, s.Code)
	}
	w.clock.Advance(time.Minute)
	if s := shown(); s.State != puntuale.LinkUnlinked || s.Code != nil {
		t.Errorf("after it: %v, %v", s.State, s.Code)
	}
}

// TestNewPasswordBeginsNewCounts: somebody who was locked out after wrong passwords can sign in with the password that
// the operator set, without waiting.
func TestNewPasswordBeginsNewCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 12 {
		w.visitor(0).post("/login", login("studio@example.com", "sbagliata"))
	}
	if r := w.visitor(0).post("/login", login("studio@example.com", password)); r.status == http.StatusSeeOther {
		t.Fatal("wrong passwords lock nobody out")
	}
	w.newPassword(w.clients[puntuale.Owner])
	if r := w.visitor(0).post("/login", login("studio@example.com", "tramonto sul lago")); r.status != http.StatusSeeOther {
		t.Errorf("after the operator's password: %d %s", r.status, r.body)
	}
}
