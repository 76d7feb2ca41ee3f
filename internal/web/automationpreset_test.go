package web_test

import (
	"os"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control/automation"
)

// TestAutomationPreset: somebody connects Cal.com: the program by its name, one action, the address. Its calls are then
// shown as they were understood: a test, an appointment, and one without a phone.
func TestAutomationPreset(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		sequence := w.sequence(bookedVisit())
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/automations/new?like=program")
		shows := func(selector string) string {
			return `[...document.querySelectorAll("` + selector + `")].some(e => e.checkVisibility())`
		}
		b.until(shows(".for-calcom") + ` && !` + shows("[name='map[0].path']") + ` && !` + shows("[name='actions[0].status']") + ` && document.querySelector("[name='actions[0].booking']").value === "` + sequence + `"`)
		b.check("new")
		for _, program := range []string{"calendly", "easyappointments", "woocommerce_bookings"} {
			b.fill("trigger.preset", program)
			b.until(shows(".for-"+program) + ` && !` + shows(".for-calcom"))
			b.check(program)
		}
		b.fill("trigger.preset", "")
		b.until(shows("[name='map[0].path']") + ` && ` + shows("[name='actions[0].status']") + ` && !` + shows(".for-preset"))
		b.check("own-fields")
		b.fill("trigger.preset", "calcom", "name", "Prenotazioni")
		b.until(`document.querySelector("#automation-try .rule-says").textContent.includes("Cal.com")`)
		b.click(`#automation-form .editor-save .btn-primary`)
		b.until(`/automations\/\d+$/.test(location.pathname) && document.querySelector(".preset-steps")`)
		b.until(`document.querySelector(".rule-says").textContent.includes("Cal.com") && document.querySelectorAll(".preset-steps li").length === 3`)
		b.check("made")

		rules := w.rules.OfClient(w.Client(), "")
		all, err := rules.List(t.Context())
		w.must(err)
		if len(all) != 1 || all[0].Trigger.Preset != puntuale.PresetCalCom || len(all[0].Trigger.Map) > 0 || all[0].Actions[0].Status != "" {
			t.Fatalf("stored: %+v", all)
		}
		rule, err := rules.Rule(t.Context(), all[0].ID.String())
		w.must(err)
		hook, err := w.rules.HookOf(t.Context(), strings.TrimPrefix(rule.Path, automation.HookPath))
		w.must(err)
		at := w.pages + "/automations/" + rule.ID.String()
		call := func(file, shows, name string) {
			text, err := os.ReadFile("../preset/testdata/" + file + ".json")
			w.must(err)
			_, err = w.rules.Call(t.Context(), hook, automation.HookRequest{Body: text})
			w.must(err)
			b.open(at)
			b.until(shows)
			b.check(name)
		}
		const refused, understood = `document.querySelector("main .note-warn")`, `document.querySelector("main dl.members")`
		call("calcom-ping", refused+` && !`+understood, "test")
		call("calcom-rescheduled", understood+` && !`+refused, "understood")
		b.reads("Ada Rossi")
		b.reads("calcom:bFJeNb2uX8ANpT3JL5EfXw")
		call("calcom-no-phone", refused+` && `+understood, "no-phone")
		b.open(at + "/edit")
		b.until(shows(".for-any-preset .note-warn"))
		b.check("edit")
	})
}
