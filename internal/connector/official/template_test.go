package official_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/store/storetest"
)

func (w *world) test() {
	w.t.Helper()
	if err := w.conn.Test(w.within(), w.session); err != nil {
		w.t.Fatal(err)
	}
}

// templates returns the stored templates, and the result of the last read.
func (w *world) templates() (puntuale.NetworkTemplates, map[string]puntuale.NetworkTemplate) {
	w.t.Helper()
	about, all, _, err := w.c.NetworkTemplates(w.t.Context(), w.session, puntuale.Page{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	byName := map[string]puntuale.NetworkTemplate{}
	for _, t := range all {
		byName[t.Name+" "+t.Language] = t
	}
	return about, byName
}

// TestTemplatesAreRead: the connector reads the whole list, page by page, with the placeholders. It reads the list each
// hour, and when a person tests the session.
func TestTemplatesAreRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	full := graphtest.NewTemplate("promemoria", "Gentile {{nome}}, alle {{ora}} di {{ora}}")
	full.Format, full.Category = "NAMED", "MARKETING"
	full.Components = append(full.Components,
		map[string]any{"type": "HEADER", "format": "IMAGE", "example": map[string]any{"header_handle": []any{"x"}}},
		map[string]any{"type": "FOOTER", "text": "Studio"},
		map[string]any{"type": "BUTTONS", "buttons": []any{
			map[string]any{"type": "URL", "text": "Apri", "url": "https://x.example/{{1}}"}, map[string]any{"type": "QUICK_REPLY", "text": "Sì"},
		}})
	all := []graphtest.ListedTemplate{full}
	for i := range 7 {
		all = append(all, graphtest.NewTemplate(fmt.Sprintf("altro_%d", i), "testo"))
	}
	other := graphtest.NewTemplate("promemoria", "Dear {{1}}")
	other.Language, other.Status, other.Rejected = "en_US", "REJECTED", "SCAM"
	w.peer.SetTemplates(w.number.Account, append(all, other)...)
	w.peer.ListPage(3)
	w.test()
	about, kept := w.templates()
	if about.Account != w.number.Account || !about.Synced.Equal(w.clock.Now()) || !about.Problem.IsZero() || len(kept) != 9 {
		t.Fatalf("%+v, %d templates", about, len(kept))
	}
	got := kept["promemoria it"]
	if got.Status != puntuale.TemplateApproved || !got.Named || got.Category != "MARKETING" || got.Quality != "GREEN" || got.Reason != "" ||
		strings.Join(got.Part("BODY").Placeholders(), " ") != "nome ora" || got.Part("HEADER").Format != "IMAGE" ||
		len(got.Part("BUTTONS").Buttons) != 2 || !got.Part("BUTTONS").Buttons[0].Open() || got.Part("BUTTONS").Buttons[1].Open() {
		t.Errorf("kept %+v", got)
	}
	if got := kept["promemoria en_US"]; got.Status != puntuale.TemplateRejected || got.Reason != "SCAM" || got.Named {
		t.Errorf("kept %+v", got)
	}
	// A template that is no longer in Meta's list is also deleted in the store, at the next hourly read.
	listed := w.peer.Listed()
	w.peer.SetTemplates(w.number.Account, full)
	w.advance(time.Hour, true)
	w.until("the list was read again", func() bool { about, _ := w.templates(); return about.Synced.Equal(w.clock.Now()) })
	if _, kept = w.templates(); kept["altro_1 it"].Status != puntuale.TemplateDeleted || kept["promemoria it"].Status != puntuale.TemplateApproved || w.peer.Listed() == listed {
		t.Errorf("kept %+v", kept)
	}
	if faults := w.peer.Faults(); len(faults) > 0 { // the peer reports a fault if the connector follows the address of the next page
		t.Errorf("%v", faults)
	}
}

// TestTemplatesThatCannotBeRead: if the templates cannot be read, the number can still send. The session's detail
// explains the reason in plain words.
func TestTemplatesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		number func(*graphtest.Number) // changes the number in the session's keys
		list   *graphtest.Reply
		says   string
	}{
		"another business":     {number: func(n *graphtest.Number) { n.Account = "999" }, says: "business_account_id non esiste, o il token non può vederlo (codice Meta 100)"},
		"no permission":        {list: &graphtest.Reply{Code: 200}, says: "Il token non ha il permesso whatsapp_business_management (codice Meta 200)"},
		"too many calls":       {list: &graphtest.Reply{Code: 80007}, says: "I server di Meta non rispondono, riprova tra poco (codice Meta 80007)"},
		"Meta has trouble":     {list: &graphtest.Reply{Status: 502, Body: "x"}, says: "I server di Meta non rispondono, riprova tra poco"},
		"not the number's own": {says: "business_account_id non è l'account a cui appartiene il numero"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			w.peer.SetTemplates(w.number.Account, graphtest.NewTemplate("uno", "x"))
			w.test()
			n := w.number
			switch {
			case test.number != nil:
				test.number(&n)
			case test.list != nil:
				w.peer.List(func() graphtest.Reply { return *test.list })
			default: // the token may see the business, but the number belongs to another business
				elsewhere := graphtest.NewNumber("102")
				elsewhere.Token, elsewhere.Secret = n.Token, n.Secret
				w.peer.Set(elsewhere)
				n.Account = elsewhere.Account
			}
			if err := w.c.SetKeys(t.Context(), w.session, w.seal(w.session, n)); err != nil {
				t.Fatal(err)
			}
			w.test()
			about, _ := w.templates()
			if italian(about.Problem) != test.says || !w.conn.Online(w.session) || !w.last().Detail.IsZero() {
				t.Errorf("%+v, reported %+v", about, w.last())
			}
			if english(about.Problem) == italian(about.Problem) {
				t.Errorf("no English: %q", about.Problem)
			}
		})
	}
}

// TestTemplateStates: a template's state comes in the list or by webhook. Messages with the template then leave, wait,
// or fail with the reason. For messages that wait or fail, no request goes to Meta.
func TestTemplateStates(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, driver storetest.Driver) {
		w := newWorld(t, setup{driver: driver})
		const person = "+393331111111"
		one, two := graphtest.NewTemplate("uno", "Ciao {{1}}"), graphtest.NewTemplate("due", "Ciao {{1}}")
		w.peer.SetTemplates(w.number.Account, one, two)
		w.test()
		at := w.clock.Now()
		for _, step := range []struct {
			event, reason string
			kind          puntuale.SendErrorKind // 0: the message must leave
			says          string
		}{
			{"PAUSED", "NONE", puntuale.Deferred, "Template in pausa per bassa qualità"},
			{"APPROVED", "NONE", 0, ""},
			{"PENDING", "", puntuale.Deferred, "Template in attesa di approvazione da parte di WhatsApp"},
			{"REJECTED", "SCAM", puntuale.Final, "Template respinto da WhatsApp"},
			{"IN_APPEAL", "", puntuale.Deferred, "Template respinto da WhatsApp, ricorso in corso"},
			{"FLAGGED", "", 0, ""},
			{"DISABLED", "", puntuale.Final, "Template disattivato per bassa qualità"},
			{"LOCKED", "", puntuale.Final, "Template disattivato per bassa qualità"}, // LOCKED is about who may edit the template, so the template stays disabled
			{"REINSTATED", "", 0, ""},
			{"LIMIT_EXCEEDED", "", puntuale.Deferred, "Troppi template nell'account WhatsApp Business"},
			{"PENDING_DELETION", "", puntuale.Final, "Template eliminato su WhatsApp"},
			{"DELETED", "", puntuale.Final, "Template eliminato su WhatsApp"},
			{"ARCHIVED", "", 0, ""}, // the message is sent, because Meta decides whether an archived template may be used
		} {
			w.clock.Advance(time.Minute)
			at = w.clock.Now()
			if listed, ok := map[string]string{"FLAGGED": "APPROVED", "REINSTATED": "APPROVED", "LOCKED": "DISABLED"}[step.event]; ok {
				one.Status = listed
			} else {
				one.Status = step.event
			}
			w.peer.SetTemplates(w.number.Account, one, two) // the list gets the new state, too, because the connector may read the list at any time
			w.deliver(w.peer.TemplateEvent(w.number.Account, "uno", "it", step.event, step.reason, at))
			asked := w.peer.Asked()
			_, err := w.send(person, approved("uno"))
			switch {
			case step.kind == 0 && err != nil:
				t.Errorf("%s: %v", step.event, err)
			case step.kind != 0:
				if e := w.refused(err, step.kind); italian(e.Reason) != step.says || e.Kind == puntuale.Deferred && e.After != 15*time.Minute || w.peer.Asked() != asked {
					t.Errorf("%s: %+v, %d asked", step.event, e, w.peer.Asked()-asked)
				}
				if e := w.refused(err, step.kind); english(e.Reason) == step.says {
					t.Errorf("no English: %q", step.says)
				}
			}
			w.must(person, approved("due"))
		}
		// An older or repeated event changes nothing. An event about quality or category does not change the state.
		w.deliver(w.peer.TemplateEvent(w.number.Account, "uno", "it", "PAUSED", "", at.Add(-10*time.Second)))
		one.Quality, one.Category = map[string]any{"score": "RED"}, "MARKETING"
		w.peer.SetTemplates(w.number.Account, one, two)
		w.deliver(w.peer.TemplateQuality(w.number.Account, "uno", "it", "RED", at))
		w.deliver(w.peer.TemplateCategory(w.number.Account, "uno", "it", "MARKETING", at))
		_, kept := w.templates()
		if got := kept["uno it"]; got.Status != "ARCHIVED" || got.Quality != "RED" || got.Category != "MARKETING" {
			t.Errorf("kept %+v", got)
		}
		// The first event is about a template that no list contained, with a language as webhooks write it. The second
		// event is about another business.
		w.deliver(w.peer.TemplateEvent(w.number.Account, "nuovo", "en-US", "PAUSED", "", at))
		w.deliver(w.peer.TemplateEvent("999", "uno", "it", "PAUSED", "", at))
		_, kept = w.templates()
		if kept["nuovo en_US"].Status != puntuale.TemplatePaused || kept["uno it"].Status != "ARCHIVED" || len(kept) != 3 {
			t.Errorf("kept %+v", kept)
		}
		// After a refusal the connector reads the list again. The list shows whether the template may be used again.
		w.clock.Advance(10 * time.Minute)
		gone := graphtest.NewTemplate("due", "x")
		gone.Status = "DISABLED"
		w.peer.SetTemplates(w.number.Account, gone)
		w.peer.Answer(func(graphtest.Message) graphtest.Reply { return graphtest.Reply{Code: 132016} })
		w.refusedBy(person, approved("due"), puntuale.Deferred)
		w.until("the list was read", func() bool { _, kept := w.templates(); return kept["due it"].Status == puntuale.TemplateDisabled })
		w.clock.Advance(15 * time.Minute)
		w.refusedBy(person, approved("due"), puntuale.Final)
	})
}

func (w *world) refusedBy(to string, c puntuale.Content, kind puntuale.SendErrorKind) {
	w.t.Helper()
	_, err := w.send(to, c)
	w.refused(err, kind)
}

// TestMarketingRests: after Meta refused marketing to a person, no marketing to that person leaves for 24 hours. Other
// messages still leave.
func TestMarketingRests(t *testing.T) {
	t.Parallel()
	const id = "IT.ENT.11815799212886844830"
	for how, to := range map[string]string{"an answer": person, "a webhook": person, "a webhook about a hidden number": id, "a webhook with both names": person} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			switch {
			case to == id:
				w.peer.Know(to, graphtest.Name{ID: to})
			case how == "a webhook with both names":
				w.peer.Know(to, graphtest.Name{Number: strings.TrimPrefix(to, "+"), ID: id})
			}
			promo, other := graphtest.NewTemplate("promo", "x"), graphtest.NewTemplate("altra", "x")
			promo.Category, other.Category = "MARKETING", "MARKETING"
			w.peer.SetTemplates(w.number.Account, promo, other, graphtest.NewTemplate("utile", "x"))
			w.test()
			if how == "an answer" {
				w.peer.Answer(func(graphtest.Message) graphtest.Reply { return graphtest.Reply{Code: 131049} })
				w.refusedBy(to, approved("promo"), puntuale.Deferred)
				w.peer.Answer(nil)
			} else {
				w.deliver(w.peer.Status(w.must(to, approved("promo")), "failed", w.clock.Now(), 131049))
			}
			asked := w.peer.Asked()
			_, err := w.send(to, approved("altra"))
			if e := w.refused(err, puntuale.Deferred); e.After != 24*time.Hour || w.peer.Asked() != asked {
				t.Errorf("%+v, %d asked", e, w.peer.Asked()-asked)
			}
			if how == "a webhook with both names" {
				w.refusedBy(id, approved("altra"), puntuale.Deferred)
			}
			w.must(to, approved("utile"))
			w.must("+393339999999", approved("altra"))
			w.clock.Advance(24 * time.Hour)
			w.until("online again", func() bool { return w.conn.Online(w.session) })
			w.must(to, approved("altra"))
		})
	}
}

// TestTemplateContents sends templates with all kinds of parts. These are headers with text, media or a location,
// bodies with numbered or named placeholders, and each kind of button.
func TestTemplateContents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	degrees := func(v float64) *float64 { return &v }
	base := puntuale.Approved{Name: "t", Language: "it"}
	for name, test := range map[string]struct {
		content func(c *puntuale.Content)
		want    string
	}{
		"bare":     {func(*puntuale.Content) {}, ``},
		"numbered": {func(c *puntuale.Content) { c.Official.Body = []puntuale.Parameter{{Text: "a"}, {Text: "b"}} }, `[body [text a] [text b]]`},
		"named": {func(c *puntuale.Content) {
			c.Official.Header, c.Official.Body = []puntuale.Parameter{{Name: "h", Text: "x"}}, []puntuale.Parameter{{Name: "n", Text: "a"}}
		}, `[header [text h=x]] [body [text n=a]]`},
		"image":    {func(c *puntuale.Content) { c.MediaURL = "https://x.example/a.png" }, `[header [image]]`},
		"video":    {func(c *puntuale.Content) { c.MediaURL = "https://x.example/a.mp4" }, `[header [video]]`},
		"document": {func(c *puntuale.Content) { c.MediaURL, c.MediaName = "https://x.example/a.pdf", "b.pdf" }, `[header [document b.pdf]]`},
		"place":    {func(c *puntuale.Content) { c.Latitude, c.Longitude = degrees(45.5), degrees(9.25) }, `[header [location 45.5 9.25]]`},
		"buttons": {func(c *puntuale.Content) {
			c.MediaURL = "https://x.example/a.png"
			c.Official.Body = []puntuale.Parameter{{Text: "a"}}
			c.Official.Buttons = []puntuale.Button{{Index: 0, Kind: puntuale.ButtonURL, Text: "fine"}, {Index: 1, Kind: puntuale.ButtonReply, Text: "SI"}, {Index: 3, Kind: puntuale.ButtonCode, Text: "X1"}}
		}, `[header [image]] [body [text a]] [button url 0 [text fine]] [button quick_reply 1 [payload SI]] [button copy_code 3 [coupon_code X1]]`},
	} {
		c := puntuale.Content{Text: "t", Template: "t", Official: new(base)}
		test.content(&c)
		if got := componentsOf(w.must("+393331111111", c).Message.Template); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// componentsOf returns a template's components as one short text.
func componentsOf(t *graphtest.Template) string {
	var out []string
	for _, c := range t.Components {
		text := c.Type
		if c.SubType != "" {
			text += " " + c.SubType + " " + c.Index
		}
		for _, p := range c.Parameters {
			text += " [" + p.Type
			switch {
			case p.Name != "":
				text += " " + p.Name + "=" + p.Text
			case p.Document != nil:
				text += " " + p.Document.Filename
			case p.Location != nil:
				text += " " + p.Location.Latitude + " " + p.Location.Longitude
			case p.Text+p.Payload+p.Code != "":
				text += " " + p.Text + p.Payload + p.Code
			}
			text += "]"
		}
		out = append(out, "["+text+"]")
	}
	return strings.Join(out, " ")
}

// TestOneAppOfManyNumbers: an app has one webhook. Each delivery reaches only the sessions with the app's secret.
func TestOneAppOfManyNumbers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, driver storetest.Driver) {
		w := newWorld(t, setup{driver: driver})
		const person = "+393331111111"
		sibling := graphtest.NewNumber("102")
		sibling.Secret, sibling.Account = w.number.Secret, w.number.Account
		stranger := graphtest.NewNumber("103")
		w.peer.Set(sibling)
		w.peer.Set(stranger)
		second, third := w.newSession(sibling), w.newSession(stranger)
		w.open(second)
		w.open(third)
		w.until("both are online", func() bool { return w.conn.Online(second) && w.conn.Online(third) })
		hears := func(number string, session puntuale.SessionID, want bool) {
			t.Helper()
			if status := w.peer.Deliver(w.webhook, w.number.ID, w.peer.Wrote(number, person, w.clock.Now())); status != http.StatusOK {
				t.Errorf("answered %d", status)
			}
			windowEnd, err := w.w.ReplyWindowEnd(t.Context(), w.c.ID, session, person)
			if err != nil || windowEnd.IsZero() == want {
				t.Errorf("number %s: a window until %v, %v", number, windowEnd, err)
			}
		}
		// The peer signs with the first number's secret. The second number has the same secret, and the third has
		// another one.
		hears("101", w.session, true)
		hears("102", second, true)
		hears("103", third, false)
		hears("104", third, false)
		w.peer.SetTemplates(sibling.Account, graphtest.NewTemplate("uno", "x"))
		w.test()
		w.deliver(w.peer.TemplateEvent(sibling.Account, "uno", "it", "PAUSED", "", w.clock.Now()))
		if _, kept := w.templates(); kept["uno it"].Status != puntuale.TemplatePaused {
			t.Errorf("kept %+v", kept)
		}
		w.deliver(w.peer.TemplateEvent(stranger.Account, "uno", "it", "PAUSED", "", w.clock.Now()))
		if n := w.w.Int("select count(*) from network_template"); n != 1 {
			t.Errorf("%d templates are kept", n)
		}
	})
}

// TestBadCursor: if Meta no longer accepts the cursor of a list, the connector reads the list again from its first page,
// once.
func TestBadCursor(t *testing.T) {
	t.Parallel()
	for broken, read := range map[int]bool{1: true, 9: false} {
		w := newWorld(t, setup{})
		w.peer.SetTemplates(w.number.Account, graphtest.NewTemplate("uno", "x"), graphtest.NewTemplate("due", "x"), graphtest.NewTemplate("tre", "x"))
		w.peer.ListPage(2)
		var mu sync.Mutex
		requests := 0
		w.peer.List(func() graphtest.Reply {
			mu.Lock()
			defer mu.Unlock()
			if requests++; requests > 2 && requests%2 == 1 && broken > 0 { // the first two requests are for the numbers and the first page
				broken--
				return graphtest.Reply{Code: 131059}
			}
			return graphtest.Reply{}
		})
		w.test()
		_, kept := w.templates()
		if got := len(kept) == 3; got != read {
			t.Errorf("kept %+v after %d requests", kept, requests)
		}
	}
}

// TestLaterComponents: components and entries that this version does not know do not hide the rest of a list.
func TestLaterComponents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	later := graphtest.NewTemplate("nuovo", "Ciao {{1}}")
	later.Components = append(later.Components, map[string]any{"type": "CAROUSEL", "cards": []any{map[string]any{"x": 1}}}, map[string]any{"type": "BUTTONS", "buttons": "later"}, map[string]any{"limited_time_offer": true})
	odd := graphtest.NewTemplate("strano", "x")
	odd.Quality = map[string]any{"score": 7}
	w.peer.SetTemplates(w.number.Account, odd, later, graphtest.NewTemplate("uno", "x"))
	w.test()
	_, kept := w.templates()
	if len(kept) != 2 || len(kept["nuovo it"].Parts) != 4 || kept["nuovo it"].Parts[1].Kind != "CAROUSEL" || kept["nuovo it"].Part("BODY").Text != "Ciao {{1}}" {
		t.Errorf("kept %+v", kept)
	}
}
