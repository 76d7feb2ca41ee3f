package session

import (
	"strconv"

	"puntuale"
	"puntuale/internal/web/view"
)

// ChatwootSide is the page of a session's link to Chatwoot.
type ChatwootSide struct {
	Sender
	Link *puntuale.ChatwootLink // nil: there is no link
	Form *view.Form             // set only if the page shows the form again after a refusal; otherwise nil
}

// form returns a form with the stored values, but without the token. The inbox field is empty, because an empty field
// means the present inbox.
func (s ChatwootSide) form() *view.Form {
	if s.Link == nil {
		return view.Fresh(s.Form)
	}
	return view.Fresh(s.Form, "base_url", s.Link.URL, "account_id", strconv.FormatInt(s.Link.Chatwoot.Account, 10))
}

// chatwootState returns the tone of a link's state, and the state's text key.
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
