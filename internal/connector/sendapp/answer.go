package sendapp

import (
	"encoding/json"
	"errors"
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

// errNoAnswer stands for all answers that say nothing: none at all, an empty list, a proxy's page.
var errNoAnswer = errors.New("il gateway risponde senza dire nulla del messaggio")

func readAnswer(text []byte) (answer, error) {
	var a answer
	if json.Unmarshal(text, &a) != nil || a.Status == "" {
		return answer{}, errNoAnswer
	}
	return a, nil
}

// text is the gateway's message where it is a text.
func (a answer) text() string {
	var text string
	if json.Unmarshal(a.Message, &text) != nil {
		return ""
	}
	return strings.Join(strings.Fields(text), " ")
}

// sentID is the network's id of a message that left, "" where the answer names none. The two generations of gateways
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

// user is the linked number of an answer to reconnect. Connected is absent in older gateways.
type user struct {
	ID        string `json:"id"`
	Connected *bool  `json:"connected"`
}

func (a answer) user() (u user) {
	_ = json.Unmarshal(a.Data, &u) // none: the zero user
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

// rules say what the gateways' words mean; the first whose fragment is in the text holds. The words come from the
// English panels and Node servers of the family. A translated or new text is unknown. Source: facts of the family's
// code, November 2026.
var rules = []struct {
	fragment string
	action
	says string // Italian, for people
}{
	{"exceeded", later, "Limite di messaggi del gateway raggiunto"},
	{"plan has expired", later, "Abbonamento al gateway scaduto"},
	{"plan is expired", later, "Abbonamento al gateway scaduto"},
	{"has been used", used, "L'istanza del gateway era già stata collegata"},
	{"has not been activated", unpaired, "Il numero non è ancora collegato al gateway"},
	{"relogin required", relink, "Il numero va collegato di nuovo al gateway"},
	{"authentication process has failed", relink, "Il numero va collegato di nuovo al gateway"},
	{"access token", noAccess, "Il gateway non accetta il token di accesso"},
	{"instance id", noAccess, "Il gateway non conosce più l'istanza"},
	{"account does not exist", noAccess, "Il gateway non conosce l'account"},
	{"phone number is required", lost, "Destinatario non accettato dal gateway"},
	{"recipient is required", lost, "Destinatario non accettato dal gateway"},
	{"please enter media url or message", lost, "Messaggio vuoto per il gateway"},
	{"template not found", lost, "Messaggio non accettato dal gateway"},
}

// meaning finds what a gateway's words ask for, and an Italian sentence for people.
func meaning(text string) (action, string) {
	text = strings.ToLower(text)
	for _, r := range rules {
		if strings.Contains(text, r.fragment) {
			return r.action, r.says
		}
	}
	return unknown, ""
}

// refusal says what the answer to a sent message proves. It is nil when the message left, a [*puntuale.SendError] when it
// certainly did not, and any other error when nobody knows. A success without an id is no success: the gateway's send
// failed with an exception.
func (a answer) refusal() error {
	text := a.text()
	does, says := meaning(text)
	if a.Status == success {
		switch {
		case a.sentID() != "":
			return nil
		case does == later:
			return &puntuale.SendError{Kind: puntuale.Throttled, Reason: says, Detail: storable(text, 300), After: quotaWait}
		}
		return errors.New("il gateway risponde con successo ma senza l'id del messaggio " + storable(text, 200))
	}
	e := &puntuale.SendError{Reason: says, Detail: storable(text, 300)}
	switch does {
	case lost:
		e.Kind = puntuale.Final
	case noAccess, relink, unpaired:
		e.Kind = puntuale.SessionDown
	case later:
		e.Kind, e.After = puntuale.Throttled, quotaWait
	default:
		return errors.New("il gateway risponde con un errore che non dice se il messaggio è partito: " + storable(text, 200))
	}
	return e
}
