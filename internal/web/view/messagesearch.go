package view

import "net/url"

// MessageSearch is the search of a list of messages.
type MessageSearch struct {
	State, Text, Origin, Sequence, Campaign, Phone, From, To string
	Cursor                                                   string
}

// Query is the search as the end of an address, with a state; "" without a search.
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

// Parts are the parts of the search, by the names of the fields. Every filter must be here, so that an action on all results affects no
// other messages.
func (s MessageSearch) Parts() [][2]string {
	return [][2]string{{"state", s.State}, {"text", s.Text}, {"origin", s.Origin}, {"sequence", s.Sequence}, {"campaign", s.Campaign}, {"phone", s.Phone}, {"from", s.From}, {"to", s.To}}
}

// AnyState asks [MessageSearch.Query] for messages in every state.
const AnyState = "*"

func (s MessageSearch) Narrow() bool { return s.Text != "" || s.Filtered() }

// Filtered reports whether the search has more than a text.
func (s MessageSearch) Filtered() bool {
	return s.Origin+s.Sequence+s.Campaign+s.Phone+s.From+s.To != ""
}
