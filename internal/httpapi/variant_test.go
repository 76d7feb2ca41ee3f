package httpapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/campaign"
	"puntuale/internal/plan"
)

const comparedTexts = `"variants":[{"share":70,"content":{"text":"Primo, {{nome}}"}},{"share":30,"content":{"text":"Secondo, {{nome}}"}}],"holdout":20`

// TestCampaignVariants sends two texts to a list with a holdout: the check counts each, every person gets the text that
// belongs to the number, whether the list is uploaded again, the campaign is paused, or the message is sent again. The
// people of the holdout get nothing. The results show both texts side by side.
func TestCampaignVariants(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("variants@x")
		const people = 120
		var made campaignOf
		s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"Prova","canary":30,`+comparedTexts+`}`)
		_, number := idsOf(t, a, made.ID)
		if r := s.must(nil, "GET", "/api/results?by=variant&campaign="+made.ID, a.Key, ""); strings.Count(r.body, `"key":"B","name":"Secondo, {{nome}}"`) != 1 || strings.Contains(r.body, `"reasons":null`) {
			t.Errorf("texts that nobody got yet: %s", r.body)
		}
		path, texts := "/api/campaigns/"+made.ID, []string{"Primo, Anna", "Secondo, Anna"}
		expected := func(phone string) int {
			if campaign.HeldOut(puntuale.CampaignID(number), phone, 20) {
				return -1
			}
			return campaign.Variant(puntuale.CampaignID(number), phone, []int{70, 30})
		}
		held, want := 0, [2]int{}
		list, again := "phone,nome\n", "phone,nome\n"
		for i := range people {
			if v := expected(estimatedPhone(i)); v < 0 {
				held++
			} else {
				want[v]++
			}
			list += estimatedPhone(i) + ",Anna\n"
			again += strings.TrimPrefix(estimatedPhone(people-1-i), "+39") + ",Anna\n"
		}
		var check struct {
			Digest   string
			Valid    int
			HeldOut  int `json:"held_out"`
			Messages int
			Refused  []struct{ Reason string }
			Variants []struct {
				Key        string
				Recipients int
			}
			Samples []struct{ Variant, Text string }
		}
		for _, file := range []string{list, again} { // the same people, in another order and form
			if got := s.upload(a.Key, made.ID, "", "text/csv", file); got.status != 200 {
				t.Fatal(got.body)
			}
			s.must(&check, "POST", path+"/check", a.Key, "")
			if check.HeldOut != held || check.Valid != people-held || check.Messages != people-held || len(check.Refused) != 0 || held == 0 {
				t.Errorf("%+v, want %d held out", check, held)
			}
			if len(check.Variants) != 2 || check.Variants[0].Recipients != want[0] || check.Variants[1].Key != "B" || check.Variants[1].Recipients != want[1] {
				t.Errorf("variants %+v, want %v", check.Variants, want)
			}
		}
		shown := map[string]bool{}
		for _, x := range check.Samples {
			if shown[x.Variant] = true; x.Text != texts[puntuale.VariantOf(x.Variant)] {
				t.Errorf("sample %+v", x)
			}
		}
		if len(shown) != 2 {
			t.Errorf("the samples show %v", shown)
		}
		s.must(nil, "POST", path+"/start", a.Key, `{"digest":"`+check.Digest+`"}`)
		s.feed(a, made.ID, func(c puntuale.Campaign) bool { return c.Feed.Fed >= 30 })
		s.must(nil, "POST", path+"/pause", a.Key, "")
		s.must(nil, "POST", path+"/resume", a.Key, "")
		s.feed(a, made.ID, func(c puntuale.Campaign) bool { return c.State == puntuale.CampaignRunning })
		ids := s.feedAll(a, made.ID)
		got := [2]int{}
		byVariant := [2]string{}
		for _, id := range ids {
			d := s.details(a.Key, fmt.Sprint(id))[0]
			v := expected(d.Telefono)
			if v < 0 || d.Contenuto != texts[v] {
				t.Errorf("%s got %q, want variant %d", d.Telefono, d.Contenuto, v)
				continue
			}
			got[v]++
			byVariant[v] = fmt.Sprint(id)
		}
		c := s.campaign(a.Key, made.ID)
		if got != want || c.Counts["held_out"] != held || c.Counts["refused"] != 0 || c.Counts["fed"] != people-held || c.Counts["pending"] != people-held {
			t.Errorf("texts %v, want %v; counts %v", got, want, c.Counts)
		}
		var out struct {
			Recipients []struct {
				Phone string
				Run   *string
			}
		}
		s.must(&out, "GET", path+"/recipients?reason=held_out&limit=1000", a.Key, "")
		for _, r := range out.Recipients {
			if r.Run != nil || expected(r.Phone) >= 0 {
				t.Errorf("held out is %+v", r)
			}
		}
		if len(out.Recipients) != held || strings.Count(s.must(nil, "GET", path+"/refused", a.Key, "").body, ",held_out,") != held {
			t.Errorf("%d are listed as held out, want %d", len(out.Recipients), held)
		}

		phone := s.details(a.Key, byVariant[1])[0].Telefono
		s.end(a, byVariant[0], s.details(a.Key, byVariant[0])[0].Telefono, puntuale.Outcome{Verdict: puntuale.Sent})
		s.end(a, byVariant[1], phone, puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Because(puntuale.ReasonNotAccepted)})
		s.must(nil, "POST", path+"/retry", a.Key, "")
		if d := s.details(a.Key, strconv.FormatInt(lastMessage(s, a, phone), 10))[0]; d.Contenuto != texts[1] || d.Telefono != phone || d.Variant != "B" {
			t.Errorf("sent again is %+v", d)
		}
		type comparison struct {
			Count, Best, Next string
			Chance            bool
			More              int
		}
		var r struct {
			Results []struct {
				Key, Name           string
				Planned, Sent       int
				Read, Answered, Fed *int
			}
			HeldOut  *int `json:"held_out"`
			Compared []comparison
		}
		s.results(a.Key, "")
		const period = "&start=2026-11-01&end=2026-12-31"
		s.must(&r, "GET", "/api/results?by=variant&campaign="+made.ID+period, a.Key, "")
		if len(r.Results) != 2 || r.Results[0].Planned != want[0] || r.Results[1].Planned != want[1] || r.Results[0].Sent != 1 || r.Results[1].Sent != 0 ||
			r.Results[0].Key != "A" || r.Results[1].Name != "Secondo, {{nome}}" || r.HeldOut == nil || *r.HeldOut != held || len(r.Compared) != 0 {
			t.Errorf("results %+v", r)
		}
		var list2 struct {
			People []struct {
				Message           string `json:"message_id"`
				Campaign, Variant string
			}
		}
		s.must(&list2, "GET", "/api/results/people?is=sent&campaign="+made.ID+"&variant=A"+period, a.Key, "")
		if len(list2.People) != 1 || list2.People[0].Message != byVariant[0] || list2.People[0].Variant != "A" || list2.People[0].Campaign != made.ID {
			t.Errorf("people of A: %+v", list2)
		}
		s.refusedAt(422, "GET", "/api/results?by=variant", a.Key, "", "query.campaign")
		s.refusedAt(422, "GET", "/api/results?variant=E&campaign="+made.ID, a.Key, "", "query.variant")
		s.refusedAt(422, "GET", "/api/results?by=variant&client="+a.ID+"&campaign="+made.ID, s.partner, "", "query.by")
		s.must(&r, "GET", "/api/results?by=variant&campaign=999999", a.Key, "")
		if len(r.Results) != 0 {
			t.Errorf("a campaign that is not there has %+v", r)
		}
	})
}

// lastMessage returns the newest message to a phone.
func lastMessage(s *service, a clientAccount, phone string) (id int64) {
	s.t.Helper()
	client, _ := idsOf(s.t, a, a.Session)
	if err := s.db.SQL.QueryRow(`select max(m.id) from message m where m.client_id = $1 and m.phone = $2`, client, phone).Scan(&id); err != nil {
		s.t.Fatal(err)
	}
	return id
}

// TestCampaignVariantFaults: a comparison has two to four texts whose shares make 100, and goes with nothing else.
func TestCampaignVariantFaults(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	a := s.sending("faults@x")
	sequence := s.newSequence(a.Key, `{"text":"ciao","timing":{"anchor":"start","offset":{"amount":0}}}`)
	const b = `{"share":50,"content":{"text":"b"}}`
	for body, at := range map[string]string{
		`"variants":[` + b + `]`: "body.variants",
		`"variants":[` + b + `,` + b + `,` + b + `,` + b + `,` + b + `]`: "body.variants",
		`"variants":[` + b + `,{"share":40,"content":{"text":"c"}}]`:     "body.variants",
		`"variants":[` + b + `,{"share":0,"content":{"text":"c"}}]`:      "body.variants[1].share",
		`"variants":[` + b + `,{"content":{"text":"c"}}]`:                "body.variants[1].share",
		`"variants":[` + b + `,{"share":50,"content":{"text":" "}}]`:     "body.variants[1].content",
		`"variants":[` + b + `,{"share":50,"template":"manca"}]`:         "body.variants[1].template",
		`"variants":[` + b + `,{"share":50,"text":"c"}]`:                 "body.variants[1].text",
		`"content":{"text":"a"},"variants":[` + b + `,` + b + `]`:        "body.variants",
		`"sequence":"` + sequence + `","variants":[` + b + `,` + b + `]`: "body.sequence",
		`"sequence":"` + sequence + `","holdout":10`:                     "body.holdout",
		`"content":{"text":"a"},"holdout":51`:                            "body.holdout",
	} {
		got := s.call("POST", "/api/campaigns", a.Key, `{"name":"c",`+body+`}`)
		if got.status != 422 || !strings.Contains(got.body, `"`+at) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
}

// stepTexts are the texts of a step of which each person gets one.
const stepTexts = `"variants":[{"share":70,"content":{"text":"%[1]s uno, {{nome}}"}},{"share":30,"content":{"text":"%[1]s due, {{nome}}"}}]`

// variantOf returns which text of a step a person must get, from 0.
func variantOf(sequence, step, phone string) int {
	return plan.Pick(plan.Draw("variant", sequence+"/"+step, phone), slices.Values([]int{70, 30}))
}

// TestStepVariants starts a sequence for many people, whose second step has two texts. Each person gets the text that belongs
// to the number and to the step: at the next start, after the texts were edited, and when the message is sent again. The
// results show both texts side by side.
func TestStepVariants(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("steps@x")
		second := `{` + fmt.Sprintf(stepTexts, "Testo") + `,"timing":{"anchor":"start","offset":{"amount":1,"unit":"hours","direction":"after"}}}`
		sequence := s.newSequence(a.Key, stepNow+","+second)
		var stored struct {
			Name   string            `json:"name"`
			Steps  []json.RawMessage `json:"steps"`
			Fields []struct{ Name string }
		}
		s.must(&stored, "GET", "/api/sequences/"+sequence, a.Key, "")
		if strings.Contains(string(stored.Steps[0]), "variants") || !strings.Contains(string(stored.Steps[1]), `"text":"Testo uno, {{nome}}","timing"`) || !strings.Contains(string(stored.Steps[1]), `"variants":[{"share":70,"content":{"text":"Testo uno, {{nome}}"}},{"share":30,`) || len(stored.Fields) != 1 {
			t.Errorf("%s", stored.Steps)
		}
		again, _ := json.Marshal(map[string]any{"name": stored.Name, "steps": stored.Steps}) // what is read can be written
		s.must(nil, "PUT", "/api/sequences/"+sequence, a.Key, string(again))

		const people = 150
		want, of := [2]int{}, map[int][]string{}
		start := func(i int, text string) string {
			var run struct{ ID []string }
			s.must(&run, "POST", "/api/start/"+sequence, a.Key, `{"phone":"`+estimatedPhone(i)+`","nome":"Anna"}`)
			v := variantOf(sequence, "1", estimatedPhone(i))
			if d := s.details(a.Key, run.ID[1])[0]; d.Contenuto != text+[]string{" uno, Anna", " due, Anna"}[v] {
				t.Errorf("%s got %q, want text %d", estimatedPhone(i), d.Contenuto, v)
			}
			if d := s.details(a.Key, run.ID...); d[1].Variant != puntuale.VariantKey(v) || d[0].Variant != "" {
				t.Errorf("%s got %q, %q", estimatedPhone(i), d[0].Variant, d[1].Variant)
			}
			of[v] = append(of[v], run.ID[1])
			return run.ID[1]
		}
		for i := range people {
			want[variantOf(sequence, "1", estimatedPhone(i))]++
			start(i, "Testo")
		}
		if want[0] < 85 || want[0] > 125 {
			t.Errorf("of %d people %d get the text with 70 %%", people, want[0])
		}
		var preview struct {
			Messages []struct {
				Contenuto, Variant string
				Variants           []struct{ Key, Contenuto string }
			}
		}
		s.must(&preview, "POST", "/api/start/"+sequence+"?dry_run=true", a.Key, `{"phone":"`+estimatedPhone(1)+`","nome":"Anna"}`)
		own := puntuale.VariantKey(variantOf(sequence, "1", estimatedPhone(1)))
		if m := preview.Messages; m[0].Variant != "" || m[0].Variants != nil || m[1].Variant != own || len(m[1].Variants) != 2 || m[1].Variants[1].Contenuto != "Testo due, Anna" {
			t.Errorf("%+v", preview)
		}

		edited := `{` + fmt.Sprintf(stepTexts, "Nuovo") + `,"id":"1","timing":{"anchor":"start","offset":{"amount":2,"unit":"hours","direction":"after"}}}`
		s.must(nil, "PUT", "/api/sequences/"+sequence, a.Key, `{"name":"Promemoria","steps":[`+edited+`,`+strings.Replace(stepNow, `{"text"`, `{"id":"0","text"`, 1)+`]}`)
		var run struct{ ID []string }
		for i := range 20 { // the step is the first one now
			s.must(&run, "POST", "/api/start/"+sequence, a.Key, `{"phone":"`+estimatedPhone(i)+`","nome":"Anna"}`)
			v := variantOf(sequence, "1", estimatedPhone(i))
			if d := s.details(a.Key, run.ID[0])[0]; d.Contenuto != "Nuovo"+[]string{" uno, Anna", " due, Anna"}[v] {
				t.Errorf("%s got %q, want text %d", estimatedPhone(i), d.Contenuto, v)
			}
			want[v]++
		}

		s.clock.Advance(time.Hour)
		failed := of[1][0]
		phone := s.details(a.Key, failed)[0].Telefono
		s.end(a, of[0][0], s.details(a.Key, of[0][0])[0].Telefono, puntuale.Outcome{Verdict: puntuale.Sent})
		s.end(a, failed, phone, puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Because(puntuale.ReasonNotAccepted)})
		s.must(&run, "POST", "/api/messages/reschedule/all", a.Key, `{"id":["`+failed+`"]}`)
		if d := s.details(a.Key, run.ID[0])[0]; d.Contenuto != "Testo due, Anna" || d.Variant != "B" {
			t.Errorf("sent again is %+v", d)
		}
		s.end(a, run.ID[0], phone, puntuale.Outcome{Verdict: puntuale.Sent})

		const period = "&start=2026-11-01&end=2026-12-31"
		s.results(a.Key, "")
		var r struct {
			Results []struct {
				Key, Name     string
				Planned, Sent int
			}
			Total   struct{ Planned int }
			HeldOut *int `json:"held_out"`
		}
		for _, when := range []string{"counted as it happens", "counted from scratch"} {
			s.must(&r, "GET", "/api/results?by=variant&sequence="+sequence+"&step=1"+period, a.Key, "")
			if len(r.Results) != 2 || r.Results[0].Key != "A" || r.Results[1].Name != "Nuovo due, {{nome}}" || r.Results[0].Planned != want[0] || r.Results[1].Planned != want[1] ||
				r.Results[0].Sent != 1 || r.Results[1].Sent != 1 || r.HeldOut != nil || r.Total.Planned != people+20 {
				t.Errorf("%s: %+v, want %v", when, r, want)
			}
			client, _ := idsOf(t, a, a.Session)
			if _, err := s.store.Recount(t.Context(), client, s.clock.Now()); err != nil {
				t.Fatal(err)
			}
			s.results(a.Key, "")
		}
		var list struct {
			People []struct {
				Message       string `json:"message_id"`
				Step, Variant string
			}
		}
		s.must(&list, "GET", "/api/results/people?is=sent&sequence="+sequence+"&step=1&variant=B"+period, a.Key, "")
		if len(list.People) != 1 || list.People[0].Message != failed || list.People[0].Step != "1" || list.People[0].Variant != "B" {
			t.Errorf("people of B: %+v", list)
		}
		s.must(&r, "GET", "/api/results?by=variant&sequence="+sequence+"&step=0"+period, a.Key, "")
		if len(r.Results) != 0 {
			t.Errorf("a step without variants has %+v", r)
		}
		s.refusedAt(422, "GET", "/api/results?by=variant&sequence="+sequence, a.Key, "", "query.step")
		s.refusedAt(422, "GET", "/api/results?by=variant&step=1", a.Key, "", "query.sequence")
		s.refusedAt(422, "GET", "/api/results?by=variant&sequence="+sequence+"&step=99999999999", a.Key, "", "query.step")
	})
}

// TestStepVariantsOfBooking moves an appointment, and edits its sequence: the person keeps the text.
func TestStepVariantsOfBooking(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("visite@x", "full")
		var made struct{ ID string }
		body := func(text, before string) string {
			return `{"name":"Visita","booking":{"date":"appuntamento"},"steps":[{` + fmt.Sprintf(stepTexts, text) + `,"timing":{"anchor":"appuntamento","offset":{"amount":` + before + `,"unit":"days","direction":"before"}}}]}`
		}
		s.must(&made, "POST", "/api/sequences", a.Key, body("Domani", "1"))
		seen := map[int]bool{}
		for i := range 12 {
			v := variantOf(made.ID, "0", estimatedPhone(i))
			seen[v] = true
			reference := fmt.Sprint("/api/bookings/v", i)
			for _, day := range []string{"20/01/2027", "25/01/2027"} {
				var b struct{ Messages []struct{ ID, Stato string } }
				s.must(nil, "PUT", reference, a.Key, `{"sequence":"`+made.ID+`","phone":"`+estimatedPhone(i)+`","nome":"Ada","appuntamento":"`+day+` 15:30"}`)
				s.must(&b, "GET", reference, a.Key, "")
				if d := s.details(a.Key, b.Messages[len(b.Messages)-1].ID)[0]; d.Contenuto != []string{"Domani uno, Ada", "Domani due, Ada"}[v] {
					t.Errorf("on %s %s gets %q, want text %d", day, estimatedPhone(i), d.Contenuto, v)
				}
			}
		}
		if len(seen) != 2 {
			t.Errorf("all people get the same text: %v", seen)
		}
		s.results(a.Key, "")
		var r struct {
			Results []struct{ Planned, Cancelled int }
		}
		s.must(&r, "GET", "/api/results?by=variant&sequence="+made.ID+"&step=0&start=2027-01-01&end=2027-01-31", a.Key, "")
		if len(r.Results) != 2 || r.Results[0].Planned+r.Results[1].Planned-r.Results[0].Cancelled-r.Results[1].Cancelled != 12 || r.Results[1].Planned == 0 {
			t.Errorf("%+v", r)
		}
	})
}

// TestStepVariantFaults: a step has two to four texts, or templates, whose shares make 100. Every text is checked like that
// of a step without variants, and so is every text that a start renders, whoever gets it.
func TestStepVariantFaults(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	a := s.sending("faults@x")
	s.must(nil, "POST", "/api/templates", a.Key, `{"name":"promo","text":"Ciao {{nome}}"}`)
	const b = `{"share":50,"content":{"text":"b"}}`
	for content, at := range map[string]string{
		`"variants":[` + b + `]`: "body.steps[0].variants",
		`"variants":[]`:          "body.steps[0]",
		`"variants":[` + b + `,` + b + `,` + b + `,` + b + `,` + b + `]`:                                        "body.steps[0].variants",
		`"variants":[` + b + `,{"share":40,"content":{"text":"c"}}]`:                                            "body.steps[0].variants",
		`"variants":[` + b + `,{"share":0,"content":{"text":"c"}}]`:                                             "body.steps[0].variants[1].share",
		`"variants":[` + b + `,{"content":{"text":"c"}}]`:                                                       "body.steps[0].variants[1].share",
		`"variants":[` + b + `,{"share":50,"content":{"text":" "}}]`:                                            "body.steps[0].variants[1]",
		`"variants":[` + b + `,{"share":50,"content":{"text":"{{"}}]`:                                           "body.steps[0].variants[1].content.text",
		`"variants":[` + b + `,{"share":50,"content":{"text":"` + strings.Repeat("x", 4097) + `"}}]`:            "body.steps[0].variants[1].content.text",
		`"variants":[` + b + `,{"share":50,"template":"promo"}]`:                                                "body.steps[0].variants[1]",
		`"variants":[{"share":50,"template":"promo"},{"share":50,"template":"manca"}]`:                          "body.steps[0].variants[1].template",
		`"variants":[{"share":50,"template":"promo"},{"share":50,"template":"promo","content":{"text":"x"}}]`:   "body.steps[0].variants[1].template",
		`"variants":[` + b + `,{"share":50,"text":"c"}]`:                                                        "body.steps[0].variants[1].text",
		`"variants":[` + b + `,{"share":50,"content":{"text":"c","media":"https://x.example/a.jpg"}}]`:          "body.steps[0].variants[1].content.media",
		`"text":"a","variants":[` + b + `,` + b + `]`:                                                           "body.steps[0].variants",
		`"media":"x","variants":[` + b + `,` + b + `]`:                                                          "body.steps[0].media",
		`"holdout":10,"variants":[` + b + `,` + b + `]`:                                                         "",
		`"media":"https://x.example/a.jpg","variants":[` + b + `,` + b + `]`:                                    "",
		`"buttons":[{"label":"Sì"}],"variants":[` + b + `,` + b + `]`:                                           "",
		`"text":"b","variants":[` + b + `,` + b + `]`:                                                           "",
		`"variants":[{"share":50,"template":"promo"},{"share":50,"template":"promo"}]`:                          "",
		`"variants":[{"share":25,"content":{"text":"a"}},` + b + `,{"share":25,"content":{"text":"{{nome}}"}}]`: "",
	} {
		got := s.call("POST", "/api/sequences", a.Key, `{"name":"s","steps":[{`+content+`,"timing":{"anchor":"start","offset":{"amount":0}}}]}`)
		if at == "" && got.status != 201 && got.status != 200 || at != "" && (got.status != 422 || !strings.Contains(got.body, `"`+at+`"`)) {
			t.Errorf("%s: %d %s", content, got.status, got.body)
		}
	}
	if got := s.call("DELETE", "/api/templates/1", a.Key, ""); got.status != 409 {
		t.Errorf("a template that a variant names: %d %s", got.status, got.body)
	}
	sequence := s.newSequence(a.Key, `{"variants":[`+b+`,{"share":50,"content":{"text":"Ciao {{nome}}, {{cosa}}"}}],"timing":{"anchor":"start","offset":{"amount":0}}}`)
	for i := range 6 { // the answer does not depend on the person
		s.refusedAt(422, "POST", "/api/start/"+sequence, a.Key, `{"phone":"`+estimatedPhone(i)+`","nome":"Ada"}`, "body.cosa")
		s.refusedAt(422, "POST", "/api/start/"+sequence, a.Key, `{"phone":"`+estimatedPhone(i)+`","nome":"`+strings.Repeat("x", 4000)+`","cosa":"`+strings.Repeat("x", 200)+`"}`, "steps[0].variants[1].content.text")
	}
}

// TestCampaignOfStepVariants sends a sequence whose step has two templates to a list: each person gets the one that a start of
// the sequence would give, also if a template changes after the campaign began.
func TestCampaignOfStepVariants(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("of@x")
		var first struct{ ID string }
		s.must(&first, "POST", "/api/templates", a.Key, `{"name":"uno","text":"Uno, {{nome}}"}`)
		s.must(nil, "POST", "/api/templates", a.Key, `{"name":"due","text":"Due, {{nome}}"}`)
		sequence := s.newSequence(a.Key, `{"variants":[{"share":70,"template":"uno"},{"share":30,"template":"due"}],"timing":{"anchor":"start","offset":{"amount":0}}}`)
		var made campaignOf
		s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"Prova","canary":0,"sequence":"`+sequence+`"}`)
		const people = 40
		list, want := "phone,nome\n", [2]int{}
		for i := range people {
			list += estimatedPhone(i) + ",Anna\n"
			want[variantOf(sequence, "0", estimatedPhone(i))]++
		}
		if got := s.upload(a.Key, made.ID, "", "text/csv", list); got.status != 200 {
			t.Fatal(got.body)
		}
		var check struct {
			Digest  string
			Valid   int
			Samples []struct{ Phone, Text string }
		}
		s.must(&check, "POST", "/api/campaigns/"+made.ID+"/check", a.Key, "")
		texts := []string{"Uno, Anna", "Due, Anna"}
		for _, x := range check.Samples {
			if x.Text != texts[variantOf(sequence, "0", x.Phone)] {
				t.Errorf("sample %+v", x)
			}
		}
		if check.Valid != people || len(check.Samples) == 0 {
			t.Errorf("%+v", check)
		}
		s.must(nil, "POST", "/api/campaigns/"+made.ID+"/start", a.Key, `{"digest":"`+check.Digest+`"}`)
		s.must(nil, "PUT", "/api/templates/"+first.ID, a.Key, `{"name":"uno","text":"Cambiato, {{nome}}"}`)
		for _, id := range s.feedAll(a, made.ID) {
			if d := s.details(a.Key, fmt.Sprint(id))[0]; d.Contenuto != texts[variantOf(sequence, "0", d.Telefono)] {
				t.Errorf("%s got %q", d.Telefono, d.Contenuto)
			}
		}
		s.results(a.Key, "")
		var r struct {
			Results []struct {
				Key, Name string
				Planned   int
			}
		}
		s.must(&r, "GET", "/api/results?by=variant&sequence="+sequence+"&step=0&campaign="+made.ID+"&start=2026-11-01&end=2026-12-31", a.Key, "")
		if len(r.Results) != 2 || r.Results[0].Planned != want[0] || r.Results[1].Planned != want[1] || r.Results[1].Name != "Due, {{nome}}" {
			t.Errorf("%+v, want %v", r, want)
		}
	})
}

// TestCampaignOfApprovedVariants sends a sequence to a list, whose first step has two approved templates: each person gets
// one's own text, file and template, and the next step's template stays that of the next step. A server of a version without
// variants, which reads the same row, finds one template for each step, and the content of the first variant.
func TestCampaignOfApprovedVariants(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("approved@x")
		var file struct{ Media string }
		s.must(&file, "POST", "/api/files?name=listino.txt", a.Key, "Ciao")
		for name, media := range map[string]string{"uno": "", "due": file.Media, "tre": ""} {
			s.must(nil, "POST", "/api/templates", a.Key, `{"name":"`+name+`","text":"Testo `+name+`","media":"`+media+`","official":{"name":"meta_`+name+`","language":"it"}}`)
		}
		sequence := s.newSequence(a.Key, `{"variants":[{"share":70,"template":"uno"},{"share":30,"template":"due"}],"timing":{"anchor":"start","offset":{"amount":0}}},`+
			`{"template":"tre","timing":{"anchor":"start","offset":{"amount":1,"unit":"days","direction":"after"}}}`)
		people := ""
		for i := range 12 {
			people += fmt.Sprintf(`,{"phone":"%s"}`, estimatedPhone(i))
		}
		var made campaignOf
		s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"Prova","canary":0,"sequence":"`+sequence+`","recipients":[`+people[1:]+`]}`)
		var check struct {
			Digest string
			Valid  int
		}
		s.must(&check, "POST", "/api/campaigns/"+made.ID+"/check", a.Key, "")
		s.must(nil, "POST", "/api/campaigns/"+made.ID+"/start", a.Key, `{"digest":"`+check.Digest+`"}`)
		client, _ := idsOf(t, a, made.ID)
		fed := s.feedAll(a, made.ID)
		if len(fed) != 12 {
			t.Errorf("%d people get messages", len(fed))
		}
		all, _, err := s.store.Tenant(client).Messages(t.Context(), puntuale.MessageFilter{}, puntuale.Page{Limit: 100})
		if err != nil || len(all) != 24 {
			t.Fatalf("%d messages, %v", len(all), err)
		}
		for _, m := range all {
			name, media := []string{"uno", "due"}[variantOf(sequence, "0", m.Phone)], ""
			if m.Due.After(s.clock.Now().Add(time.Hour)) {
				name = "tre"
			}
			if name == "due" {
				media = file.Media
			}
			if m.Content.Text != "Testo "+name || m.Content.MediaURL != media || m.Content.Official == nil || m.Content.Official.Name != "meta_"+name {
				t.Errorf("%s gets %+v with %+v, want %s", m.Phone, m.Content, m.Content.Official, name)
			}
		}
		var old struct {
			Sequence struct{ Steps []struct{ Text string } }
			Official []struct{ Name string }
		}
		row := s.rows(fmt.Sprintf("select frozen from campaign where client_id = %d", client))
		if err := json.Unmarshal([]byte(row[0]), &old); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(old); got != "{{[{Testo uno} {Testo tre}]} [{meta_uno} {meta_tre}]}" {
			t.Errorf("an old server reads %s", got)
		}
	})
}
