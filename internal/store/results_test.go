package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
	"puntuale/internal/store/transfer"
)

// TestResultsAreExact makes random histories: starts, outcomes in any order and again, receipts, re-sends, moves, stops,
// replies, opt-outs, bookings, erasures, other time zones, archive, and a move to another database. Meanwhile the counter counts now and then, in
// chunks of any size. The server stops between chunks, and chunks break off: a statement fails, the caller gives up, the
// connection is lost at the COMMIT. Then reports, and the lists of people behind their numbers, must equal a count from
// scratch, which knows nothing of the counter. The seed is in the test's name.
func TestResultsAreExact(t *testing.T) {
	t.Parallel()
	seeds := uint64(4)
	if os.Getenv("PUNTUALE_LONG") != "" {
		seeds = 500
	}
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				t.Parallel()
				d := driver(t)
				d.Clock.Set(longAgo)
				d.Config.Public = linkSite
				var p *proxy
				if d.Postgres {
					p = behindProxy(t, d)
				}
				h := newResultHistory(t, storetest.NewWorld(t, d), seed)
				h.proxy = p
				for round := range 4 {
					h.play(70)
					h.compare(fmt.Sprintf("after round %d", round))
				}
				h.archive()
				h.compare("after the archive")
				h.play(40)
				h.compare("after more")
				h.recount()
				h.compare("after a count from scratch")
				h.move(driver)
				h.compare("after an import")
			})
		}
	}
}

// resultHistory is a store with random calls. It remembers what the rows of the store do not say: which messages people
// answered, what an erasure leaves of a booking's status and of a message's reason, and what was counted before it went to the archive.
type resultHistory struct {
	*storetest.World
	t        *testing.T
	r        *rand.Rand
	clients  []puntuale.ClientID
	sessions map[puntuale.ClientID][]puntuale.SessionID
	proxy    *proxy // nil: there is none
	unbroken bool   // true: no count breaks off, because servers count meanwhile that must not fail
	template *storetest.Client
	own      map[puntuale.ClientID]*storetest.Client
	second   map[puntuale.ClientID]puntuale.SequenceID // another sequence
	node     puntuale.NodeID
	joined   time.Time
	claimed  []puntuale.Result
	answers  map[puntuale.MessageRef][]string // "": a reply, "!": an opt-out, else a button
	statuses map[bookedRef]int                // of erased people's bookings
	reasons  map[puntuale.MessageRef]string   // of erased people's messages that failed, from before
	archived map[string]int64
	n        int
}

// bookedRef names a booking.
type bookedRef struct {
	client puntuale.ClientID
	id     puntuale.BookingID
}

func newResultHistory(t *testing.T, w *storetest.World, seed uint64) *resultHistory {
	h := &resultHistory{World: w, t: t, r: rand.New(rand.NewPCG(seed, 7)), node: w.MustJoin(), joined: time.Now(), answers: map[puntuale.MessageRef][]string{}, statuses: map[bookedRef]int{}, reasons: map[puntuale.MessageRef]string{}, archived: map[string]int64{}, own: map[puntuale.ClientID]*storetest.Client{}, sessions: map[puntuale.ClientID][]puntuale.SessionID{}, second: map[puntuale.ClientID]puntuale.SequenceID{}}
	for range 2 {
		c := w.Client(puntuale.AccountFull)
		second, err := c.CreateSession(context.Background(), puntuale.Session{Name: "seconda", Type: puntuale.Official, Sandbox: true, Created: longAgo}, nil)
		h.ok(err)
		h.clients, h.template, h.own[c.ID] = append(h.clients, c.ID), c, c
		h.sessions[c.ID] = []puntuale.SessionID{c.Session, second}
		h.second[c.ID], err = c.CreateSequence(context.Background(), puntuale.Sequence{Name: "seconda", Steps: []puntuale.Step{{Text: "ciao"}}}, nil)
		h.ok(err)
		_, err = c.UpdateSettings(context.Background(), puntuale.SettingsPatch{TrackLinks: new(true)})
		h.ok(err)
	}
	return h
}

func (h *resultHistory) ok(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *resultHistory) now() time.Time            { return h.DB.Clock.Now() }
func (h *resultHistory) client() puntuale.ClientID { return h.clients[h.r.IntN(len(h.clients))] }
func (h *resultHistory) phone() string             { return fmt.Sprintf("+3933300000%d", h.r.IntN(8)) }

func (h *resultHistory) play(steps int) {
	verbs := slices.Concat(slices.Repeat([]func(){h.start, h.claim, h.record, h.receipts, h.reply, h.wait}, 6),
		slices.Repeat([]func(){h.resend, h.count, h.settle, h.late, h.book, h.book, h.click, h.click}, 2), []func(){h.stop, h.blacklist, h.optOut, h.erase, h.restart, h.cancel, h.changeZone})
	for range steps {
		verbs[h.r.IntN(len(verbs))]()
	}
}

func (h *resultHistory) start() {
	id := h.client()
	c := *h.template
	c.ID, c.Session = id, h.sessions[id][h.r.IntN(2)]
	run := c.Run(h.phone(), h.now().Add(time.Duration(h.r.IntN(72*60))*time.Minute-12*time.Hour), 1+h.r.IntN(3))
	run.Run.Zone = zonesOfHistories[h.r.IntN(3)]
	run.Run.Sequence = append(h.sequences(id), 0)[h.r.IntN(3)]
	if run.Run.Sequence != 0 && h.r.IntN(3) == 0 {
		run.Run.Campaign = sequenceCampaign
	}
	run.Run.Rule, run.Run.Received = puntuale.AutomationID(h.r.IntN(2)*4), h.now()
	for i := range run.Messages {
		if h.r.IntN(2) == 0 {
			run.Messages[i].Content.Template = "modello"
		}
		if run.Messages[i].StepID = []string{"", "3", "8"}[h.r.IntN(3)]; run.Messages[i].StepID == "3" {
			run.Messages[i].Variant = int8(h.r.IntN(puntuale.MaxVariants + 1))
		}
		if h.r.IntN(2) == 0 {
			run.Messages[i].Content.Text = "Ecco https://negozio.example/x, oppure https://negozio.example/y"
		}
		run.Messages[i].ValidUntil = run.Messages[i].Due.Add(20 * 24 * time.Hour)
	}
	if h.r.IntN(3) == 0 { // one message of a campaign, in one of its variants
		run.Messages, run.Run.Sequence, run.Run.Campaign, run.Run.Origin = run.Messages[:1], 0, comparedCampaign, puntuale.OriginMassive
		run.Messages[0].Step, run.Messages[0].StepID, run.Messages[0].Variant = h.r.IntN(puntuale.MaxVariants), "", 0
	}
	_, err := h.Tenant(id).Start(context.Background(), run)
	h.ok(err)
}

const (
	comparedCampaign puntuale.CampaignID = 5 // of messages in several variants
	sequenceCampaign puntuale.CampaignID = 6 // of sequences
)

func (h *resultHistory) sequences(client puntuale.ClientID) []puntuale.SequenceID {
	return []puntuale.SequenceID{h.own[client].Sequence, h.second[client]}
}

// some returns up to n stored messages of a client that match a condition.
func (h *resultHistory) some(n int, condition string) (all []puntuale.MessageRef) {
	rows, err := h.DB.SQL.Query(`select client_id, id from message where ` + condition + ` order by id`)
	h.ok(err)
	defer rows.Close()
	for rows.Next() {
		var m puntuale.MessageRef
		h.ok(rows.Scan(&m.Client, &m.ID))
		all = append(all, m)
	}
	h.ok(rows.Err())
	h.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

func (h *resultHistory) claim() { h.claimSome("") }

func (h *resultHistory) claimSome(condition string) {
	var items []puntuale.ClaimItem
	for _, m := range h.some(1+h.r.IntN(5), "state = 0 and intent = 0 and phone <> ''"+condition) {
		items = append(items, puntuale.ClaimItem{MessageRef: m})
	}
	if time.Since(h.joined) > 20*time.Second { // before the lease of a minute ends; a slow machine needs longer for a history
		h.node, h.joined = h.MustJoin(), time.Now()
	}
	token := storetest.Token(h.node)
	granted, err := h.Claim(context.Background(), puntuale.Claim{Node: h.node, Token: token, Now: h.now(), Messages: items})
	h.ok(err)
	for i, g := range granted {
		if g == puntuale.ClaimGranted {
			h.claimed = append(h.claimed, puntuale.Result{MessageRef: items[i].MessageRef, Token: token})
		}
	}
}

func (h *resultHistory) record() {
	if len(h.claimed) == 0 {
		return
	}
	i := h.r.IntN(len(h.claimed))
	r := h.claimed[i]
	if h.r.IntN(3) > 0 { // else it is recorded again later, perhaps with another outcome
		h.claimed = slices.Delete(h.claimed, i, i+1)
	}
	r.Outcome = puntuale.Outcome{Verdict: puntuale.Verdict([]int{1, 1, 1, 2, 3, 4}[h.r.IntN(6)]), Next: h.now().Add(time.Minute)}
	if r.Outcome.Verdict == puntuale.Refused {
		r.Outcome.Reason = []puntuale.Reason{puntuale.Quoted("perché non a " + h.detail(r.MessageRef).Phone), puntuale.Because(puntuale.ReasonUncertain), puntuale.Because(puntuale.ReasonUncertain), puntuale.Because(puntuale.ReasonUnreachable), {}, puntuale.Because(puntuale.ReasonUnsent, h.detail(r.MessageRef).Phone)}[h.r.IntN(6)]
	}
	_, err := h.Record(context.Background(), h.now(), []puntuale.Result{r})
	h.ok(err)
}

// late proves that an attempt that was given up did arrive, perhaps after the message was sent again.
func (h *resultHistory) late() {
	for _, m := range h.some(2, "outcome = 2 and reason like '%uncertain%'") {
		_, err := h.Record(context.Background(), h.now(), []puntuale.Result{{MessageRef: m, Token: storetest.Token(h.node), Outcome: puntuale.Outcome{Verdict: puntuale.Sent}}})
		h.ok(err)
	}
}

func (h *resultHistory) settle() {
	for _, m := range h.some(1, "state = 0 and intent = 0") {
		h.ok(h.Settle(context.Background(), h.node, h.now(), []puntuale.Settlement{{MessageRef: m, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonExpired)}}))
	}
}

func (h *resultHistory) receipts() {
	var all []puntuale.DeliveryReceipt
	for _, m := range h.some(3, "intent_at > 0") {
		d := h.detail(m)
		kind := puntuale.ReceiptKind(1 + h.r.IntN(4))
		at := h.now().Add(-time.Duration(h.r.IntN(600)) * time.Minute)
		e := puntuale.DeliveryReceipt{MessageRef: m, Session: d.Session, Token: max(1, d.Intent), Kind: kind, At: at}
		if kind == puntuale.ReceiptFailed {
			e.Reason = puntuale.Because(puntuale.ReasonNotAccepted)
		}
		all = append(all, e)
	}
	_, err := h.KeepReceipts(context.Background(), h.now(), all)
	h.ok(err)
}

// click lets a person or a machine follow a link of a message that was tried.
func (h *resultHistory) click() {
	for _, m := range h.some(2, "intent_at > 0 and phone <> ''") {
		step := puntuale.StepRef{RunRef: puntuale.RunRef{Client: m.Client}}
		h.ok(h.DB.SQL.QueryRow(fmt.Sprintf("select run_id, step from message where client_id = %d and id = %d", m.Client, m.ID)).Scan(&step.RunRef.ID, &step.Step))
		contents, err := h.Contents(context.Background(), []puntuale.StepRef{step})
		h.ok(err)
		codes := codesIn(contents[step].Content.Text)
		if len(codes) == 0 {
			continue
		}
		link, _, err := h.Links.LinkOf(context.Background(), codes[h.r.IntN(len(codes))])
		h.ok(err)
		_, err = h.Links.RecordClicks(context.Background(), h.now(), []puntuale.Click{{LinkRef: link, At: h.now(), Machine: h.r.IntN(3) == 0}})
		h.ok(err)
	}
}

func (h *resultHistory) detail(m puntuale.MessageRef) puntuale.MessageDetail {
	d, err := h.Tenant(m.Client).Details(context.Background(), []puntuale.MessageID{m.ID})
	h.ok(err)
	if len(d) == 0 { // it is in the archive
		return puntuale.MessageDetail{}
	}
	return d[0]
}

// lastBefore finds what a person would answer, by looking at every message: the last one that was tried in the 72 hours
// before, unless it certainly did not leave.
func (h *resultHistory) lastBefore(client puntuale.ClientID, phone string, at time.Time) (last puntuale.MessageID) {
	rows, err := h.DB.SQL.Query(fmt.Sprintf(`select id, intent_at, outcome, intent from message where client_id = %d and phone = '%s' order by intent_at, id`, client, phone))
	h.ok(err)
	defer rows.Close()
	for rows.Next() {
		var id puntuale.MessageID
		var tried, intent int64
		var outcome int
		h.ok(rows.Scan(&id, &tried, &outcome, &intent))
		when := time.UnixMicro(tried)
		if tried > 0 && !when.After(at) && at.Sub(when) <= 72*time.Hour && (outcome == 1 || intent > 0) {
			last = id
		}
	}
	h.ok(rows.Err())
	return last
}

func (h *resultHistory) reply() {
	client, phone := h.client(), h.phone()
	h.n++
	m := puntuale.TakenMessage{Names: []string{phone}, Mark: fmt.Sprintf("m%d", h.n), Keep: []puntuale.KeepReplies{puntuale.KeepAllReplies, puntuale.KeepNoReplies}[h.r.IntN(2)],
		InboundMessage: puntuale.InboundMessage{Client: client, Session: h.sessions[client][0], Phone: phone, At: h.now().Add(-time.Duration(h.r.IntN(90)) * time.Minute), ID: fmt.Sprintf("n%d", h.n), Kind: puntuale.ReplyText, Text: "sì"}}
	button := ""
	if h.r.IntN(2) == 0 {
		button = []string{"Confermo", "Annulla"}[h.r.IntN(2)]
		m.Kind, m.Text = puntuale.ReplyButton, button
	}
	of := h.lastBefore(client, phone, m.At)
	if quoted := h.some(1, fmt.Sprintf("client_id = %d and phone = '%s' and intent_at > 0", client, phone)); len(quoted) > 0 && h.r.IntN(3) == 0 {
		m.InReplyTo, of = quoted[0].ID, quoted[0].ID
		if m.At.Sub(h.detail(quoted[0]).IntentAt) > 72*time.Hour {
			of = 0
		}
	}
	_, err := h.KeepInbound(context.Background(), h.now(), []puntuale.TakenMessage{m})
	h.ok(err)
	h.answered(client, of, button)
	_, err = h.KeepInbound(context.Background(), h.now(), []puntuale.TakenMessage{m}) // networks report again
	h.ok(err)
}

func (h *resultHistory) answered(client puntuale.ClientID, of puntuale.MessageID, what string) {
	if of != 0 {
		ref := puntuale.MessageRef{Client: client, ID: of}
		h.answers[ref] = append(h.answers[ref], what)
	}
}

func (h *resultHistory) optOut() {
	client, phone := h.client(), h.phone()
	of := h.lastBefore(client, phone, h.now())
	r, err := h.EnterConsent(context.Background(), puntuale.ConsentEntry{Client: client, Consent: puntuale.Consent{Phone: phone, Purpose: puntuale.PurposeMarketing,
		Change: puntuale.ConsentChange(1 + h.r.IntN(2)), At: h.now(), Entered: h.now()}})
	h.ok(err)
	if r.Changed && r.Change == puntuale.ConsentWithdraw {
		h.answered(client, of, "!")
	}
}

func (h *resultHistory) resend() {
	some := h.some(1, "state in (1, 2, 3, 4) and phone <> '' or state = 0 and intent = 0")
	if len(some) == 0 {
		return
	}
	again := puntuale.Resend{Day: storetest.Day, Now: h.now(), Move: h.r.IntN(2) == 0}
	due := h.now().Add(time.Duration(h.r.IntN(3000)) * time.Minute)
	again.Messages = []puntuale.ResendMessage{{ID: some[0].ID, Desired: due, Due: due, ValidUntil: due.Add(20 * 24 * time.Hour)}}
	if _, err := h.Tenant(some[0].Client).Resend(context.Background(), again); err != nil && puntuale.CodeOf(err) != puntuale.CodeConflict {
		h.t.Fatal(err)
	}
}

func (h *resultHistory) stop() {
	_, err := h.Tenant(h.client()).Stop(context.Background(), 0, []string{h.phone()}, "", storetest.Day, h.now())
	if puntuale.CodeOf(err) != puntuale.CodeNotFound {
		h.ok(err)
	}
}

func (h *resultHistory) cancel() {
	_, err := storetest.CancelPending(context.Background(), h.Tenant(h.client()), []string{h.phone()}, false, storetest.Day, h.now())
	h.ok(err)
}

func (h *resultHistory) blacklist() {
	client, phone := h.client(), h.phone()
	h.ok(h.Tenant(client).AddBlacklisted(context.Background(), puntuale.BlacklistEntry{Phone: phone, Added: h.now()}, storetest.Day, nil))
	h.claimSome(fmt.Sprintf(" and client_id = %d and phone = '%s'", client, phone))
	_, err := h.Tenant(client).RemoveBlacklisted(context.Background(), puntuale.Person{Names: []string{phone}}, storetest.Day, h.now())
	h.ok(err)
}

func (h *resultHistory) erase() {
	client, phone := h.client(), h.phone()
	h.forgetBookings(client, phone)
	h.forgetReasons(client, phone)
	_, err := h.Tenant(client).Erase(context.Background(), puntuale.Erasure{Person: puntuale.Person{Names: []string{phone}, Mark: func(name string) string { return mark(client, name) }}, Day: storetest.Day, Now: h.now()})
	if puntuale.CodeOf(err) != puntuale.CodeBusy { // a message to the person is being sent; the bookings are erased all the same
		h.ok(err)
	}
}

// forgetBookings remembers which statuses the erasure of a person leaves: only what is to come is cancelled.
func (h *resultHistory) forgetBookings(client puntuale.ClientID, phone string) {
	rows, err := h.DB.SQL.Query(fmt.Sprintf(`select id, status, date_at from booking where client_id = %d and phone = '%s'`, client, phone))
	h.ok(err)
	defer rows.Close()
	for rows.Next() {
		ref := bookedRef{client: client}
		var status int
		var date int64
		h.ok(rows.Scan(&ref.id, &status, &date))
		if status < int(puntuale.BookingCancelled) && time.UnixMicro(date).After(h.now()) {
			status = int(puntuale.BookingCancelled)
		}
		h.statuses[ref] = status
	}
	h.ok(rows.Err())
}

// forgetReasons remembers why messages failed to a person who is erased.
func (h *resultHistory) forgetReasons(client puntuale.ClientID, phone string) {
	rows, err := h.DB.SQL.Query(fmt.Sprintf(`select id, reason from message where client_id = %d and phone = '%s' and outcome = 2`, client, phone))
	h.ok(err)
	defer rows.Close()
	for rows.Next() {
		ref := puntuale.MessageRef{Client: client}
		var reason string
		h.ok(rows.Scan(&ref.ID, &reason))
		h.reasons[ref] = reason
	}
	h.ok(rows.Err())
}

// changeZone moves a client to another time zone. Its bookings without a zone of their own move with it.
func (h *resultHistory) changeZone() {
	_, err := h.Store.Partner(h.World.Partner).UpdateClient(context.Background(), h.client(), puntuale.ClientPatch{Zone: puntuale.Change[string]{Set: true, To: zonesOfHistories[h.r.IntN(3)]}}, h.now())
	h.ok(err)
}

var zonesOfHistories = []string{"Europe/Rome", "America/New_York", "Pacific/Auckland"}

// book makes or changes a booking: its person, its date, its status, its sequence, its time zone.
func (h *resultHistory) book() {
	id := h.client()
	c := h.own[id]
	put, phone := c.Booking(fmt.Sprintf("b%d", h.r.IntN(6))), h.phone()
	put.Phone = phone
	decide := put.Decide
	put.Decide = func(s puntuale.BookingState) (puntuale.BookingChange, error) {
		change, err := decide(s)
		change.Sequence, change.Status = h.sequences(id)[h.r.IntN(2)], puntuale.BookingStatus(h.r.IntN(5))
		change.Date = h.now().Add(time.Duration(h.r.IntN(40*24)-20*24) * time.Hour)
		change.Phone, change.Zone = phone, append(zonesOfHistories, "", "")[h.r.IntN(5)]
		return change, err
	}
	_, err := h.Tenant(id).PutBooking(context.Background(), put)
	h.ok(err)
}

func (h *resultHistory) wait() {
	h.DB.Clock.Advance(time.Duration(h.r.IntN(240)) * time.Minute)
}

func (h *resultHistory) count() {
	limit, way := 1+h.r.IntN(20), h.r.IntN(6)
	if h.unbroken {
		way = -1
	}
	switch way {
	case 0: // a statement fails
		mend := h.breakCount(changesOfCount[h.r.IntN(len(changesOfCount))])
		_, _ = h.CountResults(context.Background(), limit)
		mend()
		return
	case 1: // the caller gives up
		ctx, end := context.WithTimeout(context.Background(), time.Duration(h.r.IntN(3000))*time.Microsecond)
		_, _ = h.CountResults(ctx, limit)
		end()
		return
	case 2:
		if h.proxy != nil {
			h.proxy.cut.Store([]int32{cutBefore, cutAfter, cutDuring}[h.r.IntN(3)])
			_, _ = h.CountResults(context.Background(), limit)
			h.proxy.cut.Store(cutNothing) // there may have been nothing to count
			return
		}
	}
	_, err := h.CountResults(context.Background(), limit)
	h.ok(err)
}

// changesOfCount are the statements of a count, in their order.
var changesOfCount = []string{"insert on result_key", "update on result_key", "delete on result_message", "insert on result_message", "update on result_message", "delete on result_month",
	"insert on result_month", "update on result_month", "delete on result_change", "update on result_client"}

// breakCount makes the database refuse a statement, such as "insert on result_key", until the caller mends it.
func (h *resultHistory) breakCount(what string) (mend func()) {
	table := strings.Fields(what)[2]
	begin, end := []string{"create trigger broken before " + what + " begin select raise(abort, 'broken'); end"}, []string{"drop trigger broken"}
	if h.DB.Postgres {
		begin = []string{"create function broken() returns trigger language plpgsql as 'begin raise exception ''broken''; end'", "create trigger broken before " + what + " for each row execute function broken()"}
		end = []string{"drop trigger broken on " + table, "drop function broken()"}
	}
	do := func(all []string) {
		h.t.Helper()
		for _, text := range all {
			_, err := h.DB.SQL.Exec(text)
			h.ok(err)
		}
	}
	do(begin)
	return func() { do(end) }
}

// restart stops the server between two chunks of the counter, and starts another one.
func (h *resultHistory) restart() {
	h.count()
	old := h.Store
	h.Store = h.DB.Open(h.t)
	h.ok(old.Close())
	h.count()
}

func (h *resultHistory) countAll() {
	h.count()
	for more := true; more; {
		var err error
		more, err = h.CountResults(context.Background(), 1+h.r.IntN(200))
		h.ok(err)
	}
}

func (h *resultHistory) recount() {
	n, err := h.Recount(context.Background(), 0, h.now())
	if err != nil || n != int64(len(h.clients)) {
		h.t.Fatal(n, err)
	}
	h.play(10)
}

func (h *resultHistory) archive() {
	h.DB.Clock.Advance(10 * 24 * time.Hour)
	h.receipts() // some messages are noted, and not counted, when they leave
	before := h.scratch()
	a := newArchiveWorld(h.t, h.World)
	a.Exec(`update message set done_at = done_at - 2000000000000000 where state <> 0`)
	done := a.run(h.now().AddDate(-40, 0, 0).AddDate(40, 0, -1))
	if done.Runs == 0 {
		h.t.Fatal("nothing was archived")
	}
	after := h.scratch()
	for key, n := range before {
		h.archived[key] += n - after[key]
	}
}

func (h *resultHistory) move(driver storetest.Driver) {
	h.play(5)
	file := exported(h.t, h.DB, transfer.ExportConfig{})
	to := driver(h.t)
	to.Config.Public = linkSite
	imported(h.t, to, file)
	to.Clock.Set(h.now())
	h.DB, h.Store, h.proxy = to, to.Open(h.t), nil
}
