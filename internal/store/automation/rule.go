package automation

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Rules stores the rules of all clients. It has what runners need, except the method Act.
type Rules struct {
	db      *engine.DB
	work    *engine.Kind // the kind of the runners' transactions
	dates   *engine.Kind // the kind of the transactions that update the dates of contacts; they give way to calls
	blanked atomic.Int64 // Unix time in microseconds: this process has blanked the log's lines before this time
}

// New returns the rules of a database.
func New(db *engine.DB) *Rules {
	s := &Rules{db: db, work: engine.NewSingle("automation", engine.PriorityFeed), dates: engine.NewSingle("dates", engine.PriorityFeed)}
	s.work.Check, s.work.Background = engine.RunAgain, true // a task may run twice, because its second run changes nothing more
	s.dates.Check, s.dates.Background = engine.RunAgain, true
	s.dates.Class, s.dates.GivesWay = engine.ClassFeed, true
	return s
}

// OfClient returns the store of one client's rules.
func (s *Rules) OfClient(client puntuale.ClientID) RuleStore { return RuleStore{s, client} }

// RuleStore stores one client's rules.
type RuleStore struct {
	*Rules
	client puntuale.ClientID
}

// kinds lists the kinds of triggers. The index is the stored number.
var kinds = [...]puntuale.TriggerKind{1: puntuale.TriggerReply, 2: puntuale.TriggerReplyTo, 3: puntuale.TriggerNoReply, 4: puntuale.TriggerDate,
	5: puntuale.TriggerHook, 6: puntuale.TriggerOutcome, 7: puntuale.TriggerBooking}

func kindNumber(k puntuale.TriggerKind) int64 { return int64(slices.Index(kinds[:], k)) }

// wants returns the facts that a trigger waits for, as a set of bits. The bit number is the fact's number.
func wants(t puntuale.Trigger) int64 {
	switch t.Kind {
	case puntuale.TriggerReply, puntuale.TriggerReplyTo:
		return 1 << puntuale.EventReplyReceived
	case puntuale.TriggerNoReply:
		return 1 << puntuale.EventMessageSent
	case puntuale.TriggerDate:
		return 1 << puntuale.FactContact
	case puntuale.TriggerHook:
		return 1 << puntuale.FactHook
	case puntuale.TriggerOutcome:
		return 1 << map[puntuale.OutcomeStatus]puntuale.EventType{
			puntuale.OutcomeCompleted: puntuale.EventMessageSent, puntuale.OutcomeFailed: puntuale.EventMessageFailed, puntuale.OutcomeRead: puntuale.EventMessageRead,
			puntuale.OutcomeClicked: puntuale.EventLinkClicked,
		}[t.Is]
	case puntuale.TriggerBooking:
		return 1 << t.Is.BookingEvent()
	}
	return 0
}

const ruleColumns = `a.id, a.name, a.active, a.trigger_text, a.conditions, a.actions, a.created_at, a.updated_at, a.fired, a.fired_at`

func ruleFields(a *puntuale.Automation) []any {
	return []any{&a.ID, &a.Name, engine.ScanBool(&a.Active), engine.ScanJSON(&a.Trigger), engine.ScanJSON(&a.Conditions), engine.ScanJSON(&a.Actions),
		engine.ScanTime(&a.Created), engine.ScanTime(&a.Updated), &a.Fired, engine.ScanTime(&a.LastFired)}
}

// ruleTexts returns the stored JSON forms of a rule's parts.
func ruleTexts(a puntuale.Automation) (trigger, conditions, actions string, err error) {
	for _, part := range []struct {
		into *string
		from any
	}{{&trigger, a.Trigger}, {&conditions, a.Conditions}, {&actions, a.Actions}} {
		if *part.into, err = engine.ToJSON(part.from); err != nil {
			return "", "", "", err
		}
	}
	return trigger, conditions, actions, nil
}

// lock locks the client, so that changes of the client's rules run one after another. It also locks the client's row in automation_client. Acting
// transactions lock that row before they write to rules.
func (s RuleStore) lock(ctx context.Context, a engine.Querier) error {
	var n int64
	found, err := engine.QueryOne(ctx, a, `select id from client where id = $1 and deleted_at = 0 for update`, []any{s.client}, &n)
	if err := engine.ThereOr(found, err, puntuale.NoClient); err != nil {
		return err
	}
	return lockClient(ctx, a, s.client)
}

// CreateAutomation stores a rule, which must pass the function Check of package automation. The argument o may be
// nil; its function Answer gets the AutomationID. If the rule is active, facts that are stored later can trigger
// it. The argument secret is nil unless the trigger is a hook. Codes: quota_reached; invalid, with a fault at each
// sequence, session or template that does not exist.
func (s RuleStore) CreateAutomation(ctx context.Context, r puntuale.Automation, secret *puntuale.HookSecret, o *puntuale.Idempotency) (id puntuale.AutomationID, err error) {
	trigger, conditions, actions, err := ruleTexts(r)
	if err != nil {
		return 0, err
	}
	err = s.db.Once(ctx, int64(s.client), o, func(ctx context.Context, a engine.Querier) (any, error) {
		if err := s.namedThere(ctx, a, r); err != nil {
			return nil, err
		}
		if err := s.lock(ctx, a); err != nil {
			return nil, err
		}
		var has int
		if _, err := engine.QueryOne(ctx, a, `select count(*) from automation where client_id = $1`, []any{s.client}, &has); err != nil {
			return nil, fmt.Errorf("count automations: %w", err)
		}
		if has >= puntuale.MaxAutomations {
			return nil, &puntuale.Error{Code: puntuale.CodeQuotaReached, Reason: puntuale.Because(puntuale.FaultAutomationQuota, strconv.Itoa(puntuale.MaxAutomations))}
		}
		n, err := engine.NextNumber(ctx, a, "automation")
		if err != nil {
			return nil, err
		}
		id = puntuale.AutomationID(n)
		var hash string
		var sealed []byte
		if secret != nil {
			hash, sealed = hex.EncodeToString(secret.Hash[:]), secret.Sealed
		}
		if _, err := a.Exec(ctx, `insert into automation (client_id, id, name, active, kind, sequence_id, wants, trigger_text, conditions, actions, stamp,
 created_at, updated_at, armed_at, secret, sealed) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1, $11, $12, $12, $13, $14)`,
			s.client, id, r.Name, engine.Bit(r.Active), kindNumber(r.Trigger.Kind), r.Trigger.Sequence.ID(), wants(r.Trigger), trigger, conditions, actions,
			engine.Micros(r.Created), engine.Micros(r.Updated), hash, sealed); err != nil {
			return nil, fmt.Errorf("insert an automation: %w", err)
		}
		return id, s.want(ctx, a)
	})
	return id, err
}

// want stores the set of facts that the client's active rules wait for. A later transaction writes a trigger row only for a fact in this set.
func (s RuleStore) want(ctx context.Context, a engine.Querier) error {
	var wanted int64
	if err := a.Query(ctx, `select distinct wants from automation where client_id = $1 and active = 1`, []any{s.client}, func(r engine.Row) error {
		var bits int64
		err := r.Scan(&bits)
		wanted |= bits
		return err
	}); err != nil {
		return fmt.Errorf("read what automations want: %w", err)
	}
	if _, err := a.Exec(ctx, `insert into automation_client as w (client_id, wanted) values ($1, $2)
 on conflict (client_id) do update set wanted = excluded.wanted`, s.client, wanted); err != nil {
		return fmt.Errorf("keep what automations want: %w", err)
	}
	return nil
}

// faultUseBook refuses a sequence for bookings in the action start.
const faultUseBook puntuale.ReasonCode = "booking.use_book"

// namedThere locks the session, the templates and the sequences that a rule names. If any of them do not exist,
// namedThere returns the code invalid, with one fault for each of them.
func (s RuleStore) namedThere(ctx context.Context, a engine.Querier, r puntuale.Automation) error {
	var faults []puntuale.Fault
	there := func(text string, id any) (bool, error) {
		var n int64
		return engine.QueryOne(ctx, a, text, []any{s.client, id}, &n)
	}
	if id, err := puntuale.ParseID[puntuale.SessionID](r.Conditions.Session); err == nil {
		found, err := there(`select id from session where client_id = $1 and id = $2 and deleted_at = 0 for share`, id)
		if err != nil {
			return fmt.Errorf("look for a session: %w", err)
		}
		if !found {
			faults = append(faults, puntuale.Because(puntuale.FaultNotOwnSession).At("body.conditions.id_sessione", nil))
		}
	}
	for i, x := range r.Actions {
		if x.Template == "" {
			continue
		}
		found, err := there(`select id from template where client_id = $1 and name = $2 for share`, x.Template)
		if err != nil {
			return fmt.Errorf("look for a template: %w", err)
		}
		if !found {
			faults = append(faults, puntuale.Because(puntuale.FaultNotOwnTemplate).At(fmt.Sprintf("body.actions[%d].template", i), nil))
		}
	}
	type place struct {
		at            string
		id            puntuale.SequenceID
		booked, plain puntuale.ReasonCode // the fault if the sequence is for bookings, or is not; "": it may be
	}
	places := []place{{at: "body.trigger.sequence", id: r.Trigger.Sequence.ID()}, {at: "body.conditions.not_in", id: r.Conditions.NotIn.ID()}}
	if r.Trigger.Kind == puntuale.TriggerBooking {
		places[0].plain = puntuale.FaultBookingNotForBookings
	}
	for i, x := range r.Actions {
		p := place{at: fmt.Sprintf("body.actions[%d].sequence", i), id: x.Sequence.ID()}
		switch x.Kind {
		case puntuale.ActionStart:
			p.booked = faultUseBook
		case puntuale.ActionBook:
			p.plain = puntuale.FaultBookingNotForBookings
		}
		places = append(places, p)
	}
	known := map[puntuale.SequenceID]bool{0: true}
	sorted := slices.Clone(places)
	engine.Sort(sorted, func(x, y place) int { return int(x.id - y.id) })
	for _, p := range sorted {
		if _, asked := known[p.id]; asked {
			continue
		}
		found, err := there(`select id from sequence where client_id = $1 and id = $2 and deleted_at = 0 for share`, p.id)
		if err != nil {
			return fmt.Errorf("look for a sequence: %w", err)
		}
		known[p.id] = found
	}
	for _, p := range places {
		if !known[p.id] {
			faults = append(faults, puntuale.Because(puntuale.FaultAutomationNotOwnSequence).At(p.at, nil))
		} else if p.id != 0 && (p.booked != "" || p.plain != "") {
			booked, err := there(`select id from sequence where client_id = $1 and id = $2 and booking <> ''`, p.id)
			if err != nil {
				return fmt.Errorf("look for a sequence: %w", err)
			}
			code := p.plain
			if booked {
				code = p.booked
			}
			if code != "" {
				faults = append(faults, puntuale.Because(code).At(p.at, nil))
			}
		}
	}
	if len(faults) > 0 {
		return puntuale.Invalid(faults...)
	}
	return nil
}

// UpdateAutomation replaces a rule. The kind of its trigger must not change. Runs that the rule already planned for
// dates do not change. Codes: invalid (as for CreateAutomation; also at body.trigger.kind, if the kind is
// different); precondition_failed.
func (s RuleStore) UpdateAutomation(ctx context.Context, r puntuale.Automation, known ...puntuale.Version) error {
	trigger, conditions, actions, err := ruleTexts(r)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, int64(s.client), func(ctx context.Context, a engine.Querier) error {
		if err := s.namedThere(ctx, a, r); err != nil {
			return err
		}
		if err := s.lock(ctx, a); err != nil {
			return err
		}
		var old puntuale.Automation
		found, err := engine.QueryOne(ctx, a, `select `+ruleColumns+` from automation a where a.client_id = $1 and a.id = $2 for update of a`, []any{s.client, r.ID}, ruleFields(&old)...)
		if err := engine.ThereOr(found, err, puntuale.NoAutomation); err != nil {
			return err
		}
		if err := puntuale.CheckVersion(old.Version(), known); err != nil {
			return err
		}
		if old.Trigger.Kind != r.Trigger.Kind {
			return puntuale.Invalid(puntuale.Because(puntuale.FaultAutomationKindFixed).At("body.trigger.kind", nil))
		}
		// If a change gives a date rule another field or another repetition, the rule reads all contacts again.
		rescan := old.Trigger.Field != r.Trigger.Field || old.Trigger.Repeat != r.Trigger.Repeat
		arms := r.Active && !old.Active
		if _, err := a.Exec(ctx, `update automation set name = $3, active = $4, sequence_id = $5, wants = $6, trigger_text = $7, conditions = $8, actions = $9,
 stamp = automation.stamp + 1, updated_at = $10, armed_at = case when $11::smallint = 1 then $10 else automation.armed_at end,
 scanned_to = case when $12::smallint = 1 then 0 else automation.scanned_to end where client_id = $1 and id = $2`,
			s.client, r.ID, r.Name, engine.Bit(r.Active), r.Trigger.Sequence.ID(), wants(r.Trigger), trigger, conditions, actions, engine.Micros(r.Updated),
			engine.Bit(arms), engine.Bit(rescan || arms)); err != nil {
			return fmt.Errorf("update an automation: %w", err)
		}
		return s.want(ctx, a)
	})
}

func (s RuleStore) Automation(ctx context.Context, id puntuale.AutomationID) (r puntuale.Automation, err error) {
	found, err := engine.QueryOne(ctx, s.db.CallReads, `select `+ruleColumns+` from automation a where a.client_id = $1 and a.id = $2`, []any{s.client, id}, ruleFields(&r)...)
	return r, engine.FoundOr(found, err, puntuale.NoAutomation)
}

// Automations lists at most MaxAutomations rules, sorted by id.
func (s RuleStore) Automations(ctx context.Context) ([]puntuale.Automation, error) {
	all, err := engine.QueryAll(ctx, s.db.Lists(int64(s.client)), `select `+ruleColumns+` from automation a where a.client_id = $1 order by a.id`, []any{s.client},
		func(r engine.Row, a *puntuale.Automation) error { return r.Scan(ruleFields(a)...) })
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list automations: %w", err))
	}
	return all, nil
}

// DeleteAutomation deletes a rule and its log. Runs that the rule started continue.
//
// DeleteAutomation first deletes the rule itself, so that no runner acts for it any more. Then it deletes the rule's other rows in several
// transactions. If one fails, maintenance deletes the remaining rows.
func (s RuleStore) DeleteAutomation(ctx context.Context, id puntuale.AutomationID) error {
	if err := s.db.Write(ctx, int64(s.client), func(ctx context.Context, a engine.Querier) error {
		if err := s.lock(ctx, a); err != nil {
			return err
		}
		n, err := a.Exec(ctx, `delete from automation where client_id = $1 and id = $2`, s.client, id)
		if err := engine.ThereOr(n > 0, err, puntuale.NoAutomation); err != nil {
			return err
		}
		return s.want(ctx, a)
	}); err != nil {
		return err
	}
	return s.forgetRule(ctx, s.client, id)
}

// Firings lists the log of a rule, newest first. Codes: invalid (the cursor).
func (s RuleStore) Firings(ctx context.Context, id puntuale.AutomationID, p puntuale.Page) ([]puntuale.Firing, string, error) {
	last, limit, err := engine.ReadCursor(p, "firing")
	if err != nil {
		return nil, "", err
	}
	if last == 0 {
		last = puntuale.MaxID + 1
	}
	all, err := engine.QueryAll(ctx, s.db.Lists(int64(s.client)), `select f.id, f.rule_id, f.at, f.phone, f.occurrence, f.acted, f.reason, f.detail, f.depth, f.messages
 from automation_firing f where f.client_id = $1 and f.rule_id = $4 and f.id < $2 order by f.id desc limit $3`, []any{s.client, last, limit + 1, id},
		func(r engine.Row, f *puntuale.Firing) error {
			var messages string
			err := r.Scan(&f.ID, &f.Automation, engine.ScanTime(&f.At), &f.Phone, &f.Occurrence, engine.ScanBool(&f.Acted), &f.Reason, &f.Detail, &f.Depth, &messages)
			if err == nil && messages != "" {
				err = engine.ScanJSON(&f.Messages).Scan(messages)
			}
			return err
		})
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list firings: %w", err))
	}
	all, next := engine.CutPage(all, limit, "firing", func(f *puntuale.Firing) int64 { return f.ID })
	return all, next, nil
}
