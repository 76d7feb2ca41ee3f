package official

import (
	"fmt"
	"strings"
	"time"

	"puntuale"
)

// action says what the connector does after a refusal.
type action int8

const (
	again      action = iota + 1 // the same later, with backoff
	slower                       // the number sends too fast
	slowerPair                   // too much to one person
	holdNumber                   // nothing leaves from the number until a person acts, or holdFor has passed
	noAccess                     // the same for noAccessFor: the token or its rights are not good
	holdStep                     // no message with this template leaves for templateFor
	lost                         // this message never leaves
	lostPerson                   // no message to this person leaves for a day, unless they write
	optedOut                     // this person wants no more messages
	tomorrow                     // not before 24 hours
)

// rule is a row of the table.
type rule struct {
	action
	says string // an Italian sentence for people
}

// Sentences that several codes share.
const (
	saysBusy     = "WhatsApp non disponibile al momento"
	saysTooFast  = "Troppi messaggi al secondo per questo numero"
	saysToken    = "Token di accesso scaduto o revocato"
	saysRights   = "Il token non ha i permessi per inviare messaggi da questo numero"
	saysNumber   = "Numero non registrato sull'API di Meta, o phone_number_id errato"
	saysTemplate = "Template non utilizzabile su WhatsApp"
	saysValues   = "I valori non corrispondono al template approvato"
	saysMedia    = "File rifiutato da WhatsApp"
	saysInvalid  = "Messaggio non accettato da WhatsApp"
)

// rules is the table, by error.code. (Meta, support/error-codes.)
var rules = map[int]rule{
	1: {again, saysBusy}, 2: {again, saysBusy}, 131000: {again, saysBusy}, 131016: {again, saysBusy},
	131057: {again, "Account in manutenzione presso Meta"}, 133004: {again, saysBusy},

	4: {slower, saysTooFast}, 80007: {slower, saysTooFast}, 130429: {slower, saysTooFast},
	131056: {slowerPair, "Troppi messaggi in poco tempo a questo destinatario"},

	131048: {holdNumber, "Invii limitati da Meta per segnalazioni di spam"},
	131064: {holdNumber, "Account limitato da Meta per template nella categoria sbagliata"},
	131042: {holdNumber, "Problema con il pagamento dell'account WhatsApp Business"},
	368:    {holdNumber, "Account bloccato temporaneamente da Meta per violazione delle regole"},
	131031: {holdNumber, "Account bloccato da Meta"},
	130497: {holdNumber, "L'account non può scrivere a destinatari di questo paese"},
	131045: {holdNumber, saysNumber}, 133010: {holdNumber, saysNumber}, 33: {holdNumber, saysNumber},
	0: {noAccess, saysToken}, 190: {noAccess, saysToken},
	3: {noAccess, saysRights}, 10: {noAccess, saysRights}, 131005: {noAccess, saysRights},

	132000: {holdStep, saysValues}, 132012: {holdStep, saysValues}, 132018: {holdStep, saysValues},
	132001: {holdStep, "Template non esistente o non approvato in questa lingua"},
	132005: {holdStep, "Il testo del template è troppo lungo"},
	132007: {holdStep, "Il template viola le regole di WhatsApp"},
	132015: {holdStep, puntuale.SaysTemplatePaused},
	132016: {holdStep, puntuale.SaysTemplateDisabled},
	132068: {holdStep, saysTemplate}, 132069: {holdStep, saysTemplate}, 131063: {holdStep, saysTemplate},

	131047: {lost, saysWindow},
	131051: {lost, "Tipo di messaggio non ammesso"},
	131053: {lost, saysMedia},
	131008: {lost, saysInvalid}, 131009: {lost, saysInvalid}, 100: {lost, saysInvalid}, 135000: {lost, saysInvalid}, 134011: {lost, saysInvalid},
	131021: {lost, "Mittente e destinatario sono lo stesso numero"},

	131026: {lostPerson, "Il destinatario non riceve su WhatsApp"},
	130403: {lostPerson, "Destinatario bloccato dall'account"},
	131050: {optedOut, "Il destinatario non vuole messaggi di marketing"},

	131049: {tomorrow, "Limite di WhatsApp ai messaggi di marketing per questo destinatario"},
	130472: {tomorrow, "Destinatario in un esperimento di WhatsApp: per ora non riceve"},
}

// ruleOf finds the row of a code, and reports whether there is one.
func ruleOf(code int) (rule, bool) {
	if r, ok := rules[code]; ok {
		return r, true
	}
	if code >= 200 && code <= 299 { // permissions
		return rule{noAccess, saysRights}, true
	}
	return rule{lost, saysInvalid}, false
}

// How long a hold lasts, unless a person tests the session before.
const (
	holdFor      = time.Hour        // a number
	noAccessFor  = time.Minute      // a number whose token is not good
	templateFor  = 15 * time.Minute // a template
	tomorrowWait = 24 * time.Hour
	slowMost     = time.Minute
	pairMost     = 5 // 4^5 s, about 17 minutes
)

// graphError is Meta's refusal, in the form of its answers and its webhooks.
type graphError struct {
	Code    int    `json:"code"`
	Subcode int    `json:"error_subcode"`
	Title   string `json:"title"`
	Message string `json:"message"`
	Data    struct {
		Details string `json:"details"`
	} `json:"error_data"`
	Trace string `json:"fbtrace_id"`
}

func (e *graphError) Error() string { return e.detail() }

// detail is Meta's words in one line, for dettaglio_risposta.
func (e *graphError) detail() string {
	words := e.Data.Details
	if words == "" {
		words = e.Message
	}
	if words == "" {
		words = e.Title
	}
	text := fmt.Sprintf("Meta %d", e.Code)
	if words = strings.Join(strings.Fields(words), " "); words != "" {
		text += ": " + clip(words, 500)
	}
	if e.Trace != "" {
		text += " (" + clip(e.Trace, 100) + ")"
	}
	return storable(text)
}

// storable turns any text of Meta into one that every database keeps.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// clip shortens a text to about so many bytes.
func clip(text string, most int) string {
	for i := range text {
		if i > most {
			return text[:i] + "…"
		}
	}
	return text
}

// refuse does to the account what a refusal asks for, and returns the send error of the message. template is "" for a
// message without a template.
func (a *account) refuse(e *graphError, to, template string) *puntuale.SendError {
	r, _ := ruleOf(e.Code)
	says := &puntuale.SendError{Kind: puntuale.Final, Reason: r.says, Detail: e.detail(), Err: e}
	now := a.clock.Now()
	switch r.action {
	case again:
		says.Kind = puntuale.Transient
	case slower:
		says.Kind, says.After = puntuale.Throttled, a.slowDown(now)
	case slowerPair:
		says.Kind, says.After = puntuale.Deferred, a.pairs.refused(to, now)
	case holdNumber:
		says.Kind = puntuale.SessionDown
		a.hold(puntuale.LinkLinked, r.says, e, holdFor)
	case noAccess:
		says.Kind = puntuale.SessionDown
		a.hold(puntuale.LinkUnlinked, r.says, e, noAccessFor)
	case holdStep:
		if template != "" {
			says.Kind, says.After = puntuale.Deferred, templateFor
			a.holdTemplate(template, says, now.Add(templateFor))
		}
	case lostPerson:
		if to != "" {
			a.missing.note(to, now, says, now)
		}
	case tomorrow:
		says.Kind, says.After = puntuale.Deferred, tomorrowWait
		a.weary.rest(to, now.Add(tomorrowWait), now)
	}
	return says
}
