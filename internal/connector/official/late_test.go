package official_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
)

// TestTableByWebhook: Meta may send an error code later, in a status. The effects on message, number, template and
// person must be the same as after an answer with that code.
func TestTableByWebhook(t *testing.T) {
	t.Parallel()
	for row, codes := range table {
		for _, code := range codes {
			t.Run(fmt.Sprintf("%s %d", row, code), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, setup{})
				w.wrote(person)
				// says is the reason that the connector gives after an answer with the code.
				w.peer.Answer(func(graphtest.Message) graphtest.Reply { return graphtest.Reply{Code: code, Refuse: true} })
				_, err := w.send("+393339999999", approved("altro"))
				says := puntuale.AsSendError(err).Reason
				w.peer.Answer(nil)
				w.clock.Advance(25 * time.Hour)
				w.test()
				w.clock.Advance(10 * time.Minute)
				w.wrote(person)
				if _, err := w.c.RemoveBlacklisted(t.Context(), puntuale.Person{Names: []string{"+393339999999"}}, puntuale.Date{Year: 2026, Month: 11, Day: 21}, time.Now()); err != nil {
					t.Fatal(err)
				}

				id, taken, token := w.stored(person)
				w.record(id, token, puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted(taken.WAMID)})
				listed := w.peer.Listed()
				for range 2 { // the second status must change nothing
					w.deliver(w.peer.Status(taken, "failed", w.clock.Now(), code))
				}
				d := w.c.Detail(id)
				if d.State != puntuale.Failed || !reflect.DeepEqual(d.Response(), says) || !strings.Contains(italian(d.Detail), fmt.Sprintf("Meta %d", code)) || !strings.Contains(italian(d.Detail), taken.WAMID) {
					t.Errorf("%v, %q with %q, want the words of an answer: %q", d.State, d.Response(), d.Detail, says)
				}
				if row == "template" { // the connector reads the list of templates, which contains the reason
					w.until("the templates are read", func() bool { return w.peer.Listed() > listed })
				}
				if row == "recipient" { // the connector sends nothing to this person for a day
					asked := w.peer.Asked()
					if w.refusedBy(person, approved("uno"), puntuale.Final); w.peer.Asked() != asked {
						t.Error("Meta was asked")
					}
				}
				held := row == "hold number" || row == "no access"
				if w.conn.Online(w.session) == held {
					t.Errorf("online: %v", w.conn.Online(w.session))
				}
				all, _, err := w.c.Consents(t.Context(), puntuale.Person{Names: []string{person}}, puntuale.Page{})
				if err != nil || (len(all) > 0) != (row == "opted out") {
					t.Errorf("consent: %+v, %v", all, err)
				}
				if row == "opted out" {
					if words := all[0].Words; all[0].Change != puntuale.ConsentWithdraw || !strings.Contains(words, "131050") || !strings.Contains(words, w.clock.Now().UTC().Format(time.RFC3339)) {
						t.Errorf("the proof is %+v", all[0])
					}
					w.deliver(w.peer.Status(taken, "failed", w.clock.Now(), code))
					if all, _, err = w.c.Consents(t.Context(), puntuale.Person{Names: []string{person}}, puntuale.Page{}); err != nil || len(all) != 1 {
						t.Errorf("told again: %+v, %v", all, err)
					}
				}
			})
		}
	}
}

// TestTableHasEnglish: each sentence of the table has a translation.
func TestTableHasEnglish(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	for _, codes := range table {
		for _, code := range codes {
			w.peer.Answer(func(graphtest.Message) graphtest.Reply { return graphtest.Reply{Code: code, Refuse: true} })
			w.test()
			_, err := w.send("+393339999999", approved(fmt.Sprintf("t%d", code)))
			says := puntuale.AsSendError(err).Reason
			if english := english(says); english == italian(says) || strings.ContainsAny(english, "àèìòù") {
				t.Errorf("%d: %q in English is %q", code, says, english)
			}
			w.clock.Advance(25 * time.Hour)
		}
	}
}
