package plan

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"puntuale"
)

// Codes of the faults in this file.
const (
	faultMustBeOneOf                  puntuale.ReasonCode = "fault.must_be_one_of"
	faultMustBeSeconds                puntuale.ReasonCode = "fault.must_be_seconds"
	faultMustBeUnits                  puntuale.ReasonCode = "fault.must_be_units"
	faultSequenceAnchor               puntuale.ReasonCode = "sequence.anchor"
	faultSequenceAtNeedsDays          puntuale.ReasonCode = "sequence.at_needs_days"
	faultSequenceBeforeNeedsDate      puntuale.ReasonCode = "sequence.before_needs_date"
	faultSequenceBeforeOrAfter        puntuale.ReasonCode = "sequence.before_or_after"
	faultSequenceDegrees              puntuale.ReasonCode = "sequence.degrees"
	faultSequenceFallbackBraces       puntuale.ReasonCode = "sequence.fallback_braces"
	faultSequenceFallbackTooLong      puntuale.ReasonCode = "sequence.fallback_too_long"
	faultSequenceLatitudeAndLongitude puntuale.ReasonCode = "sequence.latitude_and_longitude"
	faultSequenceLongerWithFields     puntuale.ReasonCode = "sequence.longer_with_fields"
	faultSequenceNoSteps              puntuale.ReasonCode = "sequence.no_steps"
	faultSequenceTemplateAlone        puntuale.ReasonCode = "sequence.template_alone"
	faultSequenceTooManySteps         puntuale.ReasonCode = "sequence.too_many_steps"
)

// offsetLimits contains the largest offset of each unit, between sixty and a hundred years. An anchor may be a
// birthday, so only a start can check that the due time is within the horizon.
var offsetLimits = map[puntuale.Unit]int{
	puntuale.Seconds: 2_000_000_000,
	puntuale.Minutes: 52_596_000,
	puntuale.Hours:   876_600,
	puntuale.Days:    36_525,
	puntuale.Weeks:   5_218,
	puntuale.Months:  1_200,
}

// validityLimits contains the largest validity of each unit, which is five years.
var validityLimits = map[puntuale.Unit]int{
	puntuale.Seconds: 157_788_000,
	puntuale.Minutes: 2_629_800,
	puntuale.Hours:   43_830,
	puntuale.Days:    1_827,
	puntuale.Weeks:   261,
	puntuale.Months:  60,
}

const unitWords = "seconds, minutes, hours, days, weeks, months"

// Check returns all faults of a sequence that do not depend on a start. Locations are those of the request's body, such
// as "body.steps[2].timing.at". If there are no faults, [Build] accepts the sequence. extensions are the allowed
// extensions of media files; empty means DefaultMediaExtensions.
//
// Check is for sequences that are about to be stored, and may become stricter in later versions. Build plans a stored
// sequence without Check. An earlier version accepted steps that are due before the start. Build can still plan such
// steps.
func Check(s puntuale.Sequence, extensions ...string) []puntuale.Fault {
	c := checker{extensions: extensions}
	if len(extensions) == 0 {
		c.extensions = DefaultMediaExtensions
	}
	c.name("body.name", s.Name)
	if _, err := puntuale.ParseIfRunning(string(s.IfRunning)); err != nil {
		c.add("body.if_running", faultMustBeOneOf, string(s.IfRunning), "allow, skip, restart, reject")
	}
	switch n := len(s.Steps); {
	case n == 0:
		c.add("body.steps", faultSequenceNoSteps, nil)
	case n > puntuale.MaxSteps:
		c.add("body.steps", faultSequenceTooManySteps, nil, strconv.Itoa(n), strconv.Itoa(puntuale.MaxSteps))
		return c.faults // if there are too many steps, they are not checked
	}
	c.booking(&s)
	for i := range s.Steps {
		c.where = stepLocation("body.", i, "")
		if len(s.Steps[i].Variants) > 0 {
			c.variants(&s.Steps[i])
		}
		for text := range s.Steps[i].Texts() {
			if c.variant == puntuale.MaxVariants {
				break // so many are a fault
			}
			if len(s.Steps[i].Variants) > 0 {
				c.variant++
			}
			c.content(text)
		}
		c.variant = 0
		c.timing(&s.Steps[i].Timing)
		c.onlyIf(&s.Steps[i])
	}
	return c.faults
}

// CheckContent returns all faults in the content of a step or a template, before rendering. Their locations begin with
// location. extensions has the same meaning as in [Check].
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
	where      string // location of the current step
	variant    int    // the variant of the step whose content is checked, from 1; 0: the step has none
	bookings   bool   // true: the sequence is for bookings
	alone      bool   // true: the content belongs to a template and not to a step, so it must not use a template itself
	faults     []puntuale.Fault
}

func (c *checker) add(location string, code puntuale.ReasonCode, value any, args ...string) {
	c.faults = append(c.faults, puntuale.Because(code, args...).At(location, value))
}

// addCode adds a fault in a part of the current step.
func (c *checker) addCode(part string, code puntuale.ReasonCode, value any, args ...string) {
	c.addReason(part, puntuale.Because(code, args...), value)
}

// addReason adds a fault with this reason in a part of the current step.
func (c *checker) addReason(part string, reason puntuale.Reason, value any) {
	if part = variantPart(c.variant, part); part != "" {
		part = "." + part
	}
	fault := reason.At(c.where+part, value)
	if c.variant == 0 || !reported(c.faults, fault) {
		c.faults = append(c.faults, fault)
	}
}

func (c *checker) name(location, name string) {
	switch {
	case isBlank(name):
		c.add(location, puntuale.FaultRequired, nil)
	case tooLong(name, puntuale.MaxName):
		c.add(location, puntuale.FaultLongerThanCharacters, nil, strconv.Itoa(puntuale.MaxName))
	case hasNUL(name):
		c.add(location, faultMustNotHoldNUL, nil)
	}
}

func (c *checker) content(step *puntuale.Step) {
	hasMedia, hasLocation := !isBlank(step.Media), step.Latitude != nil || step.Longitude != nil
	fixedMedia := hasMedia && !strings.Contains(step.Media, "{{")
	c.template("text", step.Text, textLimit(fixedMedia, step, withoutFields(step)))
	c.stepButtons(step, hasMedia, hasLocation)
	c.stepInteractive(step, hasMedia, hasLocation)
	if fixedMedia { // the length of the whole address is checked below
		c.template("media", step.Media, puntuale.MaxRawText)
	} else {
		c.template("media", step.Media, puntuale.MaxURL)
	}
	c.template("media_name", step.MediaName, puntuale.MaxMediaName)
	if fixedMedia && !strings.Contains(step.MediaName, "{{") {
		if fault := mediaFault(strings.TrimSpace(step.Media), strings.TrimSpace(step.MediaName), c.extensions); !fault.IsZero() {
			c.addReason("media", fault, clip(step.Media))
		}
	}
	if hasLocation {
		c.location(step)
	}
	if step.Template != "" {
		c.name(c.where+"."+variantPart(c.variant, "template"), step.Template)
	}
	switch step.OnUncertain {
	case "", puntuale.UncertainNever, puntuale.UncertainResend:
	default:
		c.addCode("on_uncertain", faultMustBeOneOf, string(step.OnUncertain), "never, resend")
	}
	switch {
	case step.Template != "" && (!isBlank(step.Text) || hasMedia || hasLocation):
		c.addCode("template", faultSequenceTemplateAlone, nil)
	case hasLocation && hasMedia:
		c.addCode("media", puntuale.FaultSequenceMediaWithLocation, nil)
	case c.alone && isBlank(step.Text) && !hasMedia && !hasLocation:
		c.addCode("", puntuale.FaultSequenceNothingToShow, nil)
	case step.Template == "" && isBlank(step.Text) && !hasMedia && !hasLocation:
		c.addCode("", puntuale.FaultSequenceNothingToShowOrTemplate, nil)
	}
}

// template checks the placeholders of a text, and the length of the text without them.
func (c *checker) template(part, text string, limit int) {
	if hasNUL(text) {
		c.addCode(part, faultMustNotHoldNUL, nil)
	}
	if tooLong(text, puntuale.MaxRawText) {
		c.addCode(part, faultSequenceLongerWithFields, nil, strconv.Itoa(puntuale.MaxRawText))
		return
	}
	literal := 0
	for s := scan(text); s.next(); {
		literal += utf8.RuneCountInString(s.literal)
		if !s.fault.IsZero() {
			c.addReason(part, s.fault, nil)
		}
		if s.fault.IsZero() && strings.ContainsAny(s.field.fallback, "{}") {
			c.addCode(part, faultSequenceFallbackBraces, clip(s.field.fallback), s.field.name)
		}
		if tooLong(s.field.fallback, puntuale.MaxField) {
			c.addCode(part, faultSequenceFallbackTooLong, nil, strconv.Itoa(puntuale.MaxField))
		}
	}
	if literal > limit {
		c.addCode(part, puntuale.FaultLongerThanCharacters, nil, strconv.Itoa(limit))
	}
}

func (c *checker) location(step *puntuale.Step) {
	coordinate := func(part string, value *float64, limit float64) {
		switch {
		case value == nil:
			c.addCode(part, faultSequenceLatitudeAndLongitude, nil)
		case !(*value >= -limit && *value <= limit): // also true for NaN
			c.addCode(part, faultSequenceDegrees, *value, fmt.Sprint(-limit), fmt.Sprint(limit))
		}
	}
	coordinate("latitude", step.Latitude, 90)
	coordinate("longitude", step.Longitude, 180)
}

func (c *checker) timing(t *puntuale.Timing) {
	fromField := isFieldAnchor(t.Anchor) || puntuale.BookingAnchor(t.Anchor) && !c.bookings
	if fromField && (!IsFieldName(t.Anchor) || isReserved(t.Anchor)) {
		c.addCode("timing.anchor", faultSequenceAnchor, clip(t.Anchor))
	}
	c.offset(t.Offset, fromField)
	if t.At != "" {
		c.timeOfDay(t)
	}
	for _, f := range t.Window.Check() {
		c.addReason("timing.window."+f.Location, f.Reason(), f.Value)
	}
	if t.Jitter < 0 || t.Jitter > puntuale.MaxJitter {
		c.addCode("timing.jitter", faultMustBeSeconds, t.Jitter, "0", strconv.Itoa(puntuale.MaxJitter))
	}
	switch t.IfPast {
	case "", puntuale.PastSkip, puntuale.PastSend, puntuale.PastReject:
	default:
		c.addCode("timing.if_past", faultMustBeOneOf, string(t.IfPast), "skip, send_now, reject")
	}
	if v := t.ValidFor; v != nil {
		limit, known := validityLimits[v.Unit]
		if !known {
			c.addCode("timing.valid_for.unit", faultMustBeOneOf, string(v.Unit), unitWords)
		} else if v.Amount < 1 || v.Amount > limit {
			c.addReason("timing.valid_for.amount", amountReason(1, limit, v.Unit), v.Amount)
		}
	}
}

func (c *checker) offset(o puntuale.Offset, fromField bool) {
	limit, known := offsetLimits[o.Unit]
	switch {
	case o.Unit == "" && o.Amount != 0:
		c.addCode("timing.offset.unit", puntuale.FaultRequired, nil)
	case !known && o.Unit != "":
		c.addCode("timing.offset.unit", faultMustBeOneOf, string(o.Unit), unitWords)
	case known && (o.Amount < 0 || o.Amount > limit):
		c.addReason("timing.offset.amount", amountReason(0, limit, o.Unit), o.Amount)
	}
	switch o.Direction {
	case puntuale.After:
	case puntuale.Before:
		if !fromField {
			c.addCode("timing.offset.direction", faultSequenceBeforeNeedsDate, string(o.Direction))
		}
	case "":
		if fromField && o.Amount != 0 {
			c.addCode("timing.offset.direction", faultSequenceBeforeOrAfter, nil)
		}
	default:
		c.addCode("timing.offset.direction", faultSequenceBeforeOrAfter, string(o.Direction))
	}
}

// amountReason returns the reason that contains the smallest and the largest amount of a unit.
func amountReason(least, maximum int, unit puntuale.Unit) puntuale.Reason {
	if unit == puntuale.Seconds {
		return puntuale.Because(faultMustBeSeconds, strconv.Itoa(least), strconv.Itoa(maximum))
	}
	return puntuale.Because(faultMustBeUnits, strconv.Itoa(least), strconv.Itoa(maximum), string(unit))
}

func (c *checker) timeOfDay(t *puntuale.Timing) {
	if _, err := puntuale.ParseTimeOfDay(t.At); err != nil {
		c.addCode("timing.at", puntuale.FaultMustBeTime, clip(t.At))
	}
	if _, short := elapsed(t.Offset.Unit); short {
		c.addCode("timing.at", faultSequenceAtNeedsDays, t.At)
	}
}
