package puntuale

import (
	"time"
)

// Purpose is why a message is sent. Consent is given and withdrawn for a purpose.
type Purpose int8

const (
	PurposeService      Purpose = iota // messages that the person expects: reminders, answers, receipts
	PurposeMarketing                   // advertising: needs consent if the client's settings say so; never leaves after an opt-out
	PurposeConfirmation                // only for messages: the answer that confirms an opt-out; the blacklist does not stop it
)

// The words of purposes on the wire.
const (
	purposeService   = "service"
	purposeMarketing = "marketing"
)

// ParsePurpose reads the word of a purpose. "" means service.
func ParsePurpose(word string) (p Purpose, ok bool) {
	switch word {
	case "", purposeService:
		return PurposeService, true
	case purposeMarketing:
		return PurposeMarketing, true
	}
	return 0, false
}

// String returns the purpose's word on the wire. A confirmation has the word of service.
func (p Purpose) String() string {
	if p == PurposeMarketing {
		return purposeMarketing
	}
	return purposeService
}

// Values of [Consent.Source] for changes that people make themselves.
const (
	ConsentSourceReply      = "reply"
	ConsentSourcePreference = "whatsapp preference"
)

// ConsentChange says how a person changed their consent. The database contains the number.
type ConsentChange int8

const (
	ConsentGrant    ConsentChange = iota + 1
	ConsentWithdraw               // also called opt-out
	ConsentUndo                   // reverts a withdrawal; a person who gave no consent before has none afterwards
)

// String returns the change's word on the wire.
func (c ConsentChange) String() string {
	return map[ConsentChange]string{ConsentGrant: "grant", ConsentWithdraw: "withdraw", ConsentUndo: "undo"}[c]
}

// ParseConsentChange reads a word that callers may use: grant or withdraw.
func ParseConsentChange(word string) (c ConsentChange, ok bool) {
	for _, c := range []ConsentChange{ConsentGrant, ConsentWithdraw} {
		if c.String() == word {
			return c, true
		}
	}
	return 0, false
}

// Consent is one row of the ledger: proof of what a person agreed to. The store only adds rows.
type Consent struct {
	ID        int64
	Phone     string // "" if the person was erased
	Erased    bool   // the store has only a keyed hash of the number, and has deleted Words
	Purpose   Purpose
	Change    ConsentChange
	Source    string // where the change came from: the caller's words, such as a form's name, or a constant such as ConsentSourceReply
	Words     string // what the person said or signed
	Message   string // the network's id of the person's message; "": the change came without a message
	EnteredBy string // the user or key that entered the change; "": the person did
	At        time.Time
	Entered   time.Time
	Applied   bool // false: the ledger already had a later change, so this change had no effect
}

// ImportMark begins the mark of an entry from an imported list. Such a mark contains no personal data, so it stays in the
// ledger when the person is erased. Then a second import of the list cannot undo a withdrawal.
const ImportMark = "import:"

// ConsentEntry is a change of consent that the store adds to the ledger.
type ConsentEntry struct {
	Consent
	Client    ClientID
	Mark      func(name string) string // see [Person]
	Blacklist string                   // reason with which a withdrawal also adds the phone to the blacklist; "": the blacklist does not change

	// ReplyMark is the mark of the person's message, or ImportMark and a hash of what a list says. The ledger accepts each
	// mark of a person only once. "": there is no mark.
	ReplyMark string
}

// ConsentResult says what a new entry changed.
type ConsentResult struct {
	// Consent is the stored entry. If an undo takes back a withdrawal of an earlier consent, Change is a grant. If there was
	// no withdrawal to undo, nothing is stored, and Change is 0.
	Consent
	Changed bool // the person's present consent changed
}

// ConsentStatus is a person's present consent for one purpose. The zero value means that the ledger has no entry.
type ConsentStatus struct {
	Change ConsentChange
	At     time.Time
}
