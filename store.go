package puntuale

import (
	"cmp"
	"context"
	"time"
)

// The store's promises, by role. A caller asks for the roles it needs; only a store implements them all. Unless a
// comment says otherwise, these hold. A method that changes something returns after its commit is on disk, or with an
// error and nothing changed. CodeUnavailable means that the database could not be reached. Many goroutines may call all
// methods at once.

// Tenant is all that a client's key can reach. Everything in it belongs to that client; what belongs to another is
// CodeNotFound.
type Tenant interface {
	RunStore
	MessageStore
	AgendaStore
	HistoryStore
	OutlookStore
	SequenceStore
	SessionStore
	TemplateStore
	BlacklistStore
	SandboxStore
	CommandStore
	PrivacyStore
	RestoreStore
	IdempotencyStore
	OfficialTenant
	GatewayTenant
	DeviceTenant
	DeviceQueue
	NetworkTemplateTenant
	CampaignStore
	RecipientStore
	CheckStore
	EstimateStore
}

// RunStore starts and stops.
type RunStore interface {
	// Start stores the run, its messages, the day's usage and the idempotency record in one transaction, shared with
	// all that wait. Codes: cap_reached with the counters, which are exact under any concurrency (nothing is stored or
	// counted). conflict: if_running reject, or the idempotency key with another body. not_found: the sequence or
	// session is gone.
	Start(ctx context.Context, s StartRun) (StartedRun, error)

	// LastStarted lists the sequences that were started last, the latest first, at most limit. It looks no further back than
	// the client's last 2,000 calls, and leaves out deleted sequences.
	LastStarted(ctx context.Context, limit int) ([]SequenceID, error)

	// Stop cancels every PENDING message without an open intent of the sequence's runs for the phone, and counts one
	// call, never refused. Messages go in chunks of at most 1,000 a transaction. A cancelled message is never sent. One
	// in flight is not in the answer. It is CANCELLED if its attempt comes back for a retry. It is not repeated if the
	// attempt's outcome is unknown; then only evidence of delivery or refusal decides. So does every other verb that
	// cancels. Codes: not_found for a sequence that never was the client's, nothing counted; a deleted one can still be
	// stopped.
	Stop(ctx context.Context, sequence SequenceID, phone string, day Date, now time.Time) (StopResult, error)

	// CancelPending does the same for all messages to the phones, or for all of the client when all is true. It tells took
	// of each chunk that is cancelled, and keeps none. Chunks are sorted by id, and so are the first 50,000 messages. An
	// error of took ends it; what was cancelled stays so.
	CancelPending(ctx context.Context, phones []string, all bool, day Date, now time.Time, took func([]CancelledMessage) error) error
}

// MessageStore reads messages, and acts on those named by their ids.
type MessageStore interface {
	// Details returns the messages found, in the order asked, a repeated id once. Messages of one run share the bytes of
	// their Request. Codes: invalid, at query.message_ids, when the answer would be longer than 8 MiB.
	Details(ctx context.Context, ids []MessageID) ([]MessageDetail, error)

	// Outlines is Details without Content and Request, however long those are.
	Outlines(ctx context.Context, ids []MessageID) ([]MessageDetail, error)

	// Messages lists messages, newest first: by falling id. A page may be shorter than asked, so that it stays within 32
	// MiB, or looks no further than the filter says. Codes: invalid (the cursor).
	Messages(ctx context.Context, f MessageFilter, p Page) ([]MessageDetail, string, error)

	// Outcomes lists what was recorded from (inclusive) to (exclusive), oldest first, by moment and id. An outcome that
	// was corrected is listed at its later moment only; one whose message was sent again is listed as before. Codes:
	// invalid (the cursor).
	Outcomes(ctx context.Context, from, to time.Time, p Page) ([]MessageOutcome, string, error)

	// Resend stores the new messages, all or none, and counts one call. FAILED, CANCELLED, BLACKLISTED and PENDING
	// messages become RESCHEDULED; COMPLETED ones stay. The new ones keep their session, or get the client's default
	// one if theirs was deleted. Codes, in this order. not_found has a fault for every id that is missing or another's.
	// conflict has a fault for every RESCHEDULED message, naming its successor. It also has one for every message that
	// is being sent, whose outcome is uncertain, or whose content is gone. cap_reached has the counters. Faults are at
	// body.id[i], i counting the messages asked for.
	Resend(ctx context.Context, r Resend) (ResendResult, error)

	// CancelMessages cancels those of the messages that are PENDING without an open intent, all in one transaction, and
	// counts one call, never refused. The answer is by id; what could not be cancelled is not in it. Codes: not_found,
	// with a fault at body.id[i] for every id that is missing or another's; then nothing is cancelled or counted.
	CancelMessages(ctx context.Context, ids []MessageID, day Date, now time.Time) ([]CancelledMessage, error)
}

// Page asks for a part of a list: at most Limit rows after the one that Cursor names ("" from the beginning). The
// cursor of the next page is "" at the end. Lists stay stable while rows are inserted.
type Page struct {
	Limit  int
	Cursor string
}

// SequenceStore keeps sequences.
type SequenceStore interface {
	// CreateSequence; o may be nil, and its Answer gets the SequenceID. Codes: not_found (its session), invalid (a
	// template that a step names, at body.steps[i].template).
	CreateSequence(ctx context.Context, s Sequence, o *Idempotency) (SequenceID, error)
	// UpdateSequence replaces it if its version is one of those known (none: any). Codes: not_found; invalid as above;
	// precondition_failed.
	UpdateSequence(ctx context.Context, s Sequence, known ...Version) error
	Sequence(ctx context.Context, id SequenceID) (Sequence, error)                       // not_found
	Sequences(ctx context.Context, f SequenceFilter, p Page) ([]Sequence, string, error) // invalid: the cursor

	// StartInfo reads what a start needs in one go: the sequence and the session that it would use.
	StartInfo(ctx context.Context, id SequenceID) (Sequence, Session, error) // not_found

	// DeleteSequence removes it, also from default pairs that name it. With pending messages it is a conflict naming
	// their count, unless keep is true (they are sent; stop still reaches them) or cancel is true.
	DeleteSequence(ctx context.Context, id SequenceID, keep, cancel bool, now time.Time) error

	// RestoreSequence takes back a deletion that is not older than since. Default pairs and cancelled messages stay as they
	// are. Codes: not_found (also of one that is not deleted); invalid as in CreateSequence.
	RestoreSequence(ctx context.Context, id SequenceID, since time.Time) error
}

// SessionStore keeps sessions.
type SessionStore interface {
	CreateSession(ctx context.Context, s Session, o *Idempotency) (SessionID, error) // o may be nil; Answer gets the SessionID
	Session(ctx context.Context, id SessionID) (Session, error)                      // not_found
	Sessions(ctx context.Context, p Page) ([]Session, string, error)                 // by id; invalid: the cursor

	// DeleteSession removes it; sequences that name it use the default one, or moveTo, from then on. Its pending
	// messages are cancelled. If moveTo is not 0, they keep their moments and go to another session of the client. An
	// uncertain one is given up as FAILED, because nobody could look for evidence any more. Codes: not_found (it, or
	// moveTo, with a fault at query.move_to). conflict: it is the default one, or it has pending messages, and neither
	// cancel nor moveTo is given. The answer names their count. busy: some are just being sent.
	DeleteSession(ctx context.Context, id SessionID, cancel bool, moveTo SessionID, now time.Time) error

	// GiveUp ends the session's attempts that were begun by now and have no outcome as FAILED, with an uncertain one.
	// The caller knows that nothing of the session is in flight: a server that stopped left them, or a failover. Codes:
	// not_found.
	GiveUp(ctx context.Context, id SessionID, now time.Time) error

	// UpdateSession gives the session another name, another pace, or both, if its version is one of those known (none:
	// any). Codes: not_found, precondition_failed.
	UpdateSession(ctx context.Context, id SessionID, p SessionPatch, known ...Version) error

	// SetDefaultPair sets the session's default sequences, 0 for none, if the version of the pair is one of those known
	// (none: any). Codes: not_found (the session; a sequence, with a fault at body.start or body.stop); precondition_failed.
	SetDefaultPair(ctx context.Context, id SessionID, start, stop SequenceID, known ...Version) error
}

// TemplateStore keeps templates.
type TemplateStore interface {
	CreateTemplate(ctx context.Context, t Template, o *Idempotency) (TemplateID, error) // conflict: the name; Answer gets the TemplateID
	// UpdateTemplate replaces it if its version is one of those known (none: any). Codes: not_found; precondition_failed;
	// conflict: the name, or a sequence names it and the name changes.
	UpdateTemplate(ctx context.Context, t Template, known ...Version) error
	Template(ctx context.Context, id TemplateID) (Template, error)     // not_found
	Templates(ctx context.Context, p Page) ([]Template, string, error) // by id; invalid: the cursor
	TemplatesNamed(ctx context.Context, names []string) (map[string]Template, error)
	DeleteTemplate(ctx context.Context, id TemplateID) error // not_found; conflict: a sequence names it
}

// BlacklistStore keeps the numbers that a client must never write to.
type BlacklistStore interface {
	// AddBlacklisted counts one call, never refused; adding twice changes nothing, also where an erasure left the mark
	// alone. o may be nil, and its Answer gets nil.
	AddBlacklisted(ctx context.Context, e BlacklistEntry, day Date, o *Idempotency) error
	// RemoveBlacklisted reports whether the phone, or its mark, was there; it counts one call either way.
	RemoveBlacklisted(ctx context.Context, phone, mark string, day Date) (bool, error)
	Blacklist(ctx context.Context, p Page) ([]BlacklistEntry, string, error) // by id

	// What follows is for people, and counts no call.

	// FindBlacklisted lists entries, newest first: by falling id. Codes: invalid (the cursor).
	FindBlacklisted(ctx context.Context, f BlacklistFilter, p Page) ([]BlacklistEntry, string, error)
	BlacklistEntry(ctx context.Context, id int64) (BlacklistEntry, error) // not_found
	// AddAllBlacklisted adds entries, each as AddBlacklisted does, and returns how many were not there. The phones are
	// sorted and each is there once. A transaction takes at most 1,000; after a failure the call may be repeated and
	// finishes what is left.
	AddAllBlacklisted(ctx context.Context, all []BlacklistEntry) (added int, err error)
	// RemoveBlacklistEntry removes one by its id; also one that an erasure left a mark of. Codes: not_found.
	RemoveBlacklistEntry(ctx context.Context, id int64) error
}

// SandboxStore reads what the simulated network received of a client.
type SandboxStore interface {
	SandboxMessages(ctx context.Context, p Page) ([]SandboxMessage, string, error) // oldest first

	// SandboxChat lists what the simulated network received of a session, newest first, at most limit. It looks no
	// further back than the client's last 2,000; phone "" is everybody.
	SandboxChat(ctx context.Context, session SessionID, phone string, limit int) ([]SandboxMessage, error)
}

// PrivacyStore forgets persons.
type PrivacyStore interface {
	// Erase cancels what is pending to the phone, and gives up what is uncertain as FAILED. It removes the number and
	// all texts from the client's rows. The rows, states, moments and credits stay. It counts one call, never refused.
	// Each transaction is bounded: after a failure the call may be repeated and finishes what is left. Codes: busy, not
	// counted, when messages to the phone are just being sent or repeated; what else there was is done.
	Erase(ctx context.Context, e Erasure) (ErasureResult, error)
}

// PartnerTenant is all that a partner's key can reach. A client that is another's, or deleted, is CodeNotFound.
type PartnerTenant interface {
	ClientStore
	KeyStore
	UserStore
	AuditStore
	BrandStore
	OverviewStore
	IdempotencyStore // apart from those of clients
}

// ClientStore keeps a partner's clients.
type ClientStore interface {
	// CreateClient creates the client, its login, its default session and its key in one transaction. o may be nil, and
	// its Answer gets the CreatedIDs. Codes: conflict (the login e-mail exists among this partner's).
	CreateClient(ctx context.Context, c NewClient, o *Idempotency) (CreatedIDs, error)
	Client(ctx context.Context, id ClientID) (Client, error)                                     // not_found
	Clients(ctx context.Context, p Page) ([]Client, string, error)                               // by id; invalid: the cursor
	ClientsByID(ctx context.Context, ids []ClientID) (map[ClientID]Client, error)                // those found
	UpdateClient(ctx context.Context, id ClientID, c ClientPatch, now time.Time) (Client, error) // not_found; invalid: the credits; precondition_failed
	// Quotas returns what was set for the partner's clients among ids; a client without a row has the defaults. What
	// creates something that a quota limits answers quota_reached, exactly under any concurrency.
	Quotas(ctx context.Context, ids []ClientID) (map[ClientID]Quotas, error)

	// DeleteClient removes the client for good. Its login is free, its keys are revoked, its sessions are gone, and
	// pending messages are cancelled. Messages that are being sent finish, as after a Stop. Messages and the ledger are
	// kept.
	DeleteClient(ctx context.Context, id ClientID, now time.Time) error // not_found
}

// KeyStore keeps the keys of a partner (client 0) and of its clients. A key that is unknown, revoked, or past its grace is
// not_found. Codes of what makes a key: quota_reached for a client, conflict for a partner that has MaxPartnerKeys.
type KeyStore interface {
	Keys(ctx context.Context, client ClientID, now time.Time) ([]Key, error) // the valid ones, by id
	// CreateKey; o may be nil, and its Answer gets the KeyID.
	CreateKey(ctx context.Context, client ClientID, k Key, o *Idempotency) (KeyID, error)
	// RotateClientKey stores next and lets old end at graceEnds; o may be nil, and its Answer gets the KeyID of next.
	RotateClientKey(ctx context.Context, client ClientID, old KeyID, next Key, graceEnds, now time.Time, o *Idempotency) (KeyID, error)
	RevokeKey(ctx context.Context, client ClientID, id KeyID, now time.Time) error
}

// Operator is all that commands and authentication ask across tenants. A caller asks for the roles that it needs.
type Operator interface {
	TenantStore
	DeviceLogin
	PartnerStore
	MaintenanceStore
}

// TenantStore finds whose a key is, and gives the handles that reach what belongs to one tenant.
type TenantStore interface {
	// Principal finds who a key belongs to; unauthorized when nobody, or the key is revoked or past its grace.
	Principal(ctx context.Context, hash KeyHash, now time.Time) (Principal, error)
	Tenant(id ClientID) Tenant
	// Uncounted is Tenant for what people do in dashboards: no call of it is counted, or refused for the cap.
	Uncounted(id ClientID) Tenant
	Partner(id PartnerID) PartnerTenant
}

// PartnerStore is what an operator asks about partners and about the credits of all clients.
type PartnerStore interface {
	// CreatePartner creates the partner, its login and its key in one transaction.
	CreatePartner(ctx context.Context, p Partner, l Login, k Key) (PartnerID, error)
	// RotateKey stores next for the owner of the key named by hash, which stays valid until graceEnds.
	RotateKey(ctx context.Context, hash KeyHash, next Key, graceEnds, now time.Time) error
	// Refill serves the clients whose moment has come: RefillAt is not after now. It brings their credits up to
	// RefillTo, and sets their next moment as next says (zero: none). It returns how many they were. Any number of
	// nodes may call it at once. One that cannot be refilled holds up no other; the error names it.
	Refill(ctx context.Context, now time.Time, next func(Client) time.Time) (int, error)
}

// MaintenanceStore keeps the store in order.
type MaintenanceStore interface {
	// Maintain ends what is open of deleted clients and sessions. It removes idempotency records older than two days,
	// counted days older than 400, and contacts without an open window. It blanks requests and contents of runs whose
	// messages all ended before blank (zero: none). It does as much as one call may. Any number of nodes may call it at
	// once; what fails is left to the next call.
	Maintain(ctx context.Context, now, blank time.Time) error
	// Check reports whether the store answers, with a write that reaches the disk.
	Check(ctx context.Context) error
}

// DueMessage is a message that will soon be, or is, due, as the queue sees it.
type DueMessage struct {
	Client     ClientID
	ID         MessageID
	Session    SessionID
	Campaign   CampaignID // a message of it waits behind all others of its session; 0: none
	Run        RunID
	Step       int // index into the run's Steps
	Phone      string
	Due        time.Time
	Next       time.Time
	ValidUntil time.Time
	Intent     int64 // > 0: an attempt was begun, and its outcome is not known
	IntentAt   time.Time
	Attempt    int
	Repeats    int
	Generation int
}

// Before tells which of two messages to one person comes first.
func (m DueMessage) Before(o DueMessage) bool {
	return cmp.Or(m.Due.Compare(o.Due), cmp.Compare(m.Run, o.Run), cmp.Compare(m.Step, o.Step), cmp.Compare(m.ID, o.ID)) < 0
}

// Queue is all that the dispatcher asks about messages.
type Queue interface {
	QueueReader
	AttemptStore
}

// QueueReader reads what is due, and what sending it needs.
type QueueReader interface {
	// Due returns, for each of the places, the first open messages of its queue that stand after it. Their Next is not
	// after horizon. There are at most limit for a place, by (next, id). Messages with an unknown outcome are among
	// them once they should be looked at again.
	Due(ctx context.Context, from []QueueCursor, horizon time.Time, limit int) ([]DueMessage, error)

	// Expiring returns open messages of a session that have no intent, are due, and end by the moment. Those that end
	// first come first, at most limit. A session that cannot send must close them, although they stand behind more than
	// is read. It reads all that is due, so it is not for every second. What a campaign holds is left out.
	Expiring(ctx context.Context, session SessionID, by time.Time, limit int) ([]DueMessage, error)

	// Retrying returns the sessions' open messages that were tried after since and are to be tried again by until. A
	// new owner needs them to keep the order of each recipient. It reads the first most of each session's messages
	// whose Next is after since, tried or not. It names the sessions that hold as many, because more may be behind.
	Retrying(ctx context.Context, sessions []SessionID, since, until time.Time, most int) (tried []DueMessage, crowded []SessionID, err error)

	// Contents reads steps of runs; those that are not there, or were blanked, are left out.
	Contents(ctx context.Context, steps []StepRef) (map[StepRef]StepContent, error)

	// Standings reads the standing of the clients.
	Standings(ctx context.Context, clients []ClientID) (map[ClientID]SendPermission, error)
}

// AttemptStore begins attempts, and stores what comes of messages.
type AttemptStore interface {
	// Claim writes the intents of a batch in one transaction, under the node's lease. [ErrFenced]: the lease is gone
	// and nothing was claimed. The answers come in the order asked.
	Claim(ctx context.Context, c Claim) ([]ClaimAnswer, error)

	// Record stores outcomes of attempts where the attempt's token still stands, and merges evidence of delivery
	// where it does not. It answers for each whether it was applied as it stands. It needs no lease.
	Record(ctx context.Context, now time.Time, results []Result) ([]bool, error)

	// Close and postpone messages that are open and without an intent; a message that is no longer so is left alone.
	Settle(ctx context.Context, node NodeID, now time.Time, s []Settlement) error
}

// QueueCursor is a place in one of a session's two queues: behind the message with this Next and ID. Without them it is the
// beginning.
type QueueCursor struct {
	Session  SessionID
	Campaign bool // the queue of what campaigns fed, without those that hold their messages
	Next     time.Time
	ID       MessageID
}

// StepRef names a step of a run by its index.
type StepRef struct {
	RunRef
	Step int
}

// StepContent is what Contents returns for a step.
type StepContent struct {
	Zone    string // of the run
	Content Content
	Window  *Window // nil: any moment
}

// Claim asks to begin attempts.
type Claim struct {
	Node     NodeID
	Token    int64 // of this batch; positive and never used before
	Now      time.Time
	Messages []ClaimItem
}

// ClaimItem names one message as the dispatcher last saw it. Intent 0 claims an open message. Intent > 0 takes over an
// attempt whose answer was lost, to repeat it under the same connector id. Then no credit is taken again, and Repeats
// counts.
type ClaimItem struct {
	MessageRef
	Session  SessionID  // as last seen: a message that was moved to another is not claimed; 0: any
	Campaign CampaignID // as last seen
	Phone    string
	Mark     string // of the phone, needed where the client erased persons; "": none
	Intent   int64
}

// ClaimAnswer is a claim's answer for one message.
type ClaimAnswer int8

const (
	ClaimGone        ClaimAnswer = iota // no longer as the dispatcher saw it: cancelled, moved, taken, expired
	ClaimGranted                        // the intent is on disk: send
	ClaimBlacklisted                    // closed as BLACKLISTED
	ClaimHeld                           // the client may not send now (credit, expiry, suspension): still open, untouched
	ClaimPaused                         // its campaign does not run: still open, untouched
	ClaimUnmarked                       // the client erased persons: claim it again, with its phone's mark; still open, untouched
)

// Result is the outcome of one attempt.
type Result struct {
	MessageRef
	Token   int64
	Outcome Outcome
}

// Settlement closes (State Failed) or postpones (State Pending, Next) an open message, with the reason.
type Settlement struct {
	MessageRef
	Intent int64 // as last seen: 0, or the token of an attempt given up as uncertain
	State  State
	Next   time.Time
	Reason Reason
	Detail Reason
}

// Fleet says which node sends for which session.
type Fleet interface {
	// Join registers a new incarnation with a lease.
	Join(ctx context.Context, lease time.Duration) (NodeID, error)
	// Beat prolongs the lease; ErrFenced when it is gone.
	Beat(ctx context.Context, node NodeID, lease time.Duration) error
	// Reap removes nodes whose lease ended, and frees their sessions. One with a claim still open is left to the next call.
	Reap(ctx context.Context) (freed int, err error)
	// Roster returns the live nodes and the sessions that are the node's or nobody's.
	Roster(ctx context.Context, node NodeID) ([]NodeID, []Session, error)
	// Assign moves sessions from one owner to another (0: nobody) where from still owns them, and returns those moved.
	Assign(ctx context.Context, from, to NodeID, sessions []SessionID) ([]SessionID, error)
	// Leave frees the node's sessions and removes it.
	Leave(ctx context.Context, node NodeID) error
}

// Wakeup tells the dispatcher that a session has something due at a moment, or (zero moment) that sessions changed. It is
// only a hint: every loop also polls.
type Wakeup func(session SessionID, due time.Time)

// SecretStore keeps a few small values that protect others. What it holds is as safe as the database, no more.
type SecretStore interface {
	// Secret returns the value, nil when there is none.
	Secret(ctx context.Context, name string) ([]byte, error)
	// SetSecret stores a value where old (nil: none) is still the present one, and reports whether it was.
	SetSecret(ctx context.Context, name string, old, value []byte) (bool, error)
}
