package puntuale

import (
	"fmt"
	"slices"
	"time"
)

// Partner resells the service and owns clients.
type Partner struct {
	ID      PartnerID
	Name    string
	Slug    string
	Created time.Time
}

// Login is an e-mail and a password with which a person signs in to a dashboard. No two logins of a partner and its
// clients have the same e-mail.
type Login struct {
	Email    string
	Password string // an argon2id hash, never the password itself
}

// AccountType decides a new client's credits, expiry and cap.
type AccountType string

const (
	AccountTest AccountType = "test" // 100 credits; expires 14 days after creation
	AccountBaby AccountType = "baby" // 2000 credits with an annual refill
	AccountFull AccountType = "full" // no limits
)

// ParseAccountType reads the contract's word for an account type: test, baby or full. "" means full.
func ParseAccountType(word string) (AccountType, error) {
	switch t := AccountType(word); t {
	case "":
		return AccountFull, nil
	case AccountTest, AccountBaby, AccountFull:
		return t, nil
	}
	return "", fmt.Errorf("%q is not one of test, baby, full", word)
}

// Words that the API uses for a client's profile, its refill and its credits.
const (
	ProfileFree    = "Account gratuito"
	ProfileTest    = "Fase di Test"
	ProfileMonthly = "Subscription Mensile"
	ProfileYearly  = "Subscription Annuale"

	RefillNone    = "Nessuno"
	RefillMonthly = "Mensile"
	RefillYearly  = "Annuale"

	UnlimitedCredits = "Illimitati"
)

// Client is a customer of a partner, with the settings of its account.
type Client struct {
	ID       ClientID
	Partner  PartnerID
	Name     string
	Email    string // e-mail of the client's login
	Phone    string // phone of the client, as the partner wrote it
	Type     AccountType
	Profile  string
	Refill   string
	RefillTo int64     // a refill raises the credits to at least this number; 0: no refills
	RefillAt time.Time // time of the next refill; zero: no refill
	// Credits is how many credits are left, at least 0. Credits that are reserved for messages in flight do not count.
	// nil means unlimited.
	Credits   *int64
	Cap       *int64    // largest number of calls in a day; nil: no limit
	Expires   Date      // last day of service; zero: never
	ExpiresAt time.Time // local midnight at the end of Expires; zero: never
	Zone      string    // IANA name of the client's time zone
	Region    string    // the country of phone numbers that are written without a country code
	Closed    []Date    // the client's own holidays, besides the national ones
	Suspended bool
	Features  []string
	Created   time.Time

	// Plan is the plan that the client was created with or moved to last; 0: none. The plan may have been deleted since.
	Plan      PlanID
	PlanSince Date // the client's day when the plan's days of service began; zero: no plan
	// Budget is the amount of the client's [Budget], in millionths; 0: none. The store writes it when it creates a client, and
	// does not read it.
	Budget int64

	// Revision grows with every change that may affect the plan of a start: a change of the client, its keys,
	// sequences, templates or sessions. Data read under one revision are current while the revision stays the same.
	Revision int64

	Connection ConnectionType // type of the client's default session; read only

	// Settings and Quotas belong to the [Client.Version]. Only the methods Client and UpdateClient of a partner set them.
	Settings ClientSettings
	Quotas   Quotas
}

// NewAccount returns a client with the credits, cap, expiry and profile of the account type. The argument today is the
// day of creation. The caller sets the time of the first refill.
func NewAccount(t AccountType, today Date) Client {
	c := Client{Type: t, Zone: "Europe/Rome", Region: "IT", Refill: RefillNone, Profile: ProfileMonthly}
	switch t {
	case AccountTest:
		c.Profile, c.Credits, c.Cap = ProfileTest, new(int64(100)), new(int64(100))
		c.RefillTo = 100 // has no effect until a partner sets refills
		c.Expires = today.AddDays(14)
	case AccountBaby:
		c.Profile, c.Credits, c.Cap = ProfileYearly, new(int64(2000)), new(int64(1000))
		c.Refill, c.RefillTo = RefillYearly, 2000
	}
	return c
}

// SendPermission contains the facts that decide whether a client's messages may leave now.
type SendPermission struct {
	Deleted   bool
	Suspended bool
	Held      bool      // a restore holds the client until a person releases it
	Erased    bool      // the client erased a person, so the client's blacklist may contain marks; see [BlacklistEntry]
	ExpiresAt time.Time // when the service ends; zero: never
	Credits   *int64    // credits left; nil: unlimited
	// MarketingFrom is until when marketing waits, because the budget of the month is used up; zero: it does not wait.
	MarketingFrom time.Time
}

// MarketingWaits reports whether the client's marketing messages must wait, while its other messages leave.
func (s SendPermission) MarketingWaits(now time.Time) bool { return now.Before(s.MarketingFrom) }

// longestMonth is at least as long as marketing can wait for a budget.
const longestMonth = 31*24*time.Hour + time.Hour

// MarketingSpread bounds how much later than MarketingFrom a message may be due again.
const MarketingSpread = longestMonth / marketingOrder

// marketingOrder is by what the times between messages are divided when they wait. So they leave in the order in which they
// were due, if they were at least a tenth of a second apart.
const marketingOrder = 100_000

// MarketingNext returns when a marketing message that must wait is due again: soon after MarketingFrom, but not after the
// message's own deadline.
func (s SendPermission) MarketingNext(m DueMessage) time.Time {
	next := s.MarketingFrom.Add(max(0, m.Due.Sub(s.MarketingFrom.Add(-longestMonth))) / marketingOrder)
	if m.ValidUntil.Before(next) {
		return m.ValidUntil
	}
	return next
}

// WaitReason returns the reason why the client's messages must wait, or "" if they may leave.
func (s SendPermission) WaitReason(now time.Time) ReasonCode {
	switch {
	case s.Deleted:
		return ReasonCancelled
	case s.Suspended:
		return ReasonSuspended
	case s.Held:
		return ReasonHeld
	case !s.ExpiresAt.IsZero() && !now.Before(s.ExpiresAt):
		return ReasonAccountEnded
	case s.Credits != nil && *s.Credits <= 0:
		return ReasonNoCredit
	}
	return ""
}

// NewClient is a request to create a client with its login, its default session and its first key in one transaction.
type NewClient struct {
	Client  Client // the ID is zero, because the store chooses it
	Login   Login  // without a password if Invitation is set
	Session Session
	Key     Key

	Invitation *Invitation // nil: none
	Currency   string      // of Client.Budget
}

// CreatedIDs names a new client and its default session.
type CreatedIDs struct {
	Client  ClientID
	Session SessionID
}

// Change is a new value for something, or no change.
type Change[T any] struct {
	Set bool
	To  T
}

// Apply sets the field to the new value, or does nothing if c is no change.
func (c Change[T]) Apply(field *T) {
	if c.Set {
		*field = c.To
	}
}

// ChangeTo makes a change that sets the value.
func ChangeTo[T any](v T) Change[T] { return Change[T]{Set: true, To: v} }

// ClientPatch names what a partner changes in a client. A patch sets Credits or CreditsAdd, not both. The store
// writes each change of credits to the client's ledger of credits.
type ClientPatch struct {
	Cap     Change[*int64] // nil: no cap
	Credits Change[*int64] // nil: unlimited
	// CreditsAdd is the number to add to the credits. It may be negative. If the result is below 0, the patch is
	// refused with CodeInvalid, at body.credits_add.
	CreditsAdd Change[int64]
	Profile    Change[string]
	Refill     Change[string]
	RefillTo   Change[int64]
	Expires    Change[Date]
	Features   Change[[]string]
	Name       Change[string]
	Phone      Change[string]
	Zone       Change[string]
	Region     Change[string]
	Closed     Change[[]Date]
	Suspended  Change[bool]
	Plan       Change[PlanID] // 0: no plan
	PlanSince  Change[Date]
	Budget     Change[int64] // as Client.Budget
	Currency   string        // of Budget
	Settings   SettingsPatch
	Quotas     map[Quota]*int64 // only quotas that change; a nil number brings the default back

	Known []Version // the stored client must have one of these versions; empty: any version

	// Derive gets the client after the patch's other changes, except CreditsAdd. It returns the client with values that
	// follow from these, such as the time of the next refill. The store locks the client's row before it calls Derive, and
	// may call Derive more than once. nil: nothing follows.
	Derive func(Client) Client
}

// Changed returns the client after the patch, without settings, quotas and CreditsAdd.
func (p ClientPatch) Changed(c Client) Client {
	p.Cap.Apply(&c.Cap)
	p.Credits.Apply(&c.Credits)
	p.Profile.Apply(&c.Profile)
	p.Refill.Apply(&c.Refill)
	p.RefillTo.Apply(&c.RefillTo)
	p.Expires.Apply(&c.Expires)
	p.Features.Apply(&c.Features)
	p.Name.Apply(&c.Name)
	p.Phone.Apply(&c.Phone)
	p.Zone.Apply(&c.Zone)
	p.Region.Apply(&c.Region)
	p.Closed.Apply(&c.Closed)
	p.Suspended.Apply(&c.Suspended)
	p.Plan.Apply(&c.Plan)
	p.PlanSince.Apply(&c.PlanSince)
	p.Budget.Apply(&c.Budget)
	if p.Derive != nil {
		c = p.Derive(c)
	}
	return c
}

// Limits of plans.
const (
	MaxPlans    = 100   // plans of a partner
	MaxPlanDays = 36500 // days of service that a plan gives
)

// ClientPlan is a name for values that a partner gives to many clients. A plan that changes, or is deleted, leaves its
// clients as they are.
type ClientPlan struct {
	ID     PlanID
	Name   string // no two plans of a partner have the same
	Values PlanValues
}

// PlanValues contains what a plan sets in a client. A value that is not set leaves the client's own. The store keeps the
// values as JSON, so the names of their members stay.
type PlanValues struct {
	Profile  Change[string]   `json:"profile,omitzero"`
	Refill   Change[string]   `json:"refill,omitzero"`
	RefillTo Change[int64]    `json:"refill_to,omitzero"` // not set: the plan's credits
	Credits  Change[*int64]   `json:"credits,omitzero"`   // nil: unlimited
	Cap      Change[*int64]   `json:"cap,omitzero"`       // nil: no cap
	Days     Change[*int64]   `json:"days,omitzero"`      // from Client.PlanSince to the last day of service; nil: the service never ends
	Features Change[[]string] `json:"features,omitzero"`
	Budget   Change[int64]    `json:"budget,omitzero"` // of a month, in millionths of the currency of the list of prices; 0: none
	Quotas   Quotas           `json:"quotas,omitempty"`
}

// Granted returns the credits to which a refill raises a client of the plan. It is no change if the plan does not say.
func (v PlanValues) Granted() Change[int64] {
	if v.RefillTo.Set || v.Credits.To == nil {
		return v.RefillTo
	}
	return ChangeTo(*v.Credits.To)
}

// Expires returns the last day of service that the plan gives a client whose service under the plan began on a day.
func (v PlanValues) Expires(since Date) Change[Date] {
	if !v.Days.Set || v.Days.To == nil {
		return Change[Date]{Set: v.Days.Set}
	}
	return ChangeTo(since.AddDays(int(*v.Days.To)))
}

// Differing returns those values of the plan that a client has not. Credits differ if their last grant, and not only what
// is left of it, is another than the plan's.
func (v PlanValues) Differing(c Client) (d PlanValues) {
	if v.Profile.Set && v.Profile.To != c.Profile {
		d.Profile = v.Profile
	}
	if v.Refill.Set && v.Refill.To != c.Refill {
		d.Refill = v.Refill
	}
	granted := v.Granted()
	granted.Set = granted.Set && granted.To != c.RefillTo
	if v.RefillTo.Set && granted.Set {
		d.RefillTo = v.RefillTo
	}
	if v.Credits.Set && ((v.Credits.To == nil) != (c.Credits == nil) || granted.Set && !v.RefillTo.Set) {
		d.Credits = v.Credits
	}
	if v.Cap.Set && !sameNumber(v.Cap.To, c.Cap) {
		d.Cap = v.Cap
	}
	if v.Budget.Set && v.Budget.To != c.Budget {
		d.Budget = v.Budget
	}
	if ends := v.Expires(c.PlanSince); ends.Set && ends.To != c.Expires {
		d.Days = v.Days
	}
	if v.Features.Set && !slices.Equal(v.Features.To, c.Features) {
		d.Features = v.Features
	}
	for q, n := range v.Quotas {
		if n != c.Quotas.Get(q) {
			if d.Quotas == nil {
				d.Quotas = Quotas{}
			}
			d.Quotas[q] = n
		}
	}
	return d
}

// Applied returns those values that a client of the plan gets on its day today when the plan is applied: those that
// differ. It never takes anything away: a client that was renewed keeps its last day, and one with unlimited credits keeps
// these. Other credits are what the client has at least.
func (v PlanValues) Applied(c Client, today Date) PlanValues {
	d := v.Differing(c)
	if ends := v.Expires(c.PlanSince).To; !ends.IsZero() && (ends.Before(today) || c.Expires.IsZero() || ends.Before(c.Expires)) {
		d.Days = Change[*int64]{}
	}
	if d.Credits.To != nil && c.Credits == nil {
		d.Credits = Change[*int64]{}
	}
	return d
}

// Members returns the names that the API has for the values that are set.
func (v PlanValues) Members() []string {
	all := []string{}
	for _, m := range []struct {
		set  bool
		name string
	}{
		{v.Credits.Set, "credits"}, {v.Refill.Set, "refill_period"}, {v.RefillTo.Set, "refill_to"}, {v.Cap.Set, "daily_api_cap"}, {v.Budget.Set, "budget"},
		{v.Days.Set, "expiration_date"}, {v.Profile.Set, "profile"}, {v.Features.Set, "active_features"},
	} {
		if m.set {
			all = append(all, m.name)
		}
	}
	for _, q := range AllQuotas {
		if _, set := v.Quotas[q]; set {
			all = append(all, "quotas."+string(q))
		}
	}
	return all
}

func sameNumber(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// ClientFilter narrows a list of clients; zero values select everything.
type ClientFilter struct {
	Text  string // part of the name, the e-mail or the phone, in upper or lower case
	State ClientState
	Today Date // today's date, which StateExpired and StateExpiring need
	Until Date // only with StateExpiring: the latest last day of service that a listed client may have
	Plan  PlanID
}

// ClientState selects clients in a list by their status.
type ClientState string

const (
	StateActive    ClientState = "active"
	StateSuspended ClientState = "suspended"
	StateExpired   ClientState = "expired"  // the client's last day of service is past
	StateExpiring  ClientState = "expiring" // the client's last day of service is near
	StateEmpty     ClientState = "empty"    // no credits are left
)

// ClientDay is a client and a date. The date is today in the client's time zone.
type ClientDay struct {
	Client ClientID
	Day    Date
}

// ClientStatus is the present status of a client.
type ClientStatus struct {
	Used     int64 // number of calls that were counted on the day of the [ClientDay]
	Sessions int
	Online   int // number of sessions that can send
	Pairing  int // number of sessions that are being linked
}

// DayTotal counts the messages of one day by their result.
type DayTotal struct {
	Day     Date
	Sent    int64
	Failed  int64
	Pending int64 // pending messages that are due on this day; the count for today includes overdue messages
}

// Side says what kind of caller a key belongs to.
type Side string

const (
	PartnerSide Side = "partner"
	ClientSide  Side = "client"
	DeviceSide  Side = "device"
)

// MaxPartnerKeys is how many keys a partner may have, besides its clients' keys. A key that was replaced and is still
// valid does not count.
const MaxPartnerKeys = 20

// KeyHash is the SHA-256 of an API key. The key itself is never stored.
type KeyHash [32]byte

// Key is the stored data of an API key.
type Key struct {
	ID      KeyID
	Name    string
	Prefix  string // first characters of the key, so that people can recognise it
	Hash    KeyHash
	Created time.Time
	Expires time.Time // when a replaced key stops working; zero: the key was not replaced
	Used    time.Time // about when it was last used; zero: never, as far as is known
}

// Principal is the owner of a valid key.
type Principal struct {
	Side    Side
	Partner PartnerID
	Client  Client    // only with ClientSide and DeviceSide
	Device  Device    // only with DeviceSide
	Key     KeyID     // id of the key; 0 with DeviceSide
	Expires time.Time // when the key stops working; zero: never
	Used    time.Time // as in [Key]
}
