package session

import (
	"strconv"

	"puntuale"
	"puntuale/internal/web/view"
)

// ChatwootSide is the page of a session's link to Chatwoot.
type ChatwootSide struct {
	Sender
	Link *puntuale.ChatwootLink // nil: there is none
	Form *view.Form             // nil until a form was refused
}

// form returns the form with the stored values. It leaves out the token. The field of the inbox is empty, because an empty field keeps the present inbox.
func (s ChatwootSide) form() *view.Form {
	if s.Link == nil {
		return view.Fresh(s.Form)
	}
	return view.Fresh(s.Form, "base_url", s.Link.URL, "account_id", strconv.FormatInt(s.Link.Chatwoot.Account, 10))
}

// chatwootState returns the tone and the key of a link's state.
func chatwootState(l *puntuale.ChatwootLink) (tone, key string) {
	switch {
	case l == nil:
		return "quiet", "chatwoot.none"
	case !l.Disabled.IsZero():
		return "bad", "chatwoot.disabled"
	case !l.Active:
		return "warn", "chatwoot.unfinished"
	case !l.FailingFrom.IsZero():
		return "warn", "chatwoot.failing"
	}
	return "ok", "chatwoot.linked"
}
