package official_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/store/storetest"
)

// shapes contains a summary of what each recorded webhook changes: quality, limit, restriction, name, Direct Send, and
// how the first advice begins. Before it comes, Meta confirms that the number is LIMITED, or BLOCKED.
var shapes = map[string]string{
	"account_update_violation":                "GREEN 0  approved unknown | Meta segnala una violazione (SCAM)",
	"account_update_restriction":              "GREEN 0 RESTRICTED_BIZ_INITIATED_MESSAGING until 2026-11-23T09:00:00Z approved unknown | Meta ha sospeso i template",
	"account_update_disabled":                 "GREEN 0 SCHEDULE_FOR_DISABLE approved unknown | Meta sta per disattivare",
	"account_update_deleted":                  "GREEN 0 ACCOUNT_DELETED approved unknown | Meta ha scollegato l'account (ACCOUNT_DELETED)",
	"account_update_offboarded":               "GREEN 0 ACCOUNT_OFFBOARDED approved unknown | Meta ha scollegato l'account (ACCOUNT_OFFBOARDED)",
	"account_update_tier":                     "GREEN 0  approved unknown | ",
	"account_update_direct_send":              "GREEN 0  approved blocked | Direct Send è bloccato",
	"account_update_direct_send_strike_2":     "GREEN 0  approved blocked | Direct Send è bloccato",
	"account_update_direct_send_offboard":     "GREEN 0  approved blocked | Direct Send è bloccato",
	"account_update_direct_send_unban":        "GREEN 0  approved on | ",
	"account_update_direct_send_rate_limit":   "GREEN 0  approved unknown | Meta segnala una violazione (DIRECT_SEND_UTILITY_CATEGORY_ABUSE_RATE_LIMIT)",
	"account_update_direct_send_warn":         "GREEN 0  approved unknown | Meta segnala una violazione (DIRECT_SEND_UTILITY_CATEGORY_ABUSE_WARN)",
	"account_review_update":                   "GREEN 0 REJECTED approved unknown | La verifica dell'account presso Meta è nello stato REJECTED",
	"account_alerts":                          "GREEN 0  approved unknown | Meta non alza il limite dell'account: Send more quality messages.",
	"business_capability_update":              "GREEN 2000  approved unknown | ",
	"business_capability_update_number":       "GREEN 2000  approved unknown | ",
	"phone_number_quality_update":             "GREEN 2000  approved unknown | ",
	"phone_number_quality_update_older":       "GREEN 2000  approved unknown | ",
	"phone_number_name_update":                "GREEN 0  declined unknown | Meta ha rifiutato il nome visualizzato (Puntuale Prova: NAME_INVALID)",
	"security":                                "GREEN 0  approved unknown | Il PIN del numero è cambiato",
	"message_template_status_update_rejected": "GREEN 0  approved unknown | ",
	"message_template_status_update_disabled": "GREEN 0  approved unknown | ",
	"message_template_quality_update":         "GREEN 0  approved unknown | ",
	"template_category_update_notice":         "GREEN 0  approved unknown | Meta ritiene che il template uno it sia MARKETING",
	"template_category_update_done":           "GREEN 0  approved unknown | ",
	"message_template_components_update":      "GREEN 0  approved unknown | ",
	"template_correct_category_detection":     "GREEN 0  approved unknown | Meta ritiene che il template uno it sia MARKETING",
	"messages_errors":                         "GREEN 0  approved unknown | Errore segnalato da Meta (130429): Meta 130429: per prova",
	"later_field":                             "GREEN 0  approved unknown | ",
}

// blocked are the webhooks that only the answer BLOCKED confirms.
var blocked = []string{"account_update_disabled", "account_update_deleted", "account_update_offboarded", "account_review_update"}

// templatesAfter has the state, the category, the quality and the reason of the template uno, if a webhook changes them.
var templatesAfter = map[string]string{
	"message_template_status_update_rejected": "REJECTED MARKETING GREEN INVALID_FORMAT",
	"message_template_status_update_disabled": "DISABLED UTILITY GREEN SECOND_PAUSE (2026-12-01)",
	"message_template_quality_update":         "APPROVED UTILITY YELLOW ",
	"template_category_update_done":           "APPROVED MARKETING GREEN ",
}

// TestShapes delivers a webhook of each field, in the shape that Meta's reference shows, to the node that owns the
// session, twice.
func TestShapes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/webhook/*.json")
	if err != nil || len(files) != len(shapes) {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w := newHealth(t, storetest.SQLite)
			w.clock.Advance(time.Until(time.Unix(1795165200, 0)) - time.Until(w.clock.Now()) + time.Second)
			w.until("online", func() bool { return w.conn.Online(w.session) })
			w.peer.CanSend(w.number.ID, "LIMITED")
			if slices.Contains(blocked, name) {
				w.peer.CanSend(w.number.ID, "BLOCKED")
			}
			if field := regexp.MustCompile(`"field": "([a-z_]+)"`).FindSubmatch(body); name != "later_field" && !slices.Contains(puntuale.OfficialFields, string(field[1])) {
				t.Errorf("nobody is told to subscribe to %s", field[1])
			}
			if strings.Contains(shapes[name], "2000") {
				w.number.Tier = "TIER_2K"
				w.peer.Set(w.number)
			}
			for range 2 {
				w.deliver(body)
			}
			w.until("what the webhook means: "+shapes[name], func() bool { // without advice in the table, there is none
				return strings.HasPrefix(w.says(), shapes[name]) && (!strings.HasSuffix(shapes[name], "| ") || w.says() == shapes[name])
			})
			if want := templatesAfter[name]; want != "" {
				_, kept := w.templates()
				n := kept["uno it"]
				if got := fmt.Sprintf("%s %s %s %s", n.Status, n.Category, n.Quality, n.Reason); got != want {
					t.Errorf("the template is %q, want %q", got, want)
				}
			}
		})
	}
}

func newHealth(t *testing.T, d storetest.Driver) *waits {
	t.Helper()
	w := newWaits(t, d, pauseRow{heldAs: puntuale.Deferred, lasts: 72 * time.Hour})
	w.w.Exec("update session set number = '+39021234101' where id = $1", int64(w.session)) // the session manager stores it
	return w
}

// says returns a summary of the session's health.
func (w *waits) says() string {
	w.t.Helper()
	h, err := w.w.SessionHealth(w.within(), w.c.ID, w.session, w.clock.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	restriction := h.Restriction
	if !h.RestrictedUntil.IsZero() {
		restriction += " until " + h.RestrictedUntil.UTC().Format(time.RFC3339)
	}
	advice := ""
	for _, a := range h.Advice {
		if !strings.HasPrefix(italian(a), "Meta limita gli invii") { // only the test makes the number LIMITED
			advice = italian(a)
			break
		}
	}
	return fmt.Sprintf("%s %d %s %s %s | %s", h.Quality, h.Limit, restriction, h.DisplayName, h.DirectSend, advice)
}

// about delivers a report about the business to the node that owns the session.
func (w *waits) about(field string, at time.Time, value map[string]any) {
	w.t.Helper()
	w.deliver(w.peer.AboutAccount(w.number.Account, field, at, value))
}

func restriction(kind string, until time.Time) map[string]any {
	return map[string]any{"event": "ACCOUNT_RESTRICTION", "restriction_info": []any{map[string]any{"restriction_type": kind, "expiration": until.Unix()}}}
}

// TestObeys: what Meta reports and confirms holds back the messages that it names, on every node and after a restart,
// until it ends. Reports that Meta does not confirm stop nothing.
func TestObeys(t *testing.T) {
	t.Parallel()
	free := func(p probe) bool { return p.what == "text" }
	utility := func(p probe) bool { return p.what == "uno" || p.what == "due" }
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		for kind, held := range map[string]func(probe) bool{
			puntuale.RestrictedTemplates: templates, puntuale.RestrictedFreeText: free, puntuale.RestrictedUtility: utility,
			puntuale.RestrictedDirectSend: nothing, puntuale.RestrictedAddNumber: nothing,
		} {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				w := newHealth(t, d)
				end := w.clock.Now().Add(3 * time.Hour)
				w.about("account_update", w.clock.Now(), restriction(kind, end))
				w.settle()
				w.check("Meta says that it can send", nothing)
				w.peer.CanSend(w.number.Account, "LIMITED")
				w.about("account_update", w.clock.Now(), restriction(kind, end))
				w.settle()
				w.check("confirmed", held)
				w.about("account_update", w.clock.Now().Add(-time.Hour), restriction(kind, w.clock.Now())) // late: an older report
				w.settle()
				w.check("after a late report", held)
				w.restart()
				w.check("after a restart", held)
				w.conn.Close(w.within(), w.session)
				w.clock.Advance(3 * time.Hour)
				w.conn = official.New(w.config)
				w.open(w.session)
				w.check("after its end", nothing)
			})
		}
		stops := map[string]struct {
			field    string
			on, off  map[string]any
			state    puntuale.LinkState
			restores bool
		}{
			"ban":    {"account_update", map[string]any{"event": "DISABLED_UPDATE", "ban_info": map[string]any{"waba_ban_state": "DISABLE"}}, map[string]any{"event": "DISABLED_UPDATE", "ban_info": map[string]any{"waba_ban_state": "REINSTATE"}}, puntuale.LinkLinked, true},
			"review": {"account_review_update", map[string]any{"decision": "PENDING"}, map[string]any{"decision": "APPROVED"}, puntuale.LinkLinked, true},
			"gone":   {"account_update", map[string]any{"event": "PARTNER_REMOVED"}, map[string]any{"event": "ACCOUNT_RECONNECTED"}, puntuale.LinkUnlinked, true},
		}
		for name, stop := range stops {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newHealth(t, d)
				w.about(stop.field, w.clock.Now(), stop.on)
				w.settle()
				w.check("not confirmed", nothing)
				w.peer.CanSend(w.number.ID, "BLOCKED")
				w.about(stop.field, w.clock.Now(), stop.on)
				w.until("it stops", func() bool { return !w.conn.Online(w.session) && w.last().State == stop.state })
				w.restart()
				if w.conn.Online(w.session) {
					t.Error("online after a restart")
				}
				w.refusedBy(elsewhere, text("x"), puntuale.SessionDown)
				w.clock.Advance(time.Minute)
				w.about(stop.field, w.clock.Now(), stop.off)
				w.about(stop.field, w.clock.Now().Add(-30*time.Second), stop.on) // late
				w.until("it goes on", func() bool { return w.conn.Online(w.session) })
				w.must(elsewhere, text("x"))
				if keys, sealed, err := w.w.SealedKeys(t.Context(), w.session); err != nil || keys != w.c.ID || sealed == nil {
					t.Errorf("the keys: %v, %v", sealed != nil, err)
				}
			})
		}
	})
}

// settle waits until the status check after a report ended.
func (w *waits) settle() {
	w.t.Helper()
	before := w.peer.Looked()
	w.test()
	if w.peer.Looked() == before {
		w.t.Error("Meta was not asked")
	}
}

// TestOldHint: a report that Meta did not confirm is forgotten after a day in which the number could send. Then a limit for
// another reason does not confirm it. A limited number still sends, so it confirms no ban at all.
func TestOldHint(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		w := newHealth(t, d)
		gone := map[string]any{"event": "PARTNER_REMOVED"}
		w.about("account_update", w.clock.Now(), gone)
		w.settle()
		w.clock.Advance(25 * time.Hour)
		w.settle()
		w.peer.CanSend(w.number.ID, "BLOCKED")
		w.test()
		w.must(elsewhere, approved("uno"))
		w.peer.CanSend(w.number.ID, "LIMITED")
		w.about("account_update", w.clock.Now(), gone)
		w.settle()
		w.must(elsewhere, approved("uno"))
	})
}

// TestSilentHealth: while Meta does not say whether a number can send, a report stops nothing.
func TestSilentHealth(t *testing.T) {
	t.Parallel()
	w := newHealth(t, storetest.SQLite)
	w.peer.CanSend(w.number.Account, "")
	w.about("account_review_update", w.clock.Now(), map[string]any{"decision": "REJECTED"})
	w.settle()
	w.check("while Meta is silent", nothing)
	w.peer.CanSend(w.number.Account, "BLOCKED")
	w.advance(5*time.Minute, false) // the connector asks again
}

// TestPortfolioLimit: a new limit counts at once for all numbers of the portfolio. A late report does not bring an old
// limit back.
func TestPortfolioLimit(t *testing.T) {
	t.Parallel()
	w := newHealth(t, storetest.SQLite)
	n := graphtest.NewNumber("102")
	n.Account, n.Secret, n.App = "55102", w.number.Secret, w.number.App // another business of the same portfolio and app
	w.peer.Set(n)
	other := w.newSession(n)
	w.open(other)
	w.until("online", func() bool { return w.conn.Online(other) })
	w.clock.Advance(time.Minute)
	w.peer.Look(func() graphtest.Reply { return graphtest.Reply{Break: true} }) // the limit comes only from the report
	if err := w.clock.Waiting(w.within(), 2); err != nil {                      // no earlier look at a number is under way any more
		t.Fatal(err)
	}
	limits := func() (all []int) {
		for _, id := range []puntuale.SessionID{w.session, other} {
			l, err := w.c.SessionLoad(t.Context(), id, w.clock.Now())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, l.Portfolio.Limit)
		}
		return all
	}
	at := w.clock.Now()
	w.about("business_capability_update", at, map[string]any{"max_daily_conversations_per_business": "TIER_3"})
	w.until("both have the limit", func() bool { return slices.Equal(limits(), []int{3, 3}) })
	w.about("business_capability_update", at.Add(-time.Second), map[string]any{"max_daily_conversations_per_business": 9000})
	w.deliver(w.peer.AboutAccount(n.Account, "security", at, map[string]any{"event": "PIN_CHANGED"})) // by the address of the app's first number
	if h, err := w.w.SessionHealth(w.within(), w.c.ID, other, w.clock.Now()); err != nil || h.Delivered.IsZero() {
		t.Errorf("nothing came about the second number: %+v, %v", h, err)
	}
	for _, unknown := range []string{"", "TIER_LATER"} {
		w.number.Tier, n.Tier = unknown, unknown // both numbers are looked at, also without a test
		w.peer.Set(w.number)
		w.peer.Set(n)
		w.peer.Look(nil)
		w.test()
	}
	if got := limits(); !slices.Equal(got, []int{3, 3}) {
		t.Errorf("limits %v", got)
	}
	w.until("the fourth person waits", func() bool {
		for _, to := range []string{"+393330000001", "+393330000002", "+393330000003", "+393330000004"} {
			if _, err := w.send(to, approved("uno")); err != nil {
				return puntuale.AsSendError(err).Kind == puntuale.Deferred
			}
		}
		return false
	})
	w.about("business_capability_update", w.clock.Now(), map[string]any{"max_daily_conversations_per_business": -1})
	w.until("no limit", func() bool { return slices.Equal(limits(), []int{0, 0}) })
}

// TestHealthEvents: a change is one event and one notice for people, also if Meta reports it twice. The first healthy
// answer is none.
func TestHealthEvents(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		w := newHealth(t, d)
		w.w.Exec("insert into event_stream (client_id, wanted, feed_until, last_seq) values ($1, $2, $3, 0)", int64(w.c.ID), int64(puntuale.AllEvents), w.clock.Now().Add(time.Hour).UnixMicro())
		count := func(table string, kind int64) int64 {
			column := map[string]string{"outbox_fact": "type", "notice": "kind"}[table]
			return w.w.Int(fmt.Sprintf("select count(*) from %s where client_id = %d and %s = %d", table, w.c.ID, column, kind))
		}
		if n := count("notice", int64(puntuale.NoticeHealth)); n != 0 {
			t.Errorf("%d notices at first", n)
		}
		for range 2 {
			w.about("phone_number_name_update", w.clock.Now(), map[string]any{"display_phone_number": "39021234101", "decision": "REJECTED", "requested_verified_name": "X", "rejection_reason": "Y"})
		}
		w.about("phone_number_name_update", w.clock.Now(), map[string]any{"display_phone_number": "39021234999", "decision": "PENDING"}) // of a number that is not here
		if n, m := count("notice", int64(puntuale.NoticeHealth)), count("outbox_fact", int64(puntuale.EventSessionHealth)); n != 1 || m != 1 {
			t.Errorf("%d notices and %d events", n, m)
		}
	})
}
