package plan

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"puntuale"
)

// The most an offset may amount to, sixty to a hundred years. Only a start shows whether the moment lies within the
// horizon: a date field may be a birthday.
var offsetLimits = map[puntuale.Unit]int{
	puntuale.Seconds: 2_000_000_000,
	puntuale.Minutes: 52_596_000,
	puntuale.Hours:   876_600,
	puntuale.Days:    36_525,
	puntuale.Weeks:   5_218,
	puntuale.Months:  1_200,
}

// The most a validity may amount to, five years.
var validityLimits = map[puntuale.Unit]int{
	puntuale.Seconds: 157_788_000,
	puntuale.Minutes: 2_629_800,
	puntuale.Hours:   43_830,
	puntuale.Days:    1_827,
	puntuale.Weeks:   261,
	puntuale.Months:  60,
}

const unitWords = "must be one of seconds, minutes, hours, days, weeks, months"

// Check returns everything that is wrong with a sequence as written, whatever a start may bring. Faults are located as
// in the body that brought the sequence ("body.steps[2].timing.at"). Without faults, [Build] takes it. extensions are
// the allowed media files, none meaning DefaultMediaExtensions.
//
// Check is for what is about to be stored, and may become stricter: Build plans sequences as they were stored, and does
// not repeat it. So a step before the start, stored when that was allowed, still has its moment in the past.
func Check(s puntuale.Sequence, extensions ...string) []puntuale.Fault {
	c := checker{extensions: extensions}
	if len(extensions) == 0 {
		c.extensions = DefaultMediaExtensions
	}
	c.name("body.name", s.Name)
	if _, err := puntuale.ParseIfRunning(string(s.IfRunning)); err != nil {
		c.add("body.if_running", "must be one of allow, skip, restart, reject", string(s.IfRunning))
	}
	switch n := len(s.Steps); {
	case n == 0:
		c.add("body.steps", "must hold at least one step", nil)
	case n > puntuale.MaxSteps:
		c.add("body.steps", fmt.Sprintf("holds %d steps, of at most %d", n, puntuale.MaxSteps), nil)
		return c.faults // the steps of a sequence with too many are not checked
	}
	for i := range s.Steps {
		c.where = stepLocation("body.", i, "")
		c.content(&s.Steps[i])
		c.timing(&s.Steps[i].Timing)
	}
	return c.faults
}

// CheckContent returns everything that is wrong with what a step or a template shows as it is written, located below
// location. extensions are as in [Check].
func CheckContent(location string, step puntuale.Step, extensions ...string) []puntuale.Fault {
	c := checker{extensions: extensions, where: location, alone: true}
	if len(extensions) == 0 {
		c.extensions = DefaultMediaExtensions
	}
	c.content(&step)
	return c.faults
}

// checker collects faults.
type checker struct {
	extensions []string
	where      string // the present step
	alone      bool   // the content is no step's, and names no template
	faults     []puntuale.Fault
}

func (c *checker) add(location, message string, value any) {
	c.faults = append(c.faults, puntuale.Fault{Location: location, Message: message, Value: value})
}

// at adds a fault of a part of the present step.
func (c *checker) at(part, message string, value any) {
	if part != "" {
		part = "." + part
	}
	c.add(c.where+part, message, value)
}

func (c *checker) name(location, name string) {
	switch {
	case isBlank(name):
		c.add(location, "is required", nil)
	case tooLong(name, puntuale.MaxName):
		c.add(location, tooLongText(puntuale.MaxName), nil)
	case hasNUL(name):
		c.add(location, "must not hold a NUL character", nil)
	}
}

func (c *checker) content(step *puntuale.Step) {
	hasMedia, hasLocation := !isBlank(step.Media), step.Latitude != nil || step.Longitude != nil
	fixedMedia := hasMedia && !strings.Contains(step.Media, "{{")
	c.template("text", step.Text, textLimit(fixedMedia))
	if fixedMedia { // its length is looked at with the address as a whole
		c.template("media", step.Media, puntuale.MaxRawText)
	} else {
		c.template("media", step.Media, puntuale.MaxURL)
	}
	c.template("media_name", step.MediaName, puntuale.MaxMediaName)
	if fixedMedia && !strings.Contains(step.MediaName, "{{") {
		if fault := mediaFault(strings.TrimSpace(step.Media), strings.TrimSpace(step.MediaName), c.extensions); fault != "" {
			c.at("media", fault, clip(step.Media))
		}
	}
	if hasLocation {
		c.location(step)
	}
	if step.Template != "" {
		c.name(c.where+".template", step.Template)
	}
	switch step.OnUncertain {
	case "", puntuale.UncertainNever, puntuale.UncertainResend:
	default:
		c.at("on_uncertain", "must be one of never, resend", string(step.OnUncertain))
	}
	switch {
	case step.Template != "" && (!isBlank(step.Text) || hasMedia || hasLocation):
		c.at("template", "stands alone: without text, media and location", nil)
	case hasLocation && hasMedia:
		c.at("media", "cannot go with a location", nil)
	case c.alone && isBlank(step.Text) && !hasMedia && !hasLocation:
		c.at("", "has nothing to show: give text, media or a location", nil)
	case step.Template == "" && isBlank(step.Text) && !hasMedia && !hasLocation:
		c.at("", "has nothing to show: give text, media, a location or a template", nil)
	}
}

// template checks the placeholders of a text, and that what surrounds them keeps within the limit.
func (c *checker) template(part, text string, limit int) {
	if hasNUL(text) {
		c.at(part, "must not hold a NUL character", nil)
	}
	if tooLong(text, puntuale.MaxRawText) {
		c.at(part, tooLongText(puntuale.MaxRawText)+" with its placeholders", nil)
		return
	}
	literal := 0
	for s := scan(text); s.next(); {
		literal += utf8.RuneCountInString(s.literal)
		if s.fault != "" {
			c.at(part, s.fault, nil)
		}
		if s.fault == "" && strings.ContainsAny(s.field.fallback, "{}") {
			c.at(part, "{{"+s.field.name+"|…}}: a fallback holds neither { nor }", clip(s.field.fallback))
		}
		if tooLong(s.field.fallback, puntuale.MaxField) {
			c.at(part, "a fallback "+tooLongText(puntuale.MaxField), nil)
		}
	}
	if literal > limit {
		c.at(part, tooLongText(limit), nil)
	}
}

func (c *checker) location(step *puntuale.Step) {
	coordinate := func(part string, value *float64, limit float64) {
		switch {
		case value == nil:
			c.at(part, "latitude and longitude are given together", nil)
		case !(*value >= -limit && *value <= limit): // not a number fails too
			c.at(part, fmt.Sprintf("must be between %g and %g degrees", -limit, limit), *value)
		}
	}
	coordinate("latitude", step.Latitude, 90)
	coordinate("longitude", step.Longitude, 180)
}

func (c *checker) timing(t *puntuale.Timing) {
	fromField := t.Anchor != "" && t.Anchor != puntuale.AnchorStart
	if fromField && (!isFieldName(t.Anchor) || isReserved(t.Anchor)) {
		c.at("timing.anchor", "must be start or the name of a date field", clip(t.Anchor))
	}
	c.offset(t.Offset, fromField)
	if t.At != "" {
		c.timeOfDay(t)
	}
	for _, f := range t.Window.Check() {
		c.at("timing.window."+f.Location, f.Message, f.Value)
	}
	if t.Jitter < 0 || t.Jitter > puntuale.MaxJitter {
		c.at("timing.jitter", fmt.Sprintf("must be 0 to %d seconds", puntuale.MaxJitter), t.Jitter)
	}
	switch t.IfPast {
	case "", puntuale.PastSkip, puntuale.PastSend, puntuale.PastReject:
	default:
		c.at("timing.if_past", "must be one of skip, send_now, reject", string(t.IfPast))
	}
	if v := t.ValidFor; v != nil {
		limit, known := validityLimits[v.Unit]
		if !known {
			c.at("timing.valid_for.unit", unitWords, string(v.Unit))
		} else if v.Amount < 1 || v.Amount > limit {
			c.at("timing.valid_for.amount", fmt.Sprintf("must be 1 to %d %s", limit, v.Unit), v.Amount)
		}
	}
}

func (c *checker) offset(o puntuale.Offset, fromField bool) {
	limit, known := offsetLimits[o.Unit]
	switch {
	case o.Unit == "" && o.Amount != 0:
		c.at("timing.offset.unit", "is required", nil)
	case !known && o.Unit != "":
		c.at("timing.offset.unit", unitWords, string(o.Unit))
	case known && (o.Amount < 0 || o.Amount > limit):
		c.at("timing.offset.amount", fmt.Sprintf("must be 0 to %d %s", limit, o.Unit), o.Amount)
	}
	switch o.Direction {
	case puntuale.After:
	case puntuale.Before:
		if !fromField {
			c.at("timing.offset.direction", "before needs a date field as its anchor: nothing leaves before the start", string(o.Direction))
		}
	case "":
		if fromField && o.Amount != 0 {
			c.at("timing.offset.direction", "must be before or after", nil)
		}
	default:
		c.at("timing.offset.direction", "must be before or after", string(o.Direction))
	}
}

func (c *checker) timeOfDay(t *puntuale.Timing) {
	if _, err := puntuale.ParseTimeOfDay(t.At); err != nil {
		c.at("timing.at", "must be a time of day of the form HH:MM", clip(t.At))
	}
	if _, short := elapsed(t.Offset.Unit); short {
		c.at("timing.at", "goes with an offset in days, weeks or months", t.At)
	}
}
