package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/plan"
)

// Plan contains the data that all recipients of one campaign share. It is not safe for concurrent use.
type Plan struct {
	campaign puntuale.Campaign
	frozen   puntuale.CampaignFrozen
	zone     *time.Location
	media    []string
	files    map[puntuale.FileID]plan.UploadedFile
	wanted   []puntuale.Field
}

// NewPlan returns the plan of a campaign. media and files are the same as in [plan.Input].
func NewPlan(c puntuale.Campaign, frozen puntuale.CampaignFrozen, media []string, files map[puntuale.FileID]plan.UploadedFile) (*Plan, error) {
	zone, err := time.LoadLocation(frozen.Zone)
	if err != nil {
		return nil, fmt.Errorf("the zone of a campaign: %w", err)
	}
	frozen = frozen.Joined()
	return &Plan{campaign: c, frozen: frozen, zone: zone, media: media, files: files, wanted: plan.Fields(frozen.Sequence)}, nil
}

// fields returns the values for the recipient's texts. The recipient's own cells override the values that all
// recipients share.
func (p *Plan) fields(r *puntuale.Recipient) map[string]plan.Value {
	fields := make(map[string]plan.Value, len(p.wanted))
	for _, f := range p.wanted {
		text := ""
		if at, ok := p.frozen.Columns[f.Name]; ok && at < len(r.Cells) {
			text = r.Cells[at]
		}
		if puntuale.Trimmed(text) == "" {
			text = p.campaign.Draft.Fields[f.Name]
		}
		if text != "" {
			fields[f.Name] = plan.Value{Kind: plan.Text, Text: text}
		}
	}
	return fields
}

// Build plans the messages of one recipient. The argument at is when the recipient's run starts. reason says why the
// recipient is refused; "" means that it is not refused. Seed 0 means a dry run.
func (p *Plan) Build(r *puntuale.Recipient, at time.Time, seed uint64) (built plan.Plan, reason, value string) {
	if r.Phone == "" {
		return built, puntuale.RefusedPhone, shortened(r.Value)
	}
	sequence, variant := p.frozen.Sequence, p.variant(r.Phone)
	if variant >= 0 {
		sequence.Steps = sequence.Steps[variant : variant+1]
	}
	built, err := plan.Build(plan.Input{
		Sequence: sequence, Phone: r.Phone, Fields: p.fields(r), Location: p.zone, Closed: p.frozen.Closed,
		Now: at, Seed: seed, Media: p.media, Files: p.files,
	})
	if err != nil {
		reason, value = refusalOf(err)
		return built, reason, value
	}
	if len(built.Messages) == 0 {
		return built, puntuale.RefusedPast, ""
	}
	for i := range built.Messages {
		built.Messages[i].Step += max(0, variant)
	}
	return built, "", ""
}

// firstOf returns the message that leaves first.
func firstOf(built plan.Plan) *puntuale.PlannedMessage {
	first := &built.Messages[0]
	for i := range built.Messages {
		if m := &built.Messages[i]; m.Due.Before(first.Due) {
			first = m
		}
	}
	return first
}

// closed reports whether Meta would refuse the first message, because it is free text outside the person's 24-hour
// window. Later messages are not checked, because the person may write before they are due, which opens the window.
// Campaigns never use Direct Send.
func closed(built plan.Plan, phone string, k puntuale.KnownPerson) bool {
	first := firstOf(built)
	way, _ := puntuale.WayQuery{Content: first.Content, To: phone, Campaign: true, Open: first.Due.Before(k.Window)}.Way()
	return way == puntuale.WayRefused
}

// tellWays sets the ways of a recipient's messages, and returns that of the first one.
func (c *Check) tellWays(phone string, built plan.Plan, k puntuale.KnownPerson) puntuale.MessageWay {
	if c.Way == nil {
		return ""
	}
	for i := range built.Messages {
		m := &built.Messages[i]
		m.Way, m.WayReason = c.Way(m, phone, c.Plan.purpose(m.Step), k.Window)
	}
	return firstOf(built).Way
}

// countWay counts a message for the list of ways.
func (c *Check) countWay(m *puntuale.PlannedMessage) {
	if m.Way == "" {
		return
	}
	i := slices.IndexFunc(c.found.Ways, func(w puntuale.CampaignWay) bool { return w.Way == m.Way && w.Reason == m.WayReason })
	if i < 0 {
		i = len(c.found.Ways)
		c.found.Ways = append(c.found.Ways, puntuale.CampaignWay{Way: m.Way, Reason: m.WayReason})
	}
	c.found.Ways[i].Messages++
}

func phonesOf(rows []puntuale.Recipient) []string {
	phones := make([]string, 0, len(rows))
	for i := range rows {
		if rows[i].Phone != "" {
			phones = append(phones, rows[i].Phone)
		}
	}
	return phones
}

// refusalOf returns the code of the reason why a recipient cannot be planned. A missing field takes precedence over an
// invalid field.
func refusalOf(err error) (reason, value string) {
	refused, ok := errors.AsType[*puntuale.Error](err)
	if !ok || len(refused.Faults) == 0 {
		return puntuale.RefusedField, shortened(err.Error())
	}
	reason = puntuale.RefusedField
	for _, f := range refused.Faults {
		name := strings.TrimPrefix(f.Location, "body.")
		if f.Code == puntuale.FaultRequired {
			return puntuale.RefusedMissing, shortened(name)
		}
		if value == "" {
			value = fieldFault(name, f).Stored()
		}
	}
	return reason, value
}

// fieldFault returns which field is wrong, and why, in a bounded length.
func fieldFault(name string, f puntuale.Fault) puntuale.Reason {
	args := make([]string, len(f.Args))
	for i, arg := range f.Args {
		args[i] = shortened(arg)
	}
	return puntuale.Because(puntuale.FaultOfField, shortened(name), puntuale.Because(f.Code, args...).Stored())
}

// purpose returns the purpose of a step. A campaign that an earlier version started has no frozen purposes.
func (p *Plan) purpose(step int) puntuale.Purpose {
	if step < len(p.frozen.Purposes) {
		return p.frozen.Purposes[step]
	}
	purpose, _ := puntuale.ParsePurpose(p.campaign.Draft.Purpose)
	return purpose
}

// marketing reports whether any step is marketing.
func (p *Plan) marketing() bool {
	for i := range p.frozen.Sequence.Steps {
		if p.purpose(i) == puntuale.PurposeMarketing {
			return true
		}
	}
	return false
}

// Start returns the run of a planned recipient, in the form in which a start call would store it.
func (p *Plan) Start(r *puntuale.Recipient, built plan.Plan, now time.Time) puntuale.StartRun {
	c := &p.campaign
	run := puntuale.Run{
		Client: c.Client, Sequence: p.frozen.Sequence.ID, Session: c.Session, Phone: r.Phone, Origin: puntuale.OriginMassive, Campaign: c.ID,
		Name: c.Name, Reference: c.Draft.Reference, Zone: p.zone.String(), Received: c.Started, Request: p.request(r),
		ClientName: p.frozen.ClientName, SequenceName: p.frozen.Sequence.Name, Steps: make([]puntuale.FrozenStep, len(built.Messages)),
	}
	for i, m := range built.Messages {
		built.Messages[i].Purpose = p.purpose(m.Step)
		run.Steps[i] = puntuale.FrozenOf(&m)
		run.Steps[i].Dated, run.Steps[i].Limit, run.Steps[i].Validity = m.Dated, m.Limit, m.ValidUntil.Sub(m.Due)
	}
	return puntuale.StartRun{Run: run, Messages: built.Messages, Skipped: built.Skipped, Day: puntuale.DateOf(now.In(p.zone)), Now: now, IfRunning: p.ifRunning()}
}

func (p *Plan) ifRunning() puntuale.IfRunning {
	if w := p.campaign.Draft.IfRunning; w != "" {
		return w
	}
	return p.frozen.Sequence.IfRunning
}

// request returns the call that a message's details show: the campaign, the number and the recipient's fields.
func (p *Plan) request(r *puntuale.Recipient) []byte {
	body := map[string]string{"campaign": p.campaign.ID.String(), "phone": r.Phone}
	for name, at := range p.frozen.Columns {
		if at < len(r.Cells) && name != "phone" && name != "campaign" {
			body[name] = r.Cells[at]
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil // encoding a map of strings cannot fail
	}
	return text
}

// Pacer gives each recipient a separate time, according to the pace and inside the window.
type Pacer struct {
	next     time.Time
	interval time.Duration // time between two recipients; 0: all recipients get the same time
	window   *puntuale.Window
	zone     *time.Location
}

// NewPacer returns a pacer whose first time is next. perMinute 0 means no pace. The window may be nil.
func NewPacer(next time.Time, perMinute int, w *puntuale.Window, zone *time.Location) *Pacer {
	p := &Pacer{next: next, window: w, zone: zone}
	if perMinute > 0 {
		p.interval = time.Minute / time.Duration(perMinute)
	}
	return p
}

// Next returns the time of the next recipient, which is not before now. ok is false if the window never opens again.
func (p *Pacer) Next(now time.Time) (at time.Time, ok bool) {
	if p.next.Before(now) {
		p.next = now
	}
	if w := p.window; w != nil && !w.Contains(p.next, p.zone) {
		if p.next, ok = w.Next(p.next, p.zone); !ok {
			return p.next, false
		}
	}
	return p.next, true
}

// Advance moves the pacer to the time after the current one. Call it when a recipient uses the current time.
func (p *Pacer) Advance() { p.next = p.next.Add(p.interval) }

// Position returns the time at which the pacer continues.
func (p *Pacer) Position() time.Time { return p.next }

// number converts a phone number into an integer, so that a set of a million needs little memory.
func number(phone string) (uint64, bool) {
	digits, ok := strings.CutPrefix(phone, "+")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && digits[0] != '0'
}

// SeenPhones is a set of phones. A million numbers need only a few megabytes. This is important because the garbage
// collector lets the heap grow to a multiple of the live data.
type SeenPhones struct {
	numbers map[uint64]*part // the key is the number without its lowest 16 bits
	others  map[string]struct{}
}

// NewSeenPhones returns an empty set.
func NewSeenPhones() *SeenPhones {
	return &SeenPhones{map[uint64]*part{}, map[string]struct{}{}}
}

// part is a set of numbers that differ only in their lowest 16 bits. A small set is a sorted list. A large set has one
// bit for each number.
type part struct {
	few  []uint16
	many []uint64
}

const partFew = 4096 // up to this size, a list needs no more memory than the bits

// add adds a number, and reports whether it was already in the set.
func (p *part) add(low uint16) bool {
	if p.many == nil {
		at, before := slices.BinarySearch(p.few, low)
		switch {
		case before:
			return true
		case len(p.few) < partFew:
			p.few = slices.Insert(p.few, at, low)
			return false
		}
		p.many = make([]uint64, 1<<16/64)
		for _, n := range p.few {
			p.many[n/64] |= 1 << (n % 64)
		}
		p.few = nil
	}
	before := p.many[low/64]&(1<<(low%64)) != 0
	p.many[low/64] |= 1 << (low % 64)
	return before
}

// Add adds a phone, and reports whether it, or the other form of the number, was already in the set.
func (s *SeenPhones) Add(phone string) bool {
	phone = puntuale.FormKey(phone)
	if n, ok := number(phone); ok {
		p := s.numbers[n>>16]
		if p == nil {
			p = &part{}
			s.numbers[n>>16] = p
		}
		return p.add(uint16(n)) // the key contains the higher bits
	}
	_, before := s.others[phone]
	s.others[phone] = struct{}{}
	return before
}
