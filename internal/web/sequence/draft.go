package sequence

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// A sequence's form contains its steps in fields such as "steps[2].text". These names are the locations at which
// control reports faults. The data of the example person are in "phone" and in fields such as "fields.nome". The
// functions below read and change this form.

// stepParts are the endings of the names of a step's fields. If several fields have faults, the first field in this
// order gets the focus.
var stepParts = []string{"", ".kind", ".text", ".media", ".media_name", ".latitude", ".longitude", ".template",
	".text_b", ".text_c", ".text_d", ".template_b", ".template_c", ".template_d", ".share_a", ".share_b", ".share_c", ".share_d",
	".timing", ".timing.offset.direction", ".timing.offset.amount", ".timing.offset.unit", ".timing.anchor", ".timing.anchor_new", ".timing.at",
	".timing.window.weekdays", ".timing.window.from", ".timing.window.to", ".timing.window.holidays", ".timing.jitter", ".timing.jitter_unit",
	".timing.if_past", ".timing.valid_for.amount", ".timing.valid_for.unit", ".on_uncertain", ".id", ".only_if",
	".buttons", ".buttons[0].label", ".buttons[0].does", ".buttons[1].label", ".buttons[1].does", ".buttons[2].label", ".buttons[2].does",
	".buttons[0].payload", ".buttons[1].payload", ".buttons[2].payload",
	".offer", ".interactive", ".interactive.list.button", ".interactive.list", ".interactive.link.label", ".interactive.link.url"}

// buttonEffects are what buttons do, in the order in which the form suggests them. buttonHolders are the keys of the
// suggested labels.
var (
	buttonEffects = []puntuale.ButtonEffect{puntuale.ButtonConfirms, puntuale.ButtonCancels, puntuale.ButtonAnswers}
	buttonHolders = []string{"step.button_holder.confirm", "step.button_holder.cancel", "step.button_holder.answer"}
)

// pageField is the placeholder for the address on which the person confirms a booking, as plan.FieldPage names it.
const pageField = "conferma"

func buttonName(at string, i int) string { return fmt.Sprintf("%s.buttons[%d]", at, i) }

// draftFields returns the names of all fields in a sequence's form.
func draftFields(f *view.Form) []string {
	all := []string{"name", "purpose", "for_bookings", "booking", "booking_new", "id_sessione", "if_running", "stop_on_reply", "track_links", "steps"}
	for i := range stepCount(f) {
		for _, part := range stepParts {
			all = append(all, stepName(i)+part)
		}
	}
	for name := range f.Values {
		if strings.HasPrefix(name, "fields.") {
			all = append(all, name)
		}
	}
	return append(all, "phone")
}

func stepName(i int) string { return fmt.Sprintf("steps[%d]", i) }

// stepCount returns the number of steps in a form.
func stepCount(f *view.Form) int {
	n, err := strconv.Atoi(f.Value("count"))
	if err != nil || n < 0 {
		return 0
	}
	return min(n, puntuale.MaxSteps)
}

// draftForm returns a form that is filled with a sequence.
func draftForm(s puntuale.Sequence) *view.Form {
	f := view.NewForm("name", s.Name, "purpose", s.Purpose.String(), "if_running", string(s.IfRunning), "count", strconv.Itoa(len(s.Steps)), "booking", s.Booking)
	if s.Booking != "" {
		f.Values.Set("for_bookings", "on")
	}
	if s.Session != 0 {
		f.Values.Set("id_sessione", s.Session.String())
	}
	if s.StopOnReply {
		f.Values.Set("stop_on_reply", "on")
	}
	f.Values.Set("track_links", linkWord(s.TrackLinks.Choice()))
	for i, step := range s.Steps {
		fillStep(f, i, step)
	}
	return f
}

func fillStep(f *view.Form, i int, s puntuale.Step) {
	set := func(part, value string) {
		if value != "" {
			f.Values.Set(stepName(i)+part, value)
		}
	}
	set(".kind", kindOf(s))
	set(".text", s.Text)
	set(".media", s.Media)
	set(".media_name", s.MediaName)
	set(".latitude", degrees(s.Latitude))
	set(".longitude", degrees(s.Longitude))
	set(".template", s.Template)
	fillVariants(set, s)
	set(".on_uncertain", string(s.OnUncertain))
	set(".id", s.ID)
	for _, status := range s.OnlyIf {
		f.Values.Add(stepName(i)+".only_if", status)
	}
	for n, b := range s.Buttons {
		f.Values.Set(buttonName(stepName(i), n)+".label", b.Label)
		f.Values.Set(buttonName(stepName(i), n)+".does", string(b.Does))
		set(strings.TrimPrefix(buttonName(stepName(i), n), stepName(i))+".payload", b.Payload)
	}
	view.FillInteractive(f, stepName(i)+".", s.Interactive)
	t := s.Timing
	direction, amount, unit := string(t.Offset.Direction), strconv.Itoa(t.Offset.Amount), string(t.Offset.Unit)
	if t.Offset.Amount == 0 {
		direction, amount, unit = "at", "", firstText(unit, string(puntuale.Days))
		if puntuale.BookingAnchor(t.Anchor) && t.At == "" {
			direction = t.Anchor
		} else if puntuale.BookingAnchor(t.Anchor) { // the step leaves on the day of the change, at a time of day
			direction, amount = string(puntuale.After), "0"
		} else if t.At != "" && (t.Anchor == puntuale.AnchorStart || t.Anchor == "") { // the step leaves on the day of the start, at a time of day
			direction, amount = string(puntuale.After), "0"
		} else if t.Anchor == puntuale.AnchorStart || t.Anchor == "" {
			direction = "now"
		} else if t.Offset.Direction == puntuale.Before { // keep the direction, because the message must still leave before its date
			direction, amount = string(puntuale.Before), "0"
		}
	}
	set(".timing.offset.direction", firstText(direction, string(puntuale.After)))
	set(".timing.offset.amount", amount)
	set(".timing.offset.unit", unit)
	set(".timing.anchor", firstText(t.Anchor, puntuale.AnchorStart))
	set(".timing.at", t.At)
	if t.IfPast != puntuale.PastSkip { // for the most usual setting, the form contains no value
		set(".timing.if_past", string(t.IfPast))
	}
	if w := t.Window; w != nil {
		for _, day := range w.Weekdays {
			f.Values.Add(stepName(i)+".timing.window.weekdays", strconv.Itoa(day))
		}
		set(".timing.window.from", w.From)
		set(".timing.window.to", w.To)
		if w.Holidays == puntuale.HolidaysAvoid {
			set(".timing.window.holidays", "on")
		}
	}
	if t.Jitter > 0 {
		n, unit := t.Jitter, puntuale.Seconds
		if n%60 == 0 {
			n, unit = n/60, puntuale.Minutes
		}
		set(".timing.jitter", strconv.Itoa(n))
		set(".timing.jitter_unit", string(unit))
	}
	if v := t.ValidFor; v != nil {
		set(".timing.valid_for.amount", strconv.Itoa(v.Amount))
		set(".timing.valid_for.unit", string(v.Unit))
	}
}

// kindOf returns the form's value for the kind of a step's content.
func kindOf(s puntuale.Step) string {
	switch {
	case s.Template != "":
		return "template"
	case s.Media != "":
		return "media"
	case s.Latitude != nil || s.Longitude != nil:
		return "location"
	}
	return "text"
}

func firstText(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func degrees(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'f', -1, 64)
}

// readDraft reads a sequence from its form. A field that cannot be read is a fault.
func readDraft(f *view.Form) control.NewSequence {
	r := control.NewSequence{Name: strings.TrimSpace(f.Value("name")), Purpose: f.Value("purpose"), Session: f.Value("id_sessione")}
	if forBookings(f) { // what does not apply to bookings is hidden, and not read
		r.Booking = firstText(mainDate(f), " ") // a blank name is a fault, while an empty one means an ordinary sequence
	} else {
		r.IfRunning, r.StopOnReply = f.Value("if_running"), f.Is("stop_on_reply", "on")
	}
	switch f.Value("track_links") {
	case "yes":
		r.TrackLinks = new(true)
	case "no":
		r.TrackLinks = new(false)
	}
	for i := range stepCount(f) {
		s := stepReader{f: f, at: stepName(i), faults: &r.Faults}
		r.Steps = append(r.Steps, s.step())
	}
	return r
}

// linkWord returns the value of the field that says whether links are tracked.
func linkWord(on *bool) string {
	switch {
	case on == nil:
		return ""
	case *on:
		return "yes"
	}
	return "no"
}

// forBookings reports whether the form's sequence is for bookings.
func forBookings(f *view.Form) bool { return f.Is("for_bookings", "on") }

// mainDate returns the main date field that the form names. The value "+" means a new field, as in [stepReader.anchor].
func mainDate(f *view.Form) string {
	if name := strings.TrimSpace(f.Value("booking")); name != "+" {
		return name
	}
	return strings.Trim(f.Value("booking_new"), "{} ")
}

// stepReader reads one step of a form.
type stepReader struct {
	f      *view.Form
	at     string
	faults *[]puntuale.Fault
}

func (s stepReader) text(part string) string { return s.f.Value(s.at + part) }
func (s stepReader) word(part string) string { return strings.TrimSpace(s.text(part)) }

func (s stepReader) refuse(part string, code puntuale.ReasonCode) {
	*s.faults = append(*s.faults, puntuale.Fault{Location: "body." + s.at + part, Code: code})
}

func (s stepReader) number(part string) int {
	text := s.word(part)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		s.refuse(part, puntuale.FaultNotWhole)
	}
	return n
}

func (s stepReader) degrees(part string) *float64 {
	text := strings.Replace(s.word(part), ",", ".", 1)
	if text == "" {
		return nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.refuse(part, puntuale.FaultNotNumber)
	}
	return &x
}

// bothDegrees matches a location in the form in which maps copy it, such as "45.07031, 7.68657".
var bothDegrees = regexp.MustCompile(`^\s*(-?\d+\.\d+)\s*[,;]\s*(-?\d+\.\d+)\s*$`)

func (s stepReader) step() puntuale.Step {
	step := puntuale.Step{ID: s.word(".id"), OnUncertain: puntuale.OnUncertain(s.word(".on_uncertain"))}
	if forBookings(s.f) {
		step.OnlyIf = s.f.Values[s.at+".only_if"]
	}
	kind := s.word(".kind")
	if kind != "template" {
		step.Text = s.text(".text")
	}
	switch kind {
	case "media":
		step.Media, step.MediaName = s.media(".")
	case "location":
		step.Latitude, step.Longitude = s.location(".")
	case "template":
		if step.Template = s.word(".template"); step.Template == "" {
			s.refuse(".template", puntuale.FaultRequired)
		}
	}
	step.Variants = s.variants(step)
	if view.OffersButtons(s.f, s.at+".") {
		step.Buttons = s.buttons()
	}
	step.Interactive = view.InteractiveIn(s.f, s.at+".")
	step.Timing = s.timing()
	return step
}

// buttons reads the buttons that have a label. It moves them together, so that each keeps the place that faults name.
func (s stepReader) buttons() (all []puntuale.StepButton) {
	for i := range puntuale.MaxStepButtons {
		name := strings.TrimPrefix(buttonName(s.at, i), s.at)
		b := puntuale.StepButton{Label: s.word(name + ".label"), Does: puntuale.ButtonEffect(s.word(name + ".does")), Payload: s.text(name + ".payload")}
		if b.Label == "" {
			continue
		}
		if !forBookings(s.f) {
			b.Does = puntuale.ButtonAnswers
		}
		all = append(all, b)
	}
	for i := range puntuale.MaxStepButtons {
		var b puntuale.StepButton
		if i < len(all) {
			b = all[i]
		}
		s.f.Values.Set(buttonName(s.at, i)+".label", b.Label)
		s.f.Values.Set(buttonName(s.at, i)+".does", string(b.Does))
		s.f.Values.Set(buttonName(s.at, i)+".payload", b.Payload)
	}
	return all
}

// media reads the address and the name of a file. before is the prefix of the fields' names.
func (s stepReader) media(before string) (address, name string) {
	if address = s.word(before + "media"); address == "" {
		s.refuse(before+"media", puntuale.FaultRequired)
	}
	return address, s.word(before + "media_name")
}

// location reads a location from two fields. A person may paste both numbers, as a map shows them, into the first
// field. In this case the second field is ignored.
func (s stepReader) location(before string) (latitude, longitude *float64) {
	if m := bothDegrees.FindStringSubmatch(s.text(before + "latitude")); m != nil {
		s.f.Values.Set(s.at+before+"latitude", m[1])
		s.f.Values.Set(s.at+before+"longitude", m[2])
	}
	latitude, longitude = s.degrees(before+"latitude"), s.degrees(before+"longitude")
	if latitude == nil && longitude == nil {
		s.refuse(before+"latitude", puntuale.FaultRequired)
	}
	return latitude, longitude
}

func (s stepReader) timing() puntuale.Timing {
	t := puntuale.Timing{Anchor: puntuale.AnchorStart, IfPast: puntuale.IfPast(s.word(".timing.if_past")), Window: s.window()}
	unit, direction := puntuale.Unit(s.word(".timing.offset.unit")), s.word(".timing.offset.direction")
	switch {
	case puntuale.BookingAnchor(direction):
		t.Anchor = direction
		return s.readFurther(t)
	case direction == "now":
		return s.readFurther(t)
	}
	t.Anchor = s.anchor()
	if direction == "at" || direction == "" {
		if t.Anchor == puntuale.AnchorStart {
			return s.readFurther(t)
		}
		t.Offset = puntuale.Offset{Unit: puntuale.Days, Direction: puntuale.After}
	} else {
		t.Offset = puntuale.Offset{Amount: s.number(".timing.offset.amount"), Unit: unit, Direction: puntuale.Direction(direction)}
		if s.word(".timing.offset.amount") == "" {
			s.refuse(".timing.offset.amount", puntuale.FaultRequired)
		}
	}
	switch t.Offset.Unit {
	case puntuale.Days, puntuale.Weeks, puntuale.Months: // with other units, the form shows no time of day
		t.At = s.word(".timing.at")
	}
	return s.readFurther(t)
}

// readFurther reads the rarely used settings of a step's timing.
func (s stepReader) readFurther(t puntuale.Timing) puntuale.Timing {
	t.Jitter = s.number(".timing.jitter")
	if puntuale.Unit(s.word(".timing.jitter_unit")) == puntuale.Minutes && t.Jitter >= 0 && t.Jitter < puntuale.MaxJitter {
		t.Jitter *= 60
	}
	if s.word(".timing.valid_for.amount") != "" {
		t.ValidFor = &puntuale.Validity{Amount: s.number(".timing.valid_for.amount"), Unit: puntuale.Unit(s.word(".timing.valid_for.unit"))}
	}
	return t
}

// anchor returns the anchor of a step. The value "+" means a new field of the sequence. The form's field
// ".timing.anchor_new" contains the name of the new field.
func (s stepReader) anchor() string {
	anchor := s.word(".timing.anchor")
	if anchor != "+" {
		return firstText(anchor, puntuale.AnchorStart)
	}
	name := strings.Trim(s.word(".timing.anchor_new"), "{} ")
	if name == "" {
		s.refuse(".timing.anchor_new", puntuale.FaultRequired)
		return puntuale.AnchorStart
	}
	return name
}

func (s stepReader) window() *puntuale.Window { return page.ReadWindow(s.f, s.at+".timing.window") }

// A removed step stays in the form, under the name Gone, so that the person can restore it.
const (
	fresh    = -1 // in an order of steps, this number stands for a new step
	restored = -2 // in an order of steps, this number stands for the removed step, which is restored
)

// change changes a form's steps. do is the value of the pressed button, such as "add", "remove:2", "restore", "copy:2"
// or "move:2:0". change returns the number of the step that gets the focus, or -1.
func change(f *view.Form, do string) int {
	verb, rest, _ := strings.Cut(do, ":")
	first, second, _ := strings.Cut(rest, ":")
	n := stepCount(f)
	from, err := strconv.Atoi(first)
	to, errTo := strconv.Atoi(second)
	order := make([]int, 0, n+1)
	for i := range n {
		order = append(order, i)
	}
	at := -1
	switch {
	case verb == "add" && n < puntuale.MaxSteps:
		at = n
		order = append(order, fresh)
	case verb == "restore" && n < puntuale.MaxSteps && f.Value(Gone) != "":
		place, err := strconv.Atoi(f.Value(Gone))
		if err != nil {
			return -1
		}
		at = min(max(place, 0), n)
		order = slices.Insert(order, at, restored)
	case err != nil || from < 0 || from >= n:
		return -1
	case verb == "remove":
		order = slices.Delete(order, from, from+1)
		f.Values.Set(Gone, strconv.Itoa(from))
		for _, part := range stepParts[1:] {
			f.Values[Gone+part] = f.Values[stepName(from)+part]
		}
		at = min(from, n-2)
	case verb == "copy" && n < puntuale.MaxSteps:
		at = from + 1
		order = slices.Insert(order, at, from)
	case verb == "move" && errTo == nil && to >= 0 && to < n:
		at = to
		order = slices.Insert(slices.Delete(order, from, from+1), to, from)
	}
	arrange(f, order)
	return at
}

// arrange changes the order of a form's steps.
func arrange(f *view.Form, order []int) {
	old := f.Values
	back := slices.Contains(order, restored)
	f.Values = url.Values{}
	for name, values := range old {
		if !strings.HasPrefix(name, "steps[") && (!back || !strings.HasPrefix(name, Gone)) {
			f.Values[name] = values
		}
	}
	f.Values.Set("count", strconv.Itoa(len(order)))
	named := map[string]bool{}
	for i, from := range order {
		if from == fresh {
			fillStep(f, i, puntuale.Step{Timing: puntuale.Timing{Anchor: puntuale.AnchorStart, Offset: puntuale.Offset{Amount: 1, Unit: puntuale.Days, Direction: puntuale.After}}})
			continue
		}
		source := Gone
		if from != restored {
			source = stepName(from)
		}
		for _, part := range stepParts[1:] {
			if values := old[source+part]; len(values) > 0 {
				f.Values[stepName(i)+part] = slices.Clone(values)
			}
		}
		if id := f.Value(stepName(i) + ".id"); id != "" && named[id] { // a copy is another step
			f.Values.Del(stepName(i) + ".id")
		} else {
			named[id] = true
		}
	}
}

// samples returns the fields of the example person.
func samples(values url.Values) map[string]string {
	fields := map[string]string{}
	for name, all := range values {
		if name, ok := strings.CutPrefix(name, "fields."); ok && len(all) > 0 {
			fields[name] = view.Picked(all[0])
		}
	}
	return fields
}
