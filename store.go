package puntuale

import (
	"cmp"
	"context"
	"time"
)

// The store's promises, by role. A caller asks for the roles that it needs. Only a store implements all of them. Unless
// a comment says otherwise, these rules hold. A method that changes something returns after its commall its lines are
// on disk, or with an error, and then nothing has changed. CodeUnavailable means that the database could not be
// reached. Many goroutines may call all methods at once.

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
	ContactStore
	ContactLists
	ReplyStore
	ConsentStore
	SettingStore
	WebhookStore
	DeliveryStore
	EventStore
}

// RunStore starts and stops runs.
type RunStore interface {
	// Start stores the run, its messages, the day's usage and the idempotency record in one transaction, which it shares with other waiting
	// calls. Codes: cap_reached with the counters, which are exact under any concurrency (nothing is stored or counted). conflict:
	// if_running reject, or the idempotency key with another body. not_found: the sequence or session is gone.
	Start(ctx context.Context, s StartRun) (StartedRun, error)

	// LastStarted lists the sequences that were started last, the latest first, at most limit. It looks no further back than
	// the client's last 2,000 calls, and leaves out deleted sequences.
	LastStarted(ctx context.Context, limit int) ([]SequenceID, error)

	// Stop cancels the PENDING messages of the sequence's runs for the phone that have no open intent. It counts one
	// call and is never refused for the cap. It cancels at most 1,000 messages in a transaction. A cancelled message is
	// never sent. One in flight is not in the answer. It becomes CANCELLED if its attempt certainly failed and would be
	// retried. It is not repeated if the attempt's outcome is unknown; then only a delivery receipt or a refusal
	// decides. Every other method that cancels does the same. Codes: not_found for a sequence that never was the
	// client's, nothing counted; a deleted one can still be stopped. With a reference, it reaches only runs that have it.
	Stop(ctx context.Context, sequence SequenceID, phone, reference string, day Date, now time.Time) (StopResult, error)

	// CancelPending does the same for all messages that the target names. It passes each cancelled chunk
	// to took and does not keep it. Each chunk is sorted by id, and so are the first 50,000 messages. If took returns an error,
	// CancelPending ends; cancelled messages stay cancelled.
	CancelPending(ctx context.Context, target CancelTarget, day Date, now time.Time, took func([]CancelledMessage) error) error
}

// MessageStore reads messages, and acts on those named by their ids.
type MessageStore interface {
	// Details returns the messages found, in the order asked. A repeated id gets one message. Messages of one run share the bytes of their
	// Request. Codes: invalid, at query.message_ids, when the answer would be longer than 8 MiB.
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

	// Resend stores the new messages, all or none, and counts one call. FAILED, CANCELLED, BLACKLISTED and PENDING messages become
	// RESCHEDULED; COMPLETED ones stay. The new ones keep their session, or get the client's default one if theirs was deleted. Codes, in
	// this order. not_found has a fault for every id that is missing or another's. conflict has a fault for every RESCHEDULED message,
	// naming its successor. It also has a fault for every message that is being sent, is uncertain, or has no content any more. cap_reached
	// has the counters. Faults are at body.id[i], i counting the messages asked for.
	Resend(ctx context.Context, r Resend) (ResendResult, error)

	// CancelMessages cancels those of the messages that are PENDING without an open intent, all in one transaction, and counts one call,
	// never refused. The answer is sorted by id. It leaves out messages that could not be cancelled. Codes: not_found, with a fault at
	// body.id[i] for every id that is missing or another's; then nothing is cancelled or counted.
	CancelMessages(ctx context.Context, ids []MessageID, day Date, now time.Time) ([]CancelledMessage, error)
}

// Page asks for a part of a list: at most Limit rows after the one that Cursor names ("" from the beginning). The cursor of the next page
// is "" at the end. New rows do not disturb the pages of a list.
type Page struct {
	Limit  int
	Cursor string
}

// SequenceStore keeps sequences.
type SequenceStore interface {
	// CreateSequence; o may be nil, and its Answer gets the SequenceID. Codes: not_found (its session), invalid (a
	// template that a step names, at body.steps[i].template).
	CreateSequence(ctx context.Context, s Sequence, o *Idempotency) (SequenceID, error)
	// UpdateSequence replaces the sequence if its version is one of those known (none: any). Codes: not_found; invalid as above;
	// precondition_failed.
	UpdateSequence(ctx context.Context, s Sequence, known ...Version) error
	Sequence(ctx context.Context, id SequenceID) (Sequence, error)                       // not_found
	Sequences(ctx context.Context, f SequenceFilter, p Page) ([]Sequence, string, error) // invalid: the cursor

	// StartInfo reads in one call what a start needs: the sequence and the session that it would use.
	StartInfo(ctx context.Context, id SequenceID) (Sequence, Session, error) // not_found

	// DeleteSequence removes a sequence, also from default pairs that name it. If it has pending messages, the code is conflict with their
	// count, unless keep or cancel is true. keep: they are sent, and a stop still reaches them.
	DeleteSequence(ctx context.Context, id SequenceID, keep, cancel bool, now time.Time) error

	// RestoreSequence undoes a deletion that happened after since. Default pairs and cancelled messages stay as they are. Codes: not_found
	// (also of one that is not deleted); invalid as in CreateSequence.
	RestoreSequence(ctx context.Context, id SequenceID, since time.Time) error
}

// SessionStore keeps sessions.
type SessionStore interface {
	CreateSession(ctx context.Context, s Session, o *Idempotency) (SessionID, error) // o may be nil; Answer gets the SessionID
	Session(ctx context.Context, id SessionID) (Session, error)                      // not_found
	Sessions(ctx context.Context, p Page) ([]Session, string, error)                 // by id; invalid: the cursor

	// DeleteSession removes a session. Sequences that name it use the default session, or moveTo, from then on. Pending messages are
	// cancelled, or move to moveTo and keep their moments. An uncertain message ends as FAILED, because no connector could look for it any
	// more. Codes: not_found (it, or moveTo, with a fault at query.move_to). conflict: it is the default one, or it has pending messages,
	// and neither cancel nor moveTo is given. The answer names their count. busy: some are just being sent.
	DeleteSession(ctx context.Context, id SessionID, cancel bool, moveTo SessionID, now time.Time) error

	// GiveUp ends the session's attempts that have no outcome as FAILED, with an uncertain outcome. The caller must know that nothing of
	// the session is in flight. Such attempts remain after a server stopped or a failover. Codes: not_found.
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
	// UpdateTemplate replaces the template if its version is one of those known (none: any). Codes: not_found; precondition_failed;
	// conflict: the name, or a sequence names it and the name changes.
	UpdateTemplate(ctx context.Context, t Template, known ...Version) error
	Template(ctx context.Context, id TemplateID) (Template, error)     // not_found
	Templates(ctx context.Context, p Page) ([]Template, string, error) // by id; invalid: the cursor
	TemplatesNamed(ctx context.Context, names []string) (map[string]Template, error)
	DeleteTemplate(ctx context.Context, id TemplateID) error // not_found; conflict: a sequence names it
}

// BlacklistStore keeps the numbers that a client must never write to.
type BlacklistStore interface {
	// AddBlacklisted counts one call, never refused; adding twice changes nothing, also where an erasure left only a mark of the number. o
	// may be nil, and its Answer gets nil.
	AddBlacklisted(ctx context.Context, e BlacklistEntry, day Date, o *Idempotency) error
	// RemoveBlacklisted reports whether the phone, or its mark, was there; it counts one call either way.
	RemoveBlacklisted(ctx context.Context, phone, mark string, day Date) (bool, error)
	Blacklist(ctx context.Context, p Page) ([]BlacklistEntry, string, error) // by id

	// The dashboard calls the following methods, and they count no call.

	// FindBlacklisted lists entries, newest first: by falling id. Codes: invalid (the cursor).
	FindBlacklisted(ctx context.Context, f BlacklistFilter, p Page) ([]BlacklistEntry, string, error)
	BlacklistEntry(ctx context.Context, id int64) (BlacklistEntry, error) // not_found
	// AddAllBlacklisted adds entries, each as AddBlacklisted does, and returns how many are new. The caller sorts the phones and removes
	// repeats. A transaction takes at most 1,000; after a failure the call may be repeated and finishes what is left.
	AddAllBlacklisted(ctx context.Context, all []BlacklistEntry) (added int, err error)
	// RemoveBlacklistEntry removes an entry by its id, also an entry of which an erasure left only a mark. Codes: not_found.
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
	// Erase cancels the pending messages to the phone. Uncertain ones become FAILED. It removes the number and all
	// texts from the client's rows. The rows, states, moments and credits stay. It counts one call, never refused. Each
	// transaction is bounded: after a failure the call may be repeated and finishes what is left. Codes: busy, not
	// counted, when messages to the phone are just being sent or repeated; everything else is done.
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
	WebhookStore // of the partner's own, for all its clients
	DeliveryStore
	IdempotencyStore // separate from the clients' records
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
	// Quotas returns the limits that were set for those of ids that are the partner's clients. A client without a row has the defaults.
	// Methods that create something limited answer quota_reached, exactly under any concurrency.
	Quotas(ctx context.Context, ids []ClientID) (map[ClientID]Quotas, error)

	// DeleteClient removes the client for good. Its login is free, its keys are revoked, its sessions are gone, and
	// pending messages are cancelled. Messages that are being sent finish, as after a Stop. Messages and the ledger are
	// kept.
	DeleteClient(ctx context.Context, id ClientID, now time.Time) error // not_found
}

// KeyStore keeps the keys of a partner (client 0) and of its clients. A key that is unknown, revoked, or past its grace is not_found. Codes
// of methods that make a key: quota_reached for a client, conflict for a partner that has MaxPartnerKeys.
type KeyStore interface {
	Keys(ctx context.Context, client ClientID, now time.Time) ([]Key, error) // the valid ones, by id
	// CreateKey; o may be nil, and its Answer gets the KeyID.
	CreateKey(ctx context.Context, client ClientID, k Key, o *Idempotency) (KeyID, error)
	// RotateClientKey stores next and lets old end at graceEnds; o may be nil, and its Answer gets the KeyID of next.
	RotateClientKey(ctx context.Context, client ClientID, old KeyID, next Key, graceEnds, now time.Time, o *Idempotency) (KeyID, error)
	RevokeKey(ctx context.Context, client ClientID, id KeyID, now time.Time) error
}

// Operator is the part of the store that commands and authentication use across tenants. A caller asks for the roles that it needs.
type Operator interface {
	TenantStore
	DeviceLogin
	PartnerStore
	MaintenanceStore
}

// TenantStore finds the owner of a key, and gives the handles that reach what belongs to one tenant.
type TenantStore interface {
	// Principal finds the owner of a key. Codes: unauthorized when the key is unknown, revoked or past its grace.
	Principal(ctx context.Context, hash KeyHash, now time.Time) (Principal, error)
	// ClientOf reads a client. Codes: not_found (also of a deleted one).
	ClientOf(ctx context.Context, id ClientID) (Client, error)
	Tenant(id ClientID) Tenant
	// Uncounted returns a Tenant for people in dashboards. The cap neither counts nor refuses its calls.
	Uncounted(id ClientID) Tenant
	Partner(id PartnerID) PartnerTenant
}

// PartnerStore is what an operator asks about partners and about the credits of all clients.
type PartnerStore interface {
	// CreatePartner creates the partner, its login and its key in one transaction.
	CreatePartner(ctx context.Context, p Partner, l Login, k Key) (PartnerID, error)
	// RotateKey stores next for the owner of the key named by hash, which stays valid until graceEnds.
	RotateKey(ctx context.Context, hash KeyHash, next Key, graceEnds, now time.Time) error
	// Refill serves the clients whose moment has come: RefillAt is not after now. It brings their credits up to RefillTo, and sets their
	// next moment as next says (zero: none). It returns how many clients it served. Any number of nodes may call it at once. A client that
	// cannot be refilled does not stop the others; the error names it.
	Refill(ctx context.Context, now time.Time, next func(Client) time.Time) (int, error)
}

// MaintenanceStore keeps the store in order.
type MaintenanceStore interface {
	// Maintain ends the unfinished messages of deleted clients and sessions, and deletes such clients' contacts. It removes
	// idempotency records older than two days, counted days older than 400, and contacts without an open window. It
	// blanks requests and contents of runs whose messages all ended before blank (zero: none). One call does a bounded
	// amount of work. Any number of nodes may call it at once; the next call repeats work that failed.
	Maintain(ctx context.Context, now, blank time.Time) error
	// Remember adds the people of runs to the contacts of clients that want it ([ClientSettings].Remember), and keeps
	// their fields in step. It skips runs that are younger than settle. read makes a contact of a run, false for none;
	// it is pure. One call does a bounded amount of work. Any number of nodes may call it at once.
	Remember(ctx context.Context, settle time.Duration, now time.Time, read func(CalledRun) (Contact, bool)) error
	// Check reports whether the store answers, with a write that reaches the disk.
	Check(ctx context.Context) error
}

// DueMessage is a message that is due, or soon will be.
type DueMessage struct {
	Client     ClientID
	ID         MessageID
	Session    SessionID
	Campaign   CampaignID // a campaign's message waits behind all others of its session; 0: none
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
	// Due returns, for each cursor, the next open messages of its queue, by (next, id), at most limit. Their Next is not after horizon.
	// Uncertain messages are among them when their next look is due.
	Due(ctx context.Context, from []QueueCursor, horizon time.Time, limit int) ([]DueMessage, error)

	// Expiring returns open, due messages of a session without an intent whose deadline is not after the moment. It
	// returns at most limit, by deadline. A session that cannot send must close such messages, although the dispatcher
	// did not read so far. It reads all due messages, so do not call it every second. It leaves out messages that a
	// campaign holds back.
	Expiring(ctx context.Context, session SessionID, by time.Time, limit int) ([]DueMessage, error)

	// Retrying returns the sessions' open messages that were tried after since and will be tried again by until. A new owner needs them to
	// keep the order of each recipient. For each session it reads messages whose Next is after since, tried or not, and stops after most.
	// It names the sessions where it stopped, because they may have more.
	Retrying(ctx context.Context, sessions []SessionID, since, until time.Time, most int) (tried []DueMessage, crowded []SessionID, err error)

	// Contents reads steps of runs; it leaves out steps that do not exist or were blanked.
	Contents(ctx context.Context, steps []StepRef) (map[StepRef]StepContent, error)

	// Standings reads the standing of the clients.
	Standings(ctx context.Context, clients []ClientID) (map[ClientID]SendPermission, error)
}

// AttemptStore begins attempts, and stores the outcomes of messages.
type AttemptStore interface {
	// Claim writes the intents of a batch in one transaction, under the node's lease. [ErrFenced]: the lease is gone
	// and nothing was claimed. The answers come in the order asked.
	Claim(ctx context.Context, c Claim) ([]ClaimAnswer, error)

	// Record stores outcomes of attempts where the attempt's token still stands, and merges only a proof of delivery where it does not. For
	// each outcome, it reports whether it was applied unchanged. It needs no lease.
	Record(ctx context.Context, now time.Time, results []Result) ([]bool, error)

	// Close and postpone messages that are open and have no intent. A message that has changed since is left alone.
	Settle(ctx context.Context, node NodeID, now time.Time, s []Settlement) error
}

// QueueCursor is a position in one of a session's two queues: after the message with this Next and ID. Without them it
// is the beginning.
type QueueCursor struct {
	Session  SessionID
	Campaign bool // the queue of campaigns' messages, without campaigns that hold theirs
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

// ClaimItem names one message as the dispatcher last saw it. Intent 0 claims an open message. Intent > 0 takes over an attempt whose answer
// was lost, to repeat it under the same connector id. Then no second credit is taken, and Repeats grows by one.
type ClaimItem struct {
	MessageRef
	Session  SessionID  // as last seen: a message that was moved to another is not claimed; 0: any
	Campaign CampaignID // as last seen
	Phone    string
	Mark     string // the phone's mark, which is needed if the client erased persons; "": none
	Intent   int64
}

// ClaimAnswer is a claim's answer for one message.
type ClaimAnswer int8

const (
	ClaimStale       ClaimAnswer = iota // the message changed since the dispatcher read it: cancelled, moved, taken, expired
	ClaimGranted                        // the intent is on disk: send
	ClaimBlacklisted                    // closed as BLACKLISTED
	ClaimHeld                           // the client may not send now (credit, expiry, suspension): still open, untouched
	ClaimPaused                         // its campaign does not run: still open, untouched
	ClaimNoConsent                      // marketing that the person did not agree to: closed as FAILED
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
	// Reap removes nodes whose lease ended, and frees their sessions. A node with an open claim is left for the next call.
	Reap(ctx context.Context) (freed int, err error)
	// Roster returns the live nodes, and the sessions that the node owns or nobody owns.
	Roster(ctx context.Context, node NodeID) ([]NodeID, []Session, error)
	// Assign moves sessions from one owner to another (0: nobody) if from still owns them. It returns the sessions that moved.
	Assign(ctx context.Context, from, to NodeID, sessions []SessionID) ([]SessionID, error)
	// Leave frees the node's sessions and removes it.
	Leave(ctx context.Context, node NodeID) error
}

// Wakeup tells the dispatcher that a session has something due at a moment, or (zero moment) that sessions changed. It may be lost, so
// every loop also polls.
type Wakeup func(session SessionID, due time.Time)

// SecretStore keeps a few small values that protect others. Its values are only as safe as the database.
type SecretStore interface {
	// Secret returns the value, or nil if there is none.
	Secret(ctx context.Context, name string) ([]byte, error)
	// SetSecret stores a value if old (nil: none) is still the present one, and reports whether it did.
	SetSecret(ctx context.Context, name string, old, value []byte) (bool, error)
}
