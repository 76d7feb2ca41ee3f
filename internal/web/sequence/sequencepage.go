package sequence

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"puntuale/internal/web/view"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
)

// SequenceRow is one sequence of the list.
type SequenceRow struct {
	puntuale.Sequence
	Fields []puntuale.Field
}

// SequenceList is a part of the list of sequences.
type SequenceList struct {
	URL          string // of the page
	Text         string // what was searched for
	Rows         []SequenceRow
	Cursor, Next string
	Recent       []SequenceRow // started lately, the latest first
}

// None reports whether the client has no sequence.
func (l SequenceList) None() bool { return len(l.Rows) == 0 && l.Cursor == "" && l.Text == "" }

// manySequences is from how many sequences on a person needs a search.
const manySequences = 8

// Long reports whether this is the first page of a long list.
func (l SequenceList) Long() bool {
	return l.Cursor == "" && l.Text == "" && (l.Next != "" || len(l.Rows) > manySequences)
}

// address is the page with the present search.
func (l SequenceList) address() string {
	if l.Text == "" {
		return l.URL
	}
	return view.WithQuery(l.URL, "text", l.Text)
}

// found says how many sequences a search found.
func (l SequenceList) found(ctx context.Context) string {
	switch {
	case l.Text == "" || l.Cursor != "":
		return ""
	case l.Next != "":
		return view.T(ctx, "sequences.found_more", "N", len(l.Rows))
	}
	return view.T(ctx, "sequences.found", "N", len(l.Rows))
}

// SequencePage is one sequence.
type SequencePage struct {
	puntuale.Sequence
	Fields    []puntuale.Field
	Form      *view.Form // the person of the trial
	Try       Try
	Snippets  []Snippet
	Question  *view.Form // before it is deleted; "asked" there: messages are pending
	DefaultOf []string   // names of the sessions of which it is a default one
}

// Snippet is a piece of a program.
type Snippet struct{ Name, Text string }

// Gone is, in a sequence's form, the place of a step that was removed, and begins the names of its fields.
const Gone = "gone"

// gone are the fields of the step that was removed last, in order.
func (e Editor) gone() (names []string) {
	for name := range e.Form.Values {
		if strings.HasPrefix(name, Gone) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Editor is a sequence's form, with everything around it.
type Editor struct {
	Form      *view.Form
	ID        string // "" of a new one
	Steps     int
	At        int // the step that gets the focus; -1: none
	Try       Try
	Templates []string
	Sessions  []puntuale.Session
}

// Try is the result of a rehearsal for a person.
type Try struct {
	Steps    []puntuale.Step
	Messages []puntuale.PlannedMessage
	Skipped  []puntuale.SkippedStep
	Fields   []puntuale.Field
	Dates    []Mark   // date fields that steps are reckoned from
	Unsaid   []string // needed fields that nobody passes
	Warnings []StepWarning
	Faults   []puntuale.Fault
	Now      time.Time
}

// Mark is a moment with a name.
type Mark struct {
	Name string
	At   time.Time
}

// StepWarning says what will go wrong with a step, in the reader's language.
type StepWarning struct {
	Step int
	Says string
}

// Starting is a sequence that is being started by hand.
type Starting struct {
	puntuale.Sequence
	Fields      []puntuale.Field
	Form        *view.Form
	Try         *Try       // nil before there is something to show
	NotYet      *view.Form // why there is nothing to show yet; nil: nobody typed anything
	Wrong       bool       // nothing is missing: the present values are wrong
	Seen        string     // stands for Try; the form that starts it holds it
	Changed     bool       // the preview that was posted is not the one that was shown
	Blacklisted bool       // the number
	Running     bool       // the sequence, for the number
}

// Started is what a start did.
type Started struct {
	puntuale.Sequence
	Messages    []puntuale.MessageDetail
	Skipped     []int                                      // numbers of steps, from 1
	Running     string                                     // what the sequence does where it is running already, and it was; "" it was not
	Blacklisted bool                                       // the number, as things are
	Unwanted    map[puntuale.MessageID]puntuale.ReasonCode // those that will not leave, and why
	Phone       string                                     // address of the simulated phone; "" the messages go to a real one
}

// fieldNames lists the fields that the editor offers: the sequence's own, and usual ones in the reader's language.
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

// isDate reports whether a field that is offered holds a date; usual is the proposed field.
func (e Editor) isDate(name, usual string) bool {
	for _, f := range e.Try.Fields {
		if f.Name == name {
			return f.Kind == puntuale.FieldDate
		}
	}
	return name == usual
}

// anchors are the fields from which a step may count: its own, and those that hold dates. If there are none, it is the usual one.
func (e Editor) anchors(own, usual string) []string {
	var names []string
	add := func(name string) {
		if name != "" && name != "+" && name != puntuale.AnchorStart && !slices.Contains(names, name) {
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
	add(own)
	return names
}

// anchor is the chosen anchor. A new field that was typed is the chosen one.
func (e Editor) anchor(step string) string {
	anchor := e.Form.Value(step + ".timing.anchor")
	if typed := strings.Trim(e.Form.Value(step+".timing.anchor_new"), "{} "); anchor == "+" && typed != "" && e.Form.Fault(step+".timing.anchor") == "" {
		return typed
	}
	return view.Or(anchor, puntuale.AnchorStart)
}

// startWords is the key of the text for the anchor "start". The editor offers no step before the start. But a program may have made such a
// sequence, and then the sentence must read well.
func (e Editor) startWords(step string) string {
	switch e.Form.Value(step + ".timing.offset.direction") {
	case string(puntuale.Before), "at":
		if e.anchor(step) == puntuale.AnchorStart {
			return "timing.start_named"
		}
	}
	return "timing.start"
}

// faultWithin reports whether a part of a step has a fault, which is more exact than a fault of the whole step.
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

// action is the address to which the form is sent.
func (e Editor) action(ctx context.Context) string {
	if e.ID != "" {
		return view.Base(ctx) + "/sequences/" + e.ID
	}
	return view.Base(ctx) + "/sequences"
}

// StepWords is a step in one text: what it says, and when it leaves. "" if there is no such step.
func StepWords(ctx context.Context, steps []puntuale.Step, i int) string {
	if i >= len(steps) {
		return ""
	}
	s := steps[i]
	parts := []string{TimingWords(ctx, s.Timing)}
	for _, part := range []string{s.Text, s.Media, s.MediaName, s.Template} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if s.Latitude != nil && s.Longitude != nil {
		parts = append(parts, fmt.Sprint(*s.Latitude, ", ", *s.Longitude))
	}
	if t := s.Timing; t.Jitter != 0 || t.IfPast != "" || t.ValidFor != nil || s.OnUncertain != "" {
		parts = append(parts, fineWords(ctx, s))
	}
	return strings.Join(parts, "\n")
}

// fineWords are the settings of a step that few use.
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

// TimingWords says when a step leaves: "2 giorni prima di «Data appuntamento», alle 09:00".
func TimingWords(ctx context.Context, t puntuale.Timing) string {
	anchored := t.Anchor != "" && t.Anchor != puntuale.AnchorStart
	var text string
	switch {
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

// event is one line of the timeline: a message, or a moment with a name.
type event struct {
	at      time.Time
	mark    string // key or field; "" of a message
	message *puntuale.PlannedMessage
	words   string
}

// day is one day of the timeline.
type day struct {
	at     time.Time
	events []event
}

// days are the plan day by day, in the order of the moments.
func (t Try) days(ctx context.Context) (days []day) {
	events := []event{{at: t.Now, mark: view.T(ctx, "preview.start")}}
	for _, d := range t.Dates {
		events = append(events, event{at: d.At, mark: view.FieldName(d.Name)})
	}
	for i := range t.Messages {
		m := &t.Messages[i]
		e := event{at: m.Due, message: m}
		if m.Step < len(t.Steps) {
			e.words = TimingWords(ctx, t.Steps[m.Step].Timing)
		}
		events = append(events, e)
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at.Unix(), b.at.Unix()) })
	zone := view.Of(ctx).Zone
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

// moved reports whether a window moved the message away from its wanted moment.
func (e event) moved() bool {
	return e.message != nil && !e.message.Desired.IsZero() && e.message.Due.Sub(e.message.Desired).Abs() >= time.Minute
}

// notes are the warnings of the preview.
type note struct {
	tone string // bad, warn, info
	step int    // from 0; -1: of no step
	text string
}

var atStep = regexp.MustCompile(`^body\.steps\[(\d+)\]`)

// unseen are the fields without which a step is missing in the preview, although no fault shows that.
var unseen = map[string]bool{".media": true, ".latitude": true, ".template": true}

// notes are present and future problems: faults of steps and of the values passed, moments in the past, fields that no call passes.
func (t Try) notes(ctx context.Context) (all []note) {
	seen := map[string]bool{}
	add := func(n note) {
		if key := fmt.Sprint(n.step, n.text); !seen[key] {
			seen[key] = true
			all = append(all, n)
		}
	}
	for _, f := range t.Faults {
		says := view.Of(ctx).Language.Fault(f.Reason())
		if m := atStep.FindStringSubmatch(f.Location); m != nil {
			n, _ := strconv.Atoi(m[1]) // digits only
			part := strings.TrimPrefix(f.Location, m[0])
			if !unfinished(f) {
				add(note{"bad", n, t.explained(ctx, n, part, says)})
			} else if unseen[part] {
				add(note{"info", n, view.T(ctx, "preview.left_out", "Field", view.T(ctx, stepLabels[part]))})
			}
		} else if name, ok := strings.CutPrefix(f.Location, "body.fields."); ok {
			add(note{"bad", -1, view.FieldName(name) + ": " + says})
		} else if f.Location == "body.phone" {
			add(note{"bad", -1, view.T(ctx, "preview.phone") + ": " + says})
		}
	}
	if len(t.Unsaid) > 0 {
		add(note{"info", -1, view.T(ctx, "preview.unsaid", "Fields", strings.Join(t.Unsaid, ", "))})
	}
	for _, s := range t.Skipped {
		add(note{"warn", s.Step, view.T(ctx, "preview.past", "Moment", view.Of(ctx).Language.Moment(s.Moment.In(view.Of(ctx).Zone), t.Now))})
	}
	for _, w := range t.Warnings {
		add(note{"warn", w.Step, w.Says})
	}
	return all
}

// bubbleOf is a message as its recipient sees it.
func bubbleOf(c puntuale.Content) view.BubbleContent {
	b := view.BubbleContent{Text: c.Text, Latitude: c.Latitude, Longitude: c.Longitude, In: true}
	if c.MediaURL != "" {
		address, _, _ := strings.Cut(c.MediaURL, "?")
		b.Media, b.MediaKind = view.Or(c.MediaName, path.Base(address)), view.MediaKind(c)
	}
	return b
}

// reaches reports whether the reader's navigation has the page.
func reaches(ctx context.Context, address string) bool {
	return slices.ContainsFunc(view.Of(ctx).Nav, func(g view.Group) bool {
		return slices.ContainsFunc(g.Items, func(i view.Item) bool { return i.URL == address })
	})
}

// firstWords is the beginning of a sequence's first text.
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
