package official_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/store/storetest"
)

func orderReady() puntuale.TemplateDraft {
	return puntuale.TemplateDraft{
		Name: "ordine_pronto", Language: "it", Category: puntuale.CategoryUtility, Text: "Ciao {{nome}}, il tuo ordine {{numero}} è pronto per il ritiro.",
		Footer: "Bottega", Header: &puntuale.DraftHeader{Kind: "text", Text: "Ordine {{numero}}"},
		Buttons: []puntuale.DraftButton{{Kind: "quick_reply", Text: "Grazie"}, {Kind: "url", Text: "Apri", URL: "https://x.it/o/{{numero}}"},
			{Kind: "phone", Text: "Chiama", Phone: "+39021234567"}, {Kind: "copy_code", Code: "SAVE20"}},
		Examples: map[string]string{"nome": "Ada", "numero": "17"},
	}
}

// request stores a request, as the control does before the call.
func (w *world) request(r puntuale.TemplateRequest) puntuale.TemplateRequestID {
	w.t.Helper()
	w.until("the business is known", func() bool {
		about, _, _, err := w.c.NetworkTemplates(context.Background(), w.session, puntuale.Page{Limit: 1})
		return err == nil && about.Account == w.number.Account
	})
	r.Session, r.Account, r.Made = w.session, w.number.Account, w.clock.Now()
	if r.Name == "" {
		r.Name, r.Language = r.Draft.Name, r.Draft.Language
	}
	id, err := w.c.RequestTemplate(context.Background(), r, func(puntuale.TemplateUsage) error { return nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// become waits until a request has a state, and returns the request. Time passes only while the connector waits for it:
// otherwise an hour passes during one slow call, and the request ends.
func (w *world) become(id puntuale.TemplateRequestID, state puntuale.TemplateRequestState) (r puntuale.TemplateRequest) {
	w.t.Helper()
	w.until("the request's end", func() bool {
		var err error
		if r, err = w.c.TemplateRequest(context.Background(), id); err != nil {
			w.t.Fatal(err)
		}
		if r.State != state && !r.Ended.IsZero() {
			w.t.Fatalf("the request ended: %d, %q", r.State, english(r.Reason))
		}
		if r.State != state && w.clock.Waiters() > 0 {
			w.clock.Advance(time.Second)
		}
		return r.State == state
	})
	return r
}

// TestTemplateCallsSurvive: whatever happens between the stored request, the call and its answer, Meta gets exactly one
// template, and the request ends.
func TestTemplateCallsSurvive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply graphtest.Reply // to the first call
		calls int
	}{
		"the node dies before the call": {graphtest.Reply{}, 1},
		"the answer is lost":            {graphtest.Reply{Drop: true}, 1},
		"the call is lost":              {graphtest.Reply{Break: true}, 2},
		"Meta is busy":                  {graphtest.Reply{Code: 2, Status: 503}, 2},
		"Meta has an unknown trouble":   {graphtest.Reply{Code: 987654, Status: 500}, 2},
		"too many calls":                {graphtest.Reply{Code: 80007}, 2},
		"a proxy answers":               {graphtest.Reply{Body: "<html>", Status: 502}, 2},
	} {
		for _, driver := range []storetest.Driver{storetest.SQLite, storetest.Postgres} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, setup{driver: driver})
				first := true
				w.peer.Manage(func(string) graphtest.Reply {
					if !first {
						return graphtest.Reply{}
					}
					first = false
					return c.reply
				})
				id := w.request(puntuale.TemplateRequest{Kind: puntuale.CreatesTemplate, Draft: orderReady()})
				if name == "the node dies before the call" { // another life of the node finds the request
					w.conn.Close(w.within(), w.session)
					w.open(w.session)
				} else if err := w.conn.CallTemplates(w.within(), w.session); err != nil {
					t.Fatal(err)
				}
				r := w.become(id, puntuale.RequestDone)
				listed := w.peer.Template(w.number.Account, "ordine_pronto", "it")
				if calls := w.peer.Managed(); len(calls) != c.calls || listed.ID == "" || r.NetworkID != listed.ID {
					t.Errorf("calls %q, request %+v, Meta has %+v", calls, r, listed)
				}
				known, found, err := w.w.Store.NetworkTemplate(context.Background(), w.c.ID, w.number.Account, "ordine_pronto", "it")
				if err != nil || !found || known.Status != puntuale.TemplatePending || known.ID != listed.ID || !known.Named || known.Part("BODY").Text != orderReady().Text {
					t.Errorf("the store has %+v, %v", known, err)
				}
			})
		}
	}
}

// TestTemplateLife: a template is refused, made, edited, unpaused and deleted. A lost answer of any of these calls is
// found in Meta's list.
func TestTemplateLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	do := func(r puntuale.TemplateRequest, state puntuale.TemplateRequestState) puntuale.TemplateRequest {
		t.Helper()
		id := w.request(r)
		if err := w.conn.CallTemplates(w.within(), w.session); err != nil {
			t.Fatal(err)
		}
		return w.become(id, state)
	}
	bad := orderReady()
	bad.Text = "{{nome}}, il tuo ordine {{numero}} è pronto per il ritiro."
	r := do(puntuale.TemplateRequest{Kind: puntuale.CreatesTemplate, Draft: bad}, puntuale.RequestRefused)
	if text := english(r.Reason); !strings.Contains(text, "begin or end") || !strings.Contains(text, "Template non valido: Le variabili") {
		t.Errorf("refused because %q", text)
	}
	r = do(puntuale.TemplateRequest{Kind: puntuale.CreatesTemplate, Draft: orderReady()}, puntuale.RequestDone)
	foreign := orderReady()
	foreign.Text = "Un altro testo, gentile {{nome}}, del tuo ordine {{numero}} di ieri."
	if again := do(puntuale.TemplateRequest{Kind: puntuale.CreatesTemplate, Draft: foreign}, puntuale.RequestRefused); !strings.Contains(english(again.Reason), "exists") {
		t.Errorf("another text under the name: %q", english(again.Reason))
	}
	w.peer.Review(w.number.Account, "ordine_pronto", "it", "REJECTED", "INVALID_FORMAT")
	edited := orderReady()
	edited.Text, edited.Header = "Gentile {{nome}}, il tuo ordine {{numero}} è pronto per il ritiro.", nil
	w.peer.Manage(func(string) graphtest.Reply { return graphtest.Reply{Drop: true} })
	edit := puntuale.TemplateRequest{Kind: puntuale.EditsTemplate, Draft: edited, NetworkID: r.NetworkID}
	do(edit, puntuale.RequestDone)
	if got := w.peer.Template(w.number.Account, "ordine_pronto", "it"); got.Status != "PENDING" || len(got.Components) != 3 {
		t.Errorf("edited: %+v", got)
	}
	w.peer.Review(w.number.Account, "ordine_pronto", "it", "PAUSED", "NONE")
	do(puntuale.TemplateRequest{Kind: puntuale.UnpausesTemplate, Name: "ordine_pronto", Language: "it", NetworkID: r.NetworkID}, puntuale.RequestDone)
	if got := w.peer.Template(w.number.Account, "ordine_pronto", "it"); got.Status != "APPROVED" {
		t.Errorf("unpaused: %+v", got)
	}
	do(puntuale.TemplateRequest{Kind: puntuale.DeletesTemplate, Name: "ordine_pronto", Language: "it", NetworkID: r.NetworkID}, puntuale.RequestDone)
	if calls := w.peer.Managed(); !slices.Equal(calls, []string{"create", "create", "create", "edit", "unpause", "delete"}) {
		t.Errorf("calls: %q", calls)
	}
	known, _, err := w.w.Store.NetworkTemplate(context.Background(), w.c.ID, w.number.Account, "ordine_pronto", "it")
	if err != nil || known.Status != puntuale.TemplateDeleted || known.LockedAt.IsZero() {
		t.Errorf("deleted: %+v, %v", known, err)
	}
}

// TestTemplateSample: the sample of a header is uploaded before the call. An interrupted upload continues.
func TestTemplateSample(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	d := orderReady()
	d.Header = &puntuale.DraftHeader{Kind: "document", Media: "https://e.com/fattura.pdf"}
	id := w.request(puntuale.TemplateRequest{Kind: puntuale.CreatesTemplate, Draft: d})
	if err := w.conn.CallTemplates(w.within(), w.session); err != nil {
		t.Fatal(err)
	}
	if r := w.become(id, puntuale.RequestRefused); !strings.Contains(english(r.Reason), "app") {
		t.Errorf("without an app: %q", english(r.Reason))
	}
	keys := keysOf(w.number)
	keys.AppID = w.number.App
	if err := w.c.SetKeys(context.Background(), w.session, w.vault.Seal(puntuale.SealedOfficial, w.session.SealPlace(), keys.JSON())); err != nil {
		t.Fatal(err)
	}
	w.peer.CutUpload(5)
	id = w.request(puntuale.TemplateRequest{Kind: puntuale.CreatesTemplate, Draft: d})
	if err := w.conn.CallTemplates(w.within(), w.session); err != nil {
		t.Fatal(err)
	}
	w.become(id, puntuale.RequestDone)
	if got := w.peer.Template(w.number.Account, "ordine_pronto", "it"); got.ID == "" {
		t.Error("it was not made")
	}
}

// TestTemplateNeverAnswered: a request to which Meta does not answer ends after an hour.
func TestTemplateNeverAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	id := w.request(puntuale.TemplateRequest{Kind: puntuale.CreatesTemplate, Draft: orderReady()})
	w.peer.Manage(func(string) graphtest.Reply { return graphtest.Reply{Break: true} })
	if err := w.conn.CallTemplates(w.within(), w.session); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Hour)
	if r := w.become(id, puntuale.RequestRefused); !strings.Contains(english(r.Reason), "did not answer") {
		t.Errorf("%q", english(r.Reason))
	}
}

// TestGeneratedTemplates: templates that Meta made for direct sends are not offered.
func TestGeneratedTemplates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	generated := graphtest.NewTemplate("auto_1", "Ciao")
	generated.Source = "AUTO_GENERATED"
	w.peer.SetTemplates(w.number.Account, generated, graphtest.NewTemplate("mio", "Ciao a te"))
	if err := w.conn.Test(w.within(), w.session); err != nil {
		t.Fatal(err)
	}
	_, all, _, err := w.c.NetworkTemplates(context.Background(), w.session, puntuale.Page{})
	if err != nil || len(all) != 1 || all[0].Name != "mio" {
		t.Errorf("listed: %+v, %v", all, err)
	}
}

// TestLanguageOfEachPerson: a template without a language is sent in the language of the contact, and otherwise in
// Italian. A language that cannot be used is not chosen.
func TestLanguageOfEachPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	in := func(language, status string) graphtest.ListedTemplate {
		l := graphtest.NewTemplate("saluto", "Ciao {{1}}, a presto")
		l.Language, l.Status, l.ID = language, status, "9"+language
		return l
	}
	w.peer.SetTemplates(w.number.Account, in("de", "REJECTED"), in("en_US", "APPROVED"), in("it", "APPROVED"))
	if err := w.conn.Test(w.within(), w.session); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ of, language string }{{"en", "en_US"}, {"de", "it"}, {"fr", "it"}, {"", "it"}} {
		phone := "+39333000000" + strings.Repeat("1", i+1)
		if c.of != "" {
			if _, err := w.c.MergeContacts(context.Background(), puntuale.ContactBatch{All: []puntuale.Contact{{Phone: phone, Language: c.of}}, Now: w.clock.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		content := approved("saluto")
		content.Official.Language = ""
		if sent := w.must(phone, content); sent.Message.Template.Language.Code != c.language {
			t.Errorf("a contact of language %q gets %q", c.of, sent.Message.Template.Language.Code)
		}
	}
}

// TestCostlierTemplate: if Meta makes a template marketing, its messages wait if the client wants to decide, and people
// get a notice. They leave after a person accepted the category.
func TestCostlierTemplate(t *testing.T) {
	t.Parallel()
	for _, driver := range []storetest.Driver{storetest.SQLite, storetest.Postgres} {
		w := newWorld(t, setup{driver: driver})
		w.peer.SetTemplates(w.number.Account, graphtest.NewTemplate("uno", "Ciao {{1}}, a presto"))
		if err := w.conn.Test(w.within(), w.session); err != nil {
			t.Fatal(err)
		}
		yes := true
		if _, err := w.c.UpdateSettings(context.Background(), puntuale.SettingsPatch{PauseCostlier: &yes}); err != nil {
			t.Fatal(err)
		}
		w.must(person, approved("uno"))
		w.clock.Advance(time.Minute)
		if err := w.w.Store.TellNetworkTemplate(context.Background(), puntuale.TemplateEvent{Client: w.c.ID, Account: w.number.Account, Name: "uno", Language: "it", Category: "MARKETING", At: w.clock.Now()}); err != nil {
			t.Fatal(err)
		}
		_, err := w.send(person, approved("uno"))
		if e := w.refused(err, puntuale.Deferred); !strings.Contains(english(e.Reason), "marketing") {
			t.Errorf("waits because %q", english(e.Reason))
		}
		if n := w.w.Int(fmt.Sprint("select count(*) from notice where kind = ", int(puntuale.NoticeTemplate))); n != 1 {
			t.Errorf("%d notices", n)
		}
		if err := w.c.AcceptCategory(context.Background(), w.session, "773"); err != nil {
			t.Fatal(err)
		}
		w.must(person, approved("uno"))
	}
}
