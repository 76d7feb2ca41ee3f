package puntuale

import (
	"context"
	"fmt"
	"time"
)

// LoginID names a user.
type LoginID int64

func (id LoginID) String() string { return fmt.Sprint(int64(id)) }

// Role is what a user may do in a dashboard. A greater one includes the lesser. The numbers are what stores keep.
type Role int8

const (
	Reader Role = 1 // sees everything but keys, changes nothing
	Staff  Role = 2 // does the daily work
	Owner  Role = 3 // also manages users, keys, the brand and what costs money
)

var roleNames = [...]string{Reader: "reader", Staff: "staff", Owner: "owner"}

func (r Role) String() string {
	if r < Reader || r > Owner {
		return fmt.Sprintf("Role(%d)", int8(r))
	}
	return roleNames[r]
}

// ParseRole reads one of reader, staff, owner.
func ParseRole(word string) (Role, error) {
	for r := Reader; r <= Owner; r++ {
		if roleNames[r] == word {
			return r, nil
		}
	}
	return 0, fmt.Errorf("%q is not one of reader, staff, owner", word)
}

// User is somebody who may enter a dashboard: the partner's own, or with Client that client's. The e-mail is unique among the partner's
// users, its clients' users included.
type User struct {
	ID       LoginID
	Partner  PartnerID
	Client   ClientID // 0: the partner's own
	Email    string
	Name     string
	Password string // argon2id hash, never the password itself
	Role     Role
	Language string // "it", "en"; "" as the browser asks
	Stamp    int64  // a higher stamp ends all visits and pending steps of the user
	Second   SecondFactor
	Created  time.Time
	Seen     time.Time // signed in last; zero: never
	Joined   bool      // has a password; read only
	Invited  time.Time // until then a link lets them set a password; zero: there is no link; read only
}

// Invitation is a link with which a user sets a password, once, until it expires. A user has one at most.
type Invitation struct {
	Hash    string // of the link's secret, which is stored nowhere
	Expires time.Time
	Mail    *Mail // tells the user of the link; nil: somebody else does. The store sets its Partner and User
}

// SecondFactor is the code that a sign-in needs besides the password.
type SecondFactor struct {
	Secret   []byte   // sealed; empty: there is no second factor
	Last     int64    // the time step of the last accepted code, because each code works once
	Recovery []string // keyed hashes of the unused recovery codes; each works once
}

// On reports whether a second factor is asked for.
func (s SecondFactor) On() bool { return len(s.Secret) > 0 }

// UserPatch changes a user. EndVisits ends all visits and pending steps of the user.
type UserPatch struct {
	Name      Change[string]
	Role      Change[Role]
	Language  Change[string]
	Password  Change[string] // its hash
	Second    Change[SecondFactor]
	Seen      Change[time.Time]
	NewPlace  Change[string] // the sign-in at Seen was in a browser that is new to the user, at this address ("": not known). The user is told
	EndVisits bool
}

// Host is a partner and its brand. People who have not signed in yet see it.
type Host struct {
	Partner Partner
	Brand   Brand
}

// Brand is how a partner's pages look to its clients. Zero values are the product's own.
type Brand struct {
	Name     string // "": the partner's
	Colour   string // #rrggbb
	Logo     []byte // not set if only Mark is needed
	LogoKind string // its media type; "": no logo
	Mark     string // changes with Colour and Logo; "": no logo or colour was ever set

	Host      string // the host name that the partner asks for, in ASCII and small letters; "": none
	Confirmed bool   // Host is proven to be the partner's: its pages are served there
}

// Actor is who did something, for the audit log. The zero Actor is the service itself.
type Actor struct {
	User    LoginID // 0: no person
	Who     string  // the user's e-mail, or ActorKey
	Entry   bool    // the partner's user, in the client's dashboard
	Address string  // where the person's browser was; "" not known
}

// ActorKey is the actor of what a program did with a key.
const ActorKey = "api"

// AuditEntry is one action of a person or a program. It holds no phone number, no text and no key.
type AuditEntry struct {
	ID     int64
	Client ClientID // whose dashboard it was; 0: the partner's own
	User   LoginID
	Who    string // the user's e-mail at that time
	Entry  bool   // the partner's user, in the client's dashboard
	Action string // "client.create"
	Target string // the object of the action, as an identifier or a name; may be ""
	At     time.Time

	Address string // where the person's browser was; "" not known
	Times   int64  // how often it happened; more than once only for [FailedSignIn]
}

// FailedSignIn is the action of attempts to sign in that failed. Their target says what was wrong: password, code.
const FailedSignIn = "signin_failed"

// SignInFailure is a failed attempt to sign in as a user.
type SignInFailure struct {
	User    User   // its ID, Partner, Client and Email
	What    string // what was wrong: password, code
	Address string // "" not known
}

// MaxFailures is about how many entries the failed attempts of one user make in the audit log within a day.
const MaxFailures = 20

// Visit has the data of a browser while its user is signed in, or is signing in.
type Visit struct {
	Token   string // a hash of what the browser holds
	Data    []byte
	Expires time.Time
}

// SignInAttempt is one account or address, as a keyed hash, for which attempts to sign in are counted. After Free of them each
// makes the next wait longer, up to [MaxWait].
type SignInAttempt struct {
	Mark string
	Free int
}

// These are the longest wait before a next attempt, and the time after which the count is forgotten.
const (
	MaxWait     = 15 * time.Minute
	ForgetTries = 24 * time.Hour
)

// SignInStores are the parts of the store that work before the user is known.
type SignInStores interface {
	LoginStore
	TicketStore
	InvitationStore
	VisitStore
	TryStore
}

// LoginStore finds users of all partners and clients.
type LoginStore interface {
	// UsersByEmail returns users with the e-mail, in upper or lower case, at most limit, by id. partner 0: of any partner. Users of deleted
	// clients are left out.
	UsersByEmail(ctx context.Context, email string, partner PartnerID, limit int) ([]User, error)
	// UserByID returns a user and the partner, without the logo. Codes: not_found.
	UserByID(ctx context.Context, id LoginID) (User, Host, error)
	// HostNamed finds a partner by its confirmed host name, HostSlug by its slug, both without the logo. Codes: not_found.
	HostNamed(ctx context.Context, name string) (Host, error)
	HostSlug(ctx context.Context, slug string) (Host, error)
}

// TicketStore keeps pending steps that a link continues. The caller checks whether such a step is still open: see [PendingStep.Open].
type TicketStore interface {
	IssueTicket(ctx context.Context, hash string, s PendingStep) error
	// Ticket returns a ticket of the kind and does not remove it. Codes: not_found.
	Ticket(ctx context.Context, hash string, kind PendingStepKind) (PendingStep, error)
	// SpendTicket removes a ticket of the kind and returns it, so only one caller gets it. Codes: not_found.
	SpendTicket(ctx context.Context, hash string, kind PendingStepKind) (PendingStep, error)
}

// InvitationStore finds invitations, and takes them.
type InvitationStore interface {
	// Invited returns the user who has this invitation, if it is valid at now. Codes: not_found.
	Invited(ctx context.Context, hash string, now time.Time) (LoginID, error)
	// TakeInvitation takes an invitation that is valid at now, once. It sets the hash of the user's password, and ends the user's visits
	// and pending steps. Codes: not_found.
	TakeInvitation(ctx context.Context, hash string, now time.Time, password string) (LoginID, error)
}

// VisitStore keeps visits.
type VisitStore interface {
	Visit(ctx context.Context, token string, now time.Time) (data []byte, found bool, err error)
	KeepVisit(ctx context.Context, v Visit) error
	EndVisit(ctx context.Context, token string) error // nil where there is none
	// PurgeSignIns removes visits, tickets, invitations and counted attempts whose time is over.
	PurgeSignIns(ctx context.Context, now time.Time) error
}

// TryStore counts attempts to sign in.
type TryStore interface {
	// Try counts an attempt for each mark. If one of them must wait, it counts nothing and returns the longest wait. It is exact under any
	// concurrency and number of nodes.
	Try(ctx context.Context, tries []SignInAttempt, now time.Time) (wait time.Duration, err error)
	// Forget removes the count of some marks after a sign-in, and lowers the count of the others by one.
	Forget(ctx context.Context, marks, others []string) error
	// Fail notes that an attempt counted under the mark failed, and puts the failures into the audit log. Repeats from
	// one address within an hour only raise their entry's Times. Failures beyond MaxFailures within a day are counted
	// in one entry without an address.
	Fail(ctx context.Context, mark string, failures []SignInFailure, now time.Time) error
}

// UserStore keeps a partner's users, and those of its clients. client 0 is the partner itself. A client or a user of another partner, or a
// deleted client, is not_found.
type UserStore interface {
	Users(ctx context.Context, client ClientID) ([]User, error) // by id
	User(ctx context.Context, client ClientID, id LoginID) (User, error)
	// CreateUser creates a user, with an invitation if i is not nil. Codes: conflict (the e-mail is in use among the partner's users; the partner has MaxUsers), quota_reached.
	CreateUser(ctx context.Context, u User, i *Invitation) (LoginID, error)
	// Invite gives a user an invitation, which replaces any other.
	Invite(ctx context.Context, client ClientID, id LoginID, i Invitation) error
	// Uninvite takes the invitation back. Codes: not_found (also if the user has none).
	Uninvite(ctx context.Context, client ClientID, id LoginID) error
	// UpdateUser changes what the patch sets. A new password ends the user's invitation. when, if not nil, gets the user as stored, with
	// the row locked. If it returns an error, UpdateUser returns it. Codes: conflict (nobody would be left with the role of an owner).
	UpdateUser(ctx context.Context, client ClientID, id LoginID, p UserPatch, when func(User) error) (User, error)
	// DeleteUser; codes: conflict (nobody would be left with the role of an owner).
	DeleteUser(ctx context.Context, client ClientID, id LoginID) error
}

// MaxUsers is how many users a partner may have, and the largest quota of users.
const MaxUsers = 200

// AuditStore keeps the audit entries of dashboards.
type AuditStore interface {
	AddAudit(ctx context.Context, e AuditEntry) error
	// Audit lists entries, newest first: of one client, or with client 0 of the partner and all of its clients. Codes:
	// invalid (the cursor).
	Audit(ctx context.Context, client ClientID, p Page) ([]AuditEntry, string, error)
}

// BrandStore keeps a partner's brand.
type BrandStore interface {
	Host(ctx context.Context) (Host, error)
	// Logo returns the logo and its media type, nil when there is none.
	Logo(ctx context.Context) (logo []byte, kind string, err error)
	// SetBrand stores the brand. The store sets Mark. Confirmed stays while Host is the same. A new name waits to be
	// confirmed, and several partners may wait for the same name. The stored version must be one of those known (none:
	// any). Codes: conflict (the name is another partner's); precondition_failed.
	SetBrand(ctx context.Context, b Brand, known ...Version) error
	// ConfirmHost confirms the name that the partner asks for. Of partners that call it at once for one name, one
	// succeeds. Codes: not_found (the partner does not ask for this name); conflict (it is another partner's).
	ConfirmHost(ctx context.Context, name string) error
	// WithdrawHost ends the confirmation; the name waits again. Codes: not_found (no name is confirmed).
	WithdrawHost(ctx context.Context) error
}
