package automation

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control/automation"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// Names of the form's fields are the locations at which control reports faults, such as "trigger.hours" or
// "actions[1].text". All words are in one text, separated by commas, and so are all tags. A mapping has rows with a
// field and a path: "map[0].field" and "map[0].path". The first row is the phone number. Fields that begin with "try."
// belong to the trial.

// rowParts contains the kinds of rows that may occur several times, with the fields of each kind.
var rowParts = map[string][]string{
	"map":               {".field", ".path"},
	"conditions.fields": {".name", ".op", ".value"},
	"actions":           {".kind", ".sequence", ".what", ".text", ".media", ".media_name", ".latitude", ".longitude", ".template", ".purpose", ".add", ".remove", ".booking", ".status", ".reference", ".silent"},
}

// maxRows is the largest number of rows of each kind.
var maxRows = map[string]int{"map": puntuale.MaxHookFields, "conditions.fields": puntuale.MaxConditionFields, "actions": puntuale.MaxActions}

// rowName returns the name of a row, such as "actions[1]".
func rowName(rows string, i int) string { return fmt.Sprintf("%s[%d]", rows, i) }

// rowCount returns the number of rows of a kind in the form.
func rowCount(f *view.Form, rows string) int {
	n, err := strconv.Atoi(f.Value(rows + ".count"))
	if err != nil {
		return 0
	}
	return min(max(n, 0), maxRows[rows])
}

func setRowCount(f *view.Form, rows string, n int) {
	f.Values.Set(rows+".count", strconv.Itoa(n))
}

// formFields returns the names of all fields in the form, in the order of the page.
func formFields(f *view.Form) []string {
	all := []string{"name", "active", "trigger.kind", "trigger.words", "trigger.first", "trigger.sequence", "trigger.hours", "trigger.is", "trigger.becomes", "trigger.booking", "trigger.repeat", "trigger.field", "trigger.preset", "trigger.map"}
	add := func(rows string) {
		all = append(all, rows)
		for i := range rowCount(f, rows) {
			all = append(all, rowName(rows, i))
			for _, part := range rowParts[rows] {
				all = append(all, rowName(rows, i)+part)
			}
		}
	}
	add("map")
	all = append(all, "conditions.tags")
	add("conditions.fields")
	all = append(all, "conditions.id_sessione", "conditions.not_in", "conditions.cooldown_hours", "conditions.booking_status", "conditions.window.weekdays", "conditions.window.from", "conditions.window.to", "conditions.window.holidays")
	add("actions")
	return all
}

// These values say which replies a rule waits for.
const (
	anyReply   = "any"
	firstReply = "first"
	wordsReply = "words"
)

// formOf returns the form of an automation.
func formOf(a puntuale.Automation) *view.Form {
	f := view.NewForm("name", a.Name)
	set := func(name, value string) {
		if value != "" {
			f.Values.Set(name, value)
		}
	}
	if a.Active {
		set("active", "on")
	}
	t, k := a.Trigger, a.Conditions
	set("trigger.kind", string(t.Kind))
	set("trigger.words", strings.Join(t.Words, ", "))
	switch {
	case t.First:
		set("trigger.first", firstReply)
	case len(t.Words) > 0:
		set("trigger.first", wordsReply)
	default:
		set("trigger.first", anyReply)
	}
	if t.Kind == puntuale.TriggerBooking {
		set("trigger.booking", string(t.Sequence))
		set("trigger.becomes", string(t.Is))
	} else {
		set("trigger.sequence", string(t.Sequence))
		set("trigger.is", string(t.Is))
	}
	set("trigger.hours", number(t.Hours))
	set("trigger.field", t.Field)
	set("trigger.repeat", string(t.Repeat))
	set("trigger.preset", string(t.Preset))
	fillMap(f, t.Map)
	set("conditions.tags", strings.Join(k.Tags, ", "))
	setRowCount(f, "conditions.fields", len(k.Fields))
	for i, c := range k.Fields {
		at := rowName("conditions.fields", i)
		set(at+".name", c.Name)
		set(at+".op", string(c.Op))
		set(at+".value", c.Value)
	}
	set("conditions.id_sessione", k.Session)
	set("conditions.not_in", string(k.NotIn))
	set("conditions.cooldown_hours", number(k.CooldownHours))
	for _, status := range k.BookingStatus {
		f.Values.Add("conditions.booking_status", status)
	}
	fillWindow(f, k.Window)
	setRowCount(f, "actions", len(a.Actions))
	for i, x := range a.Actions {
		fillAction(set, rowName("actions", i), x)
	}
	return f
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func fillMap(f *view.Form, m map[string]string) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(name string) bool { return name == phoneField })
	setRowCount(f, "map", len(names)+1)
	for i, name := range append([]string{phoneField}, names...) {
		f.Values.Set(rowName("map", i)+".field", name)
		f.Values.Set(rowName("map", i)+".path", m[name])
	}
}

// phoneField is the key in a mapping under which the path of the person's number is stored.
const phoneField = "phone"

func fillWindow(f *view.Form, w *puntuale.Window) {
	if w == nil {
		return
	}
	const at = "conditions.window"
	for _, day := range w.Weekdays {
		f.Values.Add(at+".weekdays", strconv.Itoa(day))
	}
	f.Values.Set(at+".from", w.From)
	f.Values.Set(at+".to", w.To)
	if w.Holidays == puntuale.HolidaysAvoid {
		f.Values.Set(at+".holidays", "on")
	}
}

func fillAction(set func(name, value string), at string, x puntuale.Action) {
	set(at+".kind", string(x.Kind))
	if x.Kind == puntuale.ActionBook {
		set(at+".booking", string(x.Sequence))
	} else {
		set(at+".sequence", string(x.Sequence))
	}
	set(at+".status", x.Status)
	set(at+".reference", x.Reference)
	if x.Silent {
		set(at+".silent", "on")
	}
	kind := "text"
	switch {
	case x.Template != "":
		kind = "template"
	case x.Media != "":
		kind = "media"
	case x.Latitude != nil || x.Longitude != nil:
		kind = "location"
	}
	set(at+".what", kind)
	set(at+".text", x.Text)
	set(at+".media", x.Media)
	set(at+".media_name", x.MediaName)
	set(at+".latitude", degrees(x.Latitude))
	set(at+".longitude", degrees(x.Longitude))
	set(at+".template", x.Template)
	set(at+".purpose", view.Or(x.Purpose, puntuale.PurposeService.String()))
	set(at+".add", strings.Join(x.Add, ", "))
	set(at+".remove", strings.Join(x.Remove, ", "))
}

func degrees(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'f', -1, 64)
}

// reader reads an automation from its form. A field that cannot be read is a fault.
type reader struct {
	f      *view.Form
	faults []puntuale.Fault
}

// readForm reads an automation from its form. It ignores fields that the chosen kinds do not use, because the page
// hides these fields.
func readForm(f *view.Form) automation.Draft {
	r := &reader{f: f}
	a := puntuale.Automation{Name: r.word("name"), Active: f.Is("active", "on"), Trigger: r.trigger()}
	a.Conditions = r.conditions(a.Trigger.Kind)
	for i := range rowCount(f, "actions") {
		a.Actions = append(a.Actions, r.action(rowName("actions", i)))
	}
	return automation.Draft{Automation: a, Known: page.Versions(f), Faults: r.faults}
}

func (r *reader) word(name string) string { return strings.TrimSpace(r.f.Value(name)) }

func (r *reader) refuse(name string, code puntuale.ReasonCode) {
	r.faults = append(r.faults, puntuale.Fault{Location: "body." + name, Code: code})
}

// list reads a text that commas, semicolons or line breaks separate.
func (r *reader) list(name string) (all []string) {
	for _, text := range strings.FieldsFunc(r.f.Value(name), func(c rune) bool { return c == ',' || c == ';' || c == '\n' }) {
		if text = strings.TrimSpace(text); text != "" {
			all = append(all, text)
		}
	}
	return all
}

func (r *reader) number(name string) int {
	text := r.word(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		r.refuse(name, puntuale.FaultNotWhole)
	}
	return n
}

func (r *reader) trigger() puntuale.Trigger {
	t := puntuale.Trigger{Kind: puntuale.TriggerKind(r.word("trigger.kind"))}
	sequence := func() { t.Sequence = puntuale.SequenceChoice(r.word("trigger.sequence")) }
	switch t.Kind {
	case puntuale.TriggerReply:
		switch r.word("trigger.first") {
		case firstReply:
			t.First = true
		case wordsReply:
			if t.Words = r.list("trigger.words"); len(t.Words) == 0 {
				r.refuse("trigger.words", puntuale.FaultRequired)
			}
		}
	case puntuale.TriggerReplyTo:
		sequence()
	case puntuale.TriggerNoReply:
		sequence()
		t.Hours = r.number("trigger.hours")
	case puntuale.TriggerDate:
		t.Field, t.Repeat = r.word("trigger.field"), puntuale.Repeat(r.word("trigger.repeat"))
	case puntuale.TriggerHook:
		if t.Preset = puntuale.HookPreset(r.word("trigger.preset")); t.Preset == "" {
			t.Map = r.mapping()
		}
	case puntuale.TriggerOutcome:
		sequence()
		t.Is = puntuale.OutcomeStatus(r.word("trigger.is"))
	case puntuale.TriggerBooking:
		t.Sequence, t.Is = puntuale.SequenceChoice(r.word("trigger.booking")), puntuale.OutcomeStatus(r.word("trigger.becomes"))
	}
	return t
}

// mapping reads the rows of a hook's mapping, and ignores empty rows.
func (r *reader) mapping() map[string]string {
	m := map[string]string{}
	for i := range rowCount(r.f, "map") {
		at := rowName("map", i)
		name, from := strings.Trim(r.word(at+".field"), "{} "), r.word(at+".path")
		_, twice := m[name]
		switch {
		case name == "" && from == "":
		case name == "":
			r.refuse(at+".field", puntuale.FaultRequired)
		case twice:
			r.refuse(at+".field", faultTwice)
		default:
			m[name] = from
		}
	}
	return m
}

const faultTwice puntuale.ReasonCode = "automation.field_twice"

func (r *reader) conditions(kind puntuale.TriggerKind) puntuale.Conditions {
	k := puntuale.Conditions{Tags: r.list("conditions.tags"), NotIn: puntuale.SequenceChoice(r.word("conditions.not_in")), CooldownHours: r.number("conditions.cooldown_hours")}
	if kind.Personal() {
		k.Session = r.word("conditions.id_sessione")
	}
	if kind == puntuale.TriggerBooking || kind == puntuale.TriggerHook {
		k.BookingStatus = r.f.Values["conditions.booking_status"]
	}
	if kind != puntuale.TriggerDate {
		k.Window = page.ReadWindow(r.f, "conditions.window")
	}
	for i := range rowCount(r.f, "conditions.fields") {
		at := rowName("conditions.fields", i)
		c := puntuale.FieldCondition{Name: strings.Trim(r.word(at+".name"), "{} "), Op: puntuale.FieldOperator(r.word(at + ".op"))}
		if c.Op != puntuale.FieldFilled && c.Op != puntuale.FieldEmpty {
			c.Value = r.word(at + ".value")
		}
		k.Fields = append(k.Fields, c)
	}
	return k
}

func (r *reader) action(at string) puntuale.Action {
	x := puntuale.Action{Kind: puntuale.ActionKind(r.word(at + ".kind"))}
	switch x.Kind {
	case puntuale.ActionStart, puntuale.ActionStop:
		x.Sequence = puntuale.SequenceChoice(r.word(at + ".sequence"))
	case puntuale.ActionSend:
		r.content(at, &x)
	case puntuale.ActionTag:
		x.Add, x.Remove = r.list(at+".add"), r.list(at+".remove")
	case puntuale.ActionBook:
		x.Sequence, x.Reference = puntuale.SequenceChoice(r.word(at+".booking")), r.word(at+".reference")
		if r.word("trigger.preset") == "" || r.word("trigger.kind") != string(puntuale.TriggerHook) { // otherwise the program says it
			x.Status = r.word(at + ".status")
		}
	case puntuale.ActionCancelBooking:
		x.Reference, x.Silent = r.word(at+".reference"), r.f.Is(at+".silent", "on")
	case puntuale.ActionBlacklist:
	}
	return x
}

func (r *reader) content(at string, x *puntuale.Action) {
	x.Purpose = r.word(at + ".purpose")
	kind := r.word(at + ".what")
	if kind != "template" {
		x.Text = r.f.Value(at + ".text")
	}
	switch kind {
	case "media":
		if x.Media, x.MediaName = r.word(at+".media"), r.word(at+".media_name"); x.Media == "" {
			r.refuse(at+".media", puntuale.FaultRequired)
		}
	case "location":
		if x.Latitude, x.Longitude = r.degrees(at+".latitude"), r.degrees(at+".longitude"); x.Latitude == nil && x.Longitude == nil {
			r.refuse(at+".latitude", puntuale.FaultRequired)
		}
	case "template":
		if x.Template = r.word(at + ".template"); x.Template == "" {
			r.refuse(at+".template", puntuale.FaultRequired)
		}
	}
}

func (r *reader) degrees(name string) *float64 {
	text := strings.Replace(r.word(name), ",", ".", 1)
	if text == "" {
		return nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		r.refuse(name, puntuale.FaultNotNumber)
	}
	return &x
}

// change adds or removes a row of the form. do is the value of the pressed button, such as "add:actions" or
// "remove:actions:2". change returns the name of the row that gets the focus, or "".
func change(f *view.Form, do string) string {
	verb, rest, _ := strings.Cut(do, ":")
	rows, at, _ := strings.Cut(rest, ":")
	n := rowCount(f, rows)
	switch i, err := strconv.Atoi(at); {
	case maxRows[rows] == 0:
	case verb == "add" && n < maxRows[rows]:
		setRowCount(f, rows, n+1)
		fillNew(f, rows, n)
		return rowName(rows, n)
	case verb == "remove" && err == nil && i >= 0 && i < n:
		removeRow(f.Values, rows, i, n)
		setRowCount(f, rows, n-1)
	}
	return ""
}

// fillNew sets the first values of a new row.
func fillNew(f *view.Form, rows string, i int) {
	switch rows {
	case "actions":
		fillAction(f.Values.Set, rowName(rows, i), puntuale.Action{Kind: puntuale.ActionSend})
	case "conditions.fields":
		f.Values.Set(rowName(rows, i)+".op", string(puntuale.FieldEqual))
	}
}

// removeRow removes row i of n rows, and moves each later row one place back.
func removeRow(values url.Values, rows string, i, n int) {
	for ; i < n; i++ {
		for _, part := range rowParts[rows] {
			delete(values, rowName(rows, i)+part)
			if next, found := values[rowName(rows, i+1)+part]; found && i+1 < n {
				values[rowName(rows, i)+part] = next
			}
		}
	}
}
