package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/account"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/queue"
)

const sequenceColumns = `q.id, q.name, q.session_id, q.if_running, q.stop_on_reply, q.steps, q.created_at, q.updated_at, q.purpose, q.booking, q.last_step, q.track_links`

func sequenceFields(q *puntuale.Sequence) []any {
	return []any{&q.ID, &q.Name, &q.Session, &q.IfRunning, engine.ScanBool(&q.StopOnReply), engine.ScanJSON(&q.Steps), engine.ScanTime(&q.Created), engine.ScanTime(&q.Updated), &q.Purpose, &q.Booking, &q.LastStep, &q.TrackLinks}
}

// CreateSequence stores a new sequence. The argument o may be nil; its function Answer gets the SequenceID. Codes:
// not_found (its session), invalid (a template that a step names, at body.steps[i].template).
func (t tenant) CreateSequence(ctx context.Context, q puntuale.Sequence, o *puntuale.Idempotency) (puntuale.SequenceID, error) {
	steps, err := engine.ToJSON(q.Steps)
	if err != nil {
		return 0, err
	}
	var id int64
	err = t.once(ctx, o, func(ctx context.Context, a engine.Querier) (_ any, err error) {
		if err := t.namedThere(ctx, a, q); err != nil {
			return nil, err
		}
		if err := t.checkQuota(ctx, a, puntuale.QuotaSequences); err != nil {
			return nil, err
		}
		if id, err = engine.NextNumber(ctx, a, "sequence"); err != nil {
			return nil, err
		}
		_, err = a.Exec(ctx, `insert into sequence (client_id, id, name, session_id, if_running, stop_on_reply, steps,
 created_at, updated_at, purpose, booking, last_step, track_links) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
			t.id, id, q.Name, q.Session, q.IfRunning, engine.Bit(q.StopOnReply), steps, engine.Micros(q.Created), engine.Micros(q.Updated), q.Purpose, q.Booking, q.LastStep, q.TrackLinks)
		return puntuale.SequenceID(id), err
	})
	return puntuale.SequenceID(id), err
}

// UpdateSequence replaces the sequence. If the argument known is not empty, the stored version must be in it.
// Codes: not_found; invalid as in CreateSequence; precondition_failed.
func (t tenant) UpdateSequence(ctx context.Context, q puntuale.Sequence, known ...puntuale.Version) error {
	steps, err := engine.ToJSON(q.Steps)
	if err != nil {
		return err
	}
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if err := t.namedThere(ctx, a, q); err != nil {
			return err
		}
		if err := t.sameSequence(ctx, a, q.ID, known); err != nil {
			return err
		}
		if err := t.mayBook(ctx, a, q); err != nil {
			return err
		}
		n, err := a.Exec(ctx, `update sequence set name = $3, session_id = $4, if_running = $5, stop_on_reply = $6,
 steps = $7, updated_at = $8, purpose = $9, booking = $10, last_step = $11, track_links = $12 where client_id = $1 and id = $2 and deleted_at = 0`,
			t.id, q.ID, q.Name, q.Session, q.IfRunning, engine.Bit(q.StopOnReply), steps, engine.Micros(q.Updated), q.Purpose, q.Booking, q.LastStep, q.TrackLinks)
		if err := engine.ThereOr(n > 0, err, puntuale.NoSequence); err != nil {
			return err
		}
		return account.Changed(ctx, a, t.id)
	})
}

// Codes of the faults of sequences for bookings.
const (
	faultBookingInUse  puntuale.ReasonCode = "booking.in_use"
	faultBookingKeptBy puntuale.ReasonCode = "booking.kept_by"
	faultBookingRule   puntuale.ReasonCode = "booking.kept_by_rule"
)

// mayBook refuses a sequence that becomes one for bookings although something starts it otherwise: a campaign that has not
// ended, a rule, or a session's default pair. A sequence that has bookings, or that rules about bookings name, must stay
// one for bookings. The sequence is locked, so that no rule names it meanwhile.
func (t tenant) mayBook(ctx context.Context, a engine.Querier, q puntuale.Sequence) error {
	var one int
	if _, err := engine.QueryOne(ctx, a, `select 1 from sequence where client_id = $1 and id = $2 for update`, []any{t.id, q.ID}, &one); err != nil {
		return fmt.Errorf("lock a sequence: %w", err)
	}
	if q.Booking == "" {
		booked, err := engine.QueryOne(ctx, a, `select 1 from booking where client_id = $1 and sequence_id = $2 and erased_at = 0 limit 1`, []any{t.id, q.ID}, &one)
		if err == nil && booked {
			return puntuale.Conflict(faultBookingKeptBy)
		}
		if err != nil {
			return err
		}
		named, err := t.rulesNaming(ctx, a, q.ID, "<> ''", func(r puntuale.Automation) bool {
			return r.Trigger.Kind == puntuale.TriggerBooking && r.Trigger.Sequence.ID() == q.ID ||
				slices.ContainsFunc(r.Actions, func(x puntuale.Action) bool { return x.Kind == puntuale.ActionBook && x.Sequence.ID() == q.ID })
		})
		if err == nil && named {
			return puntuale.Conflict(faultBookingRule)
		}
		return err
	}
	used, err := engine.QueryOne(ctx, a, `select 1 from sequence q where q.client_id = $1 and q.id = $2 and q.booking = '' and (
 exists (select 1 from session s where s.client_id = q.client_id and (s.start_sequence = q.id or s.stop_sequence = q.id) and s.deleted_at = 0)
 or exists (select 1 from campaign c where c.client_id = q.client_id and c.sequence_id = q.id and c.state < 7))`, []any{t.id, q.ID}, &one)
	if err != nil {
		return fmt.Errorf("look what uses a sequence: %w", err)
	}
	named, err := t.rulesNaming(ctx, a, q.ID, "= ''", func(r puntuale.Automation) bool {
		return slices.ContainsFunc(r.Actions, func(x puntuale.Action) bool { return x.Kind == puntuale.ActionStart && x.Sequence.ID() == q.ID })
	})
	if err != nil {
		return err
	}
	used = used || named
	if used {
		return puntuale.Conflict(faultBookingInUse)
	}
	return nil
}

// rulesNaming reports whether a rule names a sequence, if the sequence's member booking fulfils the condition.
func (t tenant) rulesNaming(ctx context.Context, a engine.Querier, id puntuale.SequenceID, booking string, names func(puntuale.Automation) bool) (bool, error) {
	rules, err := engine.QueryAll(ctx, a, `select r.trigger_text, r.actions from automation r, sequence q
 where r.client_id = $1 and q.client_id = $1 and q.id = $2 and q.booking `+booking,
		[]any{t.id, id}, func(r engine.Row, x *puntuale.Automation) error {
			return r.Scan(engine.ScanJSON(&x.Trigger), engine.ScanJSON(&x.Actions))
		})
	if err != nil {
		return false, fmt.Errorf("look which rules use a sequence: %w", err)
	}
	return slices.ContainsFunc(rules, names), nil
}

// sameSequence does nothing if the argument known is empty. Otherwise it locks the sequence's row, and returns an error
// if the stored version is not one of the versions in known.
func (t tenant) sameSequence(ctx context.Context, a engine.Querier, id puntuale.SequenceID, known []puntuale.Version) error {
	if len(known) == 0 {
		return nil
	}
	var stored puntuale.Sequence
	found, err := engine.QueryOne(ctx, a, `select `+sequenceColumns+` from sequence q
 where q.client_id = $1 and q.id = $2 and q.deleted_at = 0 for update`, []any{t.id, id}, sequenceFields(&stored)...)
	if err := engine.ThereOr(found, err, puntuale.NoSequence); err != nil {
		return err
	}
	return puntuale.CheckVersion(stored.Version(), known)
}

// Sequence reads a sequence. Codes: not_found.
func (t tenant) Sequence(ctx context.Context, id puntuale.SequenceID) (puntuale.Sequence, error) {
	var q puntuale.Sequence
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select `+sequenceColumns+` from sequence q
 where q.client_id = $1 and q.id = $2 and q.deleted_at = 0`, []any{t.id, id}, sequenceFields(&q)...)
	if err := engine.FoundOr(found, err, puntuale.NoSequence); err != nil {
		return q, err
	}
	return q, engine.TakeMemory(ctx, 0, lengthOf(q.Steps))
}

// lengthOf returns the approximate length of steps, in bytes.
func lengthOf(steps []puntuale.Step) (n int) {
	for i := range steps {
		s := &steps[i]
		n += stepBytes + len(s.Text) + len(s.Media) + len(s.MediaName)
		for j := range s.Variants {
			n += stepBytes/2 + len(s.Variants[j].Content.Text)
		}
	}
	return n
}

// stepBytes is the approximate length of a step without its texts, in bytes.
const stepBytes = 100

// Sequences lists sequences. Codes: invalid (the cursor).
func (t tenant) Sequences(ctx context.Context, f puntuale.SequenceFilter, p puntuale.Page) ([]puntuale.Sequence, string, error) {
	noun, from, order := "sequence", "q.id > $2", "q.id"
	if f.Newest {
		noun, from, order = "newest sequence", "q.id < $2", "q.id desc"
	}
	last, limit, err := engine.ReadCursor(p, noun)
	if err != nil {
		return nil, "", err
	}
	if f.Newest && last == 0 {
		last = puntuale.MaxID + 1
	}
	text, args := `select q.id, octet_length(q.steps), q.name from sequence q
 where q.client_id = $1 and `+from+` and q.deleted_at = 0 order by `+order, []any{t.id, last}
	if f.Text == "" { // a search by text reads all names, because a quota already limits their number
		text, args = text+` limit $3`, append(args, limit+1)
	}
	var found []engine.SizedRow
	matches := soughtSequence(f.Text)
	if err := t.s.CallReads.Query(ctx, text, args, func(r engine.Row) error {
		var q engine.SizedRow
		var name string
		err := r.Scan(&q.Id, &q.Bytes, &name)
		if matches(q.Id, name) {
			found = append(found, q)
		}
		return err
	}); err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list sequences: %w", err))
	}
	page, err := engine.MakePageSpan(ctx, noun, found, limit)
	if err != nil {
		return nil, "", err
	}
	ids := engine.Column(found[:page.Rows], func(q *engine.SizedRow) int64 { return q.Id })
	all, err := engine.QueryAll(ctx, t.s.CallReads, `select `+sequenceColumns+` from $u(i bigint) join sequence q on q.client_id = $1 and q.id = u.i
 where q.deleted_at = 0 order by `+order, []any{t.id, engine.Columns{ids}},
		func(rows engine.Row, q *puntuale.Sequence) error { return rows.Scan(sequenceFields(q)...) })
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list sequences: %w", err))
	}
	return all, page.Next, nil
}

// CountSequences counts the sequences that a text finds, up to limit. all reports whether n is the complete count.
func (t tenant) CountSequences(ctx context.Context, sought string, limit int) (n int, all bool, err error) {
	text, args := `select q.id, q.name from sequence q where q.client_id = $1 and q.deleted_at = 0`, []any{t.id}
	if sought == "" { // a search by text reads all names, as Sequences does
		text, args = text+` limit $2`, append(args, limit+1)
	}
	matches := soughtSequence(sought)
	if err := t.s.CallReads.Query(ctx, text, args, func(r engine.Row) error {
		var id int64
		var name string
		err := r.Scan(&id, &name)
		if matches(id, name) {
			n++
		}
		return err
	}); err != nil {
		return 0, false, engine.PublicError(fmt.Errorf("count sequences: %w", err))
	}
	return min(n, limit), n <= limit, nil
}

// soughtSequence returns a function that reports whether a text finds the sequence with an id and a name. The text has words of
// the name, or is the id. An empty text finds all sequences.
func soughtSequence(text string) func(id int64, name string) bool {
	words, id := needleOf(text), strings.TrimSpace(text)
	return func(of int64, name string) bool { return words.matches(name) || id == puntuale.SequenceID(of).String() }
}

// lastStarted reads only the client's 2,000 latest calls, because there is no index by sequence.
const lastStarted = `select x.sequence_id from (select r.id, r.sequence_id from run r where r.client_id = $1 order by r.id desc limit 2000) as x
 join sequence q on q.client_id = $1 and q.id = x.sequence_id and q.deleted_at = 0
 group by x.sequence_id order by max(x.id) desc limit $2`

// LastStarted lists at most limit sequences. The sequence that was started last comes first. LastStarted reads only
// the client's last 2,000 calls, and leaves out deleted sequences.
func (t tenant) LastStarted(ctx context.Context, limit int) ([]puntuale.SequenceID, error) {
	all, err := engine.QueryAll(ctx, t.lists(), lastStarted, []any{t.id, limit}, func(rows engine.Row, id *puntuale.SequenceID) error { return rows.Scan(id) })
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list the sequences started last: %w", err))
	}
	return all, nil
}

// StartInfo reads in one call what a start needs: the sequence, and the session that it uses.
// Codes: not_found.
func (t tenant) StartInfo(ctx context.Context, id puntuale.SequenceID) (puntuale.Sequence, puntuale.Session, error) {
	var q puntuale.Sequence
	var s puntuale.Session
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select `+sequenceColumns+`, `+fleet.SessionColumns+` from sequence q
 join session s on s.client_id = q.client_id and s.deleted_at = 0
  and (s.id = q.session_id or q.session_id = 0 and s.is_default = 1)
 where q.client_id = $1 and q.id = $2 and q.deleted_at = 0`,
		[]any{t.id, id}, append(sequenceFields(&q), fleet.SessionFields(&s)...)...)
	if err := engine.FoundOr(found, err, puntuale.NoSequence); err != nil {
		return q, s, err
	}
	return q, s, engine.TakeMemory(ctx, 0, lengthOf(q.Steps))
}

// DeleteSequence deletes a sequence, and removes it from the default pairs of sessions. If the sequence has pending
// messages, and neither keep nor cancel is true, the code is conflict with their number. With cancel, the messages
// are cancelled. With keep, they will be sent, and a stop can still cancel them.
func (t tenant) DeleteSequence(ctx context.Context, id puntuale.SequenceID, keep, cancel bool, now time.Time) error {
	for done := false; !done; {
		if err := t.write(ctx, func(ctx context.Context, a engine.Querier) (err error) {
			done, err = t.deleteSequence(ctx, a, id, keep, cancel, now)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// deleteSequence reports whether it deleted the sequence. If it did not, more messages must be cancelled first.
func (t tenant) deleteSequence(ctx context.Context, a engine.Querier, id puntuale.SequenceID, keep, cancel bool, now time.Time) (bool, error) {
	if err := t.lockDays(ctx, a, now); err != nil {
		return false, err
	}
	if err := t.lockAllSessions(ctx, a); err != nil { // sessions may contain the sequence in their default pairs
		return false, err
	}
	var n int64
	found, err := engine.QueryOne(ctx, a, `select id from sequence where client_id = $1 and id = $2 and deleted_at = 0 for update`, []any{t.id, id}, &n)
	if err := engine.ThereOr(found, err, puntuale.NoSequence); err != nil {
		return false, err
	}
	if !keep {
		if more, err := t.endSequence(ctx, a, id, cancel, now); err != nil || more {
			return false, err
		}
	}
	if _, err := a.Exec(ctx, `update session set start_sequence = case when start_sequence = $2 then 0 else start_sequence end,
 stop_sequence = case when stop_sequence = $2 then 0 else stop_sequence end
 where client_id = $1 and $2 in (start_sequence, stop_sequence) and deleted_at = 0`, t.id, id); err != nil {
		return false, fmt.Errorf("clear default sequences: %w", err)
	}
	if _, err := a.Exec(ctx, `update sequence set deleted_at = $3 where client_id = $1 and id = $2`, t.id, id, engine.Micros(now)); err != nil {
		return false, fmt.Errorf("delete a sequence: %w", err)
	}
	return true, account.Changed(ctx, a, t.id)
}

// RestoreSequence undoes a deletion, if it happened later than the argument since. It does not change default pairs
// or cancelled messages. Codes: not_found (also if the sequence is not deleted); invalid as in CreateSequence.
func (t tenant) RestoreSequence(ctx context.Context, id puntuale.SequenceID, since time.Time) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var q puntuale.Sequence
		found, err := engine.QueryOne(ctx, a, `select `+sequenceColumns+` from sequence q
 where q.client_id = $1 and q.id = $2 and q.deleted_at > 0 and q.deleted_at >= $3 for update`, []any{t.id, id, engine.Micros(since)}, sequenceFields(&q)...)
		if err := engine.ThereOr(found, err, puntuale.NoSequence); err != nil {
			return err
		}
		if err := t.namedThere(ctx, a, q); err != nil {
			return err
		}
		if err := t.checkQuota(ctx, a, puntuale.QuotaSequences); err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `update sequence set deleted_at = 0 where client_id = $1 and id = $2`, t.id, id); err != nil {
			return fmt.Errorf("restore a sequence: %w", err)
		}
		return account.Changed(ctx, a, t.id)
	})
}

// sequencePending finds a sequence's open messages. It searches by session, for the same reason as openCandidates
// (cancellation.go).
const sequencePending = `
select m.client_id, m.id, m.intent from session s cross join message m cross join run r
where s.client_id = $1 and m.session_id = s.id and m.state = 0 and m.client_id + 0 = $1
 and r.client_id = m.client_id and r.id = m.run_id and r.sequence_id = $2`

const faultSequenceHasCampaign puntuale.ReasonCode = "sequence.has_campaign"

// endSequence cancels one chunk of a sequence's pending messages, and reports whether there may be more. If cancel is
// false, it cancels nothing, and returns an error if messages are pending or a campaign of the sequence is running.
func (t tenant) endSequence(ctx context.Context, a engine.Querier, id puntuale.SequenceID, cancel bool, now time.Time) (more bool, err error) {
	if !cancel {
		var n int
		if _, err := engine.QueryOne(ctx, a, `select count(*) from campaign where client_id = $1 and sequence_id = $2 and state between 3 and 6`, []any{t.id, id}, &n); err != nil {
			return false, fmt.Errorf("count campaigns: %w", err)
		}
		if n > 0 {
			return false, puntuale.Conflict(faultSequenceHasCampaign)
		}
		if _, err := engine.QueryOne(ctx, a, `select count(*) from (`+sequencePending+`) as pending`, []any{t.id, id}, &n); err != nil {
			return false, fmt.Errorf("count pending messages: %w", err)
		}
		if n > 0 {
			return false, stillPending(n, faultSequenceOnePending, faultSequencePending)
		}
		return false, nil
	}
	if err := queue.NoteCampaigns(ctx, a, puntuale.CampaignChange{To: puntuale.CampaignCancelling, Reason: puntuale.CampaignNoSequence, Now: now},
		`c.client_id = $1 and c.sequence_id = $2 and c.state in (3, 4, 5)`, t.id, id); err != nil {
		return false, err
	}
	if _, err := a.Exec(ctx, `update campaign set state = 6, reason = $3 where client_id = $1 and sequence_id = $2 and state in (3, 4, 5)`,
		t.id, id, puntuale.CampaignNoSequence); err != nil {
		return false, fmt.Errorf("cancel campaigns: %w", err)
	}
	refs, err := engine.QueryAll(ctx, a, sequencePending+` and m.valid_until > 0 limit $3`, []any{t.id, id, engine.Chunk}, func(rows engine.Row, m *puntuale.MessageRef) error {
		var intent int64
		return rows.Scan(&m.Client, &m.ID, &intent)
	})
	if err != nil {
		return false, fmt.Errorf("look for pending messages: %w", err)
	}
	engine.Sort(refs, queue.CompareRefs)
	_, err = queue.CancelOpen(ctx, a, refs, now)
	return len(refs) == engine.Chunk, err
}

// namedThere returns an error if the sequence uses a session or template that does not exist.
func (t tenant) namedThere(ctx context.Context, a engine.Querier, q puntuale.Sequence) error {
	if err := t.sessionThere(ctx, a, q.Session); err != nil {
		return err
	}
	return t.templatesThere(ctx, a, q.Steps)
}

// lockDays locks the client's usage rows of three days, because today's date differs between time zones. If a start
// committed before the lock, this transaction sees the start's messages. A later start sees the changes of this
// transaction.
func (t tenant) lockDays(ctx context.Context, a engine.Querier, now time.Time) error {
	for d := -1; d <= 1; d++ {
		if _, err := queue.CountAlways(ctx, a, queue.UsageDay{Client: t.id, Day: puntuale.DateOf(now.UTC()).AddDays(d)}, 0); err != nil {
			return err
		}
	}
	return nil
}
