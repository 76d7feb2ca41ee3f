package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
)

// somePlans creates two plans. Two clients have the first one, and one of them has a cap of its own.
func somePlans(w *world) puntuale.ClientPlan {
	ctx := context.Background()
	p := w.newPartnerHandle()
	base, err := p.CreatePlan(ctx, account.PlanDraft{Name: "Base", Values: puntuale.PlanValues{
		Credits: puntuale.ChangeTo(new(int64(500))), Refill: puntuale.ChangeTo(puntuale.RefillMonthly), Cap: puntuale.ChangeTo(new(int64(2000))), Days: puntuale.ChangeTo(new(int64(365))),
		Features: puntuale.ChangeTo([]string{"agenda", "promemoria"}), Quotas: puntuale.Quotas{puntuale.QuotaSessions: 2},
	}, Budget: puntuale.ChangeTo("50")}, control.Once[puntuale.ClientPlan]{})
	w.must(err)
	_, err = p.CreatePlan(ctx, account.PlanDraft{Name: "Studio con più sedi", Values: puntuale.PlanValues{Credits: puntuale.ChangeTo[*int64](nil), Days: puntuale.ChangeTo[*int64](nil)}}, control.Once[puntuale.ClientPlan]{})
	w.must(err)
	for id, cap := range map[puntuale.ClientID]puntuale.Change[*int64]{w.client: {}, w.other: puntuale.ChangeTo(new(int64(9000)))} {
		_, err := p.ChangeClient(ctx, id.String(), account.ClientChange{Plan: puntuale.ChangeTo(base.ID.String()), Cap: cap})
		w.must(err)
	}
	return base
}

// TestPlanPages: a partner writes a plan, creates a client from it, moves another to it, and applies a change. Readers
// change nothing.
func TestPlanPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	staff := w.visitor(w.partners[puntuale.Staff])
	form := formTo(staff.get("/partner/plans/new").body, "/partner/plans/new")
	for name, text := range map[string]string{"name": "Base", "credits": "500", "daily_api_cap": "mille", "days": "30", "budget": "49,90", "quotas.sessions": "2"} {
		form.Set(name, text)
	}
	if got := staff.post("/partner/plans/new", form); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "f-daily_api_cap-fault") {
		t.Errorf("a wrong cap: %d", got.status)
	}
	for name, text := range map[string]string{"credits": "500", "daily_api_cap": "70", "days": "30", "budget": "50", "active_features": "agenda"} {
		both := url.Values{"name": {"Base"}, name: {text}, name + ".none": {"on"}}
		if got := staff.post("/partner/plans/new", both); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "f-"+name+"-fault") || !strings.Contains(got.body, "togli la spunta") {
			t.Errorf("%s and its box: %d", name, got.status)
		}
	}
	form.Set("daily_api_cap", "")
	form.Set("daily_api_cap.none", "on")
	made := staff.post("/partner/plans/new", form)
	plan := made.header.Get("Location")
	if made.status != http.StatusSeeOther {
		t.Fatalf("a plan: %d %s", made.status, words(inMain(made.body)))
	}
	if got := staff.post("/partner/plans/new", form); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "Un altro piano ha già questo nome") {
		t.Errorf("a second plan of the name: %d %s", got.status, words(inMain(got.body)))
	}
	id := plan[strings.LastIndex(plan, "/")+1:]
	created := staff.post("/partner/clients/new", url.Values{"name": {"Nuova Bottega"}, "phone": {"1"}, "email": {"bottega@x"}, "password": {password}, "account_type": {"test"}, "plan": {id}})
	if created.status != http.StatusOK {
		t.Fatalf("a client of the plan: %d", created.status)
	}
	client := "/partner/clients/" + w.client.String()
	if got := staff.post(client+"/plan", url.Values{"plan": {"987654"}}); got.status != http.StatusUnprocessableEntity {
		t.Errorf("moved to no plan: %d", got.status)
	}
	if got := staff.post(client+"/plan", url.Values{"plan": {id}}); got.status != http.StatusSeeOther {
		t.Errorf("moved: %d", got.status)
	}
	if text := words(inMain(staff.get(client).body)); !strings.Contains(text, "Base dal") || !strings.Contains(text, "Come il piano") || !strings.Contains(text, "Crediti 500") {
		t.Errorf("the client of the plan: %s", text)
	}
	for _, page := range []string{"/partner/plans", plan} {
		if text := words(inMain(staff.get(page).body)); !strings.Contains(text, "49,90 EUR") {
			t.Errorf("%s shows the budget without its currency: %s", page, text)
		}
	}
	if text := words(inMain(staff.get(plan + "/edit").body)); !strings.Contains(text, "Budget del mese, in EUR") {
		t.Errorf("the form: %s", text)
	}
	edit := formTo(staff.get(plan+"/edit").body, plan+"/edit")
	if edit.Get("daily_api_cap.none") != "on" || edit.Get("credits") != "500" || edit.Get("budget") != "49,90" || edit.Get("quotas.sessions") != "2" {
		t.Errorf("the form has %v", edit)
	}
	edit.Del("daily_api_cap.none")
	edit.Set("daily_api_cap", "70")
	if got := staff.post(plan+"/edit", edit); got.status != http.StatusSeeOther {
		t.Fatalf("changed: %d %s", got.status, words(inMain(got.body)))
	}
	if got := staff.post(plan+"/edit", edit); got.status != http.StatusConflict {
		t.Errorf("changed with an old form: %d", got.status)
	}
	differs := "Diverso dal piano Chiamate API al giorno"
	if text := words(inMain(staff.get(plan).body)); strings.Count(text, differs) != 2 || !strings.Contains(text, "Nuova Bottega") {
		t.Errorf("the changed plan: %s", text)
	}
	reader := w.visitor(w.partners[puntuale.Reader])
	if text := inMain(reader.get(plan).body); strings.Contains(text, "/apply") || strings.Contains(text, "/edit") {
		t.Error("a reader may change the plan")
	}
	if got := reader.post(plan+"/apply", nil); got.status != http.StatusForbidden {
		t.Errorf("applied by a reader: %d", got.status)
	}
	if got := staff.post(plan+"/apply", nil); got.status != http.StatusSeeOther {
		t.Errorf("applied: %d", got.status)
	}
	if text := words(inMain(staff.get(plan).body)); strings.Contains(text, differs) || strings.Count(text, "Come il piano") != 2 {
		t.Errorf("the applied plan: %s", text)
	}
	if got := staff.post(plan+"/delete", nil); got.status != http.StatusSeeOther {
		t.Errorf("deleted: %d", got.status)
	}
	if text := words(inMain(staff.get(client).body)); strings.Contains(text, "Come il piano") || !strings.Contains(text, "Crediti 500") {
		t.Errorf("the client after its plan: %s", text)
	}
	audit := words(inMain(w.visitor(w.partners[puntuale.Owner]).get("/partner/audit").body))
	for _, what := range []string{"Piano creato", "Piano modificato", "Piano applicato ai clienti", "Piano eliminato", "Piano del cliente cambiato"} {
		if !strings.Contains(audit, what) {
			t.Errorf("the audit log lacks %q", what)
		}
	}
	if want := "Piano applicato ai clienti Base: 2 clienti"; !strings.Contains(audit, want) || !strings.Contains(audit, "Nuova Bottega") {
		t.Errorf("the audit log lacks %q, or the clients: %s", want, audit)
	}
}

// TestPlansInBrowser looks at the pages of plans.
func TestPlansInBrowser(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.signIn(w.partners[puntuale.Owner])
		b.open("/partner/plans")
		b.check("plans-none")
		plan := somePlans(w)
		url := "/partner/plans/" + plan.ID.String()
		for name, path := range map[string]string{"plans": "/partner/plans", "plan": url, "plan-edit": url + "/edit", "plan-client": "/partner/clients/" + w.other.String(), "plan-client-new": "/partner/clients/new"} {
			b.open(path)
			b.check(name)
		}
		b.open(url + "/edit")
		if got, want := evaluate[string](b, `document.querySelector("[name=budget]").value`), map[string]string{"it": "50,00", "en": "50.00"}[b.look.language]; got != want {
			t.Errorf("the budget is written %q, want %q", got, want)
		}
		b.open(url)
		b.click(`[data-open="apply-plan"]`)
		b.until(`document.querySelector("#apply-plan[open]")`)
		b.check("plan-apply")
		b.click(`#apply-plan button[type="submit"]`)
		b.until(`!document.querySelector(".badge-warn")`)
	})
}
