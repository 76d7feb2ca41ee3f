package httpapi_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestBookingPresets(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *booked){
		"CalCom": presetCalCom, "Calendly": presetCalendly, "EasyAppointments": presetEasyAppointments, "WooCommerce": presetWooCommerce, "Orders": presetOrders,
		"CancelledFirst": presetCancelledFirst, "CancelledMove": presetCancelledMove, "Expired": presetExpired, "Chains": presetChains, "TwoMoves": presetTwoMoves, "Doors": presetDoors, "Faults": presetFaults, "Trial": presetTrial, "Erased": presetErased, "OwnReference": presetOwnReference,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			databases(t, options{}, func(t *testing.T, s *service) { test(t, newBooked(t, s)) })
		})
	}
}

const (
	calA, calB     = "calcom:bFJeNb2uX8ANpT3JL5EfXw", "calcom:rT8cNxbNQTqTjCjT6VyU3k"
	calendlyA      = "calendly:7b1f0c9e-aaaa-4c59-9c1e-1d0d8f6f0001"
	calendlyB      = "calendly:7b1f0c9e-bbbb-4c59-9c1e-1d0d8f6f0002"
	otherOfAda     = "altro"
	otherUntouched = "open 1 [0 PENDING 1 PENDING]"
)

// preset makes a rule with a preset, and another booking of the person, which no call may touch.
func (b *booked) preset(program string) ruled {
	b.t.Helper()
	b.book(otherOfAda)
	return b.rule(`{"kind":"hook","preset":"`+program+`"}`, `{}`, bookAction)
}

// recorded returns a recorded call of a program.
func (b *booked) recorded(file string) string {
	b.t.Helper()
	text, err := os.ReadFile("../preset/testdata/" + file + ".json")
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// again posts a call that is unlike all earlier ones, so that the hook itself does not know a repeat, and lets rules act.
func (r ruled) again(body string) {
	r.t.Helper()
	r.callHook(r.Path, body+strings.Repeat(" ", int(presetCalls.Add(1))))
	r.clock.Advance(time.Second)
	r.act(r.run)
}

var presetCalls atomic.Int64

// calls posts recorded calls, one after the other.
func (r ruled) calls(files ...string) {
	r.t.Helper()
	for _, file := range files {
		r.again(r.recorded(file))
	}
}

// ofAda returns the person's bookings as "reference status [states]".
func (b *booked) ofAda() string {
	b.t.Helper()
	var x struct {
		Bookings []struct{ Reference, Status, Date string }
	}
	b.must(&x, "GET", "/api/bookings?phone=%2B393331234567", b.Key, "")
	var says []string
	for _, k := range x.Bookings {
		if k.Reference == otherOfAda {
			v := b.view(otherOfAda)
			b.want("the other booking", say(v.Status, v.Revision, b.states(otherOfAda)), otherUntouched)
			continue
		}
		says = append(says, fmt.Sprint(k.Reference, " ", k.Status, " ", k.Date[:16], " ", b.states(k.Reference)))
	}
	return strings.Join(says, "; ")
}

// Cal.com: made, moved under another uid, cancelled, each of them twice.
func presetCalCom(_ *testing.T, b *booked) {
	r := b.preset("calcom")
	r.calls("calcom-ping", "calcom-requested", "calcom-created", "calcom-created")
	b.want("made", say(b.ofAda(), strings.Contains(b.must(nil, "GET", "/api/bookings/"+calA, b.Key, "").body, `"timezone":"Europe/Rome"`)), calA+" open 2027-01-20T14:30 [0 PENDING 1 PENDING] true")
	b.sendNow(b.view(calA).Messages[0].ID)
	r.calls("calcom-rescheduled", "calcom-rescheduled", "calcom-created")
	b.want("moved", b.ofAda(), calB+" open 2027-01-21T09:00 [0 COMPLETED 1 CANCELLED 1 PENDING 2 PENDING]")
	b.want("history", b.view(calB).History[1].What, "[reference fields moved]")
	r.calls("calcom-cancelled", "calcom-cancelled", "calcom-rescheduled", "calcom-created")
	b.want("cancelled", b.ofAda(), calB+" cancelled 2027-01-21T09:00 [0 COMPLETED 1 CANCELLED 1 CANCELLED 2 CANCELLED 4 PENDING]")
	b.want("the log", r.log(), "other_call, waits, acted 1, unchanged, acted 1, unchanged, stale, acted 1, unchanged, stale, stale")
	r.calls("calcom-no-phone")
	b.want("without a phone", r.log()[len(r.log())-len(", no_phone"):], ", no_phone")
}

// Calendly tells of a move by two calls, in any order, and repeats them.
func presetCalendly(_ *testing.T, b *booked) {
	events := b.rule(`{"kind":"booking","is":"cancelled"}`, `{}`, `[{"kind":"tag","add":["x"]}]`)
	again := b.rule(`{"kind":"booking","is":"created"}`, `{"fields":[{"name":"reference","op":"contains","value":"calendly"}]}`, `[{"kind":"tag","add":["y"]}]`)
	r := b.preset("calendly")
	r.calls("calendly-created", "calendly-moved-canceled")
	b.want("about to move", b.ofAda(), calendlyA+" cancelled 2027-01-20T14:30 [0 CANCELLED 1 CANCELLED]")
	r.calls("calendly-moved-created", "calendly-moved-canceled", "calendly-moved-created", "calendly-created")
	b.want("moved", b.ofAda(), calendlyB+" open 2027-01-21T09:00 [1 CANCELLED 0 PENDING 1 PENDING 2 PENDING]")
	b.want("no cancellation is told", say(events.log()+";", again.log()), "; field, acted 0")
	r.calls("calendly-no-show")
	b.want("no show", b.view(calendlyB).Status, "no_show")
	r.calls("calendly-no-phone", "calendly-routing")
	b.want("the log", r.log(), "acted 1, acted 0, acted 1, stale, unchanged, stale, acted 0, no_phone, other_call")
}

// A move is one move, whatever comes first, second and third, and whatever comes again.
func presetOrders(_ *testing.T, b *booked) {
	r := b.preset("calendly")
	files := []string{"calendly-created", "calendly-moved-created", "calendly-moved-canceled"}
	for n, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		person := fmt.Sprint("+39333123450", n)
		for round := range 2 { // everything again, in the other direction
			for k := range order {
				i := order[k]
				if round == 1 {
					i = order[len(order)-1-k]
				}
				body := strings.ReplaceAll(r.recorded(files[i]), "+39 333 123 4567", person)
				r.again(strings.ReplaceAll(body, "7b1f0c9e", fmt.Sprint("7b1f0c9", n)))
			}
			var x struct {
				Bookings []struct{ Reference, Status, Date string }
			}
			b.must(&x, "GET", "/api/bookings?phone=%2B"+person[1:], b.Key, "")
			if len(x.Bookings) != 1 || !strings.Contains(x.Bookings[0].Reference, "-bbbb-") || x.Bookings[0].Status != "open" || !strings.HasPrefix(x.Bookings[0].Date, "2027-01-21T09:00") {
				b.t.Errorf("%v, round %d: %+v", order, round, x.Bookings)
				continue
			}
			reminders := 0
			for _, m := range b.view(x.Bookings[0].Reference).Messages {
				if m.Stato != "PENDING" || m.Step != "1" {
					continue
				}
				if reminders++; m.Occurrence != "2027-01-21T09:00:00.000000Z" {
					b.t.Errorf("%v: a reminder of %s", order, m.Occurrence)
				}
			}
			b.want("reminders", reminders, 1)
		}
	}
	b.want("the first person's other booking", b.ofAda(), "")
}

// A cancellation that comes first leaves a mark of which nobody is told.
func presetCancelledFirst(_ *testing.T, b *booked) {
	told := b.rule(`{"kind":"booking","is":"cancelled"}`, `{}`, `[{"kind":"tag","add":["x"]}]`)
	r := b.preset("calcom")
	r.calls("calcom-cancelled", "calcom-cancelled", "calcom-rescheduled", "calcom-created", "calcom-cancelled")
	b.want("cancelled", b.ofAda(), calB+" cancelled 2027-01-21T09:00 []")
	b.want("the log", say(r.log()+";", told.log()), "acted 0, unchanged, stale, stale, unchanged;")
}

// The cancellation of the moved appointment comes before the move: the move is too old, but ends the appointment before it.
func presetCancelledMove(_ *testing.T, b *booked) {
	r := b.preset("calcom")
	r.calls("calcom-created", "calcom-cancelled", "calcom-rescheduled", "calcom-created")
	b.want("both are over", b.ofAda(), calA+" cancelled 2027-01-20T14:30 [0 CANCELLED 1 CANCELLED]; "+calB+" cancelled 2027-01-21T09:00 []")
	b.want("the log", r.log(), "acted 1, acted 0, acted 0, stale")
}

// An expired account makes nothing, but what is there ends.
func presetExpired(_ *testing.T, b *booked) {
	r := b.preset("calcom")
	r.calls("calcom-created", "calcom-rescheduled")
	b.sql("update client set expires_at = 1, revision = revision + 1")
	r.calls("calcom-no-phone", "calcom-cancelled", "calcom-rejected")
	b.want("the log", r.log(), "acted 1, acted 1, no_phone, acted 1, no_booking")
	b.want("cancelled", b.view(calB).Status, "cancelled")
}

// Chains of moves, with every call once or twice and in any order: the last appointment stands, with its date and its
// reminder, or it is cancelled. Nothing of the ones before it is left.
func presetChains(_ *testing.T, b *booked) {
	r := b.preset("calendly")
	random := rand.New(rand.NewPCG(7, 11))
	for n := range 12 {
		person, moves, ends := fmt.Sprintf("+3933312346%02d", n), 1+random.IntN(3), random.IntN(3) == 0
		id := func(i int) string {
			return fmt.Sprintf("https://api.calendly.com/scheduled_events/E/invitees/n%d-%d", n, i)
		}
		event := func(kind string, i, minute int, more string) string {
			return fmt.Sprintf(`{"event":"invitee.%s","created_at":"2026-11-20T10:%02d:00.000000Z","payload":{"uri":%q,"name":"Ada","timezone":"Europe/Rome","text_reminder_number":%q,
"scheduled_event":{"start_time":"2027-02-%02dT09:00:00.000000Z"}%s}}`, kind, minute, id(i), person, i+10, more)
		}
		calls := []string{event("created", 0, 0, "")}
		for i := range moves {
			calls = append(calls, event("created", i+1, 5*i+5, fmt.Sprintf(`,"old_invitee":%q`, id(i))), event("canceled", i, 5*i+6, fmt.Sprintf(`,"rescheduled":true,"new_invitee":%q`, id(i+1))))
		}
		if ends {
			calls = append(calls, event("canceled", moves, 50, `,"rescheduled":false`))
		}
		for _, call := range calls {
			if random.IntN(2) == 0 {
				calls = append(calls, call)
			}
		}
		order := random.Perm(len(calls))
		for _, i := range order {
			r.again(calls[i])
		}
		var x struct {
			Bookings []struct{ Reference, Status, Date string }
		}
		b.must(&x, "GET", "/api/bookings?phone=%2B"+person[1:], b.Key, "")
		open, reminders := "", ""
		for _, k := range x.Bookings {
			if k.Status != "cancelled" {
				open += k.Reference + " " + k.Date[:10]
			}
			for _, m := range b.view(k.Reference).Messages {
				if m.Step == "1" && m.Stato == "PENDING" {
					reminders += m.Occurrence[:10]
				}
			}
		}
		date := fmt.Sprintf("2027-02-%02d", moves+10)
		want := fmt.Sprintf("calendly:n%d-%d %s %s", n, moves, date, date)
		if ends {
			want = ""
		}
		b.want(fmt.Sprint(moves, " moves, ", ends, ", order ", order), say(open, reminders), want)
	}
	b.want("the first person's other booking", b.ofAda(), "")
}

// Two moves in a row, out of order: the last appointment stands, and the ones before it are gone.
func presetTwoMoves(_ *testing.T, b *booked) {
	r := b.preset("calcom")
	move := func(from, to, at, start string) {
		body := strings.NewReplacer("rT8cNxbNQTqTjCjT6VyU3k", to, "bFJeNb2uX8ANpT3JL5EfXw", from, "10:00:00.120Z", at, "2027-01-21T09:00:00.000Z", start).Replace(b.recorded("calcom-rescheduled"))
		r.again(strings.Replace(body, `"iCalUID": "`+from, `"iCalUID": "x`, 1))
	}
	r.calls("calcom-created")
	move("B", "C", "11:00:00.120Z", "2027-01-25T09:00:00.000Z")
	b.want("the second move", b.ofAda(), calA+" open 2027-01-20T14:30 [0 PENDING 1 PENDING]; calcom:C open 2027-01-25T09:00 [0 PENDING 1 PENDING]")
	move("bFJeNb2uX8ANpT3JL5EfXw", "B", "10:00:00.120Z", "2027-01-21T09:00:00.000Z")
	b.want("the first move", b.ofAda(), calA+" cancelled 2027-01-20T14:30 [0 CANCELLED 1 CANCELLED]; calcom:C open 2027-01-25T09:00 [0 PENDING 1 PENDING]")
	r.calls("calcom-created", "calcom-rescheduled")
	move("bFJeNb2uX8ANpT3JL5EfXw", "B", "10:00:00.120Z", "2027-01-21T09:00:00.000Z")

	// From the last to the first, of an appointment that was not known.
	move("H", "I", "12:00:00.120Z", "2027-02-03T09:00:00.000Z")
	move("G", "H", "11:00:00.120Z", "2027-02-02T09:00:00.000Z")
	body := strings.NewReplacer("bFJeNb2uX8ANpT3JL5EfXw", "G").Replace(b.recorded("calcom-created"))
	r.again(body)
	for _, gone := range []string{"calcom:G", "calcom:H"} {
		if got := b.call("GET", "/api/bookings/"+gone, b.Key, ""); got.status != 404 {
			b.t.Errorf("%s: %s", gone, got.body)
		}
	}
	b.want("the last one", say(b.view("calcom:I").Status, b.states("calcom:I")), "open [0 PENDING 1 PENDING]")
}

// What the page, the API or the person decided stays.
func presetDoors(_ *testing.T, b *booked) {
	r := b.preset("calcom")
	r.calls("calcom-created")
	b.put(calA, `{"status":"confirmed"}`)
	r.again(strings.Replace(b.recorded("calcom-created"), "09:30:00.538Z", "09:40:00.538Z", 1))
	b.want("confirmed stays", say(b.view(calA).Status, r.log()), "confirmed acted 1, unchanged")
	r.calls("calcom-rescheduled")
	b.want("nobody has confirmed the new date", b.view(calB).Status, "open")
	b.must(nil, "DELETE", "/api/bookings/"+calB, b.Key, "")
	r.again(strings.Replace(b.recorded("calcom-rescheduled"), "10:00:00.120Z", "10:10:00.120Z", 1))
	b.want("cancelled stays", say(b.view(calB).Status, r.log()), "cancelled acted 1, unchanged, acted 1, kept")
}

// Easy!Appointments tells no phone. Its calls move and end the bookings that are there.
func presetEasyAppointments(_ *testing.T, b *booked) {
	r := b.preset("easyappointments")
	const reference = "easyappointments:12"
	r.calls("easyappointments-unavailability", "easyappointments-save")
	b.want("nobody is known", b.ofAda()+r.log(), "other_call, no_phone")
	b.put(reference, `{"sequence":"`+b.sequence+`","phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30"}`)
	r.calls("easyappointments-move", "easyappointments-move")
	b.want("moved", b.ofAda(), reference+" open 2027-01-21T09:00 [0 PENDING 1 CANCELLED 1 PENDING 2 PENDING]")
	r.calls("easyappointments-delete", "easyappointments-move", "easyappointments-delete")
	b.want("deleted", say(b.view(reference).Status, r.log()), "cancelled other_call, no_phone, acted 1, unchanged, acted 1, stale, unchanged")

	r = b.rule(`{"kind":"hook","preset":"easyappointments"}`, `{}`, `[{"kind":"book","sequence":"SEQUENCE","reference":"sede2-{{reference}}"}]`)
	r.calls("easyappointments-save-customer")
	x := b.view("sede2-" + reference)
	b.want("with the customer", say(x.Status, x.Phone, x.History[0].By), "open +393331234567 rule")
	b.want("its text", b.details(b.Key, x.Messages[0].ID)[0].Contenuto, "Benvenuta Ada Rossi")
}

// WooCommerce Bookings: the booking with the order's billing makes one, and its bare calls move and end it.
func presetWooCommerce(_ *testing.T, b *booked) {
	r := b.preset("woocommerce_bookings")
	const reference = "woocommerce:55"
	r.again("webhook_id=5")
	r.calls("woocommerce-order", "woocommerce-unpaid", "woocommerce-confirmed", "woocommerce-confirmed-billing")
	b.want("made", b.ofAda(), reference+" open 2027-01-20T14:30 [0 PENDING 1 PENDING]")
	r.calls("woocommerce-moved", "woocommerce-confirmed", "woocommerce-moved")
	b.want("moved", b.ofAda(), reference+" open 2027-01-21T09:00 [0 PENDING 1 CANCELLED 1 PENDING 2 PENDING]")
	r.calls("woocommerce-cancelled", "woocommerce-moved", "woocommerce-action")
	b.want("cancelled", say(b.view(reference).Status, r.log()),
		"cancelled other_call, other_call, waits, no_phone, acted 1, acted 1, stale, unchanged, acted 1, stale, unchanged")
}

// What a rule with a preset may not have.
func presetFaults(_ *testing.T, b *booked) {
	for _, x := range []struct{ trigger, actions, at string }{
		{`{"kind":"hook","preset":"outlook"}`, bookAction, "body.trigger.preset"},
		{`{"kind":"hook","preset":"calcom","map":{"phone":"x"}}`, bookAction, "body.trigger.map"},
		{`{"kind":"reply","preset":"calcom"}`, `[{"kind":"send","text":"x"}]`, "body.trigger.preset"},
		{`{"kind":"hook","preset":"calcom"}`, `[{"kind":"book","sequence":"SEQUENCE","status":"open"}]`, "body.actions[0].status"},
		{`{"kind":"hook","preset":"calcom"}`, `[{"kind":"book","sequence":"SEQUENCE"},{"kind":"cancel_booking"}]`, "body.actions[1].reference"},
		{`{"kind":"hook","preset":"calcom"}`, `[{"kind":"book"}]`, "body.actions[0].sequence"},
	} {
		b.refusedAt(422, "POST", "/api/automations", b.Key, b.ruleText(x.trigger, `{}`, x.actions), x.at)
	}
	r := b.rule(`{"kind":"hook","preset":"calcom"}`, `{"booking_status":["open"],"fields":[{"name":"servizio","op":"equal","value":"Visita"}]}`, bookAction)
	b.want("the answer", strings.Contains(b.must(nil, "GET", "/api/automations/"+r.madeAutomation.ID, b.Key, "").body, `"preset":"calcom"`), true)
}

// A trial shows what a call says, and stores nothing.
func presetTrial(_ *testing.T, b *booked) {
	r := b.preset("calcom")
	try := func(file string) string {
		return b.call("POST", "/api/automations/"+r.madeAutomation.ID+"/try", b.Key, `{"payload":`+b.recorded(file)+`}`).body
	}
	for _, part := range []string{`"would":true`, `"phone":"+393331234567"`, `"servizio":"Visita"`, `Benvenuta Ada Rossi`} {
		if got := try("calcom-created"); !strings.Contains(got, part) {
			b.t.Errorf("%s: %s", part, got)
		}
	}
	for file, part := range map[string]string{"calcom-ping": "nothing about an appointment", "calcom-requested": "not confirmed", "calcom-no-phone": "no phone number", "calendly-created": "not from this program"} {
		if got := try(file); !strings.Contains(got, part) {
			b.t.Errorf("%s: %s", file, got)
		}
	}
	b.want("nothing is stored", b.ofAda(), "")
}

// An erasure also removes the references before a move.
func presetErased(_ *testing.T, b *booked) {
	r := b.preset("calcom")
	r.calls("calcom-created", "calcom-rescheduled")
	b.must(nil, "POST", "/api/contacts/erase", b.Key, `{"phone":"3331234567"}`)
	b.clock.Advance(time.Second)
	b.act(r.run)
	if n := b.count(`select count(*) from booking_former`); n != 0 {
		b.t.Errorf("%d former references are left", n)
	}
}

// An action's own reference names the booking also of a call without a phone, and a reference that does not depend on the
// program's stays the same booking.
func presetOwnReference(_ *testing.T, b *booked) {
	b.put("easyappointments:12", `{"sequence":"`+b.sequence+`","phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30"}`)
	b.put("sede2-easyappointments:12", `{"sequence":"`+b.sequence+`","phone":"3477654321","nome":"Eva","appuntamento":"20/01/2027 15:30"}`)
	r := b.rule(`{"kind":"hook","preset":"easyappointments"}`, `{}`, `[{"kind":"book","sequence":"SEQUENCE","reference":"sede2-{{reference}}"}]`)
	r.calls("easyappointments-move")
	moved := b.view("sede2-easyappointments:12")
	b.want("the booking of the second site", say(moved.Phone, moved.Revision), "+393477654321 2")
	b.want("the booking of the first site", say(b.view("easyappointments:12").Phone, b.view("easyappointments:12").Revision), "+393331234567 1")

	r = b.rule(`{"kind":"hook","preset":"calcom"}`, `{}`, `[{"kind":"book","sequence":"SEQUENCE","reference":"unica"}]`)
	r.calls("calcom-created", "calcom-rescheduled", "calcom-rescheduled")
	b.want("one reference for all", b.view("unica").Status, "open")
}
