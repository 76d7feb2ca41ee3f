package puntuale

import "time"

// UnfinishedKind names a step that somebody begins in one request and finishes in a later one. This file is the one table of
// such steps. Each has a deadline, and ends at once when its user is removed or changes the password; what checks it is
// named beside it.
type UnfinishedKind string

const (
	UnfinishedSignIn     UnfinishedKind = "sign-in"    // the password was right; a choice or a code is missing (control.Resume)
	UnfinishedSecond     UnfinishedKind = "second"     // a secret is shown; its first code is missing ([Unfinished.Open])
	UnfinishedTicket     UnfinishedKind = "ticket"     // a link signs in its user (control.Redeem)
	UnfinishedInvitation UnfinishedKind = "invitation" // a link lets a user set a password (control.Join)
	UnfinishedPairing    UnfinishedKind = "pairing"    // codes are shown; no phone has used one; begun anew it has a new deadline (control's state of a session)
	UnfinishedDraft      UnfinishedKind = "draft"      // a form is changed and not saved; a browser's tab keeps it for its user
)

// Lasts is how long a step may take; 0 for what is no kind.
func (k UnfinishedKind) Lasts() time.Duration {
	switch k {
	case UnfinishedSignIn, UnfinishedSecond, UnfinishedPairing:
		return 10 * time.Minute
	case UnfinishedTicket, UnfinishedDraft:
		return 24 * time.Hour
	case UnfinishedInvitation:
		return 7 * 24 * time.Hour
	}
	return 0
}

// Unfinished is a step that was begun. It is kept sealed with a browser's visit, or in a row beside a link's hash.
type Unfinished struct {
	Kind  UnfinishedKind `json:"kind"`
	User  LoginID        `json:"user"`
	Stamp int64          `json:"stamp"` // the user's [User.Stamp] at the beginning
	Until time.Time      `json:"until"`
}

// Begin begins a step as the user.
func (k UnfinishedKind) Begin(u User, now time.Time) Unfinished {
	return Unfinished{Kind: k, User: u.ID, Stamp: u.Stamp, Until: now.Add(k.Lasts())}
}

// Open reports whether the user can still finish the step. It must be of this kind, and before its deadline. The user
// must not have changed the password or ended all visits since. u is as stored now.
func (p Unfinished) Open(kind UnfinishedKind, u User, now time.Time) bool {
	return p.Kind == kind && p.User == u.ID && p.Stamp == u.Stamp && now.Before(p.Until)
}
