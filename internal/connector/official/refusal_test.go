package official_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official"
	"puntuale/internal/connector/official/graphtest"
)

// table contains the action for each code, from Meta's documentation. It was written independently of the product's
// table.
var table = map[string][]int{
	"retry":       {1, 2, 131000, 131016, 131057, 133004},
	"slow down":   {130429, 131208},
	"pair":        {131056},
	"hold number": {131048, 131037, 131042, 368, 131031, 131045, 133010, 33},
	"no access":   {0, 190, 10, 3, 200, 210, 299, 131005},
	"template":    {132000, 132001, 132005, 132007, 132012, 132015, 132016, 132018, 132068},
	"message": {131047, 131051, 131053, 131008, 131009, 100, 131021, 135000, 134011, 424242, 131052, 131060, 131059, 131062, 132021, 131055, 134100, 134102, 139200,
		138000, 138006, 138018, 131020, 131041, 131201, 131207, 131214, 131215, 133000, 133005, 133006, 133008, 133009, 133015, 133016},
	"recipient":    {131026, 130403},
	"opted out":    {131050},
	"not 24 hours": {131049},
}

// rig is a world in which Meta refuses the messages to one recipient with a code.
type rig struct {
	*world
	code    int
	refused string
	other   string
}

// TestTable checks each row's effect on the message, on other messages of the number, and on other recipients.
func TestTable(t *testing.T) {
	t.Parallel()
	rows := map[string]func(*rig){
		"retry": func(r *rig) {
			r.world.refused(r.tries(text("x")), puntuale.Transient)
			r.othersGo()
		},
		"slow down":    (*rig).slowsDown,
		"pair":         (*rig).pairWaits,
		"hold number":  func(r *rig) { r.holds(puntuale.LinkLinked, time.Hour) },
		"no access":    func(r *rig) { r.holds(puntuale.LinkUnlinked, time.Minute) },
		"template":     (*rig).templateWaits,
		"message":      func(r *rig) { r.finalFor(text("x")) },
		"recipient":    (*rig).cannotBeReached,
		"opted out":    (*rig).optsOut,
		"not 24 hours": (*rig).waitsADay,
	}
	for name, codes := range table {
		for _, code := range codes {
			t.Run(fmt.Sprintf("%s %d", name, code), func(t *testing.T) {
				t.Parallel()
				r := &rig{world: newWorld(t, setup{}), code: code, refused: "+393331111111", other: "+393332222222"}
				r.wrote(r.refused, r.other)
				r.peer.Answer(func(m graphtest.Message) graphtest.Reply {
					if m.To == r.refused {
						return graphtest.Reply{Code: code, Refuse: true, Details: "per prova"}
					}
					return graphtest.Reply{}
				})
				rows[name](r)
			})
		}
	}
}

func (r *rig) tries(c puntuale.Content) error {
	r.t.Helper()
	_, err := r.send(r.refused, c)
	if e := puntuale.AsSendError(err); e != nil && !strings.Contains(italian(e.Detail), fmt.Sprintf("Meta %d: per prova", r.code)) {
		r.t.Errorf("the detail is %q", e.Detail)
	}
	return err
}

func (r *rig) othersGo() {
	r.t.Helper()
	if !r.conn.Online(r.session) {
		r.t.Error("the number is held back")
	}
	r.must(r.other, text("y"))
}

// asksNothing checks that a message is refused without a request to Meta.
func (r *rig) asksNothing(to string, c puntuale.Content, kind puntuale.SendErrorKind) *puntuale.SendError {
	r.t.Helper()
	before := r.peer.Asked()
	_, err := r.send(to, c)
	e := r.world.refused(err, kind)
	if r.peer.Asked() != before {
		r.t.Error("Meta was asked")
	}
	return e
}

func (r *rig) finalFor(c puntuale.Content) {
	r.t.Helper()
	r.world.refused(r.tries(c), puntuale.Final)
	r.othersGo()
}

func (r *rig) slowsDown() {
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		e := r.world.refused(r.tries(text("x")), puntuale.Throttled)
		again := r.world.refused(r.tries(text("x")), puntuale.Throttled) // this message counts as sent together with the first one, so its wait is the same
		if e.After != want || again.After != want {
			r.t.Errorf("after %v, and %v, want %v", e.After, again.After, want)
		}
		r.clock.Advance(want)
	}
	r.must(r.other, text("y"))
	if e := r.world.refused(r.tries(text("x")), puntuale.Throttled); e.After != time.Second {
		r.t.Errorf("after a success: %v", e.After)
	}
}

func (r *rig) pairWaits() {
	for _, want := range []time.Duration{time.Second, 4 * time.Second, 16 * time.Second} {
		if e := r.world.refused(r.tries(text("x")), puntuale.Deferred); e.After != want {
			r.t.Errorf("after %v, want %v", e.After, want)
		}
		r.asksNothing(r.refused, text("x"), puntuale.Deferred)
		r.othersGo()
		r.clock.Advance(want)
	}
}

func (r *rig) holds(state puntuale.LinkState, wait time.Duration) {
	e := r.world.refused(r.tries(text("x")), puntuale.SessionDown)
	if last := r.last(); r.conn.Online(r.session) || last.State != state || !strings.Contains(italian(last.Detail), italian(e.Reason)) || !strings.Contains(italian(last.Detail), fmt.Sprint(r.code)) {
		r.t.Errorf("online %v, reported %+v, said %q", r.conn.Online(r.session), last, e.Reason)
	}
	unregistered := r.code == 131045 || r.code == 133010 || r.code == 33 // these codes do not mean a restricted number
	if last := r.last(); last.Restricted != (state == puntuale.LinkLinked && !unregistered) {
		r.t.Errorf("restricted: %v", last.Restricted)
	}
	r.asksNothing(r.other, text("y"), puntuale.SessionDown)
	if err := r.clock.WaitingUntil(r.within(), r.clock.Now().Add(wait)); err != nil { // the connector's loop knows of the pause
		r.t.Fatal(err)
	}
	r.clock.Advance(wait - time.Second)
	if r.conn.Online(r.session) {
		r.t.Error("online too early")
	}
	r.advance(time.Second, true)
	r.must(r.other, text("y"))
	// If a person solved the problem and tests the session, the pause ends immediately.
	r.world.refused(r.tries(text("x")), puntuale.SessionDown)
	if err := r.conn.Test(r.within(), r.session); err != nil || !r.conn.Online(r.session) {
		r.t.Errorf("after a test: %v", err)
	}
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	if n := len(r.reports); n > 20 {
		r.t.Errorf("%d reports: the status check woke itself while the number was paused", n)
	}
}

func (r *rig) templateWaits() {
	r.world.refused(r.tries(approved("uno")), puntuale.Deferred)
	e := r.asksNothing(r.other, approved("uno"), puntuale.Deferred)
	if e.After <= 0 || e.After > 15*time.Minute {
		r.t.Errorf("after %v", e.After)
	}
	r.must(r.other, approved("due"))
	r.othersGo()
	r.clock.Advance(15 * time.Minute)
	r.must(r.other, approved("uno"))
	r.finalFor(text("x")) // the message has no template, so no other message is held back
}

// cannotBeReached: after Meta could not reach a person, no message to that person leaves for a day. The wait ends
// earlier if the person writes, or if a user tests the session.
func (r *rig) cannotBeReached() {
	r.finalFor(text("x"))
	r.clock.Advance(time.Hour)
	r.asksNothing(r.refused, text("x"), puntuale.Final)
	r.asksNothing(r.refused, approved("uno"), puntuale.Final)
	r.othersGo()
	r.wrote(r.refused)
	r.finalFor(text("x")) // the connector sends to Meta again, and Meta refuses again
	r.clock.Advance(time.Minute)
	r.asksNothing(r.refused, text("x"), puntuale.Final)
	r.test()
	r.finalFor(text("x"))
	r.clock.Advance(24 * time.Hour)
	r.until("online again", func() bool { return r.conn.Online(r.session) })
	r.peer.Answer(nil)
	r.must(r.refused, approved("uno"))
}

func (r *rig) optsOut() {
	r.finalFor(text("x"))
	all, _, err := r.c.Consents(r.t.Context(), puntuale.Person{Names: []string{r.refused}}, puntuale.Page{})
	if err != nil || len(all) != 1 || all[0].Change != puntuale.ConsentWithdraw || !strings.Contains(all[0].Words, "131050") || !strings.Contains(all[0].Words, "2026-11-20T09:00:00Z") {
		r.t.Errorf("consent: %+v, %v", all, err)
	}
}

func (r *rig) waitsADay() {
	if e := r.world.refused(r.tries(text("x")), puntuale.Deferred); e.After != 24*time.Hour {
		r.t.Errorf("after %v", e.After)
	}
	r.othersGo()
}

// TestUnknownOutcome: after a byte of a message was written, only an answer in Meta's own form proves the outcome.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	const phone = "+393331111111"
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	for name, reply := range map[string]graphtest.Reply{
		"taken, and broken off":     {Drop: true},
		"broken off":                {Break: true},
		"a proxy's 502":             {Status: 502, Body: "<html>Bad Gateway</html>"},
		"a 500 with nothing":        {Status: 500, Body: " "},
		"a 429 of somebody else":    {Status: 429, Body: `{"error":"too many"}`},
		"a 400 of somebody else":    {Status: 400, Body: `{"error":{"message":"no"}}`},
		"a redirect":                {Status: 307, Body: "elsewhere"},
		"a 200 that is not JSON":    {Status: 200, Body: "ok"},
		"a 200 without an id":       {Status: 200, Body: `{"messages":[]}`},
		"a 500 with a code unknown": {Status: 500, Code: 424242},
		"no answer":                 {Wait: never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			w.wrote(phone)
			p, err := w.conn.Prepare(w.within(), w.envelope(phone, text("x")))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(w.within())
			defer cancel()
			w.peer.Answer(func(graphtest.Message) graphtest.Reply {
				if reply.Wait != nil {
					cancel() // Meta has the request, and the sender stops waiting for the answer
				}
				return reply
			})
			_, err = w.conn.Send(ctx, p)
			if err == nil || puntuale.AsSendError(err) != nil || w.peer.Asked() != 1 {
				t.Errorf("got %v, %d asked", err, w.peer.Asked())
			}
			if err != nil && strings.Contains(err.Error(), "appsecret_proof") {
				t.Errorf("the proof is told: %v", err)
			}
		})
	}
}

// TestDefinite: a message certainly did not arrive if no byte of it left. It also did not arrive if Meta itself refused
// it with a code that the connector knows, whatever the HTTP status is.
func TestDefinite(t *testing.T) {
	t.Parallel()
	const phone = "+393331111111"
	w := newWorld(t, setup{config: func(c *official.Config) { c.Transport = unreachable{} }})
	w.wrote(phone)
	_, err := w.send(phone, text("x"))
	e := w.refused(err, puntuale.Transient)
	if strings.Contains(italian(e.Detail), "appsecret_proof") {
		t.Errorf("the proof is told: %s", e.Detail)
	}
	w = newWorld(t, setup{})
	w.wrote(phone)
	w.peer.Answer(func(graphtest.Message) graphtest.Reply { return graphtest.Reply{Status: 503, Code: 131016} })
	_, err = w.send(phone, text("x"))
	w.refused(err, puntuale.Transient)
}

// TestSetup: the session's detail explains in plain words what is wrong with a number.
func TestSetup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		number func(*graphtest.Number) // changes the number at Meta
		look   *graphtest.Reply
		state  puntuale.LinkState
		says   string
	}{
		"all is well":          {state: puntuale.LinkOnline},
		"no limit is told":     {number: func(n *graphtest.Number) { n.Tier = "" }, state: puntuale.LinkOnline},
		"a token that ended":   {number: func(n *graphtest.Number) { n.Token = "other" }, state: puntuale.LinkUnlinked, says: "Token di accesso scaduto o revocato"},
		"another secret":       {number: func(n *graphtest.Number) { n.Secret = "other" }, state: puntuale.LinkUnlinked, says: "app_secret errato"},
		"another number":       {number: func(n *graphtest.Number) { n.ID = "102" }, state: puntuale.LinkUnlinked, says: "phone_number_id non esiste"},
		"no permission":        {look: &graphtest.Reply{Code: 200}, state: puntuale.LinkUnlinked, says: "Il token non ha i permessi"},
		"Meta has trouble":     {look: &graphtest.Reply{Status: 500, Body: "x"}, state: puntuale.LinkLinked, says: "I server di Meta non rispondono"},
		"Meta is out of reach": {look: &graphtest.Reply{Break: true}, state: puntuale.LinkLinked, says: "I server di Meta non rispondono"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			meta := w.number
			if test.number != nil {
				test.number(&meta)
				if meta.ID != w.number.ID {
					w.number.ID, meta.ID = meta.ID, w.number.ID // our session then has the wrong number's id
				}
			}
			w.peer.Set(meta)
			if test.look != nil {
				w.peer.Look(func() graphtest.Reply { return *test.look })
			}
			fresh := w.newSession(w.number)
			w.open(fresh)
			last := w.last()
			if last.State != test.state || !strings.HasPrefix(italian(last.Detail), test.says) || (test.says == "") != (last.Detail.IsZero()) {
				t.Errorf("reported %+v", last)
			}
			if w.conn.Online(fresh) != (test.state == puntuale.LinkOnline) {
				t.Errorf("online: %v", w.conn.Online(fresh))
			}
			if test.state == puntuale.LinkOnline && last.Number != "+39021234101" {
				t.Errorf("number %q", last.Number)
			}
		})
	}
}

// TestLink: a session without keys is unlinked. With new keys it can send again. A session that was online can send
// even while Meta does not answer the status check.
func TestLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	ctx := w.within()
	if err := w.conn.Pair(ctx, w.session, puntuale.PairQR, ""); puntuale.CodeOf(err) != puntuale.CodeConflict {
		t.Errorf("pair: %v", err)
	}
	if err := w.conn.Unlink(ctx, w.session); err != nil || w.conn.Online(w.session) {
		t.Errorf("unlink: %v", err)
	}
	if err := w.conn.Test(ctx, w.session); err != nil || w.last().State != puntuale.LinkUnlinked || italian(w.last().Detail) != "Mancano le credenziali di Meta" {
		t.Errorf("without keys: %v, %+v", err, w.last())
	}
	if err := w.c.SetKeys(ctx, w.session, w.seal(w.session, w.number)); err != nil {
		t.Fatal(err)
	}
	if err := w.conn.Test(ctx, w.session); err != nil || !w.conn.Online(w.session) {
		t.Errorf("with keys again: %v, %+v", err, w.last())
	}
	w.conn.Close(ctx, w.session)
	if w.conn.Online(w.session) {
		t.Error("online after it was closed")
	}
	_, err := w.send("+393331111111", text("x"))
	w.refused(err, puntuale.SessionDown)

	w.peer.Look(func() graphtest.Reply { return graphtest.Reply{Break: true} })
	s, err := w.c.Tenant.Session(ctx, w.session)
	if err != nil {
		t.Fatal(err)
	}
	s.Link.State = puntuale.LinkOnline
	w.conn.Open(s)
	w.until("it is online as before", func() bool { return w.conn.Online(w.session) })
	w.peer.Look(nil)
}

// unreachable is a transport that sends only requests about numbers. All other requests fail.
type unreachable struct{}

func (unreachable) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return http.DefaultTransport.RoundTrip(r)
	}
	return nil, errors.New("connection refused")
}
