package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// TestTodayAtVolume: three messages failed early on a day on which 12,000 others left. The first page lists as many failures
// as its figure says, and the list of failures is one page.
func TestTodayAtVolume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	early := w.clock.Now().Add(-2 * time.Hour)
	var old puntuale.MessageID
	for i := range 3 {
		old = f.ended(fmt.Sprintf("+3933312399%02d", i), "Ciao", early, puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Because("sandbox.refused"), Detail: puntuale.Because("sandbox.ending", "9901")})
	}
	const numbers = "(with recursive n(i) as (select 1 union all select i + 1 from n where i < 12000) select i from n) as n"
	for _, statement := range []string{
		`insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request, client_name, sequence_name, content)
 select r.client_id, r.id + 100000 + n.i, r.sequence_id, r.session_id, '+393409999999', r.origin, 1, '', r.zone, r.received_at, r.request, '', '', r.content
 from run r cross join ` + numbers + ` where r.id <= $1 and r.id + r.messages > $1`,
		`insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone, state, intent, outcome, done_at)
 select r.client_id, r.id, r.session_id, r.id, 0, 1, 1, 1, 0, r.origin, r.phone, 1, -1, 1, r.received_at + 97200000000 from run r where r.id > $1 + 100000`,
	} {
		if _, err := w.sql.Exec(statement, int64(old)); err != nil {
			t.Fatal(err)
		}
	}
	v := w.visitor(w.clients[puntuale.Reader])
	r := v.get(w.pages)
	panel := between(r.body, `<span class="tag tag-bad">`, "</span>")
	if r.status != http.StatusOK || !strings.Contains(r.body, `<dd class="stat-bad">3</dd>`) || panel != "3" {
		t.Errorf("%d: the panel shows %q", r.status, panel)
	}
	r = v.get(w.pages + "/messages?state=FAILED")
	if n := strings.Count(r.body, `data-phone="+393331239`); n != 3 {
		t.Errorf("the list shows %d of 3 failures", n)
	}
}

// TestTodayCountsWhatWasSentAgain: a failed message that somebody sent again is in the figure, so the panel names it.
func TestTodayCountsWhatWasSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	failed, _ := f.day()
	v := w.visitor(w.clients[puntuale.Staff])
	if r := v.post(w.pages+"/messages/"+failed.String()+"/again", map[string][]string{"when": {"now"}}); r.status != http.StatusSeeOther {
		t.Fatalf("%d", r.status)
	}
	if r := v.get(w.pages); !strings.Contains(r.body, "Uno è già stato rimandato.") {
		t.Error("the panel says nothing about the message that was sent again")
	}
}

// TestOneNamePerPerson: a person was named in one call only. Every page shows this name, also for messages and replies whose
// call has no name. A contact's name wins.
func TestOneNamePerPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	const phone = "+393331234500"
	f.request = `{"phone":"` + phone + `","nome":"Giulia Verdi"}`
	f.ended(phone, "Ciao Giulia", w.clock.Now().Add(-time.Hour), puntuale.Outcome{Verdict: puntuale.Sent})
	f.request = `{"phone":"` + phone + `"}`
	last := f.planned(phone, "Domani chiudiamo alle 18.", w.clock.Now().Add(time.Hour))
	w.wrote(phone, "Grazie!")
	v := w.visitor(w.clients[puntuale.Owner])
	pages := []string{"", "/messages", "/messages/" + last.String(), "/calendar?view=day", "/replies", "/person?phone=%2B393331234500", "/sessions/" + f.session.String() + "/phone"}
	_, err := w.Client().AddBlacklisted(t.Context(), phone, "", control.Once[puntuale.BlacklistEntry]{})
	w.must(err)
	listed, _, err := w.Client().FindBlacklisted(t.Context(), "", request.Page{})
	w.must(err)
	rule, err := w.store.Tenant(w.client).CreateAutomation(t.Context(), puntuale.Automation{Name: "Info", Trigger: puntuale.Trigger{Kind: puntuale.TriggerReply}, Created: w.clock.Now(), Updated: w.clock.Now()}, nil, nil)
	w.must(err)
	_, err = w.sql.Exec("insert into automation_firing (client_id, id, rule_id, phone, at, occurrence, acted) values ($1, 7, $2, $3, $4, '', 1)", w.client, rule, phone, w.clock.Now().UnixMicro())
	w.must(err)
	campaign, err := w.Client().CreateCampaign(t.Context(), control.NewCampaign{Name: "Auguri", Purpose: "service", Step: &puntuale.Step{Text: "Auguri!"}}, nil, control.Once[control.Campaign]{})
	w.must(err)
	_, err = w.Client().AddRecipients(t.Context(), campaign.ID.String(), []control.Recipient{{"phone": phone}})
	w.must(err)
	_, err = w.sql.Exec("update campaign set state = $1 where id = $2", puntuale.CampaignCancelled, campaign.ID)
	w.must(err)
	pages = append(pages, "/blacklist", fmt.Sprintf("/blacklist/%d/remove", listed[0].ID), "/automations/"+rule.String(), "/campaigns/"+campaign.ID.String())
	for _, page := range pages {
		if r := v.get(w.pages + page); r.status != http.StatusOK || !strings.Contains(mainOf(r.body), "Giulia Verdi") {
			t.Errorf("%s: %d, without the name", page, r.status)
		}
	}
	if r := v.get(w.pages + "/messages/export"); strings.Count(r.body, "Giulia Verdi") != 2 {
		t.Errorf("the export: %s", r.body)
	}
	if r := v.post(w.pages+"/contacts", map[string][]string{"phone": {phone}, "name": {"Giulia Verdi Rossi"}}); r.status != http.StatusSeeOther {
		t.Fatalf("a contact: %d %s", r.status, mainOf(r.body))
	}
	for _, page := range pages {
		if r := v.get(w.pages + page); !strings.Contains(mainOf(r.body), "Giulia Verdi Rossi") {
			t.Errorf("%s: without the contact's name", page)
		}
	}
}
