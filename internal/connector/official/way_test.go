package official_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/store/storetest"
)

const reached = "+393331111111"

// settings changes which of Meta's optional ways the session may use.
func (w *world) settings(s puntuale.WaySettings) {
	w.t.Helper()
	if err := w.c.UpdateSession(context.Background(), w.session, puntuale.SessionPatch{Ways: puntuale.ChangeTo(s)}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) state() puntuale.DirectSendState {
	w.t.Helper()
	ways, err := w.c.Tenant.OfficialWays(context.Background(), w.session, w.clock.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	state, _ := ways.DirectState(w.clock.Now())
	return state
}

// left returns the last message that Meta took.
func (w *world) left() graphtest.Taken {
	w.t.Helper()
	all := w.peer.Taken()
	if len(all) == 0 {
		w.t.Fatal("Meta took no message")
	}
	return all[len(all)-1]
}

func (w *world) leaves(to string, c puntuale.Content, mark string) graphtest.Taken {
	w.t.Helper()
	before := len(w.peer.Taken())
	receipt, err := w.send(to, c)
	if err != nil {
		w.t.Fatalf("send: %v", err)
	}
	if n := len(w.peer.Taken()) - before; n != 1 {
		w.t.Fatalf("Meta took %d messages", n)
	}
	if detail := italian(receipt.Detail); !strings.HasSuffix(detail, mark) {
		w.t.Errorf("the detail is %q, want the mark %q", detail, mark)
	}
	return w.left()
}

// both returns a content with a text and an approved template.
func both(name string) puntuale.Content {
	c := approved(name)
	c.Text = "testo"
	return c
}

// inBoth runs a test on both databases.
func inBoth(t *testing.T, run func(t *testing.T, w *world)) {
	onBoth(t, func(t *testing.T, driver storetest.Driver) { run(t, newWorld(t, setup{driver: driver})) })
}

// TestFreeTextBeforeTemplate: within the 24-hour window, the text leaves instead of the template.
func TestFreeTextBeforeTemplate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	if m := w.leaves(reached, both("promemoria"), "").Message; m.Type != "template" {
		t.Errorf("outside of the window: %+v", m)
	}
	w.wrote(reached)
	if m := w.leaves(reached, both("promemoria"), puntuale.MarkFreeText).Message; m.Type != "text" || m.Text.Body != "testo" {
		t.Errorf("within the window: %+v", m)
	}
}

// TestDirectSend: service texts outside the window leave by Direct Send, with the time that is left.
func TestDirectSend(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *world) {
		w.peer.Business(w.number.Account).DirectSend = true
		_, err := w.send(reached, text("Ci vediamo domani"))
		w.refused(err, puntuale.Final) // the client has not switched it on
		w.settings(puntuale.WaySettings{DirectSend: true})
		if s := w.state(); s != puntuale.DirectSendUnknown {
			t.Errorf("before: %s", s)
		}
		for left, want := range map[time.Duration]int{time.Second: 30, time.Hour: 3600, 48 * time.Hour: 43200} {
			e := w.envelope(reached, text("https://example.com domani"))
			e.ValidUntil = w.clock.Now().Add(left)
			p, err := w.conn.Prepare(w.within(), e)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = w.conn.Send(w.within(), p); err != nil {
				t.Fatal(err)
			}
			if m := w.left().Message; m.Category != "utility" || m.TTL == nil || *m.TTL != want {
				t.Errorf("%v left: %+v", left, m)
			}
		}
		if s := w.state(); s != puntuale.DirectSendOn {
			t.Errorf("after: %s", s)
		}
		if m := w.leaves(reached, both("promemoria"), puntuale.MarkDirectSend).Message; m.Category != "utility" || m.Template != nil {
			t.Errorf("with a template: %+v", m)
		}
		campaign := w.envelope(reached, text("x"))
		campaign.Campaign = true
		_, err = w.conn.Prepare(w.within(), campaign)
		w.refused(err, puntuale.Final)
	})
}

// TestDirectSendRefused: after a refusal of Direct Send, the template leaves in the same attempt, and the state stays
// after a restart.
func TestDirectSendRefused(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *world) {
		w.settings(puntuale.WaySettings{DirectSend: true})
		if m := w.leaves(reached, both("promemoria"), "").Message; m.Type != "template" || m.Category != "" {
			t.Errorf("not enabled: %+v", m)
		}
		if asked := w.peer.Asked(); asked != 2 || w.state() != puntuale.DirectSendOff {
			t.Errorf("%d requests, state %s", asked, w.state())
		}
		w.restart()
		if w.leaves(reached, both("promemoria"), ""); w.peer.Asked() != 3 {
			t.Errorf("%d requests after a restart", w.peer.Asked())
		}
		_, err := w.send(reached, text("x"))
		if e := w.refused(err, puntuale.Final); e.Reason.Code != "official.direct_send_off" {
			t.Errorf("without a template: %+v", e)
		}
		w.peer.Business(w.number.Account).DirectSend = true
		w.clock.Advance(25 * time.Hour)
		w.leaves(reached, text("x"), puntuale.MarkDirectSend) // tried again after a day

		w.peer.Answer(func(m graphtest.Message) graphtest.Reply {
			if m.Category != "" {
				return graphtest.Reply{Code: 139200}
			}
			return graphtest.Reply{}
		})
		w.leaves(reached, both("promemoria"), "")
		if err := w.conn.Test(w.within(), w.session); err != nil {
			t.Fatal(err)
		}
		if s := w.state(); s != puntuale.DirectSendBlocked { // a test does not end it
			t.Errorf("after 139200: %s", s)
		}
		_, err = w.send(reached, text("x"))
		if e := w.refused(err, puntuale.Final); e.Reason.Code != "official.direct_send_blocked" {
			t.Errorf("blocked: %+v", e)
		}
	})
}

// TestDirectSendWaits: if Meta refuses Direct Send while the template cannot be sent, the message waits for the template.
func TestDirectSendWaits(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *world) {
		w.settings(puntuale.WaySettings{DirectSend: true})
		w.deliver(w.peer.TemplateEvent(w.number.Account, "uno", "it", "PAUSED", "", w.clock.Now()))
		_, err := w.send(reached, both("uno"))
		w.refused(err, puntuale.Deferred)
		_, err = w.send(reached, both("uno"))
		if e := w.refused(err, puntuale.Deferred); e.Reason.Code != puntuale.ReasonTemplatePaused {
			t.Errorf("%+v", e)
		}
	})
}

// TestDirectSendOnce: if the answer is lost, no template follows.
func TestDirectSendOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.peer.Business(w.number.Account).DirectSend = true
	w.settings(puntuale.WaySettings{DirectSend: true})
	w.peer.Answer(func(graphtest.Message) graphtest.Reply { return graphtest.Reply{Drop: true} })
	_, err := w.send(reached, both("promemoria"))
	if err == nil || puntuale.AsSendError(err) != nil || len(w.peer.Taken()) != 1 {
		t.Errorf("%v, Meta took %d messages", err, len(w.peer.Taken()))
	}
}

// promo lists a marketing template, and makes the connector read it.
func (w *world) promo() {
	w.t.Helper()
	promo := graphtest.NewTemplate("promo", "Ciao {{1}}")
	promo.Category = "MARKETING"
	w.peer.SetTemplates(w.number.Account, promo)
	if err := w.conn.Test(w.within(), w.session); err != nil {
		w.t.Fatal(err)
	}
}

// TestMarketingPath: marketing templates leave by their own path, if the client wants it, after the business opted out of
// creative features.
func TestMarketingPath(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *world) {
		w.promo()
		b := w.peer.Business(w.number.Account)
		b.MarketingPath = true
		if m := w.leaves(reached, approved("promo"), ""); m.Path != "" {
			t.Errorf("off: %+v", m)
		}
		w.settings(puntuale.WaySettings{Marketing: true})
		for range 2 {
			m := w.leaves(reached, approved("promo"), puntuale.MarkMarketing)
			if m.Path != "marketing_messages" || m.Message.Policy != "CLOUD_API_FALLBACK" || m.Message.Sharing == nil || *m.Message.Sharing {
				t.Errorf("on: %+v", m)
			}
		}
		if b.OptedOut != 1 {
			t.Errorf("opted out %d times", b.OptedOut)
		}
		w.settings(puntuale.WaySettings{Marketing: true, Creative: true})
		for range 2 {
			w.leaves(reached, approved("promo"), puntuale.MarkMarketing)
		}
		if b.OptedIn != 1 {
			t.Errorf("opted in %d times", b.OptedIn)
		}
		b.MarketingPath = false // 134102
		asked := w.peer.Asked()
		if m := w.leaves(reached, approved("promo"), ""); m.Path != "" || w.peer.Asked() != asked+2 {
			t.Errorf("not accepted: %+v, %d requests", m, w.peer.Asked()-asked)
		}
		w.restart()
		if w.leaves(reached, approved("promo"), ""); w.peer.Asked() != asked+3 {
			t.Errorf("%d requests after a restart", w.peer.Asked()-asked)
		}
	})
}

// TestMarketingClosed: if Meta takes marketing only by its own path, marketing leaves by this path.
func TestMarketingClosed(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *world) {
		w.promo()
		b := w.peer.Business(w.number.Account)
		b.MarketingPath, b.MarketingClosed = true, true
		for i := range 2 {
			asked := w.peer.Asked()
			if m := w.leaves(reached, approved("promo"), puntuale.MarkMarketing); m.Path == "" || w.peer.Asked() != asked+2-i {
				t.Errorf("message %d: %+v, %d requests", i, m, w.peer.Asked()-asked)
			}
		}
		b.MarketingPath = false
		_, err := w.send(reached, approved("promo"))
		w.refused(err, puntuale.Deferred) // both paths are closed
	})
}

// TestMarketingNoOptOut: if Meta does not take the opt-out of creative features, no message leaves by the path.
func TestMarketingNoOptOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.promo()
	b := w.peer.Business(w.number.Account)
	b.MarketingPath, b.NoOptOut = true, true
	w.settings(puntuale.WaySettings{Marketing: true})
	if m := w.leaves(reached, approved("promo"), ""); m.Path != "" {
		t.Errorf("%+v", m)
	}
	w.settings(puntuale.WaySettings{Marketing: true, Creative: true})
	if err := w.conn.Test(w.within(), w.session); err != nil {
		t.Fatal(err)
	}
	w.leaves(reached, approved("promo"), puntuale.MarkMarketing)
}

// TestDirectSendStrikes: strikes that Meta reports stop Direct Send until their end, and until Meta lifts them.
func TestDirectSendStrikes(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *world) {
		w.peer.Business(w.number.Account).DirectSend = true
		w.settings(puntuale.WaySettings{DirectSend: true})
		strike := func(kind string, until time.Duration) {
			value := map[string]any{"event": "ACCOUNT_VIOLATION", "violation_info": map[string]any{"violation_type": "DIRECT_SEND_UTILITY_CATEGORY_ABUSE_" + kind}}
			if until > 0 {
				value["restriction_info"] = []any{map[string]any{"restriction_type": puntuale.RestrictedDirectSend, "expiration": w.clock.Now().Add(until).Unix()}}
			}
			w.deliver(w.peer.AboutAccount(w.number.Account, "account_update", w.clock.Now(), value))
		}
		for _, x := range []struct {
			kind         string
			until, after time.Duration
		}{{"STRIKE_1", 0, 7 * 24 * time.Hour}, {"STRIKE_2", 0, 30 * 24 * time.Hour}, {"STRIKE_1", 30 * time.Hour, 30 * time.Hour}} {
			strike(x.kind, x.until)
			w.clock.Advance(x.after - time.Minute)
			if s := w.state(); s != puntuale.DirectSendBlocked {
				t.Errorf("%s: %s", x.kind, s)
			}
			w.clock.Advance(2 * time.Minute)
			w.leaves(reached, text("x"), puntuale.MarkDirectSend)
		}
		refuses := true
		w.peer.Answer(func(m graphtest.Message) graphtest.Reply {
			if refuses && m.Category != "" {
				return graphtest.Reply{Code: 139200}
			}
			return graphtest.Reply{}
		})
		strike("OFFBOARD", 0)
		w.clock.Advance(400 * 24 * time.Hour)
		if s := w.state(); s != puntuale.DirectSendBlocked {
			t.Errorf("for good: %s", s)
		}
		strike("UNBAN", 0)
		w.leaves(reached, both("promemoria"), "") // Meta refuses once more
		if s := w.state(); s != puntuale.DirectSendBlocked {
			t.Errorf("after a refusal: %s", s)
		}
		refuses = false
		w.clock.Advance(time.Minute)
		strike("UNBAN", 0)
		w.leaves(reached, text("x"), puntuale.MarkDirectSend)
	})
}

// TestDirectSendFailsLater: after Meta reports that a message by Direct Send failed because of its way, the next message
// to the person leaves by its template.
func TestDirectSendFailsLater(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *world) {
		w.peer.Business(w.number.Account).DirectSend = true
		w.settings(puntuale.WaySettings{DirectSend: true})
		m := w.leaves(reached, text("x"), puntuale.MarkDirectSend)
		w.deliver(w.peer.Status(m, "failed", w.clock.Now(), 132015))
		w.restart()
		if m := w.leaves(reached, both("promemoria"), "").Message; m.Type != "template" {
			t.Errorf("%+v", m)
		}
		w.leaves("+393332222222", text("x"), puntuale.MarkDirectSend)
	})
}
