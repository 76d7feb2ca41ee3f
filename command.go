package puntuale

import (
	"encoding/json"
	"time"
)

// CommandID names a command.
type CommandID int64

// CommandVerb says what the node that owns a session must do.
type CommandVerb string

const (
	CommandPair   CommandVerb = "pair"   // the detail is a [PairOrder]
	CommandUnlink CommandVerb = "unlink" // no detail
	CommandDrain  CommandVerb = "drain"  // the detail is a [DrainOrder]; the node answers when no message of the session is in flight
	CommandResume CommandVerb = "resume" // no detail; the node ends a drain before the drain's deadline
	CommandTest   CommandVerb = "test"   // no detail; the connector tests again whether the session could send

	CommandLook      CommandVerb = "look"      // no detail; the connector reads what a network reported about the session, and asks the network
	CommandTemplates CommandVerb = "templates" // no detail; the connector makes the calls of the session's open requests about templates

	CommandReconnect CommandVerb = "reconnect" // no detail; the connector connects the session immediately
)

// Command is an order to the node that owns a session. Any node may give it. The caller waits for the node's answer.
type Command struct {
	ID      CommandID
	Client  ClientID
	Session SessionID
	Verb    CommandVerb
	Detail  []byte // the data that the verb needs, sealed
	Created time.Time
	Expires time.Time // no node takes the command after this time
	Taken   NodeID    // the node that began to execute it; 0: none yet
}

// Harmless reports whether a node may execute a command again after another node took it and perhaps executed it. A
// pairing is not harmless: it may show an alert on a person's phone, and the network counts pairings.
func (c Command) Harmless() bool { return c.Verb != CommandPair }

// PairOrder says how to link a session.
type PairOrder struct {
	Method PairMethod `json:"method"`
	Phone  string     `json:"phone,omitempty"` // number of the phone, "+…"; only with PairCode
}

// DrainOrder orders the owner of a session to begin no new message before the time Until. The order stays valid even if
// the node that gave the order dies.
type DrainOrder struct {
	Until time.Time `json:"until"`
}

// CommandAnswer is a node's answer to a command: an error, or the zero value for success.
type CommandAnswer struct {
	Code       Code          `json:"code,omitempty"`
	Reason     string        `json:"message,omitempty"` // the stored form of a [Reason]
	RetryAfter time.Duration `json:"retry_after,omitempty"`
}

// AnswerOf makes the answer to a command from the command's error. An error that is not an [Error] becomes
// "internal".
func AnswerOf(err error) CommandAnswer {
	if err == nil {
		return CommandAnswer{}
	}
	e := &Error{Code: CodeInternal, Reason: Because(FaultCommandFailed)}
	if found := asError(err); found != nil {
		e = found
	}
	return CommandAnswer{e.Code, e.Reason.Stored(), e.RetryAfter}
}

// Err returns the error that the answer contains. It is the inverse of [AnswerOf].
func (a CommandAnswer) Err() error {
	if a.Code == "" {
		return nil
	}
	return &Error{Code: a.Code, Reason: ParseReason(a.Reason), RetryAfter: a.RetryAfter}
}

// These methods return the JSON form, which is then sealed. They never fail, because these types always marshal.
func (o PairOrder) JSON() []byte     { return jsonOf(o) }
func (o DrainOrder) JSON() []byte    { return jsonOf(o) }
func (a CommandAnswer) JSON() []byte { return jsonOf(a) }
func (c PairingCode) JSON() []byte   { return jsonOf(c) }

func jsonOf(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return text
}

// Values for the argument purpose of Vault.Seal. A sealed command, answer or code can be opened only for its own session.
const (
	SealedCommand = "command"
	SealedAnswer  = "answer to a command"
	SealedCode    = "pairing code"
)

// Further values for the argument purpose of Vault.Seal, besides those that are beside their types.
const (
	SealedHook        = "hook"               // a hook's address
	SealedSecond      = "second factor"      // the secret of a user's second factor
	SealedVisit       = "visit"              // the data of a visit
	SealedBrowser     = "device"             // a browser's cookie with the users who signed in there; the database does not have it
	SealedReset       = "mail: reset"        // see [MailResetAsked] and [MailReset]
	SealedInvitation  = "mail: invitation"   // see [MailInvitation]
	SealedPush        = "push"               // where a device gets pushes
	SealedPushKey     = "push key"           // the keys that sign pushes; also their name among the secrets
	SealedCertificate = "certificate"        // certificates and their keys; also the beginning of their names among the secrets
	SealedOpener      = "opener of a backup" // what opens the newest encrypted backup
	SealedWhatsApp    = "whatsapp"           // what a linked number keeps
)

// SealPurposes lists every purpose. The vault seals for no other, so that a replacement of the data key finds
// everything that is sealed: a test compares this list with the columns that package sealed of the store names.
var SealPurposes = []string{
	SealedCommand, SealedAnswer, SealedCode, SealedCalendar, SealedGateway, SealedOfficial, SealedWebhook, SealedHook, SealedSecond, SealedVisit,
	SealedBrowser, SealedReset, SealedInvitation, SealedPush, SealedPushKey, SealedCertificate, SealedOpener, SealedWhatsApp,
}

// SealPlace returns the place name that the vault needs to seal data of the session.
func (id SessionID) SealPlace() string { return "session " + id.String() }
