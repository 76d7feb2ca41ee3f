package person_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

const (
	oldNumber = "+393331110001"
	newNumber = "+393332220002"
	oldID     = "IT.OLD0001"
	newID     = "IT.NEW0002"
)

var begin, day = storetest.Begin, storetest.Day

// world is a client, with methods that fail the test on errors.
type world struct {
	t testing.TB
	*storetest.Client
	w     *storetest.World
	node  puntuale.NodeID
	marks int
}

// onBoth runs a test on both databases.
func onBoth(t *testing.T, test func(w *world)) {
	t.Helper()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := storetest.NewWorld(t, driver(t))
			test(&world{t: t, w: w, Client: w.Client(puntuale.AccountFull), node: w.MustJoin()})
		})
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) mark(name string) string {
	return fmt.Sprintf("%s%d/%x", puntuale.MarkPrefix, w.ID, strings.TrimPrefix(name, "+"))
}

func (w *world) person(name string) puntuale.Person {
	return puntuale.Person{Names: []string{name}, Mark: w.mark}
}

func (w *world) report(at time.Time, old, fresh []string) puntuale.NumberChange {
	w.marks++
	return puntuale.NumberChange{Client: w.ID, Session: w.Session, ID: fmt.Sprint("wamid.", w.marks), Mark: fmt.Sprint("m", w.marks), At: at, Old: old, New: fresh, NameMark: w.mark}
}

// change reports that a person changed from one name to another at an hour after the beginning.
func (w *world) change(from, to string, at time.Duration) puntuale.NumberChange {
	w.t.Helper()
	c := w.report(begin.Add(at), []string{from}, []string{to})
	w.must(w.w.ChangeNumber(context.Background(), begin.Add(at+time.Second), c))
	return c
}

// hear stores a message from a person, as an intake does.
func (w *world) hear(phone string, at time.Duration) {
	w.t.Helper()
	w.marks++
	m := puntuale.InboundMessage{Client: w.ID, Session: w.Session, Phone: phone, At: begin.Add(at), ID: fmt.Sprint("in", w.marks), Kind: puntuale.ReplyText, Text: "Ciao da " + phone}
	_, err := w.w.KeepInbound(context.Background(), begin.Add(at), []puntuale.TakenMessage{{InboundMessage: m, Mark: fmt.Sprint("in", w.marks)}})
	w.must(err)
}

func (w *world) phoneOf(id puntuale.MessageID) string {
	w.t.Helper()
	return w.Detail(id).Phone
}

// claim claims a message at the time of its read, and returns the answer.
func (w *world) claim(id puntuale.MessageID, phone string, at time.Duration) puntuale.ClaimAnswer {
	w.t.Helper()
	items := w.Items(phone, 0, id)
	items[0].Mark = w.mark(phone)
	_, answers := w.w.MustClaim(w.node, begin.Add(at), items...)
	return answers[0]
}

func (w *world) alias(name, phone string) {
	w.t.Helper()
	w.must(w.w.KeepAliases(context.Background(), []puntuale.Alias{{Client: w.ID, Session: w.Session, Name: name, Phone: phone}}))
}

func (w *world) keepAll() {
	w.t.Helper()
	_, err := w.UpdateSettings(context.Background(), puntuale.SettingsPatch{KeepReplies: new(puntuale.KeepAllReplies)})
	w.must(err)
}

func (w *world) allow(consent puntuale.ConsentRule) {
	w.t.Helper()
	_, err := w.UpdateSettings(context.Background(), puntuale.SettingsPatch{Consent: &consent})
	w.must(err)
}

func (w *world) consent(phone string, change puntuale.ConsentChange, at time.Duration) {
	w.t.Helper()
	_, err := w.w.EnterConsent(context.Background(), puntuale.ConsentEntry{Client: w.ID, Mark: w.mark,
		Consent: puntuale.Consent{Entered: begin.Add(at), Phone: phone, Purpose: puntuale.PurposeMarketing, Change: change, Source: "modulo", At: begin.Add(at)}})
	w.must(err)
}

func (w *world) block(phone string) {
	w.t.Helper()
	w.must(w.AddBlacklisted(context.Background(), puntuale.BlacklistEntry{Phone: phone, Mark: w.mark(phone), Reason: "mio", Added: begin}, day, nil))
}

// holder is something that a person has. set gives it to the person with a name. has reports whether the person with a
// name has it.
type holder struct {
	set func(w *world, name string)
	has func(w *world, name string) bool

	copied bool // the old number keeps it
}

// holders are all things that move with a person.
var holders = map[string]holder{
	"messages": {
		set: func(w *world, name string) { w.MustStart(name, begin.Add(time.Hour), 2) },
		has: func(w *world, name string) bool {
			all, _, err := w.Messages(context.Background(), puntuale.MessageFilter{Phone: name}, puntuale.Page{})
			w.must(err)
			return len(all) == 2
		},
	},
	"replies": {
		set: func(w *world, name string) { w.keepAll(); w.hear(name, -time.Hour) },
		has: func(w *world, name string) bool {
			all, _, err := w.Replies(context.Background(), puntuale.ReplyFilter{Phone: name}, puntuale.Page{})
			w.must(err)
			return slices.ContainsFunc(all, func(y puntuale.Reply) bool { return y.At.Equal(begin.Add(-time.Hour)) })
		},
	},
	"conversation": {
		set: func(w *world, name string) {
			w.keepAll()
			w.hear(name, -time.Hour)
			w.must(w.Answered(context.Background(), name, begin.Add(-time.Minute)))
		},
		has: func(w *world, name string) bool {
			c, err := w.Conversation(context.Background(), name)
			w.must(err)
			return c.Answered.Equal(begin.Add(-time.Minute)) && c.Unread >= 1
		},
	},
	"window": {
		set: func(w *world, name string) { w.hear(name, -time.Hour) },
		has: func(w *world, name string) bool {
			end, err := w.ReplyWindowOf(context.Background(), w.Session, name)
			w.must(err)
			return end.Equal(begin.Add(23 * time.Hour))
		},
	},
	"grant": {
		set: func(w *world, name string) { w.consent(name, puntuale.ConsentGrant, 0) },
		has: func(w *world, name string) bool {
			s, err := w.ConsentStatuses(context.Background(), w.person(name))
			w.must(err)
			all, _, err := w.Consents(context.Background(), w.person(name), puntuale.Page{})
			w.must(err)
			return s[puntuale.PurposeMarketing].Change == puntuale.ConsentGrant && len(all) == 1
		},
	},
	"withdrawal": {
		copied: true,
		set: func(w *world, name string) {
			w.allow(puntuale.ConsentFree)
			w.consent(name, puntuale.ConsentWithdraw, 0)
		},
		has: func(w *world, name string) bool {
			refused, err := w.MarketingRefused(context.Background(), []string{name}, w.mark)
			w.must(err)
			return refused[name]
		},
	},
	"blacklist": {
		copied: true,
		set:    func(w *world, name string) { w.block(name) },
		has: func(w *world, name string) bool {
			listed, err := w.AmongBlacklisted(context.Background(), []string{name}, w.mark)
			w.must(err)
			return listed[name]
		},
	},
	"contact": {
		set: func(w *world, name string) {
			_, err := w.MergeContacts(context.Background(), puntuale.ContactBatch{All: []puntuale.Contact{{Phone: name, Name: "Ada", Tags: []string{"cliente"}}}, Day: day, Now: begin})
			w.must(err)
		},
		has: func(w *world, name string) bool {
			c, found, err := w.ContactOf(context.Background(), name)
			w.must(err)
			return found && c.Name == "Ada"
		},
	},
	"booking": {
		set: func(w *world, name string) {
			b := w.Booking("visita")
			decide := b.Decide
			b.Phone, b.Run.Phone = name, name
			b.Decide = func(s puntuale.BookingState) (puntuale.BookingChange, error) {
				c, err := decide(s)
				c.Phone = name
				return c, err
			}
			_, err := w.PutBooking(context.Background(), b)
			w.must(err)
		},
		has: func(w *world, name string) bool {
			all, _, err := w.Bookings(context.Background(), puntuale.BookingFilter{Names: []string{name}}, puntuale.Page{})
			w.must(err)
			return len(all) == 1
		},
	},
}

// TestChangeMoves: everything of a person moves to the new number. Until somebody writes from the old number, it is found
// under both, and from then on only under the new one. The old number keeps blocks. An undo moves everything back.
func TestChangeMoves(t *testing.T) {
	t.Parallel()
	for what, h := range holders {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(w *world) {
				w.alias(oldID, oldNumber)
				h.set(w, oldNumber)
				c := w.report(begin.Add(time.Minute), []string{oldNumber, oldID}, []string{newNumber, newID})
				for range 2 {
					w.must(w.w.ChangeNumber(context.Background(), begin.Add(time.Minute), c))
				}
				for _, name := range []string{oldNumber, newNumber, oldID, newID} {
					if !h.has(w, name) {
						w.t.Errorf("not under %s", name)
					}
				}
				w.hear(oldNumber, 2*time.Minute)
				for name, want := range map[string]bool{oldNumber: h.copied, newNumber: true, oldID: true, newID: true} {
					if h.has(w, name) != want {
						w.t.Errorf("after a stranger wrote from the old number: under %s: %v", name, !want)
					}
				}
				_, err := w.UndoChange(context.Background(), newNumber, day, begin.Add(time.Hour))
				w.must(err)
				for name, want := range map[string]bool{oldNumber: what != "window", newNumber: false, oldID: what != "window", newID: false} {
					if got := h.has(w, name); got != want {
						w.t.Errorf("after the undo: under %s: %v", name, got)
					}
				}
			})
		})
	}
}

// TestPendingMessagesMove: pending messages get the new number, and nothing else of them changes. What the dispatcher read
// before must be read again. A message in flight stays as it is; if its attempt fails, it follows. A later start to the
// old number fails at its claim, until somebody writes from it.
func TestPendingMessagesMove(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		ctx := context.Background()
		ids := w.MustStart(oldNumber, begin, 4)
		w.MustEndTo(oldNumber, w.node, begin, puntuale.Outcome{Verdict: puntuale.Sent}, ids[0])
		flying := w.Items(oldNumber, 0, ids[1])[0]
		token, granted := w.w.MustClaim(w.node, begin.Add(time.Second), flying)
		before := w.Detail(ids[2])
		w.change(oldNumber, newNumber, time.Minute)
		late := w.MustStart(oldNumber, begin.Add(2*time.Minute), 2)
		if granted[0] != puntuale.ClaimGranted || w.phoneOf(ids[0]) != oldNumber || w.phoneOf(ids[1]) != oldNumber || w.phoneOf(late[0]) != oldNumber {
			w.t.Errorf("what left, what is in flight or what is later has moved: %v", granted)
		}
		after := w.Detail(ids[2])
		if before.Phone = newNumber; !after.Due.Equal(before.Due) || !after.Next.Equal(before.Next) || !after.ValidUntil.Equal(before.ValidUntil) || after.Phone != newNumber || after.Run != before.Run || after.State != puntuale.Pending {
			w.t.Errorf("moved: %+v, before: %+v", after, before)
		}
		for _, step := range []struct {
			id    puntuale.MessageID
			phone string
			want  puntuale.ClaimAnswer
		}{
			{ids[2], oldNumber, puntuale.ClaimStale}, {ids[2], newNumber, puntuale.ClaimGranted}, {late[0], oldNumber, puntuale.ClaimNumberChanged},
		} {
			if got := w.claim(step.id, step.phone, 3*time.Minute); got != step.want {
				w.t.Errorf("the claim of %d to %s: %v, want %v", step.id, step.phone, got, step.want)
			}
		}
		if d := w.Detail(late[0]); d.State != puntuale.Failed || d.Response().Code != puntuale.ReasonNumberChanged || d.Attempt != 0 {
			w.t.Errorf("a later start: %+v", d)
		}
		if !w.w.MustRecord(begin.Add(4*time.Minute), flying, token, puntuale.Outcome{Verdict: puntuale.Retry, Next: begin.Add(5 * time.Minute), Reason: puntuale.Because(puntuale.ReasonUnreachable)}) {
			w.t.Fatal("the outcome was not recorded")
		}
		if got := w.claim(ids[1], oldNumber, 6*time.Minute); got != puntuale.ClaimStale || w.phoneOf(ids[1]) != newNumber {
			w.t.Errorf("after a failed attempt: %v, to %s", got, w.phoneOf(ids[1]))
		}
		if got := w.claim(ids[1], newNumber, 6*time.Minute); got != puntuale.ClaimGranted {
			w.t.Errorf("after a failed attempt, to the new number: %v", got)
		}
		w.hear(oldNumber, 7*time.Minute)
		if got := w.claim(late[1], oldNumber, 8*time.Minute); got != puntuale.ClaimGranted {
			w.t.Errorf("after the old number wrote: %v", got)
		}
		done, err := w.Stop(ctx, w.Sequence, []string{newNumber}, "", day, begin.Add(8*time.Minute))
		w.must(err)
		if len(done.IDs) != 1 || done.IDs[0] != ids[3] {
			w.t.Errorf("a stop by the new number stops %v", done.IDs)
		}
	})
}

// TestStopByEitherNumber: stop, cancel and erase by the old number reach what moved, as long as nobody wrote from it.
func TestStopByEitherNumber(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		ctx := context.Background()
		for i, name := range []string{oldNumber, newNumber} {
			w.world(func(w *world) {
				ids := w.MustStart(oldNumber, begin.Add(time.Hour), 2)
				w.change(oldNumber, newNumber, time.Minute)
				done, err := w.Stop(ctx, w.Sequence, []string{name}, "", day, begin.Add(2*time.Minute))
				w.must(err)
				if !slices.Equal(done.IDs, ids) {
					w.t.Errorf("%d: a stop by %s stops %v", i, name, done.IDs)
				}
			})
			w.world(func(w *world) {
				ids := w.MustStart(oldNumber, begin.Add(time.Hour), 2)
				w.change(oldNumber, newNumber, time.Minute)
				w.block(name)
				w.hear(oldNumber, 2*time.Minute)
				if got := w.claim(ids[0], newNumber, 2*time.Hour); got != puntuale.ClaimBlacklisted {
					w.t.Errorf("%d: after %s came on the blacklist: %v", i, name, got)
				}
			})
			w.world(func(w *world) {
				w.allow(puntuale.ConsentFree)
				w.MustStart(oldNumber, begin.Add(time.Hour), 2)
				w.change(oldNumber, newNumber, time.Minute)
				w.consent(name, puntuale.ConsentWithdraw, 2*time.Minute)
				w.hear(oldNumber, 3*time.Minute)
				refused, err := w.MarketingRefused(ctx, []string{newNumber}, w.mark)
				w.must(err)
				if !refused[newNumber] {
					w.t.Errorf("%d: a withdrawal for %s is lost", i, name)
				}
			})
			w.world(func(w *world) {
				ids := w.MustStart(oldNumber, begin.Add(time.Hour), 2)
				w.block(oldNumber)
				w.change(oldNumber, newNumber, time.Minute)
				done, err := w.Erase(ctx, puntuale.Erasure{Person: w.person(name), Day: day, Now: begin.Add(time.Hour)})
				w.must(err)
				if done.Cancelled != 2 || w.phoneOf(ids[0]) != "" || w.mentions(oldNumber[1:])+w.mentions(newNumber[1:]) != "" {
					w.t.Errorf("%d: an erasure of %s: %+v, left in %s %s", i, name, done, w.mentions(oldNumber[1:]), w.mentions(newNumber[1:]))
				}
				for _, phone := range []string{oldNumber, newNumber} {
					if got := w.claim(w.MustStart(phone, begin, 1)[0], phone, 2*time.Hour); got != puntuale.ClaimBlacklisted {
						w.t.Errorf("%d: after an erasure, a message to %s: %v", i, phone, got)
					}
				}
			})
		}
	})
}

// world runs a part of a test with a client of its own.
func (w *world) world(test func(w *world)) {
	c := *w
	c.Client = w.w.Client(puntuale.AccountFull)
	test(&c)
}

// mentions returns the tables in which rows of the client contain a text.
func (w *world) mentions(text string) string {
	w.t.Helper()
	var all []string
	for table, columns := range map[string]string{
		"run": "phone || name", "message": "phone || reason || detail", "alias": "alias || phone", "blacklist": "phone || reason", "contact": "phone", "consent_state": "phone", "consent": "phone || words",
		"reply": "phone || text", "conversation": "phone", "person": "phone || name", "booking": "phone || fields", "booking_step": "phone", "former_name": "name",
		"number_change": "old_phone || new_phone || names || moved", "outbox_fact": "detail", "outbox_event": "detail",
	} {
		if n := w.w.Int("select count(*) from "+table+" where client_id = $1 and "+columns+" like $2", w.ID, "%"+text+"%"); n > 0 {
			all = append(all, table)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestChangesInAnyOrder: networks report changes late, twice, and in another order. The person ends at the name of the
// latest change.
func TestChangesInAnyOrder(t *testing.T) {
	t.Parallel()
	const a, b, c = "+393330000001", "+393330000002", "+393330000003"
	type step struct {
		from, to string
		at       time.Duration
	}
	for name, test := range map[string]struct {
		steps []step
		want  string
	}{
		"a chain":                   {[]step{{a, b, 1}, {b, c, 2}}, c},
		"a chain, the other way":    {[]step{{b, c, 2}, {a, b, 1}}, c},
		"back again":                {[]step{{a, b, 1}, {b, a, 2}}, a},
		"back again, the other way": {[]step{{b, a, 2}, {a, b, 1}}, a},
		"there and back and there":  {[]step{{a, b, 1}, {b, a, 2}, {a, b, 3}}, b},
		"twice":                     {[]step{{a, b, 1}, {a, b, 1}}, b},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(w *world) {
				id := w.MustStart(a, begin.Add(time.Hour), 1)[0]
				for _, s := range test.steps {
					w.change(s.from, s.to, s.at*time.Minute)
				}
				if got := w.phoneOf(id); got != test.want {
					w.t.Errorf("the message goes to %s, want %s", got, test.want)
				}
				if got := w.claim(id, test.want, 2*time.Hour); got != puntuale.ClaimGranted {
					w.t.Errorf("the claim: %v", got)
				}
				for _, phone := range []string{a, b} {
					if phone == test.want {
						continue
					}
					if got := w.claim(w.MustStart(phone, begin, 1)[0], phone, time.Hour); got != puntuale.ClaimNumberChanged {
						w.t.Errorf("a start to %s: %v", phone, got)
					}
				}
			})
		})
	}
}

// TestManyPendingMessagesMove: a change moves 10,000 pending messages in one transaction, while their order stays.
func TestManyPendingMessagesMove(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		for range 20 {
			w.MustStart(oldNumber, begin.Add(time.Hour), 500)
		}
		started := time.Now()
		w.change(oldNumber, newNumber, time.Minute)
		w.t.Logf("10,000 messages moved in %v", time.Since(started))
		if n := w.w.Int("select count(*) from message where client_id = $1 and phone = $2 and state = 0 and next_at = due_at", w.ID, newNumber); n != 10_000 {
			w.t.Errorf("%d messages moved", n)
		}
		_, err := w.UndoChange(context.Background(), newNumber, day, begin.Add(time.Hour))
		w.must(err)
		first := puntuale.MessageID(w.w.Int("select min(id) from message where client_id = $1", w.ID))
		if got := w.claim(first, newNumber, 2*time.Hour); got != puntuale.ClaimStale {
			w.t.Errorf("the claim of a message that was read before the undo: %v", got)
		}
		if n := w.w.Int("select count(*) from message where client_id = $1 and phone = $2 and state = 0", w.ID, oldNumber); n != 10_000 {
			w.t.Errorf("%d messages moved back", n)
		}
	})
}

// TestErasedPersonChangesNumber: of an erased person, only the blocks go to the new number, and no number is stored.
func TestErasedPersonChangesNumber(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		w.MustStart(oldNumber, begin.Add(time.Hour), 1)
		w.block(oldNumber)
		_, err := w.Erase(context.Background(), puntuale.Erasure{Person: w.person(oldNumber), Day: day, Now: begin})
		w.must(err)
		w.change(oldNumber, newNumber, time.Minute)
		if left := w.mentions(oldNumber[1:]) + w.mentions(newNumber[1:]); left != "" {
			w.t.Errorf("numbers of an erased person in %s", left)
		}
		if got := w.claim(w.MustStart(newNumber, begin, 1)[0], newNumber, time.Hour); got != puntuale.ClaimBlacklisted {
			w.t.Errorf("a message to the new number: %v", got)
		}
	})
}

// TestContactsOfBothNumbersMerge: if the new number is a contact, too, its values stay, and the undo makes two of it.
func TestContactsOfBothNumbersMerge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		ctx := context.Background()
		_, err := w.MergeContacts(ctx, puntuale.ContactBatch{Day: day, Now: begin, All: []puntuale.Contact{
			{Phone: oldNumber, Name: "Ada", Tags: []string{"vecchia"}, Fields: map[string]puntuale.ContactField{"targa": {Kind: puntuale.FieldText, Value: "AA"}}},
			{Phone: newNumber, Name: "Ada Rossi", Tags: []string{"nuova"}},
		}})
		w.must(err)
		w.change(oldNumber, newNumber, time.Minute)
		c, found, err := w.ContactOf(ctx, oldNumber)
		if n, _, _ := w.CountContacts(ctx, puntuale.ContactFilter{}, 9); err != nil || !found || n != 1 || c.Phone != newNumber || c.Name != "Ada Rossi" || len(c.Tags) != 2 || c.Fields["targa"].Value != "AA" {
			w.t.Errorf("%d contacts, %+v, %v", n, c, err)
		}
		_, err = w.UndoChange(ctx, newNumber, day, begin.Add(time.Hour))
		w.must(err)
		for phone, name := range map[string]string{oldNumber: "Ada", newNumber: "Ada Rossi"} {
			if c, found, err := w.ContactOf(ctx, phone); err != nil || !found || c.Name != name || len(c.Tags) != 1 {
				w.t.Errorf("after the undo: %+v, %v", c, err)
			}
		}
		if n, _, _ := w.CountContacts(ctx, puntuale.ContactFilter{}, 9); n != 2 {
			w.t.Errorf("%d contacts after the undo", n)
		}
	})
}

// TestPendingMessagesMoveToID: a person without a number has another id. A claim of what was read before finds that.
func TestPendingMessagesMoveToID(t *testing.T) {
	t.Parallel()
	onBoth(t, func(w *world) {
		id := w.MustStart(oldID, begin, 1)[0]
		w.change(oldID, newID, time.Minute)
		for _, step := range []struct {
			to   string
			want puntuale.ClaimAnswer
		}{{oldID, puntuale.ClaimStale}, {newID, puntuale.ClaimGranted}} {
			if got := w.claim(id, step.to, time.Hour); got != step.want {
				w.t.Errorf("the claim to %s: %v", step.to, got)
			}
		}
		late := w.MustStart(oldID, begin, 1)[0]
		if got := w.claim(late, oldID, time.Hour); got != puntuale.ClaimNumberChanged {
			w.t.Errorf("a later start to the old id: %v", got)
		}
	})
}
