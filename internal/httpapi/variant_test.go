package httpapi_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/campaign"
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
		if d := s.details(a.Key, strconv.FormatInt(lastMessage(s, a, phone), 10))[0]; d.Contenuto != texts[1] || d.Telefono != phone {
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
				Message string `json:"message_id"`
			}
		}
		s.must(&list2, "GET", "/api/results/people?is=sent&campaign="+made.ID+"&variant=A"+period, a.Key, "")
		if len(list2.People) != 1 || list2.People[0].Message != byVariant[0] {
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
