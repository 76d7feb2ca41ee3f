package puntuale

import "time"

// PendingStepKind names a step that somebody begins in one request and finishes in a later one. This file is the one table of such steps.
// Each has a deadline, and ends at once when its user is removed or changes the password. The code that checks a step is named beside it.
type PendingStepKind string

const (
	UnfinishedSignIn     PendingStepKind = "sign-in"    // the password was right; a choice or a code is missing (control.Resume)
	UnfinishedSecond     PendingStepKind = "second"     // a secret is shown; its first code is missing ([PendingStep.Open])
	UnfinishedTicket     PendingStepKind = "ticket"     // a link signs in its user (control.Redeem)
	UnfinishedInvitation PendingStepKind = "invitation" // a link lets a user set a password (control.Join)
	UnfinishedReset      PendingStepKind = "reset"      // a link lets a user set a new password ([account.Accounts.Reset])
	UnfinishedPairing    PendingStepKind = "pairing"    // codes are shown, and no phone has used one yet; a new begin sets a new deadline (control's state of a session)
	UnfinishedDraft      PendingStepKind = "draft"      // a form is changed and not saved; a browser's tab keeps it for its user
)

// Lasts is how long a step may take; 0 for an unknown kind.
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

// PendingStep is a step that was begun. It is kept sealed with a browser's visit, or in a row beside a link's hash.
type PendingStep struct {
	Kind  PendingStepKind `json:"kind"`
	User  LoginID         `json:"user"`
	Stamp int64           `json:"stamp"` // the user's [User.Stamp] at the beginning
	Until time.Time       `json:"until"`
}

// Begin begins a step as the user.
func (k PendingStepKind) Begin(u User, now time.Time) PendingStep {
	return PendingStep{Kind: k, User: u.ID, Stamp: u.Stamp, Until: now.Add(k.Lasts())}
}

// Open reports whether the user can still finish the step. It must be of this kind, and before its deadline. The user must not have changed
// the password or ended all visits since. u is the user as stored now.
func (p PendingStep) Open(kind PendingStepKind, u User, now time.Time) bool {
	return p.Kind == kind && p.User == u.ID && p.Stamp == u.Stamp && now.Before(p.Until)
}
