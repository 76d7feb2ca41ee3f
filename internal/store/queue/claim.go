package queue

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/outbox"
)

// Claim writes the intents of a batch in one transaction, under the node's lease. The answers have the order of
// the items. [puntuale.ErrFenced]: the lease is gone, and nothing was claimed.
func (s *Queue) Claim(ctx context.Context, c puntuale.Claim) ([]puntuale.ClaimAnswer, error) {
	var answers []puntuale.ClaimAnswer
	present := s.ClockAt(c.Now)
	t := &engine.Task{Kind: s.claim, Weight: 1, Timestamped: true, Done: make(chan error, 1)}
	t.Run = func(ctx context.Context, a engine.Querier) error {
		b := &ClaimBatch{Claim: c, A: a, Done: present()}
		err := b.Run(ctx)
		answers = b.Answers
		t.Body = b
		return err
	}
	if err := s.ClaimWriter.Do(ctx, t, false); err != nil {
		return nil, err
	}
	return answers, nil
}

func newClaimKind() *engine.Kind {
	k := engine.NewSingle("claim", engine.PrioritySend)
	k.Class = engine.ClassClaim
	k.Check = checkClaim
	return k
}

// ClaimBatch is the work of one claim. Locks: node, campaigns, messages by (client, id), clients.
type ClaimBatch struct {
	puntuale.Claim
	A    engine.Querier
	Done time.Time // done_at of the messages that the claim closes

	Answers     []puntuale.ClaimAnswer
	order       []int // indexes in Messages of the messages that may be claimed, sorted by (client, id)
	permissions map[puntuale.ClientID]puntuale.SendPermission
	erased      int64 // number of erasures when the send permissions were read
	marked      bool  // at least one item of the claim contains a mark (keyed hash) of its number
	granted     []grantedRow
	others      map[int][]string            // other names of the recipients of the messages in granted
	returned    map[puntuale.ClientID]int64 // number of credits to give back to each client
}

// grantedRow is a message whose intent this transaction has written.
type grantedRow struct {
	puntuale.MessageRef
	index   int // index of the message in Messages
	due     int64
	attempt int // number of this attempt
	purpose puntuale.Purpose
	blocked bool
	// marked says that the blacklist contains the number's mark. The erasure that wrote the mark closed or stopped all open
	// messages to the number. So the number was blacklisted before this message was accepted.
	marked  bool
	named   bool // the person may have other names
	refused bool // the message is marketing, and the person did not agree to marketing
	former  bool // the person has another number now, and the message is for the old one
	charged bool // the claim must take a credit for this message
}

func (b *ClaimBatch) Run(ctx context.Context) error {
	b.Answers = make([]puntuale.ClaimAnswer, len(b.Messages))
	b.granted, b.others, b.marked, b.returned = nil, nil, false, map[puntuale.ClientID]int64{}
	if len(b.Messages) == 0 {
		return fleet.Fence(ctx, b.A, b.Node)
	}
	held := func() error { return nil }
	if b.Node != 0 { // only the claim of a device has no node (devicetake.go)
		var err error
		if held, err = fleet.Leased(ctx, b.A, b.Node); err != nil {
			return err
		}
	}
	if err := b.sort(ctx); err != nil {
		return err
	}
	if err := held(); err != nil || len(b.order) == 0 {
		return err
	}
	if err := b.write(ctx); err != nil {
		return err
	}
	if err := b.findFormer(ctx); err != nil {
		return err
	}
	if err := b.findBlocked(ctx); err != nil {
		return err
	}
	if err := b.findRefused(ctx); err != nil {
		return err
	}
	if err := b.closeBlocked(ctx); err != nil {
		return err
	}
	return b.charge(ctx)
}

// sort leaves out messages of clients and campaigns that may not send. It sorts the others in the order of locks.
func (b *ClaimBatch) sort(ctx context.Context) error {
	clients := map[puntuale.ClientID]bool{}
	for _, m := range b.Messages {
		clients[m.Client] = true
	}
	held, err := b.heldCampaigns(ctx)
	if err != nil {
		return err
	}
	if b.permissions, b.erased, err = sendPermissions(ctx, b.A, slices.Sorted(maps.Keys(clients))); err != nil {
		return err
	}
	b.order = b.order[:0]
	for i, m := range b.Messages {
		b.marked = b.marked || m.Mark != ""
		st, ok := b.permissions[m.Client]
		switch {
		case !ok:
			b.Answers[i] = puntuale.ClaimStale
		case held[campaignRef{m.Client, m.Campaign}]:
			b.Answers[i] = puntuale.ClaimPaused
		case st.Erased && m.Mark == "":
			b.Answers[i] = puntuale.ClaimUnmarked
		case m.Purpose == puntuale.PurposeMarketing && m.Intent == 0 && st.MarketingWaits(b.Now): // a repeat may go on, because the network may have the message
			b.Answers[i] = puntuale.ClaimBudget
		case m.Intent > 0 && st.WaitReason(b.Now) == puntuale.ReasonNoCredit: // allowed, because a repeat needs no new credit
			b.order = append(b.order, i)
		case st.WaitReason(b.Now) != "":
			b.Answers[i] = puntuale.ClaimHeld
		default:
			b.order = append(b.order, i)
		}
	}
	slices.SortFunc(b.order, func(i, j int) int { return CompareRefs(b.Messages[i].MessageRef, b.Messages[j].MessageRef) })
	return nil
}

// campaignRef is the primary key of a campaign.
type campaignRef struct {
	client puntuale.ClientID
	id     puntuale.CampaignID
}

// heldCampaigns locks the campaigns of the batch until the transaction commits, and returns those that may not send. So
// after a pause has committed, every claim sees that the campaign is paused. Only changes of a campaign's state write
// these rows.
func (b *ClaimBatch) heldCampaigns(ctx context.Context) (map[campaignRef]bool, error) {
	seen := map[campaignRef]bool{}
	var refs []campaignRef
	for _, m := range b.Messages {
		if ref := (campaignRef{m.Client, m.Campaign}); m.Campaign != 0 && !seen[ref] {
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	if len(refs) == 0 {
		return nil, nil //nolint:nilnil // usually the batch has no messages of campaigns
	}
	slices.SortFunc(refs, func(x, y campaignRef) int { return cmp.Or(cmp.Compare(x.client, y.client), cmp.Compare(x.id, y.id)) })
	held := map[campaignRef]bool{}
	err := b.A.Query(ctx, lockCampaigns, []any{engine.Columns{
		engine.Column(refs, func(r *campaignRef) int64 { return int64(r.client) }),
		engine.Column(refs, func(r *campaignRef) int64 { return int64(r.id) }),
	}}, func(rows engine.Row) error {
		var ref campaignRef
		var state puntuale.CampaignState
		err := rows.Scan(&ref.client, &ref.id, &state)
		held[ref] = state.HoldsBack()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lock campaigns: %w", err)
	}
	return held, nil
}

const lockCampaigns = `
select c.client_id, c.id, c.state from $u(c bigint, i bigint) join campaign c on c.client_id = u.c and c.id = u.i
order by c.client_id, c.id for share of c`

// ClaimMessages writes the row of every message that it claims. So a cancellation that waits for the row sees the
// intent, and does not cancel the message. The condition compares intent but never state. If it compared state, the
// database might use the index of open messages, which also contains all messages in flight. A repeat (u.x > 0) keeps
// the time of the first unanswered attempt.
//
// A change of the person's number may give the message another phone. Such a person has other names, and findFormer compares
// the phones of their messages.
//
// After the send permissions were read, an erasure may replace a number in the blacklist by its mark. Then this
// statement would find neither the number nor the mark. So it also returns how many erasures there have been. If this
// number has grown since the read, the claim runs again.
const ClaimMessages = `
update message set intent = $1::bigint, attempt = message.attempt + 1,
 repeats = message.repeats + case when u.x > 0 then 1 else 0 end,
 intent_at = case when u.x > 0 then message.intent_at else $2::bigint end,
 credit = case when u.x > 0 then message.credit else u.k end
from $u(c bigint, i bigint, x bigint, k smallint, s bigint)
where message.client_id = u.c and message.id = u.i and message.intent = u.x
 and (u.s = 0 or message.session_id = u.s)
 and message.next_at <= $2 and message.valid_until > $2
returning message.client_id, message.id, message.due_at, message.attempt,
 message.purpose, message.purpose <> 2 and exists (select 1 from blacklist b where b.client_id = message.client_id and b.phone = message.phone),
 exists (select 1 from alias g where g.client_id = message.client_id and g.phone = message.phone)
 or exists (select 1 from alias g where g.client_id = message.client_id and g.alias = message.phone), ` + erasures

// BlockedMessages finds messages to people who are in the blacklist under another name, or under a mark. It runs only
// for messages to people with other names, and for clients with erased persons.
const BlockedMessages = `
select u.c, u.i, u.p from $u(c bigint, i bigint, p text) cross join blacklist b where b.client_id = u.c and b.phone = u.p`

func (b *ClaimBatch) write(ctx context.Context) error {
	index := make(map[puntuale.MessageRef]int, len(b.order))
	for _, i := range b.order {
		index[b.Messages[i].MessageRef] = i
	}
	item := func(i *int) *puntuale.ClaimItem { return &b.Messages[*i] }
	seen := b.erased
	var client, id, due, attempt int64
	var purpose puntuale.Purpose
	var blocked, named bool
	target := []any{&client, &id, &due, &attempt, &purpose, &blocked, &named, &seen}
	err := b.A.Query(ctx, ClaimMessages, []any{b.Token, engine.Micros(b.Now), engine.Columns{
		engine.Column(b.order, func(i *int) int64 { return int64(item(i).Client) }),
		engine.Column(b.order, func(i *int) int64 { return int64(item(i).ID) }),
		engine.Column(b.order, func(i *int) int64 { return item(i).Intent }),
		engine.Column(b.order, func(i *int) int64 { return engine.Bit(b.permissions[item(i).Client].Credits != nil) }),
		engine.Column(b.order, func(i *int) int64 { return int64(item(i).Session) }),
	}}, func(rows engine.Row) error {
		if err := rows.Scan(target...); err != nil {
			return err
		}
		g := grantedRow{due: due, attempt: int(attempt), purpose: purpose, blocked: blocked}
		g.MessageRef = puntuale.MessageRef{Client: puntuale.ClientID(client), ID: puntuale.MessageID(id)}
		g.index = index[g.MessageRef]
		g.named = named || puntuale.OtherForm(b.Messages[g.index].Phone) != ""
		g.charged = b.Messages[g.index].Intent == 0 && b.permissions[g.Client].Credits != nil
		b.granted = append(b.granted, g)
		return nil
	})
	if err != nil {
		return fmt.Errorf("write intents: %w", err)
	}
	if seen != b.erased {
		return fmt.Errorf("a number was erased meanwhile: %w", engine.ErrAgain)
	}
	for _, g := range b.granted {
		b.Answers[g.index] = puntuale.ClaimGranted
	}
	slices.SortFunc(b.granted, func(x, y grantedRow) int { return CompareRefs(x.MessageRef, y.MessageRef) })
	return nil
}

// findBlocked finds the messages to people who are in the blacklist under another name, or under a mark. It sets the
// fields marked and blocked of their rows in granted.
func (b *ClaimBatch) findBlocked(ctx context.Context) error {
	if len(b.granted) == 0 {
		return nil
	}
	if err := b.findOthers(ctx); err != nil || !b.marked && len(b.others) == 0 {
		return err
	}
	names := messageNames{}
	places := map[puntuale.MessageRef]int{}
	for i := range b.granted {
		g := &b.granted[i]
		places[g.MessageRef] = i
		names.add(g.MessageRef, append([]string{b.Messages[g.index].Mark}, b.others[i]...)...)
	}
	if err := b.A.Query(ctx, BlockedMessages, []any{names.columns()}, func(rows engine.Row) error {
		var ref puntuale.MessageRef
		var name string
		if err := rows.Scan(&ref.Client, &ref.ID, &name); err != nil {
			return err
		}
		if g := &b.granted[places[ref]]; g.purpose != puntuale.PurposeConfirmation {
			g.marked = g.marked || !g.blocked && name == b.Messages[g.index].Mark
			g.blocked = true
		}
		return nil
	}); err != nil {
		return fmt.Errorf("look for other names in the blacklist: %w", err)
	}
	return nil
}

// findOthers finds the other names of the recipients who have any. Most recipients have none, so most claims execute no
// statement for this.
func (b *ClaimBatch) findOthers(ctx context.Context) error {
	var places []int
	var clients []int64
	var phones []string
	for i, g := range b.granted {
		if g.named {
			places, clients, phones = append(places, i), append(clients, int64(g.Client)), append(phones, b.Messages[g.index].Phone)
		}
	}
	if len(places) == 0 {
		return nil
	}
	found, err := alias.Others(ctx, b.A, clients, phones)
	b.others = make(map[int][]string, len(found))
	for i, names := range found {
		b.others[places[i]] = names
	}
	return err
}

// messageNames contains names of the recipients of messages, in one row for each name.
type messageNames struct {
	refs  []puntuale.MessageRef
	names []string
}

func (n *messageNames) add(ref puntuale.MessageRef, names ...string) {
	for _, name := range names {
		if name != "" {
			n.refs, n.names = append(n.refs, ref), append(n.names, name)
		}
	}
}

func (n *messageNames) columns() engine.Columns { return append(RefColumns(n.refs), n.names) }

// RefusedMarketing finds messages to people who withdrew consent. If the client requires consent, it also finds
// messages to people who never gave consent. A message has a row for each name of the person, and for the marks.
const RefusedMarketing = `
select u.c, u.i from $u(c bigint, i bigint, p text) left join consent_state s on s.client_id = u.c and s.phone = u.p
 left join client_setting t on t.client_id = u.c and t.consent = 'required'
group by u.c, u.i having sum(case when s.change = 2 then 1 else 0 end) > 0
 or count(t.client_id) > 0 and sum(case when s.purpose = 1 and s.change = 1 then 1 else 0 end) = 0`

// findRefused finds the marketing messages to people who did not agree to marketing. It sets the field refused of their
// rows in granted.
func (b *ClaimBatch) findRefused(ctx context.Context) error {
	marketing := messageNames{}
	for i := range b.granted {
		if g := &b.granted[i]; g.purpose == puntuale.PurposeMarketing && !g.blocked {
			m := &b.Messages[g.index]
			marketing.add(g.MessageRef, append([]string{m.Phone, m.Mark}, b.others[i]...)...)
		}
	}
	if len(marketing.refs) == 0 {
		return nil
	}
	refused := map[puntuale.MessageRef]bool{}
	if err := b.A.Query(ctx, RefusedMarketing, []any{marketing.columns()}, func(rows engine.Row) error {
		var ref puntuale.MessageRef
		err := ScanRef(rows, &ref)
		refused[ref] = true
		return err
	}); err != nil {
		return fmt.Errorf("look for consent: %w", err)
	}
	for i := range b.granted {
		b.granted[i].refused = refused[b.granted[i].MessageRef]
	}
	return nil
}

// closeBlocked closes messages to blacklisted numbers, messages to numbers that people left, and marketing to people who
// did not agree to it. This transaction has already locked the rows.
//
// If a message was quarantined after a failover (quarantine.go), its credit stays spent, because the network may have
// the message. But the credit is given back if the number was blacklisted before the message was accepted.
func (b *ClaimBatch) closeBlocked(ctx context.Context) error {
	var refs []puntuale.MessageRef
	var credit []int64 // for each message: 0 if no credit was taken, 1 if the credit stays spent, -1 if the credit is given back
	var state []int64
	var reason []string
	b.granted = slices.DeleteFunc(b.granted, func(g grantedRow) bool {
		repeat := b.Messages[g.index].Intent > 0
		// Keep messages that are not blocked or refused. Also keep repeats of known attempts: the first attempt may
		// have reached the person before the block. So the repeat may continue under the same connector id. Close all
		// others, also quarantined messages, because none of their attempts is known (quarantine.go).
		if !g.blocked && !g.refused && !g.former || repeat && g.attempt > 1 {
			return false
		}
		refs, credit = append(refs, g.MessageRef), append(credit, engine.Bit(repeat)-2*engine.Bit(repeat && g.marked))
		switch {
		case g.blocked:
			state, reason, b.Answers[g.index] = append(state, int64(puntuale.Blacklisted)), append(reason, ""), puntuale.ClaimBlacklisted
		case g.former:
			state, reason, b.Answers[g.index] = append(state, int64(puntuale.Failed)), append(reason, puntuale.Because(puntuale.ReasonNumberChanged).Stored()), puntuale.ClaimNumberChanged
		default:
			state, reason, b.Answers[g.index] = append(state, int64(puntuale.Failed)), append(reason, puntuale.Because(puntuale.ReasonNoConsent).Stored()), puntuale.ClaimNoConsent
		}
		return true
	})
	if len(refs) == 0 {
		return nil
	}
	var facts []outbox.Fact
	if err := b.A.Query(ctx, `update message set intent = -1, state = u.s, outcome = 2, done_at = $1::bigint, attempt = message.attempt - 1,
 credit = message.credit * u.k, reason = case when u.r = '' then message.reason else u.r end from $u(c bigint, i bigint, k smallint, s smallint, r text)
 where message.client_id = u.c and message.id = u.i and message.intent = $2 returning message.client_id, message.id, message.state, message.credit`,
		[]any{engine.Micros(b.Done), b.Token, append(RefColumns(refs), credit, state, reason)}, func(rows engine.Row) error {
			var ref puntuale.MessageRef
			var state puntuale.State
			var returned int
			err := rows.Scan(&ref.Client, &ref.ID, &state, &returned)
			if returned < 0 {
				b.returned[ref.Client]++
			}
			kind := puntuale.EventMessageBlacklisted
			if state == puntuale.Failed {
				kind = puntuale.EventMessageFailed
			}
			facts = append(facts, outbox.Message(ref, kind))
			return err
		}); err != nil {
		return fmt.Errorf("close blocked messages: %w", err)
	}
	return outbox.Emit(ctx, b.A, b.Done, facts)
}

// charge takes credits for the granted messages, and gives back the credits in the field returned. If a client has too
// few credits, the messages that are due first get them. The intents of the client's other messages are undone.
func (b *ClaimBatch) charge(ctx context.Context) error {
	want := map[puntuale.ClientID][]grantedRow{}
	for _, g := range b.granted {
		if g.charged {
			want[g.Client] = append(want[g.Client], g)
		}
	}
	for c := range b.returned {
		if b.permissions[c].Credits != nil {
			want[c] = append([]grantedRow{}, want[c]...) // a client without new messages: no credit is taken, but the client's row must be locked in order
		}
	}
	if len(want) == 0 {
		return nil
	}
	clients := slices.Sorted(maps.Keys(want))
	amounts := engine.Column(clients, func(c *puntuale.ClientID) int64 { return int64(len(want[*c])) })
	taken, err := TakeCredits(ctx, b.A, clients, amounts, b.Now)
	if err != nil {
		return err
	}
	var returned []puntuale.MessageRef
	for i, c := range clients {
		rows := want[c]
		slices.SortFunc(rows, func(x, y grantedRow) int { return cmp.Or(cmp.Compare(x.due, y.due), cmp.Compare(x.ID, y.ID)) })
		for _, g := range rows[taken[i]:] {
			returned = append(returned, g.MessageRef)
			b.Answers[g.index] = puntuale.ClaimHeld
		}
	}
	if err := Enter(ctx, b.A, "reserve", b.Now, clients, engine.Column(taken, func(n *int64) int64 { return -*n })); err != nil {
		return err
	}
	if err := giveBack(ctx, b.A, b.Now, b.returned); err != nil {
		return err
	}
	return b.release(ctx, returned)
}

// release undoes intents that this transaction wrote. It sets intent_at to 0 only if the message had no earlier
// attempt.
func (b *ClaimBatch) release(ctx context.Context, refs []puntuale.MessageRef) error {
	if len(refs) == 0 {
		return nil
	}
	slices.SortFunc(refs, CompareRefs)
	if _, err := b.A.Exec(ctx, `update message set intent = 0, attempt = message.attempt - 1, credit = 0,
 intent_at = case when message.attempt > 1 then message.intent_at else 0 end
 from $u(c bigint, i bigint) where message.client_id = u.c and message.id = u.i and message.intent = $1`,
		b.Token, RefColumns(refs)); err != nil {
		return fmt.Errorf("take intents back: %w", err)
	}
	return nil
}

// checkClaim finds out whether a claim is on disk, after the connection was lost during COMMIT. If the claim is on
// disk, the rows of granted messages contain the claim's token. checkClaim locks one such row, and so waits for a
// commit that is still running. A claim that granted nothing can simply run again.
func checkClaim(ctx context.Context, w *engine.Writer, tasks []*engine.Task) (bool, error) {
	b, ok := tasks[0].Body.(*ClaimBatch)
	if !ok {
		return false, nil
	}
	// Look only at a granted message, because the intents of messages without a credit were undone.
	i := slices.IndexFunc(b.granted, func(g grantedRow) bool { return b.Answers[g.index] == puntuale.ClaimGranted })
	if i < 0 {
		return false, nil
	}
	ref := b.granted[i].MessageRef
	var intent int64
	if _, err := engine.QueryOne(ctx, &w.Conn, `select intent from message where client_id = $1 and id = $2 for update`,
		[]any{ref.Client, ref.ID}, &intent); err != nil {
		return false, fmt.Errorf("look for the claim: %w", err)
	}
	return intent == b.Token, nil
}
