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

// Faults collects all faults of a request, so that one answer reports every fault.
type Faults []puntuale.Fault

// Add adds a fault.
func (f *Faults) Add(location string, code puntuale.ReasonCode, value any, args ...string) {
	*f = append(*f, puntuale.Fault{Location: location, Code: code, Args: args, Value: value})
}

// Because adds a fault with a given reason.
func (f *Faults) Because(location string, reason puntuale.Reason, value any) {
	*f = append(*f, reason.At(location, value))
}

// At reports whether there is a fault at this location.
func (f *Faults) At(location string) bool {
	return slices.ContainsFunc(*f, func(g puntuale.Fault) bool { return g.Location == location })
}

// Err returns the collected faults as one error, or nil if there are none.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return puntuale.Invalid(f...)
}

// Take adds the faults of err if its code is invalid, and returns nil. It returns any other error unchanged.
func (f *Faults) Take(err error) error {
	if puntuale.CodeOf(err) != puntuale.CodeInvalid {
		return err
	}
	*f = append(*f, FaultsOf(err)...)
	return nil
}

// Text adds a fault if a text has more characters than the limit, or cannot be stored.
func (f *Faults) Text(location, text string, limit int) {
	if utf8.RuneCountInString(text) > limit {
		f.Add(location, puntuale.FaultLongerThanCharacters, nil, strconv.Itoa(limit))
	}
	f.NoNUL(location, text)
}

// Request adds a fault if the body of a call is larger than puntuale.MaxRequest bytes, the most that the store accepts.
func (f *Faults) Request(body []byte) {
	if len(body) > puntuale.MaxRequest {
		f.Add("body", puntuale.FaultLongerThanBytes, nil, strconv.Itoa(puntuale.MaxRequest))
	}
}

// Codes of the faults that this file reports.
const (
	faultBeyondHorizon puntuale.ReasonCode = "fault.beyond_horizon"
	faultNUL           puntuale.ReasonCode = "fault.nul"
)

// Horizon adds a fault if a message's due time is more than five years after now.
func (f *Faults) Horizon(location string, moment, now time.Time) {
	if moment.After(now.AddDate(puntuale.HorizonYears, 0, 0)) {
		f.Add(location, faultBeyondHorizon, nil, strconv.Itoa(puntuale.HorizonYears))
	}
}

// Entries adds a fault and returns false if a list has more entries than the limit. n is the number of entries.
func (f *Faults) Entries(location string, n, limit int) bool {
	if n > limit {
		f.Add(location, puntuale.FaultMoreEntries, nil, strconv.Itoa(limit))
	}
	return n <= limit
}

// Word adds a fault if a text is not one of the given words.
func (f *Faults) Word(location, text string, words ...string) {
	if !slices.Contains(words, text) {
		f.Add(location, puntuale.FaultNotOneOf, text, strings.Join(words, ", "))
	}
}

// NoNUL adds a fault if a text contains a zero byte, which PostgreSQL cannot store.
func (f *Faults) NoNUL(location, text string) {
	if strings.ContainsRune(text, 0) {
		f.Add(location, faultNUL, nil)
	}
}

// Required adds a fault if a text is blank, or has more characters than the limit.
func (f *Faults) Required(location, text string, limit int) {
	if puntuale.Trimmed(text) == "" {
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
	case len(e.Faults) == 0: // the error names no location in the request, so the fault's location is ""
		return []puntuale.Fault{e.Reason.At("", nil)}
	}
	return e.Faults
}
