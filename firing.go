package puntuale

import (
	"context"
	"time"
)

// Firing is one line of a rule's log: it acted, or it did not although its trigger fits.
type Firing struct {
	ID         int64
	Automation AutomationID
	At         time.Time
	Phone      string // "" of an erased person, or if the trigger has none
	Occurrence string // "" once the person was erased, or contents were blanked
	Acted      bool
	Reason     ReasonCode  // why it did not act, or left something out; "": it did everything
	Detail     string      // the stored form of a [Reason] that says more, such as a missing field; "": none, or contents were blanked
	Depth      int         // the trigger's depth
	Messages   []MessageID // the first message of each start and send
}

// Why a rule did not act, or left something out.
const (
	FiringTags       ReasonCode = "automation.tags"       // a tag is missing
	FiringField      ReasonCode = "automation.field"      // a comparison does not hold
	FiringSession    ReasonCode = "automation.session"    // the trigger came through another session
	FiringWindow     ReasonCode = "automation.window"     // outside the window
	FiringNotIn      ReasonCode = "automation.not_in"     // something of the sequence is pending
	FiringCooldown   ReasonCode = "automation.cooldown"   // it acted for the person recently
	FiringTakeover   ReasonCode = "automation.takeover"   // the client's people answer this person
	FiringDepth      ReasonCode = "automation.depth"      // rules triggered each other MaxAutomationDepth times
	FiringMost       ReasonCode = "automation.most"       // the person got as many starts and sends in 24 hours as the client allows
	FiringOnce       ReasonCode = "automation.once"       // it acted for this occurrence
	FiringRunning    ReasonCode = "automation.running"    // if_running of the sequence kept it from a start
	FiringMissed     ReasonCode = "automation.missed"     // too old: a server was away, a database failed over, or a backup was restored
	FiringPast       ReasonCode = "automation.past"       // every step lies in the past
	FiringRefused    ReasonCode = "automation.refused"    // a start or send could not be planned; Detail says why
	FiringNoDefault  ReasonCode = "automation.no_default" // the session has no default sequence
	FiringGone       ReasonCode = "automation.gone"       // the sequence, session or template is gone
	FiringAccount    ReasonCode = "automation.account"    // the client is suspended or expired
	FiringNoPhone    ReasonCode = "automation.no_phone"   // the hook's payload has no valid phone
	FiringChanged    ReasonCode = "automation.changed"    // the date changed: the messages for the old one are cancelled
	FiringUnkept     ReasonCode = "automation.unkept"     // the client keeps no replies, so nobody knows whether the person answered
	FiringAnswered   ReasonCode = "automation.answered"   // the person answered meanwhile
	FiringNoDate     ReasonCode = "automation.no_date"    // only in a dry run: the contact has no date that comes
	FiringOptOut     ReasonCode = "automation.opt_out"    // only in a dry run: the text is an opt-out
	FiringOtherWords ReasonCode = "automation.words"      // only in a dry run: the text is none of the words
)

// AutomationFacts is what the store knows of a person when a rule decides.
type AutomationFacts struct {
	Contact  *Contact                   // nil: the person is no contact
	Answered time.Time                  // when the client's people wrote last; zero: never
	Assigned bool                       // an agent in Chatwoot has the conversation
	First    ReplyID                    // the first reply ever that is kept; 0: none
	Replied  bool                       // only for a timer: the person wrote since it was set
	Reached  int                        // starts and sends of automations within AutomatedWithin
	Acted    map[AutomationID]time.Time // when each rule acted last for the person, within MaxCooldownHours
	Running  map[SequenceID]bool        // something of the sequence is pending
}

// HookSecret is the secret part of a hook's address. The plain secret is never stored.
type HookSecret struct {
	Hash   KeyHash
	Sealed []byte // for its owner, who may see it again
}

// Hook is what a rule with the trigger hook has besides.
type Hook struct {
	Client     ClientID
	Automation AutomationID
	Active     bool
	Map        map[string]string // as in [Trigger]
	Sealed     []byte
	Payload    []byte    // the last one, at most MaxHookBody; nil: none yet, or removed
	PayloadAt  time.Time // zero: no call yet
	Form       bool      // the payload is a form, not JSON
}

// HookCall is one call of a hook, after its mapping.
type HookCall struct {
	Automation AutomationID
	Key        string            // what makes a repeat a repeat: the caller's idempotency key, or a hash of the body
	Phone      string            // "": the payload has no valid one; then the call is only logged
	Fields     map[string]string // by field; at most MaxHookFields
	Payload    []byte
	Form       bool
	At         time.Time
}

// HookTenant is the owner's side of hooks. Codes: not_found (no rule, or not a hook).
type HookTenant interface {
	Hook(ctx context.Context, id AutomationID) (Hook, error)
	SetHookSecret(ctx context.Context, id AutomationID, s HookSecret) error // the former address is unknown at once
}

// PersonFirings is what automations keep about one person, under each name of the person. An erasure removes it.
type PersonFirings interface {
	// FiringsOf lists the lines of all rules' logs that concern the person, newest first. Codes: invalid (the cursor).
	FiringsOf(ctx context.Context, phone string, p Page) ([]Firing, string, error)
	// PayloadsOf returns the hooks whose last payload names the person: at most MaxAutomations.
	PayloadsOf(ctx context.Context, phone string) ([]Hook, error)
}

// HookStore takes calls of hooks.
type HookStore interface {
	// HookOf finds the hook of an address, also of a rule that is not active. Codes: not_found.
	HookOf(ctx context.Context, hash KeyHash) (Hook, error)
	// CallHook keeps the payload and writes the trigger, in one transaction. It reports whether the call is new: a repeat within HookRepeat
	// has no effect. Codes: not_found.
	CallHook(ctx context.Context, client ClientID, c HookCall) (fresh bool, err error)
}
