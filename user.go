package puntuale

import (
	"context"
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

// AuditEntry is one action of a person or a program. It contains no phone number, no text and no key.
type AuditEntry struct {
	ID     int64
	Client ClientID // client whose dashboard it was; 0: the partner's dashboard
	User   UserID
	Who    string // the user's e-mail at that time, or ActorKey
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

// SignInStores has the parts of the store that work before the server knows the user.
type SignInStores interface {
	LoginStore
	TicketStore
	InvitationStore
	VisitStore
	TryStore
}

// LoginStore finds users of all partners and clients.
type LoginStore interface {
	// UsersByEmail returns at most limit users with the e-mail, sorted by id. Upper and lower case make no difference.
	// If partner is 0, it searches the users of all partners. UsersByEmail leaves out users of deleted clients.
	UsersByEmail(ctx context.Context, email string, partner PartnerID, limit int) ([]User, error)
	// UserByID returns a user, and the user's partner without the logo. Codes: not_found.
	UserByID(ctx context.Context, id UserID) (User, Host, error)
	// HostNamed finds a partner by its confirmed host name, and HostSlug by its slug. Both return no logo. Codes:
	// not_found.
	HostNamed(ctx context.Context, name string) (Host, error)
	HostSlug(ctx context.Context, slug string) (Host, error)
}

// TicketStore stores pending steps that a user continues with a link. The caller must check with [PendingStep.Open]
// whether the step is still open.
type TicketStore interface {
	IssueTicket(ctx context.Context, hash string, s PendingStep) error
	// Ticket returns the ticket of the given kind, and does not remove it. Codes: not_found.
	Ticket(ctx context.Context, hash string, kind PendingStepKind) (PendingStep, error)
	// SpendTicket removes the ticket of the given kind and returns it, so only one caller gets it. Codes: not_found.
	SpendTicket(ctx context.Context, hash string, kind PendingStepKind) (PendingStep, error)
}

// InvitationStore finds invitations, and lets users accept them.
type InvitationStore interface {
	// Invited returns the user with this invitation, if the invitation is valid at the time now. Codes: not_found.
	Invited(ctx context.Context, hash string, now time.Time) (UserID, error)
	// TakeInvitation accepts an invitation that is valid at the time now; this works only once. It stores the hash of
	// the user's new password, and ends the user's visits and pending steps. Codes: not_found.
	TakeInvitation(ctx context.Context, hash string, now time.Time, password string) (UserID, error)
}

// VisitStore stores visits.
type VisitStore interface {
	Visit(ctx context.Context, token string, now time.Time) (data []byte, found bool, err error)
	KeepVisit(ctx context.Context, v Visit) error
	EndVisit(ctx context.Context, token string) error // returns nil even if there is no such visit
	// PurgeSignIns deletes expired visits, tickets and invitations, and old counts of attempts.
	PurgeSignIns(ctx context.Context, now time.Time) error
}

// TryStore counts attempts to sign in.
type TryStore interface {
	// Try counts one attempt for each of tries. If one of them must wait, Try counts nothing and returns the longest
	// wait. Try is exact under any concurrency and with any number of nodes.
	Try(ctx context.Context, tries []SignInAttempt, now time.Time) (wait time.Duration, err error)
	// Forget is called after a successful sign-in. It deletes the counts under the hashes in the argument marks. It
	// subtracts one from the counts under the hashes in the argument others.
	Forget(ctx context.Context, marks, others []string) error
	// Fail notes that an attempt failed. The argument mark is the hash under which Try counted the attempt. Fail adds
	// the failures to the audit log. Within an hour, a further failure from the same address only raises Times of the
	// entry.
	// After [MaxFailures] in a day, all further failures share one entry without an address.
	Fail(ctx context.Context, mark string, failures []SignInFailure, now time.Time) error
}

// UserStore stores the users of a partner (client 0) and of its clients. A user or client of another partner, or a
// deleted client, is missing: not_found.
type UserStore interface {
	Users(ctx context.Context, client ClientID) ([]User, error) // sorted by id
	User(ctx context.Context, client ClientID, id UserID) (User, error)
	// CreateUser creates a user, with an invitation if i is not nil. Codes: conflict (another user of the partner or
	// its clients has the e-mail; or the partner has MaxUsers), quota_reached.
	CreateUser(ctx context.Context, u User, i *Invitation) (UserID, error)
	// Invite gives the user an invitation, and ends an earlier invitation of this user.
	Invite(ctx context.Context, client ClientID, id UserID, i Invitation) error
	// Uninvite deletes the user's invitation. Codes: not_found (also if the user has none).
	Uninvite(ctx context.Context, client ClientID, id UserID) error
	// UpdateUser makes the changes of the patch. A new password ends the user's invitation. The function allow may be
	// nil. If it is not nil, UpdateUser calls it with the stored user while the row is locked. If allow returns an
	// error, UpdateUser changes nothing and returns this error. Codes: conflict (no owner would be left).
	UpdateUser(ctx context.Context, client ClientID, id UserID, p UserPatch, allow func(User) error) (User, error)
	// DeleteUser deletes a user. Codes: conflict (no owner would be left).
	DeleteUser(ctx context.Context, client ClientID, id UserID) error
}

// MaxUsers is how many users a partner may have. It is also the largest quota of users for a client.
const MaxUsers = 200

// AuditStore stores the audit entries of dashboards.
type AuditStore interface {
	AddAudit(ctx context.Context, e AuditEntry) error
	// Audit lists entries of one client, newest first. With client 0 it lists the entries of the partner and all its
	// clients. Codes: invalid (the cursor).
	Audit(ctx context.Context, client ClientID, p Page) ([]AuditEntry, string, error)
}

// BrandStore stores a partner's brand.
type BrandStore interface {
	Host(ctx context.Context) (Host, error)
	// Logo returns the logo and its media type. The result logo is nil if there is none.
	Logo(ctx context.Context) (logo []byte, kind string, err error)
	// SetBrand stores the brand. The store sets Mark. Confirmed stays true only if Host is unchanged. A new host name
	// must be confirmed, and several partners may wait for the same name. If the argument known is not empty, the
	// stored version must be in it. Codes: conflict (the name is confirmed for another partner); precondition_failed.
	SetBrand(ctx context.Context, b Brand, known ...Version) error
	// ConfirmHost confirms the host name that the partner asks for. If several partners confirm the same name at
	// the same time, only one call succeeds. Codes: not_found (the partner does not ask for this name); conflict (the name is
	// confirmed for another partner).
	ConfirmHost(ctx context.Context, name string) error
	// WithdrawHost ends the confirmation, so the name waits to be confirmed again. Codes: not_found (no name is
	// confirmed).
	WithdrawHost(ctx context.Context) error
}

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
	UnfinishedDraft      PendingStepKind = "draft"      // a form was changed and not saved; the browser's tab keeps it for its user
)

// Lifetime returns how long a step may take, or 0 for an unknown kind.
func (k PendingStepKind) Lifetime() time.Duration {
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
