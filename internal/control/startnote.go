package control

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/keyword"
	"puntuale/internal/plan"
)

// reasonDatePassed: the sequence counts from a date that has passed, and none of its messages leaves in time.
const reasonDatePassed puntuale.ReasonCode = "sequence.date_passed"

// passedDates returns a warning for each date field that has passed, if no message leaves at the time that the date
// gives. Otherwise, for example, a sequence would confirm an appointment of last year. Without messages, the list of
// skipped steps says enough.
func passedDates(in plan.Input, p plan.Plan) (warnings []puntuale.SkippedStep) {
	if len(p.Messages) == 0 {
		return nil
	}
	seen := map[string]bool{"": true, puntuale.AnchorStart: true}
	for i, step := range in.Sequence.Steps {
		name := step.Timing.Anchor
		if seen[name] {
			continue
		}
		seen[name] = true
		m, err := plan.ParseMoment(strings.TrimSpace(in.Fields[name].Text))
		if err != nil {
			continue
		}
		at, ends := m.At(plan.DefaultTime, in.Location), m.At(24*time.Hour, in.Location) // a day without a time passes at its end
		if m.HasTime {
			ends = at
		}
		inTime := slices.ContainsFunc(p.Messages, func(message puntuale.PlannedMessage) bool {
			return in.Sequence.Steps[message.Step].Timing.Anchor == name && !message.Desired.Before(in.Now)
		})
		if ends.Before(in.Now) && !inTime {
			warnings = append(warnings, puntuale.SkippedStep{Step: i, Moment: at, Reason: puntuale.Because(reasonDatePassed, name)})
		}
	}
	return warnings
}

// Limits of the search for misspelled names in a body.
const (
	maxUnused     = 20  // names in the answer
	maxCompared   = 200 // members of the body, and fields of the sequence
	maxComparable = 100 // bytes of a name
)

// reserved are the members of calls that are not fields of a sequence.
var reserved = map[string]bool{"phone": true, "timezone": true, "reference": true, "id_sessione": true, "name": true, "purpose": true, "template": true,
	"valid_for": true, "latitude": true, "longitude": true, "text": true, "media": true, "media_name": true, "date": true}

// unusedMembers returns the members of the body that no step uses, but whose name is close to a field that the body
// leaves out. Such a member is probably misspelled.
func unusedMembers(s puntuale.Sequence, body map[string]json.RawMessage) (unused []string) {
	known, missing := map[string]bool{}, []string(nil)
	for _, field := range plan.Fields(s) {
		known[field.Name] = true
		if _, given := body[field.Name]; !given && len(missing) < maxCompared {
			missing = append(missing, keyword.Fold(field.Name))
		}
	}
	if len(missing) == 0 || len(body) > maxCompared {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(body)) {
		folded := keyword.Fold(name)
		if known[name] || reserved[name] || len(name) > maxComparable || len(unused) == maxUnused {
			continue
		}
		if slices.ContainsFunc(missing, func(field string) bool { return near(folded, field) }) {
			unused = append(unused, name)
		}
	}
	return unused
}

// near reports whether two folded names differ by separators, or by one typing error: a letter more, less or wrong,
// or two letters in the wrong order. In names of fewer than four letters, a typing error makes another name.
func near(a, b string) bool {
	letters := func(s string) []rune {
		return []rune(strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(s))
	}
	x, y := letters(a), letters(b)
	if slices.Equal(x, y) {
		return true
	}
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(x) < 4 || len(y)-len(x) > 1 {
		return false
	}
	i := 0
	for i < len(x) && x[i] == y[i] {
		i++
	}
	if len(x) < len(y) {
		return slices.Equal(x[i:], y[i+1:])
	}
	return slices.Equal(x[i+1:], y[i+1:]) || i+1 < len(x) && x[i] == y[i+1] && x[i+1] == y[i] && slices.Equal(x[i+2:], y[i+2:])
}

// isBlacklisted reports whether the person is on the blacklist, under any name. Then a start succeeds, but no message
// leaves while the person is on the list.
func (c *Client) isBlacklisted(ctx context.Context, phone string) (bool, error) {
	listed, err := c.BlacklistedAmong(ctx, phone)
	return listed[phone], err
}
