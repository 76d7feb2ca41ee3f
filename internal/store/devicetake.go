package store

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// If devices send a session's messages, the dispatcher has no session queue for the session. Each take locks the
// session's row, so two takes of one session never run together. A take decides order, pace and window from rows of the
// database.
//
// While an attempt is open, next_at of its message is the end of the hold. After the end of the hold, the session's
// node handles the attempt as an attempt whose answer was lost.

// takeLooks is how many due messages one take reads. A take postpones the messages that are outside their window, so
// the next take reads further messages.
const takeLooks = 1000

// hold is a device's attempt that has no outcome yet.
type hold struct {
	puntuale.DueMessage
	device puntuale.DeviceID
	// dedupes says that the device sends a message only once, even if it takes the message twice. If the device is not
	// linked any more, dedupes is false.
	dedupes bool
	take    string
	holdEnd time.Time
}

// holds reads the attempts of the client's devices that have no outcome, sorted by the end of the hold. condition is an
// additional condition, with arguments from $2 on.
func (t tenant) holds(ctx context.Context, a engine.Querier, condition string, args ...any) ([]hold, error) {
	var h hold
	due := queue.NewDueRow(&h.device, engine.ScanBool(&h.dedupes), &h.take, engine.ScanTime(&h.holdEnd))
	var all []hold
	err := a.Query(ctx, `select `+queue.DueColumns+`, h.device_id, coalesce(d.dedupes, 0), h.take, h.until
 from device_hold h join message m on m.client_id = h.client_id and m.id = h.message_id and m.intent = h.token
 left join device d on d.client_id = h.client_id and d.id = h.device_id
 where h.client_id = $1 and h.done = 0 and m.state = 0`+condition+` order by h.until, h.message_id`, append([]any{t.id}, args...), func(rows engine.Row) error {
		err := due.Scan(rows, &h.DueMessage)
		all = append(all, h)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read holds: %w", err)
	}
	return all, nil
}

// holdColumns returns client, message and token of each hold as columns, sorted in the order of locks.
func holdColumns(held []hold) engine.Columns {
	slices.SortFunc(held, func(x, y hold) int { return cmp.Compare(x.ID, y.ID) })
	return append(queue.RefColumns(engine.Column(held, func(h *hold) puntuale.MessageRef { return puntuale.MessageRef{Client: h.Client, ID: h.ID} })),
		engine.Column(held, func(h *hold) int64 { return h.Intent }))
}

// moveMessages sets the time at which the session's node looks at the attempts of these holds.
func (t tenant) moveMessages(ctx context.Context, a engine.Querier, held []hold, at time.Time) error {
	if len(held) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `update message set next_at = $1::bigint from $u(c bigint, i bigint, x bigint)
 where message.client_id = u.c and message.id = u.i and message.intent = u.x`, engine.Micros(at), holdColumns(held)); err != nil {
		return fmt.Errorf("move the ends of holds: %w", err)
	}
	return nil
}

// moveHolds changes the ends of holds. The messages must be locked before, because holds come later in the order of
// locks.
func (t tenant) moveHolds(ctx context.Context, a engine.Querier, held []hold, holdUntil time.Time) error {
	if len(held) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `update device_hold set until = $1::bigint from $u(c bigint, i bigint, x bigint)
 where device_hold.client_id = u.c and device_hold.message_id = u.i and device_hold.token = u.x`, engine.Micros(holdUntil), holdColumns(held)); err != nil {
		return fmt.Errorf("move holds: %w", err)
	}
	return nil
}

// takeCandidates are the messages that the device could take. They were read outside a transaction.
type takeCandidates struct {
	free    []puntuale.HeldMessage // messages that may leave now, at most one for each person: first the repeats, then the new messages
	outside []puntuale.Settlement  // messages outside their window; each is postponed until its window opens again
}

// lookForDevice finds the messages that the device could take. It postpones messages that are outside their window.
// Otherwise a take could read only such messages, and never reach the messages behind them.
func (t tenant) lookForDevice(ctx context.Context, session puntuale.SessionID, device puntuale.DeviceID, now time.Time) ([]puntuale.HeldMessage, error) {
	for {
		found, err := t.takeable(ctx, session, device, now)
		if err != nil || len(found.outside) == 0 {
			return found.free, err
		}
		slices.SortFunc(found.outside, func(x, y puntuale.Settlement) int { return queue.CompareRefs(x.MessageRef, y.MessageRef) })
		if err := t.writeTimestamped(ctx, func(ctx context.Context, a engine.Querier) error { return queue.Settle(ctx, a, 0, now, found.outside) }); err != nil {
			return nil, err
		}
	}
}

func (t tenant) takeable(ctx context.Context, session puntuale.SessionID, device puntuale.DeviceID, now time.Time) (found takeCandidates, err error) {
	due, err := t.s.Due(ctx, []puntuale.QueueCursor{{Session: session}, {Session: session, Campaign: true}}, now, takeLooks)
	if err != nil {
		return found, err
	}
	held, err := t.holds(ctx, t.s.CallReads, ` and h.session_id = $2`, session)
	if err != nil {
		return found, engine.PublicError(err)
	}
	busy := busyPhones(held, now)
	due = slices.DeleteFunc(due, func(m puntuale.DueMessage) bool {
		return m.Client != t.id || m.Intent != 0 || !now.Before(m.ValidUntil) || busy[m.Phone]
	})
	due = firstOfEach(due)
	expired := map[puntuale.MessageID]hold{}
	for _, h := range held {
		if !h.holdEnd.After(now) && now.Before(h.ValidUntil) {
			expired[h.ID] = h
			due = append(due, h.DueMessage)
		}
	}
	steps := engine.Column(due, func(m *puntuale.DueMessage) puntuale.StepRef {
		return puntuale.StepRef{RunRef: puntuale.RunRef{Client: m.Client, ID: m.Run}, Step: m.Step}
	})
	contents, err := t.s.Contents(ctx, steps)
	if err != nil {
		return found, err
	}
	permissions, err := t.s.SendPermissions(ctx, []puntuale.ClientID{t.id})
	if err != nil {
		return found, err
	}
	permission := permissions[t.id]
	for i, m := range due {
		step, ok := contents[steps[i]]
		if !ok || step.Content.Empty() {
			continue // an empty message is never sent
		}
		if h, wasHeld := expired[m.ID]; wasHeld && !h.mayRepeat(step.Content, device, now) {
			continue
		}
		next, inside := opens(step, now)
		var detail puntuale.Reason
		if m.Purpose == puntuale.PurposeMarketing && m.Intent == 0 && permission.MarketingWaits(now) {
			next, inside, detail = permission.MarketingNext(m), false, puntuale.Because(puntuale.ReasonBudget)
		}
		switch {
		case inside:
			found.free = append(found.free, puntuale.HeldMessage{DueMessage: m, Content: step.Content})
		case m.Intent == 0:
			if next.IsZero() || next.After(m.ValidUntil) {
				next = m.ValidUntil
			}
			found.outside = append(found.outside, puntuale.Settlement{MessageRef: puntuale.MessageRef{Client: m.Client, ID: m.ID}, State: puntuale.Pending, Next: next, Detail: detail})
		}
	}
	found.free = repeatsFirst(found.free)
	return found, nil
}

// repeatsFirst puts the messages that the device may repeat before the new messages. It keeps one message for each
// person, the first repeat if there is one. The person's other messages wait for the next takes.
func repeatsFirst(free []puntuale.HeldMessage) []puntuale.HeldMessage {
	slices.SortStableFunc(free, func(x, y puntuale.HeldMessage) int {
		switch repeats := x.Intent != 0; {
		case repeats != (y.Intent != 0):
			if repeats {
				return -1
			}
			return 1
		case repeats && x.Before(y.DueMessage):
			return -1
		case repeats && y.Before(x.DueMessage):
			return 1
		}
		return 0
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(free, func(m puntuale.HeldMessage) bool {
		known := seen[m.Phone]
		seen[m.Phone] = true
		return known
	})
}

// opens reports whether the message may leave now. If it may not, next is the first time at which it may. A zero next
// means never.
func opens(step puntuale.StepContent, now time.Time) (next time.Time, inside bool) {
	if step.Window == nil {
		return now, true
	}
	zone, err := time.LoadLocation(step.Zone)
	if err != nil { // cannot happen, because runs have only known zones
		zone = time.UTC
	}
	if step.Window.Contains(now, zone) {
		return now, true
	}
	next, _ = step.Window.Next(now, zone)
	return next, false
}

// mayRepeat reports whether the device may repeat an attempt whose hold has ended.
func (h *hold) mayRepeat(c puntuale.Content, device puntuale.DeviceID, now time.Time) bool {
	own := h.dedupes && h.device == device && h.Repeats < puntuale.MaxRepeats
	resends := c.Resend && h.Repeats < puntuale.MaxResends && !now.Before(h.IntentAt.Add(puntuale.ResendAfter))
	return own || resends
}

// busyPhones returns the recipients of messages that devices hold now.
func busyPhones(held []hold, now time.Time) map[string]bool {
	busy := map[string]bool{}
	for _, h := range held {
		if h.holdEnd.After(now) {
			busy[h.Phone] = true
		}
	}
	return busy
}

// firstOfEach keeps the first message to each person, in the order of the queue. A message of a campaign never comes
// before a message that belongs to no campaign.
func firstOfEach(due []puntuale.DueMessage) []puntuale.DueMessage {
	first := map[string]puntuale.DueMessage{}
	for _, m := range due {
		f, ok := first[m.Phone]
		if !ok || (m.Campaign == 0) == (f.Campaign == 0) && m.Before(f) || m.Campaign == 0 && f.Campaign != 0 {
			first[m.Phone] = m
		}
	}
	return slices.DeleteFunc(due, func(m puntuale.DueMessage) bool { return first[m.Phone].ID != m.ID })
}

// Takeable lists at most limit messages that the device could take at the time now, in the order of sending. It
// does not check the session's pace.
func (t tenant) Takeable(ctx context.Context, session puntuale.SessionID, device puntuale.DeviceID, now time.Time, limit int) ([]puntuale.HeldMessage, error) {
	all, err := t.lookForDevice(ctx, session, device, now)
	return all[:min(limit, len(all))], err
}

// HeldBy lists the messages that the device took and has not reported, sorted by the end of the hold. The end may
// be in the past.
func (t tenant) HeldBy(ctx context.Context, session puntuale.SessionID, device puntuale.DeviceID) ([]puntuale.HeldMessage, error) {
	held, err := t.holds(ctx, t.s.CallReads, ` and h.session_id = $2 and h.device_id = $3`, session, device)
	if err != nil {
		return nil, engine.PublicError(err)
	}
	return t.withContents(ctx, held)
}

// withContents adds the contents to held messages.
func (t tenant) withContents(ctx context.Context, held []hold) ([]puntuale.HeldMessage, error) {
	steps := engine.Column(held, func(h *hold) puntuale.StepRef {
		return puntuale.StepRef{RunRef: puntuale.RunRef{Client: h.Client, ID: h.Run}, Step: h.Step}
	})
	contents, err := t.s.Contents(ctx, steps)
	if err != nil {
		return nil, err
	}
	all := make([]puntuale.HeldMessage, len(held))
	for i, h := range held {
		all[i] = puntuale.HeldMessage{DueMessage: h.DueMessage, Content: contents[steps[i]].Content, Until: h.holdEnd}
	}
	return all, nil
}

// Take begins attempts. It writes intents, credits and holds in one transaction. Two devices never get the same
// message. Codes: not_found (the device was unlinked), conflict (the device cannot take take.Message now),
// unavailable (after a failover).
//
// Take searches for messages outside a transaction, and checks them again inside one.
func (t tenant) Take(ctx context.Context, k puntuale.DeviceTake) ([]puntuale.HeldMessage, error) {
	taken, err := t.takenBy(ctx, t.s.CallReads, k)
	if err != nil {
		return nil, engine.PublicError(err)
	}
	if len(taken) > 0 {
		return t.withContents(ctx, taken)
	}
	all, err := t.lookForDevice(ctx, k.Session, k.Device, k.Now)
	if err != nil {
		return nil, err
	}
	if k.Message != 0 {
		all = slices.DeleteFunc(all, func(h puntuale.HeldMessage) bool { return h.ID != k.Message })
	}
	if len(all) == 0 && k.Message == 0 {
		return nil, nil
	}
	b := &takeTransaction{tenant: t, k: k, found: all}
	if err := t.writeTimestamped(ctx, b.run); err != nil {
		return nil, err
	}
	if len(b.before) > 0 {
		return t.withContents(ctx, b.before)
	}
	return b.taken, nil
}

// takenBy returns the messages that an earlier call with the same id took, and that the device still holds.
func (t tenant) takenBy(ctx context.Context, a engine.Querier, k puntuale.DeviceTake) ([]hold, error) {
	return t.holds(ctx, a, ` and h.session_id = $2 and h.device_id = $3 and h.take = $4 and h.until > $5`, k.Session, k.Device, k.ID, engine.Micros(k.Now))
}

// takeTransaction is the transaction of a take. Locks: session, messages, client.
type takeTransaction struct {
	tenant
	k     puntuale.DeviceTake
	found []puntuale.HeldMessage

	before []hold // holds from an earlier call with the same id, if there was one
	taken  []puntuale.HeldMessage
}

// Codes of the faults that functions in this file return.
const (
	faultDeviceNotNow      puntuale.ReasonCode = "device.not_now"
	faultStoreNobodyJoined puntuale.ReasonCode = "store.nobody_joined"
)

func (b *takeTransaction) run(ctx context.Context, a engine.Querier) error {
	b.before, b.taken = nil, nil
	if err := b.s.refuseBeforeQuarantine(ctx, a); err != nil {
		return err
	}
	s, err := b.lockedSession(ctx, a, b.k.Session)
	if err != nil {
		return err
	}
	var dedupes bool
	found, err := engine.QueryOne(ctx, a, `select dedupes from device where client_id = $1 and id = $2 and session_id = $3`, []any{b.tenant.id, b.k.Device, b.k.Session}, engine.ScanBool(&dedupes))
	if err := engine.ThereOr(found, err, puntuale.NoDevice); err != nil {
		return err
	}
	if b.before, err = b.takenBy(ctx, a, b.k); err != nil || len(b.before) > 0 {
		return err
	}
	held, err := b.holds(ctx, a, ` and h.session_id = $2`, b.k.Session)
	if err != nil {
		return err
	}
	limit, err := b.paced(ctx, a, s.Pace)
	if err != nil {
		return err
	}
	busy := busyPhones(held, b.k.Now)
	free := slices.DeleteFunc(slices.Clone(b.found), func(h puntuale.HeldMessage) bool { return busy[h.Phone] })
	if free = free[:min(len(free), limit, b.k.Most)]; len(free) > 0 {
		if err := b.claim(ctx, a, free, held, dedupes); err != nil {
			return err
		}
	}
	if b.k.Message != 0 && len(b.taken) == 0 {
		return puntuale.Conflict(faultDeviceNotNow)
	}
	return nil
}

// paced returns how many messages the pace allows the device to take now.
func (b *takeTransaction) paced(ctx context.Context, a engine.Querier, p puntuale.Pace) (int, error) {
	limit := puntuale.MaxTaken
	if p.PerMinute == 0 && p.PerDay == 0 && p.Jitter == 0 {
		return limit, nil
	}
	var n int
	var last time.Time
	if _, err := engine.QueryOne(ctx, a, `select count(*), coalesce(max(at), 0) from device_hold where client_id = $1 and session_id = $2 and at > $3`,
		[]any{b.tenant.id, b.k.Session, engine.Micros(b.k.Now.Add(-24 * time.Hour))}, &n, engine.ScanTime(&last)); err != nil {
		return 0, fmt.Errorf("count what was taken: %w", err)
	}
	if p.PerDay > 0 {
		limit = min(limit, max(0, p.PerDay-n))
	}
	if p.PerMinute == 0 && p.Jitter == 0 {
		return limit, nil
	}
	var interval time.Duration
	if p.PerMinute > 0 {
		interval = time.Minute / time.Duration(p.PerMinute)
	}
	if p.Jitter > 0 { // the delay is computed from the time of the last take, so that trying again does not change the delay
		h := fnv.New64a()
		_, _ = h.Write([]byte(last.String()))
		interval += time.Duration(h.Sum64() % uint64(time.Duration(p.Jitter)*time.Second))
	}
	if n > 0 && b.k.Now.Before(last.Add(interval)) {
		return 0, nil
	}
	return min(limit, 1), nil
}

// claim stores the intents and the holds.
func (b *takeTransaction) claim(ctx context.Context, a engine.Querier, free []puntuale.HeldMessage, held []hold, dedupes bool) error {
	repeats := slices.DeleteFunc(slices.Clone(held), func(h hold) bool {
		return !slices.ContainsFunc(free, func(f puntuale.HeldMessage) bool { return f.ID == h.ID && f.Intent == h.Intent })
	})
	if err := b.moveMessages(ctx, a, repeats, b.k.Now); err != nil { // make these messages due first, because a claim accepts only due messages
		return err
	}
	token := puntuale.DeviceToken | rand.Int64N(puntuale.DeviceToken) //nolint:gosec // a device can report only what it took, even if it guesses a token
	claim := &queue.ClaimBatch{A: a, Done: b.k.Now, Claim: puntuale.Claim{Token: token, Now: b.k.Now, Messages: make([]puntuale.ClaimItem, len(free))}}
	for i, h := range free {
		claim.Messages[i] = puntuale.ClaimItem{MessageRef: puntuale.MessageRef{Client: h.Client, ID: h.ID}, Session: b.k.Session, Campaign: h.Campaign, Phone: h.Phone, Mark: b.k.Mark(h.Phone), Intent: h.Intent, Purpose: h.Purpose}
	}
	if err := claim.Run(ctx); err != nil {
		return err
	}
	var newHolds []hold
	for i, h := range free {
		if claim.Answers[i] == puntuale.ClaimGranted {
			h.Intent, h.Until = token, b.k.Until
			b.taken = append(b.taken, h)
			newHolds = append(newHolds, hold{DueMessage: h.DueMessage})
		}
	}
	if len(newHolds) == 0 {
		return nil
	}
	end := b.k.Until
	if dedupes && b.k.GiveUp.After(end) { // until GiveUp the device may take the message again, so the node must not decide about the message before GiveUp
		end = b.k.GiveUp
	}
	// An empty detail means that the device has not reported the attempt yet.
	if _, err := a.Exec(ctx, `update message set next_at = $1::bigint, detail = '' from $u(c bigint, i bigint, x bigint)
 where message.client_id = u.c and message.id = u.i and message.intent = u.x`, engine.Micros(end), holdColumns(newHolds)); err != nil {
		return fmt.Errorf("begin holds: %w", err)
	}
	if _, err := a.Exec(ctx, `insert into device_hold (client_id, message_id, session_id, device_id, token, take, at, until)
 select u.c, u.i, $1, $2, u.x, $3, $4, $5 from $u(c bigint, i bigint, x bigint) where true
 on conflict (client_id, message_id) do update set session_id = excluded.session_id, device_id = excluded.device_id, token = excluded.token,
 take = excluded.take, at = excluded.at, until = excluded.until, done = 0`, b.k.Session, b.k.Device, b.k.ID, engine.Micros(b.k.Now), engine.Micros(b.k.Until), holdColumns(newHolds)); err != nil {
		return fmt.Errorf("store holds: %w", err)
	}
	return nil
}

// refuseBeforeQuarantine refuses takes after a failover until a node has done the quarantine. The reason is that the new
// database server may have lost holds, and the messages of lost holds must first become uncertain.
func (s *Store) refuseBeforeQuarantine(ctx context.Context, a engine.Querier) error {
	if !s.Dialect.Timed() {
		return nil
	}
	var n int64
	found, err := engine.QueryOne(ctx, a, `select one from cluster where one = 1 and timeline = $timeline for key share`, nil, &n)
	if err != nil {
		return fmt.Errorf("read the timeline: %w", err)
	}
	if !found {
		return &puntuale.Error{Code: puntuale.CodeUnavailable, RetryAfter: time.Second, Reason: puntuale.Because(faultStoreNobodyJoined)}
	}
	return nil
}
