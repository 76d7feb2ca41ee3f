package sequence

import (
	"cmp"
	"context"
	"fmt"
	"puntuale/internal/web/view"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
)

// SequenceRow is one sequence of the list.
type SequenceRow struct {
	puntuale.Sequence
	Fields []puntuale.Field
}

// SequenceList is a part of the list of sequences.
type SequenceList struct {
	URL          string // the address of the page
	Text         string // the searched text
	Rows         []SequenceRow
	Cursor, Next string
	Count        int           // sequences on all pages
	Recent       []SequenceRow // sequences that were started recently, the latest start first
}

// None reports whether the client has no sequence at all.
func (l SequenceList) None() bool { return len(l.Rows) == 0 && l.Cursor == "" && l.Text == "" }

// manySequences is the number of sequences above which a list needs a search.
const manySequences = 8

// Long reports whether this is the first page of a long list.
func (l SequenceList) Long() bool {
	return l.Cursor == "" && l.Text == "" && (l.Next != "" || len(l.Rows) > manySequences)
}

// address returns the address of the page with the present search.
func (l SequenceList) address() string {
	if l.Text == "" {
		return l.URL
	}
	return view.WithQuery(l.URL, "text", l.Text)
}

// found says how many sequences there are on all pages, or how many a search found.
func (l SequenceList) found(ctx context.Context) string {
	if l.Text == "" {
		return view.FoundWords(ctx, "sequences.all", l.Count)
	}
	return view.FoundWords(ctx, "sequences.found", l.Count)
}

// SequencePage is the page of one sequence.
type SequencePage struct {
	puntuale.Sequence
	Fields    []puntuale.Field
	Form      *view.Form // the phone number and the fields of the person whose preview the page shows
	Try       Try
	Snippets  []Snippet
	Question  *view.Form // the question before a deletion; its value "asked" means that messages are pending
	DefaultOf []string   // names of the sessions that have this sequence as a default

	Booked     int  // the bookings that an edit has just left as they were
	Replanning bool // they are being updated
}

// summary describes a sequence in a few words.
func (p SequencePage) summary(ctx context.Context) string {
	text := view.T(ctx, "sequence.summary", "N", len(p.Steps), "ID", p.ID.String())
	if p.Booking != "" {
		text += " · " + view.T(ctx, "sequence.for_bookings", "Field", p.Booking)
	}
	return text
}

// Snippet is a short program that starts the sequence. Name is its language.
type Snippet struct{ Name, Text string }

// Gone is the name in a form under which a removed step is stored. The names of the step's fields begin with Gone.
const Gone = "gone"

// gone returns the names of the removed step's fields, sorted.
func (e Editor) gone() (names []string) {
	for name := range e.Form.Values {
		if strings.HasPrefix(name, Gone) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Editor is the page with a sequence's form.
type Editor struct {
	Form      *view.Form
	ID        string // "": a new sequence
	Steps     int
	At        int // the number of the step that gets the focus; -1: none
	Try       Try
	Templates []string
	Sessions  []puntuale.Session
}

// toMeta reports whether the client has a number that sends through Meta.
func (e Editor) toMeta() bool {
	return slices.ContainsFunc(e.Sessions, func(s puntuale.Session) bool { return s.Type == puntuale.Official && !s.Sandbox })
}

// Try is the preview of a sequence for a person.
type Try struct {
	Steps         []puntuale.Step
	Messages      []puntuale.PlannedMessage
	Skipped       []puntuale.SkippedStep
	Fields        []puntuale.Field
	Dates         []Mark   // the date fields from which steps count
	MissingFields []string // required fields that have no value
	Warnings      []StepWarning
	Faults        []puntuale.Fault
	Now           time.Time
	ForBookings   bool
	Change        *control.RehearsedChange // what becomes of the booking; nil: nothing
}

// Mark is a time with a name, which the timeline shows.
type Mark struct {
	Name string
	At   time.Time
}

// StepWarning describes a future problem of a step, in the reader's language.
type StepWarning struct {
	Step int
	Says string
}

// Starting is the page on which a person starts a sequence by hand.
type Starting struct {
	puntuale.Sequence
	Fields      []puntuale.Field
	Form        *view.Form
	Try         *Try       // nil: there is nothing to show yet
	NotYet      *view.Form // the faults that prevent a preview; nil: there is a preview, or the person typed nothing
	Wrong       bool       // true: all values are present, but some values are wrong
	Seen        string     // the preview token of Try, which the form contains
	Changed     bool       // true: the person saw another preview than the present one
	Blacklisted bool       // true: the phone number is in the blacklist
	Running     bool       // true: the sequence is already running for the phone number
}

// Started is the result of a start.
type Started struct {
	puntuale.Sequence
	Messages    []puntuale.MessageDetail
	Skipped     []int                                      // numbers of the steps that were skipped, from 1
	Running     string                                     // the sequence's if_running, if the sequence was already running for this phone number; "": it was not
	Blacklisted bool                                       // true: the phone number is in the blacklist now
	Unwanted    map[puntuale.MessageID]puntuale.ReasonCode // messages that will not leave, each with the reason
	Phone       string                                     // the address of the simulated phone; "": the messages go to a real phone
}

// fieldNames returns the fields that the editor offers: the fields of the sequence, then usual fields in the reader's
// language.
func (e Editor) fieldNames(person, day string) []string {
	names := []string{}
	for _, f := range e.Try.Fields {
		names = append(names, f.Name)
	}
	if !slices.Contains(names, person) {
		names = append(names, person)
	}
	if !e.hasDate(day) {
		names = append(names, day)
	}
	return names
}

// hasDate reports whether the sequence has a field with a date.
func (e Editor) hasDate(usual string) bool {
	return slices.ContainsFunc(e.Try.Fields, func(f puntuale.Field) bool { return f.Kind == puntuale.FieldDate || f.Name == usual })
}

// isDate reports whether an offered field holds a date. usual is the name of the date field that the editor proposes.
func (e Editor) isDate(name, usual string) bool {
	for _, f := range e.Try.Fields {
		if f.Name == name {
			return f.Kind == puntuale.FieldDate
		}
	}
	return name == usual
}

// anchors returns the fields from which a step may count: its present anchor, and all date fields. If there is no date
// field, the argument usual replaces the date fields.
func (e Editor) anchors(own, usual string) []string {
	var names []string
	add := func(name string) {
		if name != "" && name != "+" && name != puntuale.AnchorStart && !puntuale.BookingAnchor(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, f := range e.Try.Fields {
		if f.Kind == puntuale.FieldDate {
			add(f.Name)
		}
	}
	if len(names) == 0 {
		add(usual)
	}
	if forBookings(e.Form) {
		add(e.mainDate(usual))
	}
	add(own)
	return names
}

// anchor returns the chosen anchor of a step. If the person typed the name of a new field, this field is the anchor.
func (e Editor) anchor(step string) string {
	anchor := e.Form.Value(step + ".timing.anchor")
	if typed := strings.Trim(e.Form.Value(step+".timing.anchor_new"), "{} "); anchor == "+" && typed != "" && e.Form.Fault(step+".timing.anchor") == "" {
		return typed
	}
	return view.Or(anchor, puntuale.AnchorStart)
}

// startWords returns the text key for the anchor "start". The editor cannot put a step before the start, but a program
// may have stored such a step. The sentence must also be right for such a step.
func (e Editor) startWords(step string) string {
	switch e.Form.Value(step + ".timing.offset.direction") {
	case string(puntuale.Before), "at":
		if e.anchor(step) == puntuale.AnchorStart {
			return "timing.start_named"
		}
	}
	return "timing.start"
}

// faultWithin reports whether a field of a step has a fault. If so, the fault of the whole step is not shown, because
// the field's fault is more exact.
func (e Editor) faultWithin(step string) bool {
	for _, part := range []string{".text", ".media", ".media_name", ".latitude", ".longitude", ".template"} {
		if e.Form.Fault(step+part) != "" {
			return true
		}
	}
	return false
}

// fine reports whether a step uses settings that most people do not need.
func (e Editor) fine(step string) bool {
	for _, part := range []string{".timing.window.weekdays", ".timing.window.from", ".timing.window.to", ".timing.window.holidays", ".timing.jitter", ".timing.valid_for.amount", ".on_uncertain"} {
		if v := e.Form.Value(step + part); v != "" || e.Form.Fault(step+part) != "" {
			return true
		}
	}
	past := e.Form.Value(step + ".timing.if_past")
	return past != "" && past != string(puntuale.PastSkip)
}

// hasOffers reports whether a step has something below its text, or a fault in it.
func (e Editor) hasOffers(step string) bool {
	if !view.OffersButtons(e.Form, step+".") {
		return true
	}
	names := []string{step + ".buttons", step + ".interactive"}
	for i := range puntuale.MaxStepButtons {
		names = append(names, buttonName(step, i)+".label", buttonName(step, i)+".does", buttonName(step, i)+".payload")
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return e.Form.Fault(name) != "" || strings.HasSuffix(name, ".label") && e.Form.Value(name) != ""
	})
}

// action returns the address to which the form is sent.
func (e Editor) action(ctx context.Context) string {
	if e.ID != "" {
		return view.Base(ctx) + "/sequences/" + e.ID
	}
	return view.Base(ctx) + "/sequences"
}

// StepWords returns a step's content and timing in one text. It returns "" if the step does not exist.
func StepWords(ctx context.Context, steps []puntuale.Step, i int) string {
	if i >= len(steps) {
		return ""
	}
	s := steps[i]
	parts := []string{TimingWords(ctx, s.Timing) + onlyIfWords(ctx, s)}
	for _, part := range []string{s.Text, s.Media, s.MediaName, s.Template} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	for i, v := range s.Variants {
		parts = append(parts, variantName(ctx, i, v.Share)+": "+v.Content.Text+v.Template)
	}
	for _, b := range s.Buttons {
		parts = append(parts, b.Label)
	}
	if x := s.Interactive; x != nil {
		parts = append(parts, strings.TrimSpace(x.Lines()+" "+string(x.Ask)))
	}
	if s.Latitude != nil && s.Longitude != nil {
		parts = append(parts, fmt.Sprint(*s.Latitude, ", ", *s.Longitude))
	}
	if t := s.Timing; t.Jitter != 0 || t.IfPast != "" || t.ValidFor != nil || s.OnUncertain != "" {
		parts = append(parts, fineWords(ctx, s))
	}
	return strings.Join(parts, "\n")
}

// variantName names a variant of a step, with its share in percent.
func variantName(ctx context.Context, i, share int) string {
	return view.T(ctx, "campaign.variant_share", "Key", puntuale.VariantKey(i), "N", share)
}

// fineWords describes the rarely used settings of a step.
func fineWords(ctx context.Context, s puntuale.Step) string {
	t := s.Timing
	var parts []string
	if t.Jitter != 0 {
		parts = append(parts, view.T(ctx, "timing.jitter")+" "+view.T(ctx, "timing.span.seconds", "N", t.Jitter))
	}
	if t.IfPast != "" {
		parts = append(parts, view.T(ctx, "timing.if_past")+": "+view.T(ctx, "timing.past."+string(t.IfPast)))
	}
	if t.ValidFor != nil {
		parts = append(parts, view.T(ctx, "timing.valid_for")+" "+view.T(ctx, "timing.span."+string(t.ValidFor.Unit), "N", t.ValidFor.Amount))
	}
	if s.OnUncertain == puntuale.UncertainResend {
		parts = append(parts, view.T(ctx, "timing.unsure_resend"))
	}
	return strings.Join(parts, " · ")
}

// TimingWords describes when a step leaves, such as "2 giorni prima di «Data appuntamento», alle 09:00".
func TimingWords(ctx context.Context, t puntuale.Timing) string {
	anchored := t.Anchor != "" && t.Anchor != puntuale.AnchorStart
	var text string
	switch {
	case puntuale.BookingAnchor(t.Anchor):
		text = changeWords(ctx, t)
	case t.Offset.Amount == 0 && !anchored && t.At == "":
		text = view.T(ctx, "timing.now")
	case t.Offset.Amount == 0 && !anchored:
		text = view.T(ctx, "timing.same_day")
	case t.Offset.Amount == 0 && t.At == "" && t.Offset.Direction == puntuale.Before:
		text = view.T(ctx, "timing.just_before_field", "Field", view.FieldName(t.Anchor))
	case t.Offset.Amount == 0 && t.At == "":
		text = view.T(ctx, "timing.at_field", "Field", view.FieldName(t.Anchor))
	case t.Offset.Amount == 0:
		text = view.T(ctx, "timing.day_of_field", "Field", view.FieldName(t.Anchor))
	default:
		span := view.T(ctx, "timing.span."+string(t.Offset.Unit), "N", t.Offset.Amount)
		way := "after"
		if t.Offset.Direction == puntuale.Before {
			way = "before"
		}
		if anchored {
			text = view.T(ctx, "timing."+way+"_field", "Span", span, "Field", view.FieldName(t.Anchor))
		} else {
			text = view.T(ctx, "timing."+way+"_start", "Span", span)
		}
	}
	if t.At != "" {
		text += view.T(ctx, "timing.clock", "Time", t.At)
	}
	if w := view.WindowWords(ctx, t.Window); w != "" {
		text += " · " + w
	}
	return text
}

// event is one line of the timeline: a message, or a time with a name.
type event struct {
	at       time.Time
	mark     string // the text of a mark, or the name of a field; "": the event is a message
	message  *puntuale.PlannedMessage
	words    string
	variants []puntuale.StepVariant // the variants of the step, if the message is of all of them
	gone     string                 // why the message does not leave after all; "": it leaves
}

// day is one day of the timeline.
type day struct {
	at     time.Time
	events []event
}

// days returns the timeline: the planned messages and the times with a name, by day, in order.
func (t Try) days(ctx context.Context) (days []day) {
	events := []event{{at: t.Now, mark: view.T(ctx, t.startMark())}}
	if c := t.Change; c != nil {
		events = append(events, event{at: c.At, mark: view.T(ctx, "preview.change."+c.Kind)})
	}
	for _, d := range t.Dates {
		events = append(events, event{at: d.At, mark: view.FieldName(d.Name)})
	}
	add := func(m *puntuale.PlannedMessage, gone string) {
		e := event{at: m.Due, message: m, gone: gone}
		if m.Step < len(t.Steps) {
			e.words = TimingWords(ctx, t.Steps[m.Step].Timing)
			if v := t.Steps[m.Step].Variants; m.Variants != nil && len(v) == len(*m.Variants) {
				e.variants = v
			}
		}
		events = append(events, e)
	}
	for i := range t.Messages {
		add(&t.Messages[i], "")
	}
	if t.Change != nil {
		for i := range t.Change.Withdrawn {
			w := &t.Change.Withdrawn[i]
			add(&w.PlannedMessage, view.FrameOf(ctx).Language.Says(puntuale.Because(w.Reason)))
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at.Unix(), b.at.Unix()) })
	zone := view.FrameOf(ctx).Zone
	for _, e := range events {
		local := e.at.In(zone)
		if n := len(days); n == 0 || puntuale.DateOf(days[n-1].at) != puntuale.DateOf(local) {
			days = append(days, day{at: local})
		}
		last := &days[len(days)-1]
		last.events = append(last.events, e)
	}
	return days
}

// startMark returns the text key of the first mark.
func (t Try) startMark() string {
	if t.ForBookings {
		return "preview.change.made"
	}
	return "preview.start"
}

// moved reports whether a window changed the message's due time by at least a minute.
func (e event) moved() bool {
	return e.message != nil && !e.message.Desired.IsZero() && e.message.Due.Sub(e.message.Desired).Abs() >= time.Minute
}

// note is one warning of the preview.
type note struct {
	tone string // the look of the warning: "bad", "warn" or "info"
	step int    // the number of the step, from 0; -1: no step
	text string
}

var atStep = regexp.MustCompile(`^body\.steps\[(\d+)\]`)

// unseen contains fields of a step. If one of these fields is empty, the preview leaves the step out, but shows no
// fault. So the preview adds a note.
var unseen = map[string]bool{".media": true, ".latitude": true, ".template": true}

// notes returns the preview's warnings: faults of steps and values, times in the past, and fields without a value.
func (t Try) notes(ctx context.Context) (all []note) {
	seen := map[string]bool{}
	add := func(n note) {
		if key := fmt.Sprint(n.step, n.text); !seen[key] {
			seen[key] = true
			all = append(all, n)
		}
	}
	for _, f := range t.Faults {
		reason := view.FrameOf(ctx).Language.Fault(f.Reason())
		if m := atStep.FindStringSubmatch(f.Location); m != nil {
			n, _ := strconv.Atoi(m[1]) // the match contains only digits, so this cannot fail
			part := strings.TrimPrefix(f.Location, m[0])
			if !unfinished(f) {
				add(note{"bad", n, t.explained(ctx, n, part, reason)})
			} else if unseen[part] {
				add(note{"info", n, view.T(ctx, "preview.left_out", "Field", view.T(ctx, stepLabels[part]))})
			}
		} else if name, ok := strings.CutPrefix(f.Location, "body.fields."); ok {
			add(note{"bad", -1, view.FieldName(name) + ": " + reason})
		} else if f.Location == "body.booking.date" {
			add(note{"bad", -1, view.T(ctx, "editor.main_date") + ": " + reason})
		} else if f.Location == "body.phone" {
			add(note{"bad", -1, view.T(ctx, "preview.phone") + ": " + reason})
		}
	}
	if len(t.MissingFields) > 0 {
		add(note{"info", -1, view.T(ctx, "preview.unsaid", "Fields", strings.Join(t.MissingFields, ", "))})
	}
	for _, s := range t.Skipped {
		add(note{"warn", s.Step, view.T(ctx, "preview.past", "Moment", view.FrameOf(ctx).Language.Moment(s.Moment.In(view.FrameOf(ctx).Zone), t.Now))})
	}
	for _, w := range t.Warnings {
		add(note{"warn", w.Step, w.Says})
	}
	return all
}

// bubbleOf returns a message in the form in which its recipient sees it.
func bubbleOf(c puntuale.Content) view.BubbleContent {
	b := view.ContentBubble(c)
	b.In = true
	return b
}

// reaches reports whether the reader's navigation contains the page.
func reaches(ctx context.Context, address string) bool {
	return slices.ContainsFunc(view.FrameOf(ctx).Nav, func(g view.Group) bool {
		return slices.ContainsFunc(g.Items, func(i view.Item) bool { return i.URL == address })
	})
}

// firstWords returns the beginning of a sequence's first text.
func firstWords(s puntuale.Sequence) string {
	for _, step := range s.Steps {
		if text := strings.TrimSpace(step.Text); text != "" {
			runes := []rune(strings.Join(strings.Fields(text), " "))
			if len(runes) > 90 {
				return string(runes[:90]) + "…"
			}
			return string(runes)
		}
	}
	return ""
}
