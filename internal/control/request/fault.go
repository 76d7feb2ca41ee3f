package request

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"puntuale"
)

// Faults collects all that is wrong with a request, so that one answer names everything.
type Faults []puntuale.Fault

// Add notes a fault.
func (f *Faults) Add(location string, code puntuale.ReasonCode, value any, args ...string) {
	*f = append(*f, puntuale.Fault{Location: location, Code: code, Args: args, Value: value})
}

// Because notes a fault with a given reason.
func (f *Faults) Because(location string, reason puntuale.Reason, value any) {
	*f = append(*f, reason.At(location, value))
}

// At reports whether a fault was noted at this location.
func (f *Faults) At(location string) bool {
	return slices.ContainsFunc(*f, func(g puntuale.Fault) bool { return g.Location == location })
}

// Err returns the collected faults as one error, nil when there are none.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return puntuale.Invalid(f...)
}

// Take notes the faults of err if err says that a request is invalid. It returns any other error.
func (f *Faults) Take(err error) error {
	if puntuale.CodeOf(err) != puntuale.CodeInvalid {
		return err
	}
	*f = append(*f, FaultsOf(err)...)
	return nil
}

// Text checks a text of at most limit characters.
func (f *Faults) Text(location, text string, limit int) {
	if utf8.RuneCountInString(text) > limit {
		f.Add(location, puntuale.FaultLongerThanCharacters, nil, strconv.Itoa(limit))
	}
	f.NoNUL(location, text)
}

// Request checks the bytes of a call that the store keeps unchanged.
func (f *Faults) Request(body []byte) {
	if len(body) > puntuale.MaxRequest {
		f.Add("body", puntuale.FaultLongerThanBytes, nil, strconv.Itoa(puntuale.MaxRequest))
	}
}

// Faults of this file.
const (
	faultBeyondHorizon puntuale.ReasonCode = "fault.beyond_horizon"
	faultNUL           puntuale.ReasonCode = "fault.nul"
)

// Horizon checks the moment of a message: it must not be more than five years ahead.
func (f *Faults) Horizon(location string, moment, now time.Time) {
	if moment.After(now.AddDate(puntuale.HorizonYears, 0, 0)) {
		f.Add(location, faultBeyondHorizon, nil, strconv.Itoa(puntuale.HorizonYears))
	}
}

// Entries checks that a list is not longer than most.
func (f *Faults) Entries(location string, n, most int) bool {
	if n > most {
		f.Add(location, puntuale.FaultMoreEntries, nil, strconv.Itoa(most))
	}
	return n <= most
}

// Word checks a text that must be one of a few.
func (f *Faults) Word(location, text string, words ...string) {
	if !slices.Contains(words, text) {
		f.Add(location, puntuale.FaultNotOneOf, text, strings.Join(words, ", "))
	}
}

// NoNUL refuses what PostgreSQL cannot keep in a text.
func (f *Faults) NoNUL(location, text string) {
	if strings.ContainsRune(text, 0) {
		f.Add(location, faultNUL, nil)
	}
}

// Required checks a text that must not be blank.
func (f *Faults) Required(location, text string, limit int) {
	if strings.TrimSpace(text) == "" {
		f.Add(location, puntuale.FaultRequired, nil)
		return
	}
	f.Text(location, text, limit)
}

func At(location string, i int) string { return location + "[" + strconv.Itoa(i) + "]" }

func FaultsOf(err error) []puntuale.Fault {
	e, ok := errors.AsType[*puntuale.Error](err)
	switch {
	case !ok:
		return nil
	case len(e.Faults) == 0: // of no place
		return []puntuale.Fault{e.Reason.At("", nil)}
	}
	return e.Faults
}
