package puntuale

import (
	"context"
	"time"
)

// Purpose is why a message is sent. Consent is given and withdrawn for a purpose.
type Purpose int8

const (
	PurposeService      Purpose = iota // what the person expects: reminders, answers, receipts
	PurposeMarketing                   // advertising: needs consent if the client's settings say so, and never leaves after an opt-out
	PurposeConfirmation                // only for messages: the confirmation of an opt-out, which may pass the blacklist
)

// The words of purposes on the wire.
const (
	purposeService   = "service"
	purposeMarketing = "marketing"
)

// ParsePurpose reads a purpose of the wire; "" is service.
func ParsePurpose(word string) (p Purpose, ok bool) {
	switch word {
	case "", purposeService:
		return PurposeService, true
	case purposeMarketing:
		return PurposeMarketing, true
	}
	return 0, false
}

// String is the purpose's word on the wire. A confirmation is a service.
func (p Purpose) String() string {
	if p == PurposeMarketing {
		return purposeMarketing
	}
	return purposeService
}

// ConsentChange is a person's change of consent. Stores keep the number.
type ConsentChange int8

const (
	ConsentGrant    ConsentChange = iota + 1
	ConsentWithdraw               // also called opt-out
	ConsentUndo                   // undoes a withdrawal if there was no consent before
)

// String is the change's word on the wire.
func (c ConsentChange) String() string {
	return map[ConsentChange]string{ConsentGrant: "grant", ConsentWithdraw: "withdraw", ConsentUndo: "undo"}[c]
}

// ParseConsentChange reads what a program may enter: grant or withdraw.
func ParseConsentChange(word string) (c ConsentChange, ok bool) {
	for _, c := range []ConsentChange{ConsentGrant, ConsentWithdraw} {
		if c.String() == word {
			return c, true
		}
	}
	return 0, false
}

// Consent is one row of the ledger: proof of what a person agreed to. Rows are only added.
type Consent struct {
	ID      int64
	Phone   string // "" of an erased person
	Erased  bool   // the store has only a keyed hash of the number, and no words
	Purpose Purpose
	Change  ConsentChange
	Source  string // where the change came from: a form, an import, "reply"
	Words   string // what the person said or signed
	Message string // the network's id of the person's message; "": the change came without a message
	By      string // the user or key that entered it, "" for the person
	At      time.Time
	Entered time.Time
	Applied bool // false: a later change was already stored, so this one had no effect
}

// ConsentEntry is a change that is to enter the ledger.
type ConsentEntry struct {
	Consent
	Client    ClientID
	Mark      string // of the phone; see [BlacklistEntry]
	ReplyMark string // of the person's message; the same message enters the ledger once. "": none
	Blacklist string // a withdrawal also adds the phone to the blacklist, with this reason; "": it does not
}

// ConsentResult says what an entry did.
type ConsentResult struct {
	Consent      // the stored entry: an undo becomes a grant if there was consent before; Change 0: there was nothing to undo
	Changed bool // the present consent changed
}

// ConsentStatus is the present consent of a person for a purpose; zero: there is no entry.
type ConsentStatus struct {
	Change ConsentChange
	At     time.Time
}

// ConsentStore keeps the ledger of consent.
type ConsentStore interface {
	// AddConsent enters a change and counts one call, which the cap never refuses. o may be nil; its Answer gets the
	// Consent.
	AddConsent(ctx context.Context, e ConsentEntry, day Date, o *Idempotency) (Consent, error)

	// AddConsents enters many changes, 200 a transaction, and counts no call. After a failure the call may be repeated.
	// Then the ledger has the earlier entries twice.
	AddConsents(ctx context.Context, all []ConsentEntry) error

	// Consents lists the ledger, oldest first: of one phone (and its mark), or with phone "" of all phones. Codes:
	// invalid (the cursor).
	Consents(ctx context.Context, phone, mark string, p Page) ([]Consent, string, error)

	// CancelMarketing cancels pending marketing to the phone, in chunks, and returns how many messages.
	CancelMarketing(ctx context.Context, phone string, now time.Time) (int, error)

	// MarketingRefused returns which of the phones get no marketing now. The marks are in the same order.
	MarketingRefused(ctx context.Context, phones, marks []string) (map[string]bool, error)

	// ConsentStatuses returns the present consent of a phone (or its mark), by purpose.
	ConsentStatuses(ctx context.Context, phone, mark string) (map[Purpose]ConsentStatus, error)
}
