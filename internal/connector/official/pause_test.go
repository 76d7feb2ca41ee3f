package official_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/store/storetest"
)

// These are the people of the tests of waits. Two live in Brazil.
const (
	refused, sameCountry = "+5511987654321", "+5521987654321"
	elsewhere, american  = "+393332222222", "+12025550123"
)

// A probe is a message that a wait may hold back.
type probe struct {
	to   string
	what string // "text", or the name of a template
}

// probes are all messages that the tests of waits try. The templates uno and due are utility ones, and promo is a
// marketing one.
var probes = []probe{
	{refused, "text"}, {refused, "due"}, {refused, "promo"}, {sameCountry, "text"}, {sameCountry, "due"},
	{elsewhere, "text"}, {elsewhere, "uno"}, {elsewhere, "due"}, {elsewhere, "promo"},
}

func (p probe) content() puntuale.Content {
	if p.what == "text" {
		return text("x")
	}
	return approved(p.what)
}

// Each function reports whether a scope holds back a probe.
var (
	nothing   = func(probe) bool { return false }
	all       = func(probe) bool { return true }
	thePerson = func(p probe) bool { return p.to == refused }
	theirAds  = func(p probe) bool { return p.to == refused && p.what == "promo" }
	brazil    = func(p probe) bool { return p.to != elsewhere }
	template  = func(p probe) bool { return p.what == "uno" }
	templates = func(p probe) bool { return p.what != "text" }
	ads       = func(p probe) bool { return p.what == "promo" }
)

// pauseRow says what one refusal means. It was written from Meta's documentation, independently of the product's table.
type pauseRow struct {
	code    int
	details string
	what    string                 // the message that Meta refuses
	kind    puntuale.SendErrorKind // of this message
	held    func(probe) bool       // which messages do not leave after the refusal
	heldAs  puntuale.SendErrorKind // their kind
	lasts   time.Duration
	later   bool // a status with the code holds back the same messages
}

const day = 24 * time.Hour

var waitRows = []pauseRow{
	{131026, "", "text", puntuale.Final, thePerson, puntuale.Final, day, true},
	{130403, "", "text", puntuale.Final, thePerson, puntuale.Final, day, true},
	{130497, "", "text", puntuale.Final, brazil, puntuale.Deferred, day, true},
	{131049, "", "promo", puntuale.Deferred, theirAds, puntuale.Deferred, day, true},
	{130472, "", "promo", puntuale.Final, theirAds, puntuale.Final, 30 * day, true},
	{132000, "", "uno", puntuale.Deferred, template, puntuale.Deferred, 15 * time.Minute, false},
	{132001, "", "uno", puntuale.Deferred, template, puntuale.Deferred, 15 * time.Minute, false},
	{132005, "", "uno", puntuale.Deferred, template, puntuale.Deferred, 15 * time.Minute, false},
	{132007, "", "uno", puntuale.Deferred, template, puntuale.Deferred, 15 * time.Minute, false},
	{132012, "", "uno", puntuale.Deferred, template, puntuale.Deferred, 15 * time.Minute, false},
	{132015, "", "uno", puntuale.Deferred, template, puntuale.Deferred, 15 * time.Minute, false},
	{132016, "", "uno", puntuale.Deferred, template, puntuale.Deferred, 15 * time.Minute, false},
	{132018, "", "uno", puntuale.Deferred, template, puntuale.Deferred, 15 * time.Minute, false},
	{132018, "This is a Direct Send template", "uno", puntuale.Final, template, puntuale.Final, day, false},
	{132068, "", "uno", puntuale.Deferred, template, puntuale.Deferred, 15 * time.Minute, false},
	{132069, "", "uno", puntuale.Deferred, template, puntuale.Deferred, time.Hour, false},
	{134101, "", "uno", puntuale.Deferred, template, puntuale.Deferred, 10 * time.Minute, false},
	{131063, "", "promo", puntuale.Deferred, ads, puntuale.Deferred, time.Hour, true},
	{131064, "", "uno", puntuale.Deferred, templates, puntuale.Deferred, time.Hour, true},
	{4, "", "text", puntuale.SessionDown, all, puntuale.SessionDown, 5 * time.Minute, true},
	{80007, "", "text", puntuale.SessionDown, all, puntuale.SessionDown, 5 * time.Minute, true},
	{2494100, "", "text", puntuale.SessionDown, all, puntuale.SessionDown, 5 * time.Minute, true},
	{131048, "", "text", puntuale.SessionDown, all, puntuale.SessionDown, time.Hour, true},
	{131037, "", "text", puntuale.SessionDown, all, puntuale.SessionDown, time.Hour, true},
	{131042, "", "text", puntuale.SessionDown, all, puntuale.SessionDown, time.Hour, true},
	{368, "", "text", puntuale.SessionDown, all, puntuale.SessionDown, time.Hour, true},
	{131031, "", "text", puntuale.SessionDown, all, puntuale.SessionDown, time.Hour, true},
	{131045, "", "text", puntuale.SessionDown, all, puntuale.SessionDown, time.Hour, true},
	{133010, "", "text", puntuale.SessionDown, all, puntuale.SessionDown, time.Hour, true},
	{33, "", "text", puntuale.SessionDown, all, puntuale.SessionDown, time.Hour, true},
	{100, "This message requires Direct Send, which isn't enabled", "text", puntuale.Final, nothing, 0, day, true},
	{139200, "", "text", puntuale.Final, nothing, 0, day, true},
	{134102, "", "text", puntuale.Final, nothing, 0, day, true},
	{131062, "", "text", puntuale.Final, nothing, 0, day, true},
}

// TestWaits tries each refusal that holds back more than its message: as an answer and later in a status, on both
// databases. After a restart, and on another node, the same messages are held back. A status may reach any node.
func TestWaits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		for _, row := range waitRows {
			t.Run(fmt.Sprintf("%d %s at once", row.code, row.details), func(t *testing.T) {
				t.Parallel()
				w := newWaits(t, d, row)
				w.peer.Answer(w.refuses)
				_, err := w.send(refused, probe{refused, row.what}.content())
				e := w.refused(err, row.kind)
				if e.Kind == puntuale.Deferred && e.After != row.lasts {
					t.Errorf("after %v, want %v", e.After, row.lasts)
				}
				w.peer.Answer(nil)
				w.check("after the answer", row.held)
				w.restart()
				w.check("after a restart", row.held)
				w.ends()
			})
			t.Run(fmt.Sprintf("%d %s in a status", row.code, row.details), func(t *testing.T) {
				t.Parallel()
				w := newWaits(t, d, row)
				held := row.held
				if !row.later {
					held = nothing
				}
				taken := w.must(refused, probe{refused, row.what}.content())
				// The status comes to a node that does not own the session, twice.
				other := httptest.NewServer(official.New(w.config).NewWebhook())
				t.Cleanup(other.Close)
				for range 2 {
					if code := w.peer.Deliver(other.URL+w.session.WebhookPath(), w.number.ID, w.peer.Failed(taken, w.clock.Now(), row.code, row.details)); code != 200 {
						t.Fatalf("answered %d", code)
					}
				}
				w.check("on the node that owns it", held)
				w.restart()
				w.check("after a restart", held)
				w.ends()
			})
		}
	})
}

// waits is a world with templates, in which Meta refuses some messages.
type waits struct {
	*world
	row pauseRow
}

func newWaits(t *testing.T, d storetest.Driver, row pauseRow) *waits {
	t.Helper()
	w := &waits{newWorld(t, setup{driver: d}), row}
	w.peer.Business(w.number.Account).NoOptOut = true // so that marketing waits after 131063
	promo := graphtest.NewTemplate("promo", "x")
	promo.Category = "MARKETING"
	w.peer.SetTemplates(w.number.Account, promo, graphtest.NewTemplate("uno", "x"), graphtest.NewTemplate("due", "x"))
	w.test()
	w.wrote(refused, sameCountry, elsewhere, american)
	return w
}

func (w *waits) refuses(graphtest.Message) graphtest.Reply {
	return graphtest.Reply{Code: w.row.code, Refuse: true, Details: w.row.details}
}

// check tries all probes. Those that are held back must not reach Meta, and all others must.
func (w *waits) check(when string, held func(probe) bool) {
	w.t.Helper()
	for _, p := range probes {
		before := w.peer.Asked()
		_, err := w.send(p.to, p.content())
		e := puntuale.AsSendError(err)
		switch {
		case held(p) && (e == nil || e.Kind != w.row.heldAs || w.peer.Asked() != before):
			w.t.Errorf("%s: %s to %s got %v with %d requests", when, p.what, p.to, err, w.peer.Asked()-before)
		case held(p) && e.Kind == puntuale.Deferred && (e.After <= 0 || e.After > w.row.lasts):
			w.t.Errorf("%s: %s to %s waits for %v", when, p.what, p.to, e.After)
		case !held(p) && err != nil:
			w.t.Errorf("%s: %s to %s got %v", when, p.what, p.to, err)
		}
	}
}

// ends checks that everything may leave after the wait, and that the wait is removed from the store.
func (w *waits) ends() {
	w.t.Helper()
	w.conn.Close(w.within(), w.session) // a restarted server finds a wait that ended while it was down
	w.clock.Advance(w.row.lasts + time.Second)
	w.wrote(sameCountry, elsewhere) // their windows closed; the refused person has written nothing since
	w.conn = official.New(w.config)
	w.open(w.session)
	_, err := w.send(refused, approved("promo"))
	if err != nil {
		w.t.Errorf("after the wait: %v", err)
	}
	if err := w.w.Maintain(w.within(), w.clock.Now().Add(30*day), time.Time{}); err != nil {
		w.t.Error(err)
	}
	if n := w.w.Int("select count(*) from official_pause"); n != 0 {
		w.t.Errorf("%d waits are left", n)
	}
}

// TestWaitEnds: a wait for a person ends when the person writes. A user who tests the session ends all waits except
// those for marketing to single persons. An approval ends the wait of a template.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		end := map[string]func(w *waits){
			"writes": func(w *waits) { w.clock.Advance(time.Minute); w.wrote(refused) },
			"test":   func(w *waits) { w.test() },
			"approval": func(w *waits) {
				w.deliver(w.peer.TemplateEvent(w.number.Account, "uno", "it", "APPROVED", "", w.clock.Now()))
			},
		}
		for code, by := range map[int]string{
			131026: "writes test", 130403: "writes test", 131049: "writes", 130472: "writes", 130497: "test", 132015: "approval test", 131064: "test", 131063: "test", 131031: "test", 4: "test",
		} {
			for how, do := range end {
				t.Run(fmt.Sprint(code, how), func(t *testing.T) {
					t.Parallel()
					var row pauseRow
					for _, r := range waitRows {
						if r.code == code {
							row = r
						}
					}
					w := newWaits(t, d, row)
					w.peer.Answer(w.refuses)
					w.refusedBy(refused, probe{refused, row.what}.content(), row.kind)
					w.peer.Answer(nil)
					do(w)
					held := row.held
					if contains(by, how) {
						held = nothing
					}
					w.check("on this node", held)
					w.restart()
					w.check("after a restart", held)
				})
			}
		}
	})
}

func contains(words, word string) bool {
	return slices.Contains(strings.Fields(words), word)
}

// TestMarketingUS: Meta delivers no marketing to numbers of the United States, so a refusal is final until the person
// writes.
func TestMarketingUS(t *testing.T) {
	t.Parallel()
	w := newWaits(t, storetest.SQLite, pauseRow{code: 131049})
	w.peer.Answer(w.refuses)
	w.refusedBy(american, approved("promo"), puntuale.Final)
	w.clock.Advance(48 * time.Hour)
	asked := w.peer.Asked()
	w.restart()
	if w.refusedBy(american, approved("promo"), puntuale.Final); w.peer.Asked() != asked {
		t.Error("Meta was asked")
	}
	w.peer.Answer(nil)
	w.must(american, approved("due"))
	w.wrote(american)
	w.must(american, approved("promo"))
}

// TestQuotaHeader: Meta says in a header for how many minutes an hourly quota is used up.
func TestQuotaHeader(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		`{"55101":[{"type":"whatsapp","call_count":100,"estimated_time_to_regain_access":17}]}`: 17 * time.Minute,
		`{"55101":[{"estimated_time_to_regain_access":0}]}`:                                     5 * time.Minute,
		`{"55101":[{"estimated_time_to_regain_access":1e300}]}`:                                 24 * time.Hour,
		`{"55101":{}}`: 5 * time.Minute, `x`: 5 * time.Minute,
	} {
		w := newWaits(t, storetest.SQLite, pauseRow{code: 80007})
		w.peer.Answer(func(graphtest.Message) graphtest.Reply {
			return graphtest.Reply{Code: 80007, Header: map[string]string{"X-Business-Use-Case-Usage": header}}
		})
		w.refusedBy(refused, text("x"), puntuale.SessionDown)
		if err := w.clock.WaitingUntil(w.within(), w.clock.Now().Add(want)); err != nil {
			t.Errorf("%s: %v", header, err)
		}
		w.advance(want-time.Second, false)
		w.advance(time.Second, true)
	}
}

// TestUnknownCode: a refusal with an unknown code is final for its message only, and is counted.
func TestUnknownCode(t *testing.T) {
	t.Parallel()
	w := newWaits(t, storetest.SQLite, pauseRow{code: 424242})
	w.peer.Answer(w.refuses)
	w.refusedBy(refused, text("x"), puntuale.Final)
	w.peer.Answer(nil)
	w.deliver(w.peer.Failed(w.must(refused, text("x")), w.clock.Now(), 424243, ""))
	w.check("after unknown codes", nothing)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unknown != 2 {
		t.Errorf("%d unknown codes were counted", w.unknown)
	}
}
