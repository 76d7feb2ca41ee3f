package plan

import (
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/keyword"
)

// Codes of the faults in this file.
const (
	faultButtonsWithLocation puntuale.ReasonCode = "buttons.with_location"
	faultButtonsWithoutText  puntuale.ReasonCode = "buttons.without_text"
	faultButtonLabel         puntuale.ReasonCode = "buttons.label"
	faultButtonTwice         puntuale.ReasonCode = "buttons.twice"
	faultButtonOutside       puntuale.ReasonCode = "buttons.outside_bookings"
)

// stepButtons checks the buttons of a step.
func (c *checker) stepButtons(step *puntuale.Step, hasMedia, hasLocation bool) {
	switch {
	case len(step.Buttons) == 0:
		return
	case len(step.Buttons) > puntuale.MaxStepButtons:
		c.addCode("buttons", puntuale.FaultMoreEntries, nil, strconv.Itoa(puntuale.MaxStepButtons))
		return
	case hasLocation:
		c.addCode("buttons", faultButtonsWithLocation, nil)
	case isBlank(step.Text) && (hasMedia || step.Template == ""):
		c.addCode("buttons", faultButtonsWithoutText, nil)
	}
	var seen []string
	for i, b := range step.Buttons {
		at := "buttons[" + strconv.Itoa(i) + "]"
		whole := keyword.Whole(b.Label)
		_, number := strconv.Atoi(whole)
		switch {
		case isBlank(b.Label):
			c.addCode(at+".label", puntuale.FaultRequired, nil)
		case tooLong(b.Label, puntuale.MaxButtonLabel):
			c.addCode(at+".label", puntuale.FaultLongerThanCharacters, nil, strconv.Itoa(puntuale.MaxButtonLabel))
		case puntuale.ValueBreaks(b.Label) || hasNUL(b.Label) || strings.ContainsAny(b.Label, "{}") || whole == "" || number == nil: // a number would mean a line
			c.addCode(at+".label", faultButtonLabel, clip(b.Label))
		case keyword.In(whole, seen):
			c.addCode(at+".label", faultButtonTwice, clip(b.Label))
		}
		seen = append(seen, b.Label)
		c.oneText(at+".payload", interactiveText{"", &b.Payload, puntuale.MaxPayload, ownText}, step.Literal)
		switch b.Does {
		case puntuale.ButtonAnswers:
		case puntuale.ButtonConfirms, puntuale.ButtonCancels:
			if !c.bookings {
				c.addCode(at+".does", faultButtonOutside, string(b.Does))
			}
		default:
			c.addCode(at+".does", faultMustBeOneOf, clip(string(b.Does)), "confirm, cancel, answer")
		}
	}
}
