package sendapp

import (
	"encoding/json"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/outside"
)

// answer is a gateway's answer. It has the members of all gateways of SendApp's family.
type answer struct {
	Status   string          `json:"status"`
	Message  json.RawMessage `json:"message"` // a text, or the message that was sent
	Data     json.RawMessage `json:"data"`
	Instance string          `json:"instance_id"`
	Picture  string          `json:"base64"` // a QR code as a data URL
	Relogin  bool            `json:"relogin"`
}

const success = "success"

// errNoAnswer stands for answers that do not show what happened to the message. Examples are an empty body, an empty
// list and a proxy's page.
var errNoAnswer = &puntuale.ReasonError{Reason: puntuale.Because(reasonNothing)}

// Reasons for answers that do not show whether the message was sent.
const (
	reasonNothing    puntuale.ReasonCode = "sendapp.answer_says_nothing"
	reasonUnreadable puntuale.ReasonCode = "sendapp.answer_unreadable"  // {1}: the error of the decoder
	reasonStatus     puntuale.ReasonCode = "sendapp.http_status"        // {1}: the status
	reasonNoID       puntuale.ReasonCode = "sendapp.success_without_id" // {1}: the gateway's text
	reasonUnclear    puntuale.ReasonCode = "sendapp.error_unclear"      // {1}: the gateway's text
)

// Reasons that a gateway's texts give.
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
	if outside.Gateway.Parse(text, &a) != nil || a.Status == "" {
		return answer{}, errNoAnswer
	}
	return a, nil
}

// text returns the gateway's message if it is a text, or else "".
func (a answer) text() string {
	var text string
	if json.Unmarshal(a.Message, &text) != nil {
		return ""
	}
	return strings.Join(strings.Fields(text), " ")
}

// sent returns the key of a sent message. The two generations of gateways write it in different members.
func (a answer) sent() messageKey {
	var older, newer struct {
		Key messageKey `json:"key"`
	}
	if json.Unmarshal(a.Message, &older) == nil && older.Key.ID != "" {
		return older.Key
	}
	if json.Unmarshal(a.Data, &newer) == nil {
		return newer.Key
	}
	return messageKey{}
}

// sentID returns the network's id of a sent message, or "" if the answer has none.
func (a answer) sentID() string { return a.sent().ID }

// user is the linked number in the answer to the request "reconnect". Older gateways leave out Connected.
type user struct {
	ID        string `json:"id"`
	Connected *bool  `json:"connected"`
}

func (a answer) user() (u user) {
	_ = json.Unmarshal(a.Data, &u) // without a user, u is empty
	return u
}

// action is what a gateway's text means, and so what the connector must do.
type action int8

const (
	unknown  action = iota // nobody knows whether the message was sent
	lost                   // fail this message
	noAccess               // the token or the instance is not valid, so nothing leaves until somebody changes it
	relink                 // the number must be linked again
	later                  // the limit of the gateway's plan is reached
	unpaired               // the instance was never linked
	used                   // the instance was linked before, but is not linked now
)

// quotaWait is how long a session waits after its gateway reported that the plan's limit is reached.
const quotaWait = time.Hour

// rules give the action for each text of a gateway. The first rule whose fragment is in the text applies. The texts are
// those of the family's English panels and Node servers. A translated or new text is unknown. Source: the family's
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

// meaning returns the action for a gateway's text, and the reason to report.
func meaning(text string) (action, puntuale.ReasonCode) {
	text = strings.ToLower(text)
	for _, r := range rules {
		if strings.Contains(text, r.fragment) {
			return r.action, r.reason
		}
	}
	return unknown, ""
}

// refusal returns nil if the message was sent. It returns a [*puntuale.SendError] if the message was certainly not
// sent. Any other error means that the outcome is uncertain. A success without an id also leaves the outcome
// uncertain, because the gateway returns such a success even if its send failed with an exception.
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
