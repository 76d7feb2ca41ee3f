package view

import "net/url"

// MessageSearch is the search of a list of messages.
type MessageSearch struct {
	State, Text, Origin, Sequence, Campaign, Phone, From, To string
	Cursor                                                   string
}

// Query returns the search as the query of an address. The argument state replaces the search's own state, unless the
// argument is "". Query returns "" if there is no search.
func (s MessageSearch) Query(state string) string {
	v := url.Values{}
	s.State = Or(state, s.State)
	for _, p := range s.Parts() {
		if p[1] != "" && p[1] != AnyState {
			v.Set(p[0], p[1])
		}
	}
	if len(v) == 0 {
		return ""
	}
	return "?" + v.Encode()
}

// Parts returns the parts of the search, each with the name of its field. It must return every filter, so that an
// action on all results changes no other messages.
func (s MessageSearch) Parts() [][2]string {
	return [][2]string{{"state", s.State}, {"text", s.Text}, {"origin", s.Origin}, {"sequence", s.Sequence}, {"campaign", s.Campaign}, {"phone", s.Phone}, {"from", s.From}, {"to", s.To}}
}

// AnyState is the state with which [MessageSearch.Query] searches in all states.
const AnyState = "*"

func (s MessageSearch) Narrow() bool { return s.Text != "" || s.Filtered() }

// Filtered reports whether the search has filters in addition to a text.
func (s MessageSearch) Filtered() bool {
	return s.Origin+s.Sequence+s.Campaign+s.Phone+s.From+s.To != ""
}
