package puntuale

import "time"

// PendingStepKind names a step that a user begins in one request and finishes in a later one. The list below has all
// such steps, and names the code that checks each step. Each step has a deadline. It also ends when its user is
// removed or changes the password.
type PendingStepKind string

const (
	UnfinishedSignIn     PendingStepKind = "sign-in"    // the password was right; a choice or a code is missing (checked by control.Resume)
	UnfinishedSecond     PendingStepKind = "second"     // the page shows a new secret; the first code made with it is missing (checked by [PendingStep.Open])
	UnfinishedTicket     PendingStepKind = "ticket"     // a link that signs its user in (checked by control.Redeem)
	UnfinishedInvitation PendingStepKind = "invitation" // a link with which a user sets a first password (checked by control.Join)
	UnfinishedReset      PendingStepKind = "reset"      // a link with which a user sets a new password (checked by [account.Accounts.Reset])
	UnfinishedPairing    PendingStepKind = "pairing"    // codes are shown, and no phone has used one yet; beginning anew sets a new deadline (checked by control's state of a session)
	UnfinishedDraft      PendingStepKind = "draft"      // a form was changed and not saved; the browser's tab keeps it for its user
)

// Lasts returns how long a step may take, or 0 for an unknown kind.
func (k PendingStepKind) Lasts() time.Duration {
	switch k {
	case UnfinishedSignIn, UnfinishedSecond, UnfinishedPairing:
		return 10 * time.Minute
	case UnfinishedReset:
		return time.Hour
	case UnfinishedTicket, UnfinishedDraft:
		return 24 * time.Hour
	case UnfinishedInvitation:
		return 7 * 24 * time.Hour
	}
	return 0
}

// PendingStep is a step that a user began. The store keeps it sealed in a visit, or in a row together with a link's
// hash.
type PendingStep struct {
	Kind  PendingStepKind `json:"kind"`
	User  LoginID         `json:"user"`
	Stamp int64           `json:"stamp"` // the user's [User.Stamp] at the beginning
	Until time.Time       `json:"until"`
}

// Begin returns a new step of this kind for the user u.
func (k PendingStepKind) Begin(u User, now time.Time) PendingStep {
	return PendingStep{Kind: k, User: u.ID, Stamp: u.Stamp, Until: now.Add(k.Lasts())}
}

// Open reports whether the user can still finish the step. The step must be of this kind, and now must be before its
// deadline. Since the step began, the user must not have changed the password or ended all visits. u is the user as
// stored now.
func (p PendingStep) Open(kind PendingStepKind, u User, now time.Time) bool {
	return p.Kind == kind && p.User == u.ID && p.Stamp == u.Stamp && now.Before(p.Until)
}
