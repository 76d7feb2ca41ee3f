package automation

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/keyword"
	"puntuale/internal/payload"
	"puntuale/internal/plan"
)

// Codes of the faults that functions in this file return. Each comment names the mistake or the rule.
const (
	faultActionAlone    puntuale.ReasonCode = "automation.action_alone"   // a rule with a date must have only one action, and this action must be a start
	faultFieldName      puntuale.ReasonCode = "automation.field_name"     // the text cannot be a field's name
	faultFirstWithWords puntuale.ReasonCode = "automation.first_words"    // if a trigger's member "first" is true, the trigger must have no words
	faultLoop           puntuale.ReasonCode = "automation.loop"           // the rule would start the sequence that triggers the rule
	faultNoActions      puntuale.ReasonCode = "automation.no_actions"     // a rule must have an action
	faultNoFolded       puntuale.ReasonCode = "automation.no_word"        // the word has neither letters nor digits
	faultNoPhone        puntuale.ReasonCode = "automation.map_phone"      // a hook's map must contain the phone, or the reference of a booking
	faultNoReference    puntuale.ReasonCode = "automation.no_reference"   // neither the trigger nor the action names a booking
	faultNoTags         puntuale.ReasonCode = "automation.no_tags"        // a tag action must name a tag
	faultNotFieldDate   puntuale.ReasonCode = "automation.not_anchor"     // no step of the sequence counts from this date
	faultNotPath        puntuale.ReasonCode = "automation.not_path"       // the text is not a path to a member of the payload
	faultNotSequence    puntuale.ReasonCode = "automation.not_sequence"   // the text is not the id of a sequence
	faultOtherKind      puntuale.ReasonCode = "automation.other_kind"     // the member belongs to another kind of trigger or action
	faultSessionless    puntuale.ReasonCode = "automation.sessionless"    // the condition names a session, but this kind of trigger has no session
	faultStepUndated    puntuale.ReasonCode = "automation.step_undated"   // a step counts from the start, but a rule with a date starts the sequence days before the date
	faultTwoStarts      puntuale.ReasonCode = "automation.sequence_twice" // two actions start the same sequence
)

// phoneField is the member of a hook's map that leads to the person's number.
const phoneField = "phone"

// Check returns the faults of a rule. It does not check whether sequences and sessions exist. The locations of the faults are those of the
// request's body, such as "body.actions[1].sequence". media are the allowed file name extensions, as in [plan.Check].
func Check(a puntuale.Automation, media ...string) []puntuale.Fault {
	c := &checker{media: media}
	c.required("body.name", a.Name, puntuale.MaxName)
	c.trigger(a.Trigger)
	c.conditions(a.Trigger.Kind, a.Conditions)
	c.bookingStatus(a.Trigger, a.Conditions.BookingStatus)
	c.actions(a)
	return c.faults
}

// CheckDate returns the fault of a sequence that a rule with a date starts. At least one step must count from the date. No step may count
// from the start, because the rule starts the sequence days before the date.
func CheckDate(t puntuale.Trigger, s puntuale.Sequence) []puntuale.Fault {
	const at = "body.actions[0].sequence"
	dated, undated := false, false
	for i := range s.Steps {
		switch s.Steps[i].Timing.Anchor {
		case t.Field:
			dated = true
		case "", puntuale.AnchorStart:
			undated = true
		}
	}
	switch {
	case !dated:
		return []puntuale.Fault{puntuale.Because(faultNotFieldDate, t.Field).At(at, nil)}
	case undated:
		return []puntuale.Fault{puntuale.Because(faultStepUndated).At(at, nil)}
	}
	return nil
}

type checker struct {
	media  []string
	faults []puntuale.Fault
}

func (c *checker) add(at string, code puntuale.ReasonCode, value any, args ...string) {
	c.faults = append(c.faults, puntuale.Because(code, args...).At(at, value))
}

func (c *checker) text(at, text string, most int) {
	if utf8.RuneCountInString(text) > most {
		c.add(at, puntuale.FaultLongerThanCharacters, nil, strconv.Itoa(most))
	}
	if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		c.add(at, puntuale.FaultInvalid, nil)
	}
}

func (c *checker) required(at, text string, most int) {
	if puntuale.Trimmed(text) == "" {
		c.add(at, puntuale.FaultRequired, nil)
		return
	}
	c.text(at, text, most)
}

func (c *checker) entries(at string, n, most int) bool {
	if n > most {
		c.add(at, puntuale.FaultMoreEntries, nil, strconv.Itoa(most))
	}
	return n <= most
}

// word reports whether a text is one of the given words. If it is not, word adds a fault.
func word[T ~string](c *checker, at string, text T, words ...T) bool {
	if slices.Contains(words, text) {
		return true
	}
	if text == "" {
		c.add(at, puntuale.FaultRequired, nil)
		return false
	}
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	c.add(at, puntuale.FaultNotOneOf, string(text), strings.Join(all, ", "))
	return false
}

func (c *checker) between(at string, n, least, most int) {
	if n < least || n > most {
		c.add(at, puntuale.FaultNotWholeInRange, n, strconv.Itoa(least), strconv.Itoa(most))
	}
}

func index(at string, i int) string { return at + "[" + strconv.Itoa(i) + "]" }

// usedBy lists, for each member of a trigger, the kinds of trigger that use it.
var usedBy = []struct {
	name  string
	kinds []puntuale.TriggerKind
	given func(puntuale.Trigger) bool
}{
	{"words", []puntuale.TriggerKind{puntuale.TriggerReply}, func(t puntuale.Trigger) bool { return len(t.Words) > 0 }},
	{"first", []puntuale.TriggerKind{puntuale.TriggerReply}, func(t puntuale.Trigger) bool { return t.First }},
	{"sequence", []puntuale.TriggerKind{puntuale.TriggerReplyTo, puntuale.TriggerNoReply, puntuale.TriggerOutcome, puntuale.TriggerBooking}, func(t puntuale.Trigger) bool { return t.Sequence != "" }},
	{"hours", []puntuale.TriggerKind{puntuale.TriggerNoReply}, func(t puntuale.Trigger) bool { return t.Hours != 0 }},
	{"field", []puntuale.TriggerKind{puntuale.TriggerDate}, func(t puntuale.Trigger) bool { return t.Field != "" }},
	{"repeat", []puntuale.TriggerKind{puntuale.TriggerDate}, func(t puntuale.Trigger) bool { return t.Repeat != "" }},
	{"map", []puntuale.TriggerKind{puntuale.TriggerHook}, func(t puntuale.Trigger) bool { return len(t.Map) > 0 }},
	{"preset", []puntuale.TriggerKind{puntuale.TriggerHook}, func(t puntuale.Trigger) bool { return t.Preset != "" }},
	{"is", []puntuale.TriggerKind{puntuale.TriggerOutcome, puntuale.TriggerBooking}, func(t puntuale.Trigger) bool { return t.Is != "" }},
}

func (c *checker) trigger(t puntuale.Trigger) {
	const at = "body.trigger."
	if !word(c, at+"kind", t.Kind, puntuale.TriggerKinds()...) {
		return
	}
	for _, m := range usedBy {
		if m.given(t) && !slices.Contains(m.kinds, t.Kind) {
			c.add(at+m.name, faultOtherKind, nil, string(t.Kind))
		}
	}
	switch t.Kind {
	case puntuale.TriggerReply:
		c.words(at+"words", t.Words)
		if t.First && len(t.Words) > 0 {
			c.add(at+"first", faultFirstWithWords, nil)
		}
	case puntuale.TriggerReplyTo:
		c.sequence(at+"sequence", t.Sequence)
	case puntuale.TriggerNoReply:
		c.sequence(at+"sequence", t.Sequence)
		c.between(at+"hours", t.Hours, 1, puntuale.MaxNoReplyHours)
	case puntuale.TriggerDate:
		c.fieldName(at+"field", t.Field)
		word(c, at+"repeat", t.Repeat, puntuale.RepeatYearly, puntuale.RepeatMonthly, puntuale.RepeatOnce)
	case puntuale.TriggerHook:
		switch {
		case t.Preset == "":
			c.mapping(at+"map", t.Map)
		case !word(c, at+"preset", t.Preset, puntuale.HookPresets()...):
		case len(t.Map) > 0:
			c.add(at+"map", faultOtherKind, nil, "preset")
		}
	case puntuale.TriggerOutcome:
		c.sequence(at+"sequence", t.Sequence)
		word(c, at+"is", t.Is, puntuale.OutcomeCompleted, puntuale.OutcomeFailed, puntuale.OutcomeRead, puntuale.OutcomeClicked)
	case puntuale.TriggerBooking:
		if t.Sequence != "" {
			c.sequence(at+"sequence", t.Sequence)
		}
		word(c, at+"is", t.Is, puntuale.BookingOutcomes()...)
	}
}

// namesBooking reports whether a trigger knows the reference of a booking.
func namesBooking(t puntuale.Trigger) bool {
	return t.Kind == puntuale.TriggerBooking || t.Kind == puntuale.TriggerHook && (t.Preset != "" || t.Map[puntuale.ReferenceField] != "")
}

func (c *checker) words(at string, words []string) {
	if !c.entries(at, len(words), puntuale.MaxTriggerWords) {
		return
	}
	for i, w := range words {
		c.text(index(at, i), w, puntuale.MaxTriggerWord)
		if keyword.Fold(w) == "" {
			c.add(index(at, i), faultNoFolded, w)
		}
	}
}

// sequence checks that s is an id or one of the given words.
func (c *checker) sequence(at string, s puntuale.SequenceChoice, words ...puntuale.SequenceChoice) {
	switch {
	case s == "":
		c.add(at, puntuale.FaultRequired, nil)
	case s.ID() == 0 && !slices.Contains(words, s):
		c.add(at, faultNotSequence, shown(string(s)))
	}
}

// shown returns the beginning of a refused value, which the answer repeats.
func shown(text string) string {
	if len(text) > puntuale.MaxTriggerWord {
		return strings.ToValidUTF8(text[:puntuale.MaxTriggerWord], "")
	}
	return text
}

// fieldName checks that a name can stand in a placeholder such as {{nome}}.
func (c *checker) fieldName(at, name string) {
	switch {
	case name == "":
		c.add(at, puntuale.FaultRequired, nil)
	case !isFieldName(name):
		c.add(at, faultFieldName, shown(name))
	}
}

const maxFieldName = 64

func isFieldName(name string) bool {
	for i := range len(name) {
		switch b := name[i]; {
		case b == '_' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z':
		case '0' <= b && b <= '9' && i > 0:
		default:
			return false
		}
	}
	return name != "" && len(name) <= maxFieldName
}

func (c *checker) mapping(at string, m map[string]string) {
	if m[phoneField] == "" && m[puntuale.ReferenceField] == "" { // the booking tells its person
		c.add(at+"."+phoneField, faultNoPhone, nil)
	}
	if !c.entries(at, len(m), puntuale.MaxHookFields) {
		return
	}
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !isFieldName(name) {
			c.add(at, faultFieldName, shown(name))
			continue
		}
		if m[name] == "" {
			if name != phoneField {
				c.add(at+"."+name, puntuale.FaultRequired, nil)
			}
			continue
		}
		if _, err := payload.ParsePath(m[name]); err != nil {
			c.add(at+"."+name, faultNotPath, shown(m[name]))
		}
	}
}

func (c *checker) conditions(kind puntuale.TriggerKind, k puntuale.Conditions) {
	const at = "body.conditions."
	c.tags(at+"tags", k.Tags, puntuale.MaxConditionTags)
	if c.entries(at+"fields", len(k.Fields), puntuale.MaxConditionFields) {
		for i, f := range k.Fields {
			c.field(index(at+"fields", i), f)
		}
	}
	if k.Session != "" {
		if _, err := puntuale.ParseID[puntuale.SessionID](k.Session); err != nil {
			c.add(at+"id_sessione", puntuale.FaultNotOwnSession, nil)
		} else if !kind.Personal() {
			c.add(at+"id_sessione", faultSessionless, nil)
		}
	}
	for _, f := range k.Window.Check() {
		f.Location = at + "window." + f.Location
		c.faults = append(c.faults, f)
	}
	if k.Window != nil && kind == puntuale.TriggerDate {
		c.add(at+"window", faultOtherKind, nil, string(kind))
	}
	if k.NotIn != "" {
		c.sequence(at+"not_in", k.NotIn)
	}
	c.between(at+"cooldown_hours", k.CooldownHours, 0, puntuale.MaxCooldownHours)
}

func (c *checker) bookingStatus(t puntuale.Trigger, statuses []string) {
	const at = "body.conditions.booking_status"
	if len(statuses) > 0 && !namesBooking(t) {
		c.add(at, faultNoReference, nil)
	}
	if !c.entries(at, len(statuses), len(puntuale.BookingStatuses())) {
		return
	}
	for i, s := range statuses {
		word(c, index(at, i), s, puntuale.BookingStatuses()...)
	}
}

func (c *checker) field(at string, f puntuale.FieldCondition) {
	c.fieldName(at+".name", f.Name)
	if !word(c, at+".op", f.Op, puntuale.FieldOps()...) {
		return
	}
	switch c.text(at+".value", f.Value, puntuale.MaxField); f.Op {
	case puntuale.FieldFilled, puntuale.FieldEmpty:
		if f.Value != "" {
			c.add(at+".value", puntuale.FaultGoesWithout, nil, "op")
		}
	case puntuale.FieldLess, puntuale.FieldMore, puntuale.FieldContains:
		if puntuale.Trimmed(f.Value) == "" {
			c.add(at+".value", puntuale.FaultRequired, nil)
		}
	}
}

func (c *checker) tags(at string, tags []string, most int) {
	if !c.entries(at, len(tags), most) {
		return
	}
	for i, tag := range tags {
		c.required(index(at, i), tag, puntuale.MaxTag)
	}
}

func (c *checker) actions(a puntuale.Automation) {
	const at = "body.actions"
	if len(a.Actions) == 0 {
		c.add(at, faultNoActions, nil)
	}
	if !c.entries(at, len(a.Actions), puntuale.MaxActions) {
		return
	}
	if a.Trigger.Kind == puntuale.TriggerDate && len(a.Actions) > 1 {
		c.add(at, faultActionAlone, nil)
	}
	started, booked := map[puntuale.SequenceChoice]bool{}, map[string]bool{}
	for i, x := range a.Actions {
		c.action(index(at, i), a.Trigger, x)
		if x.Kind == puntuale.ActionStart && started[x.Sequence] {
			c.add(index(at, i)+".sequence", faultTwoStarts, nil)
		}
		started[x.Sequence] = started[x.Sequence] || x.Kind == puntuale.ActionStart
		if books := x.Kind == puntuale.ActionBook || x.Kind == puntuale.ActionCancelBooking; books {
			if booked[x.Reference] && (x.Reference != "" || namesBooking(a.Trigger)) {
				c.add(index(at, i)+".reference", faultBookedTwice, nil)
			}
			booked[x.Reference] = true
		}
	}
}

// action checks one action. Members that the action's kind does not use must be empty.
func (c *checker) action(at string, t puntuale.Trigger, x puntuale.Action) {
	if !word(c, at+".kind", x.Kind, puntuale.ActionKinds()...) {
		return
	}
	if t.Kind == puntuale.TriggerDate && x.Kind != puntuale.ActionStart {
		c.add(at+".kind", faultActionAlone, nil)
	}
	sends := x.Text != "" || x.Media != "" || x.MediaName != "" || x.Latitude != nil || x.Longitude != nil || x.Template != "" || x.Purpose != ""
	for _, m := range []struct {
		name  string
		kinds []puntuale.ActionKind
		given bool
	}{
		{"sequence", []puntuale.ActionKind{puntuale.ActionStart, puntuale.ActionStop, puntuale.ActionBook}, x.Sequence != ""},
		{"reference", []puntuale.ActionKind{puntuale.ActionBook, puntuale.ActionCancelBooking}, x.Reference != ""},
		{"status", []puntuale.ActionKind{puntuale.ActionBook}, x.Status != ""},
		{"silent", []puntuale.ActionKind{puntuale.ActionCancelBooking}, x.Silent},
		{"text", []puntuale.ActionKind{puntuale.ActionSend}, sends},
		{"add", []puntuale.ActionKind{puntuale.ActionTag}, len(x.Add) > 0},
		{"remove", []puntuale.ActionKind{puntuale.ActionTag}, len(x.Remove) > 0},
	} {
		if m.given && !slices.Contains(m.kinds, x.Kind) {
			c.add(at+"."+m.name, faultOtherKind, nil, string(x.Kind))
		}
	}
	switch x.Kind {
	case puntuale.ActionStart:
		c.sequence(at+".sequence", x.Sequence, puntuale.SequenceDefault)
		if t.Kind == puntuale.TriggerDate && x.Sequence == puntuale.SequenceDefault {
			c.add(at+".sequence", faultNotSequence, string(x.Sequence))
		}
		if t.Kind == puntuale.TriggerOutcome && x.Sequence == t.Sequence {
			c.add(at+".sequence", faultLoop, nil)
		}
	case puntuale.ActionStop:
		c.sequence(at+".sequence", x.Sequence, puntuale.SequenceDefault, puntuale.SequenceAll)
	case puntuale.ActionSend:
		c.send(at, x)
	case puntuale.ActionBook:
		c.sequence(at+".sequence", x.Sequence)
		switch {
		case x.Status != "" && t.Preset != "": // the program says it
			c.add(at+".status", faultOtherKind, nil, "preset")
		case x.Status != "":
			word(c, at+".status", x.Status, puntuale.BookingStatuses()...)
		}
		c.reference(at+".reference", x.Reference)
	case puntuale.ActionCancelBooking:
		if c.reference(at+".reference", x.Reference); x.Reference == "" && !namesBooking(t) {
			c.add(at+".reference", faultNoReference, nil)
		}
	case puntuale.ActionTag:
		if len(x.Add)+len(x.Remove) == 0 {
			c.add(at, faultNoTags, nil)
		}
		c.tags(at+".add", x.Add, puntuale.MaxContactTags)
		c.tags(at+".remove", x.Remove, puntuale.MaxContactTags)
	case puntuale.ActionBlacklist:
	}
}

// reference checks the reference of a booking, which may have placeholders.
func (c *checker) reference(at, text string) {
	if c.text(at, text, puntuale.MaxReference); text == "" {
		return
	}
	for _, f := range plan.CheckContent("", puntuale.Step{Text: text}) {
		f.Location = at
		c.faults = append(c.faults, f)
	}
}

func (c *checker) send(at string, x puntuale.Action) {
	step := x.Step()
	if step.Template == "" {
		c.faults = append(c.faults, plan.CheckContent(at, step, c.media...)...)
	} else {
		for _, f := range plan.Check(puntuale.Sequence{Name: "-", Steps: []puntuale.Step{step}}, c.media...) {
			f.Location = at + strings.TrimPrefix(f.Location, "body.steps[0]")
			c.faults = append(c.faults, f)
		}
	}
	if _, ok := puntuale.ParsePurpose(x.Purpose); !ok {
		c.add(at+".purpose", puntuale.FaultNotOneOf, shown(x.Purpose), "service, marketing")
	}
}
