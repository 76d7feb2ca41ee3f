package puntuale

import (
	"fmt"
	"time"
)

// UserID names a user.
type UserID int64

func (id UserID) String() string { return fmt.Sprint(int64(id)) }

// Role says what a user may do in a dashboard. A higher role may do all that a lower role may do. The database contains
// the numbers.
type Role int8

const (
	Reader Role = 1 // sees everything except keys; changes nothing
	Staff  Role = 2 // does the daily work
	Owner  Role = 3 // also manages users, keys, the brand, and everything that costs money
)

var roleNames = [...]string{Reader: "reader", Staff: "staff", Owner: "owner"}

func (r Role) String() string {
	if r < Reader || r > Owner {
		return fmt.Sprintf("Role(%d)", int8(r))
	}
	return roleNames[r]
}

// ParseRole reads one of the words reader, staff, owner.
func ParseRole(word string) (Role, error) {
	for r := Reader; r <= Owner; r++ {
		if roleNames[r] == word {
			return r, nil
		}
	}
	return 0, fmt.Errorf("%q is not one of reader, staff, owner", word)
}

// User is a person who may sign in to the partner's dashboard, or to the dashboard of the client in Client. No two
// users of a partner and its clients have the same e-mail.
type User struct {
	ID       UserID
	Partner  PartnerID
	Client   ClientID // 0: the user signs in to the partner's dashboard
	Email    string
	Name     string
	Password string // an argon2id hash, never the password itself
	Role     Role
	Language string // "it", "en"; "": the language that the browser asks for
	Stamp    int64  // each increase of the stamp ends all visits and pending steps of the user
	Second   SecondFactor
	Created  time.Time
	Seen     time.Time // when the user last signed in; zero: never
	Joined   bool      // the user has a password; only the store sets this
	// Invited is the time until which the user can set a password with the link of an invitation. Zero means that there
	// is no link. Only the store sets Invited.
	Invited time.Time
}

// Invitation is a link with which a user sets a password. The link works only once, and only until it expires. A user
// has at most one invitation.
type Invitation struct {
	Hash    string // hash of the link's secret; the secret itself is not stored
	Expires time.Time
	Mail    *Mail // the e-mail that contains the link; the store sets its Partner and User. nil: the user gets the link in another way
}

// SecondFactor is the data of a user's second factor: a code from the phone that a sign-in needs besides the
// password.
type SecondFactor struct {
	Secret   []byte   // sealed; empty: the user has no second factor
	Last     int64    // time step of the last accepted code, because each code works only once
	Recovery []string // keyed hashes of the unused recovery codes, each of which works once
}

// Enabled reports whether a sign-in needs the second factor.
func (s SecondFactor) Enabled() bool { return len(s.Secret) > 0 }

// UserPatch changes a user. EndVisits ends all visits and pending steps of the user.
type UserPatch struct {
	Name     Change[string]
	Role     Change[Role]
	Language Change[string]
	Password Change[string] // hash of the new password
	Second   Change[SecondFactor]
	Seen     Change[time.Time]
	// NewPlace is set if the user signed in at the time Seen with a browser that is new to the user. Then the user gets
	// a notice. The value is the IP address of the browser; "" means unknown.
	NewPlace  Change[string]
	EndVisits bool
}

// Host is a partner with its brand. Pages show the brand even to people who have not signed in.
type Host struct {
	Partner Partner
	Brand   Brand
}

// Brand is how a partner's pages look to its clients. A zero value means the product's own look.
type Brand struct {
	Name     string // "": the partner's name
	Colour   string // colour of the pages, as #rrggbb
	Logo     []byte // not set if a method returns only Mark
	LogoKind string // media type of the logo; "": no logo
	Mark     string // changes with Colour and Logo; "": neither was ever set

	Host      string // the partner's own host name, in ASCII and small letters; "": none
	Confirmed bool   // the partner has proved that Host is its own, so the server shows the partner's pages there
}

// Actor says who did something, for the audit log. The zero Actor is the server itself.
type Actor struct {
	User    UserID // the user who did it; 0: no user did it
	Who     string // the user's e-mail, or ActorKey
	Entry   bool   // a user of the partner did it in the client's dashboard
	Address string // IP address of the person's browser; "": unknown
}

// ActorKey is the Actor's Who if a program did something with an API key.
const ActorKey = "api"

// ActorPage is the Who of an [AuditEntry] if somebody without an account did it, through a linking page.
const ActorPage = "page"

// AuditEntry is one action of a person or a program. It contains no phone number, no text and no key.
type AuditEntry struct {
	ID     int64
	Client ClientID // client whose dashboard it was; 0: the partner's dashboard
	User   UserID
	Who    string // the user's e-mail at that time, ActorKey or ActorPage
	Entry  bool   // a user of the partner did it in the client's dashboard
	Action string // what was done, such as "client.create"
	Target string // identifier or name of the thing that was changed; may be ""
	At     time.Time

	Address string // IP address of the person's browser; "": unknown
	Times   int64  // how often it happened; only [FailedSignIn] may have more than 1
}

// FailedSignIn is the Action of failed sign-ins. Target says what was wrong: password or code.
const FailedSignIn = "signin_failed"

// SignInFailure is one failed attempt to sign in as a user.
type SignInFailure struct {
	User    User   // only its ID, Partner, Client and Email are set
	What    string // what was wrong: password or code
	Address string // IP address of the browser; "": unknown
}

// MaxFailures is approximately the largest number of audit entries that the failed sign-ins of one user make in a day.
const MaxFailures = 20

// Visit is the data that the server stores for one browser while a user signs in, and while the user is signed in.
type Visit struct {
	Token   string // hash of the token that the browser stores
	User    UserID // 0: nobody is signed in
	Data    []byte
	Expires time.Time
}

// SignInAttempt is an attempt that the store counts. Mark is the keyed hash under which the attempt is counted, for
// example the hash of an account or of an IP address. After Free attempts, each further attempt makes the next wait
// longer, up to [MaxWait].
type SignInAttempt struct {
	Mark string
	Free int
}

// MaxWait is the longest wait before the next attempt. ForgetTries is the time after which a store forgets its count of
// attempts.
const (
	MaxWait     = 15 * time.Minute
	ForgetTries = 24 * time.Hour
)

// MaxUsers is how many users a partner may have. It is also the largest quota of users for a client.
const MaxUsers = 200

// PendingStepKind names a step that a user begins in one request and finishes in a later request. The list below
// contains all such steps, and names the code that checks each step. Each step has a deadline. A step also ends when
// its user is removed or changes the password.
type PendingStepKind string

const (
	UnfinishedSignIn     PendingStepKind = "sign-in"    // the password was right; a choice or a code is missing (checked by control.Resume)
	UnfinishedSecond     PendingStepKind = "second"     // the page shows a new secret; the first code made with it is missing (checked by [PendingStep.Open])
	UnfinishedTicket     PendingStepKind = "ticket"     // a link that signs its user in (checked by control.Redeem)
	UnfinishedInvitation PendingStepKind = "invitation" // a link with which a user sets a first password (checked by control.Join)
	UnfinishedReset      PendingStepKind = "reset"      // a link with which a user sets a new password (checked by [account.Accounts.Reset])
	UnfinishedPairing    PendingStepKind = "pairing"    // codes are shown, and no phone has used one yet; beginning again sets a new deadline (checked by control in reads of the session)
	UnfinishedPage       PendingStepKind = "page"       // somebody got the address of a linking page (checked by control)
	UnfinishedDraft      PendingStepKind = "draft"      // a form was changed and not saved; the browser's tab keeps it for its user
)

// Lifetime returns how long a step may take, or 0 for an unknown kind.
func (k PendingStepKind) Lifetime() time.Duration {
	switch k {
	case UnfinishedSignIn, UnfinishedSecond, UnfinishedPairing:
		return 10 * time.Minute
	case UnfinishedReset:
		return time.Hour
	case UnfinishedTicket, UnfinishedPage, UnfinishedDraft:
		return 24 * time.Hour
	case UnfinishedInvitation:
		return 7 * 24 * time.Hour
	}
	return 0
}

// PendingStep is a step that a user began. It is stored sealed, in a visit, or in a row together with a link's hash.
type PendingStep struct {
	Kind  PendingStepKind `json:"kind"`
	User  UserID          `json:"user"`
	Stamp int64           `json:"stamp"` // the user's [User.Stamp] at the beginning
	Until time.Time       `json:"until"`
}

// Begin returns a new step of this kind for the user u.
func (k PendingStepKind) Begin(u User, now time.Time) PendingStep {
	return PendingStep{Kind: k, User: u.ID, Stamp: u.Stamp, Until: now.Add(k.Lifetime())}
}

// Open reports whether the user can still finish the step. The step must be of this kind, and now must be before its
// deadline. Since the step began, the user must not have changed the password or ended all visits. The argument u is
// the user as stored now.
func (p PendingStep) Open(kind PendingStepKind, u User, now time.Time) bool {
	return p.Kind == kind && p.User == u.ID && p.Stamp == u.Stamp && now.Before(p.Until)
}
