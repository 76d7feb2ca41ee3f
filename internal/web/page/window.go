package page

import (
	"puntuale"
	"puntuale/internal/web/view"
	"strconv"
	"strings"
)

// ReadWindow reads the fields of a window. at is the prefix of the fields' names. It returns nil if all fields are
// empty.
func ReadWindow(f *view.Form, at string) *puntuale.Window {
	w := puntuale.Window{From: strings.TrimSpace(f.Value(at + ".from")), To: strings.TrimSpace(f.Value(at + ".to"))}
	for _, day := range f.Values[at+".weekdays"] {
		if n, err := strconv.Atoi(day); err == nil {
			w.Weekdays = append(w.Weekdays, n)
		}
	}
	if len(w.Weekdays) == 7 {
		w.Weekdays = nil
	}
	if f.Is(at+".holidays", "on") {
		w.Holidays = puntuale.HolidaysAvoid
	}
	if len(w.Weekdays) == 0 && w.From == "" && w.To == "" && w.Holidays == "" {
		return nil
	}
	return &w
}
