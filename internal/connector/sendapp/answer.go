package sendapp

import (
	"encoding/json"
	"strings"
	"time"

	"puntuale"
)

// answer is what a gateway answers, in all shapes of the family.
type answer struct {
	Status   string          `json:"status"`
	Message  json.RawMessage `json:"message"` // a text, or the message that left
	Data     json.RawMessage `json:"data"`
	Instance string          `json:"instance_id"`
	Picture  string          `json:"base64"` // a QR code, as a data address
	Relogin  bool            `json:"relogin"`
}

const success = "success"

// errNoAnswer stands for all answers that say nothing about the message, such as an empty body, an empty list or a
// proxy's page.
var errNoAnswer = &puntuale.ReasonError{Reason: puntuale.Because(reasonNothing)}

// Answers that do not say whether the message left.
const (
	reasonNothing    puntuale.ReasonCode = "sendapp.answer_says_nothing"
	reasonUnreadable puntuale.ReasonCode = "sendapp.answer_unreadable"  // {1}: why
	reasonStatus     puntuale.ReasonCode = "sendapp.http_status"        // {1}: the status
	reasonNoID       puntuale.ReasonCode = "sendapp.success_without_id" // {1}: the gateway's words
	reasonUnclear    puntuale.ReasonCode = "sendapp.error_unclear"      // {1}: the gateway's words
)

// What a gateway's words mean.
const (
	reasonQuota      puntuale.ReasonCode = "sendapp.limit_reached"
	reasonPlan       puntuale.ReasonCode = "sendapp.plan_expired"
	reasonUsed       puntuale.ReasonCode = "sendapp.linked_before"
	reasonNotLinked  puntuale.ReasonCode = "sendapp.not_linked_yet"
	reasonRelink     puntuale.ReasonCode = "sendapp.link_again"
	reasonToken      puntuale.ReasonCode = "sendapp.token"
	reasonInstance   puntuale.ReasonCode = "sendapp.no_instance"
	reasonAccount    puntuale.ReasonCode = "sendapp.no_account"
	reasonRecipient  puntuale.ReasonCode = "sendapp.recipient_not_accepted"
	reasonEmpty      puntuale.ReasonCode = "sendapp.empty"
	reasonNotAllowed puntuale.ReasonCode = "sendapp.message_not_accepted"
)

func readAnswer(text []byte) (answer, error) {
	var a answer
	if json.Unmarshal(text, &a) != nil || a.Status == "" {
		return answer{}, errNoAnswer
	}
	return a, nil
}

// text returns the gateway's message if it is a text, or "" if it is not.
func (a answer) text() string {
	var text string
	if json.Unmarshal(a.Message, &text) != nil {
		return ""
	}
	return strings.Join(strings.Fields(text), " ")
}

// sentID is the network's id of a message that left, or "" if the answer names none. The two generations of gateways
// put it in different places.
func (a answer) sentID() string {
	var older, newer struct {
		Key struct {
			ID string `json:"id"`
		} `json:"key"`
	}
	if json.Unmarshal(a.Message, &older) == nil && older.Key.ID != "" {
		return older.Key.ID
	}
	if json.Unmarshal(a.Data, &newer) == nil {
		return newer.Key.ID
	}
	return ""
}

// user is the linked number in an answer to reconnect. Older gateways do not give Connected.
type user struct {
	ID        string `json:"id"`
	Connected *bool  `json:"connected"`
}

func (a answer) user() (u user) {
	_ = json.Unmarshal(a.Data, &u) // if there is no user, u stays zero
	return u
}

// action says what the connector does after a gateway's words.
type action int8

const (
	unknown  action = iota // nobody knows whether the message left
	lost                   // this message never leaves
	noAccess               // token or instance are not valid: nothing leaves until somebody changes them
	relink                 // the number must be linked again
	later                  // the plan's limit is reached
	unpaired               // the instance was never linked
	used                   // the instance was linked before, and is not now
)

// quotaWait is how long a session waits after its gateway said that the plan's limit is reached.
const quotaWait = time.Hour

// rules say what the gateways' words mean. The first rule whose fragment is in the text applies. The words come from
// the English panels and Node servers of the family. A translated or new text is unknown. Source: facts of the family's
// code, November 2026.
var rules = []struct {
	fragment string
	action
	reason puntuale.ReasonCode
}{
	{"exceeded", later, reasonQuota},
	{"plan has expired", later, reasonPlan},
	{"plan is expired", later, reasonPlan},
	{"has been used", used, reasonUsed},
	{"has not been activated", unpaired, reasonNotLinked},
	{"relogin required", relink, reasonRelink},
	{"authentication process has failed", relink, reasonRelink},
	{"access token", noAccess, reasonToken},
	{"instance id", noAccess, reasonInstance},
	{"account does not exist", noAccess, reasonAccount},
	{"phone number is required", lost, reasonRecipient},
	{"recipient is required", lost, reasonRecipient},
	{"please enter media url or message", lost, reasonEmpty},
	{"template not found", lost, reasonNotAllowed},
}

// meaning returns the action for a gateway's words, and the reason that they give.
func meaning(text string) (action, puntuale.ReasonCode) {
	text = strings.ToLower(text)
	for _, r := range rules {
		if strings.Contains(text, r.fragment) {
			return r.action, r.reason
		}
	}
	return unknown, ""
}

// refusal says what the answer to a sent message proves. It returns nil if the message left, a [*puntuale.SendError] if
// it certainly did not leave, and any other error if nobody knows. A success without an id does not count, because then
// the gateway's send failed with an exception.
func (a answer) refusal() error {
	text := a.text()
	does, sendError := meaning(text)
	if a.Status == success {
		switch {
		case a.sentID() != "":
			return nil
		case does == later:
			return &puntuale.SendError{Kind: puntuale.Throttled, Reason: puntuale.Because(sendError), Detail: puntuale.Quoted(storable(text, 300)), After: quotaWait}
		}
		return &puntuale.ReasonError{Reason: puntuale.Because(reasonNoID, storable(text, 200))}
	}
	e := &puntuale.SendError{Reason: puntuale.Because(sendError), Detail: puntuale.Quoted(storable(text, 300))}
	switch does {
	case lost:
		e.Kind = puntuale.Final
	case noAccess, relink, unpaired:
		e.Kind = puntuale.SessionDown
	case later:
		e.Kind, e.After = puntuale.Throttled, quotaWait
	default:
		return &puntuale.ReasonError{Reason: puntuale.Because(reasonUnclear, storable(text, 200))}
	}
	return e
}
