package control

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"puntuale"
)

// faults gathers all that is wrong with a request, so that it is answered at once.
type faults []puntuale.Fault

func (f *faults) add(location, message string, value any) {
	*f = append(*f, puntuale.Fault{Location: location, Message: message, Value: value})
}

// at reports whether something is wrong there already.
func (f *faults) at(location string) bool {
	return slices.ContainsFunc(*f, func(g puntuale.Fault) bool { return g.Location == location })
}

// err returns the gathered faults as one error, nil when there are none.
func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return puntuale.Invalid(f...)
}

// take files the faults that err carries when it says that a request is invalid, and returns any other error.
func (f *faults) take(err error) error {
	if puntuale.CodeOf(err) != puntuale.CodeInvalid {
		return err
	}
	*f = append(*f, faultsOf(err)...)
	return nil
}

// text checks a text of at most limit characters.
func (f *faults) text(location, text string, limit int) {
	if utf8.RuneCountInString(text) > limit {
		f.add(location, fmt.Sprintf("is longer than %d characters", limit), nil)
	}
	f.noNUL(location, text)
}

// request checks the bytes of a call that are kept as they came.
func (f *faults) request(body []byte) {
	if len(body) > puntuale.MaxRequest {
		f.add("body", fmt.Sprintf("is longer than %d bytes", puntuale.MaxRequest), nil)
	}
}

// horizon checks a moment that a message is to leave at: none lies more than five years ahead.
func (f *faults) horizon(location string, moment, now time.Time) {
	if moment.After(now.AddDate(puntuale.HorizonYears, 0, 0)) {
		f.add(location, fmt.Sprintf("lies beyond the horizon of %d years", puntuale.HorizonYears), nil)
	}
}

// entries checks that a list is not longer than most.
func (f *faults) entries(location string, n, most int) bool {
	if n > most {
		f.add(location, fmt.Sprintf("has more than %d entries", most), nil)
	}
	return n <= most
}

// word checks a text that must be one of a few.
func (f *faults) word(location, text string, words ...string) {
	if !slices.Contains(words, text) {
		f.add(location, "is not one of "+strings.Join(words, ", "), text)
	}
}

// noNUL refuses what PostgreSQL cannot keep in a text.
func (f *faults) noNUL(location, text string) {
	if strings.ContainsRune(text, 0) {
		f.add(location, "holds a NUL character", nil)
	}
}

// required checks a text that must not be blank.
func (f *faults) required(location, text string, limit int) {
	if strings.TrimSpace(text) == "" {
		f.add(location, "is required", nil)
		return
	}
	f.text(location, text, limit)
}

func at(location string, i int) string { return location + "[" + strconv.Itoa(i) + "]" }

func faultsOf(err error) []puntuale.Fault {
	e, ok := errors.AsType[*puntuale.Error](err)
	switch {
	case !ok:
		return nil
	case len(e.Faults) == 0: // said in words only
		return []puntuale.Fault{{Message: e.Message}}
	}
	return e.Faults
}
