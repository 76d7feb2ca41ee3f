package puntuale

import (
	"cmp"
	"context"
	"time"
)

// This file defines the store's interfaces, one for each use. A caller declares only the interfaces that it needs. Only
// a store implements all of them.
//
// Unless a comment says otherwise, the following is true. A method that changes something returns nil only after its
// changes are on disk. If the method returns an error, nothing has changed. CodeUnavailable means that the database
// could not be reached. Many goroutines may call all methods at the same time.

// Tenant is all that a client's key can reach. Everything in it belongs to this client. Data of another client count
// as missing: CodeNotFound.
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
	AutomationStore
	HookTenant
	PersonFirings
	ChatwootStore
}

// RunStore starts and stops runs.
type RunStore interface {
	// Start stores the run, its messages, the day's usage and the idempotency record in one transaction. The store may
	// put several waiting calls into the same transaction. If Start returns one of these codes, nothing is stored or
	// counted. cap_reached: the cap is used up; the counters in the error are exact under any concurrency. conflict:
	// the sequence is already running and if_running is reject, or an earlier call with the same idempotency key had a
	// different body. not_found: the sequence or session is gone.
	Start(ctx context.Context, s StartRun) (StartedRun, error)

	// AddBytes adds n to the bytes that the client's calls have stored on the day. If the sum would exceed most, AddBytes
	// adds nothing and returns false.
	AddBytes(ctx context.Context, day Date, n, most int64) (bool, error)

	// LastStarted lists at most limit sequences. The sequence that was started last comes first. LastStarted reads only
	// the client's last 2,000 calls, and leaves out deleted sequences.
	LastStarted(ctx context.Context, limit int) ([]SequenceID, error)

	// Stop cancels messages of the sequence's runs for all names of one person: all messages that are PENDING and have no open
	// intent. A cancelled message is never sent. With a reference, Stop cancels only messages of runs with this
	// reference. Stop counts one call, and the cap never refuses this call. One transaction cancels at most 1,000
	// messages.
	//
	// A message in flight is not in the answer. If its attempt certainly fails, it becomes CANCELLED instead of being
	// retried. If the outcome of its attempt is uncertain, it is not repeated; then only a delivery receipt or a
	// refusal decides. Every other method that cancels does the same.
	//
	// Codes: not_found for a sequence that the client never had (no call is counted). A deleted sequence can still be
	// stopped.
	Stop(ctx context.Context, sequence SequenceID, names []string, reference string, day Date, now time.Time) (StopResult, error)

	// CancelPending cancels all messages of the target, in the same way as Stop. It passes each chunk of cancelled
	// messages to the function took, and then forgets the chunk. Each chunk is sorted by id. The first 50,000 messages
	// come in the order of their ids, even across chunks. If took returns an error, CancelPending ends; cancelled
	// messages stay cancelled.
	CancelPending(ctx context.Context, target CancelTarget, day Date, now time.Time, took func([]CancelledMessage) error) error
}

// MessageStore reads messages, and changes messages that the caller names by id.
type MessageStore interface {
	// Details returns the messages with the given ids, in the order of the ids. It leaves out ids without a message. If
	// an id is given twice, its message comes once. Messages of one run share the bytes of their Request. Codes:
	// invalid, at query.message_ids, if the answer would be longer than 8 MiB.
	Details(ctx context.Context, ids []MessageID) ([]MessageDetail, error)

	// Outlines is Details without Content and Request. Its answer has no limit in bytes.
	Outlines(ctx context.Context, ids []MessageID) ([]MessageDetail, error)

	// Messages lists messages, newest first, which means by falling id. A page may be shorter than asked: it has at
	// most 32 MiB, and the filter may limit the search. Codes: invalid (the cursor).
	Messages(ctx context.Context, f MessageFilter, p Page) ([]MessageDetail, string, error)

	// Outcomes lists outcomes, sorted by time and id, oldest first. They were recorded between the arguments from
	// (inclusive) and to (exclusive). A corrected outcome is listed only at the time of its correction. An outcome
	// stays in the list after somebody sent its message again. Codes: invalid (the cursor).
	Outcomes(ctx context.Context, from, to time.Time, p Page) ([]MessageOutcome, string, error)

	// Resend stores the new messages, all or none, and counts one call. FAILED, CANCELLED, BLACKLISTED and PENDING
	// messages become RESCHEDULED. COMPLETED messages stay COMPLETED. A new message gets the session of the old
	// message. If this session was deleted, the new message gets the client's default session.
	//
	// Codes, checked in this order: not_found, with a fault for each id that is missing or belongs to another client.
	// conflict, with a fault for each message that is RESCHEDULED, being sent, uncertain, or without content.
	// cap_reached, with the counters. The fault of a RESCHEDULED message names the message that replaced it. Faults
	// are at body.id[i], where i is the index in r.Messages.
	Resend(ctx context.Context, r Resend) (ResendResult, error)

	// CancelMessages cancels the given messages that are PENDING without an open intent, all in one transaction. It
	// counts one call, and the cap never refuses it. The answer is sorted by id, and leaves out messages that were
	// not cancelled. Codes: not_found, with a fault at body.id[i] for each id that is missing or belongs to another
	// client; then nothing is cancelled or counted.
	CancelMessages(ctx context.Context, ids []MessageID, day Date, now time.Time) ([]CancelledMessage, error)
}

// Page asks for a part of a list: at most Limit rows after the position Cursor. Cursor "" is the beginning. Methods
// return the cursor of the next page, or "" after the last page. New rows do not disturb a reader that goes through
// the pages.
type Page struct {
	Limit  int
	Cursor string
}

// SequenceStore stores sequences.
type SequenceStore interface {
	// CreateSequence stores a new sequence. The argument o may be nil; its function Answer gets the SequenceID. Codes:
	// not_found (its session), invalid (a template that a step names, at body.steps[i].template).
	CreateSequence(ctx context.Context, s Sequence, o *Idempotency) (SequenceID, error)
	// UpdateSequence replaces the sequence. If the argument known is not empty, the stored version must be in it.
	// Codes: not_found; invalid as in CreateSequence; precondition_failed.
	UpdateSequence(ctx context.Context, s Sequence, known ...Version) error
	Sequence(ctx context.Context, id SequenceID) (Sequence, error)                       // code not_found
	Sequences(ctx context.Context, f SequenceFilter, p Page) ([]Sequence, string, error) // code invalid: the cursor is wrong

	// StartInfo reads in one call what a start needs: the sequence, and the session that it uses.
	StartInfo(ctx context.Context, id SequenceID) (Sequence, Session, error) // code not_found

	// DeleteSequence deletes a sequence, and removes it from the default pairs of sessions. If the sequence has pending
	// messages, and neither keep nor cancel is true, the code is conflict with their number. With cancel, the messages
	// are cancelled. With keep, they will be sent, and a stop can still cancel them.
	DeleteSequence(ctx context.Context, id SequenceID, keep, cancel bool, now time.Time) error

	// RestoreSequence undoes a deletion, if it happened later than the argument since. It does not change default pairs
	// or cancelled messages. Codes: not_found (also if the sequence is not deleted); invalid as in CreateSequence.
	RestoreSequence(ctx context.Context, id SequenceID, since time.Time) error
}

// SessionStore stores sessions.
type SessionStore interface {
	CreateSession(ctx context.Context, s Session, o *Idempotency) (SessionID, error) // o may be nil; its function Answer gets the SessionID
	Session(ctx context.Context, id SessionID) (Session, error)                      // code not_found
	Sessions(ctx context.Context, p Page) ([]Session, string, error)                 // sorted by id; code invalid: the cursor is wrong

	// DeleteSession deletes a session. Sequences that name it then use moveTo, or the default session if moveTo is 0.
	// Pending messages are cancelled, or move to moveTo with the same due times. An uncertain message becomes FAILED,
	// because no connector could look for it any more.
	//
	// Code not_found: the session is missing. If moveTo is missing, the fault is at query.move_to. Code conflict: the
	// session is the default session. The code is also conflict if the session has pending messages, and the call gives
	// neither cancel nor moveTo; the error says how many. Code busy: messages are being sent now.
	DeleteSession(ctx context.Context, id SessionID, cancel bool, moveTo SessionID, now time.Time) error

	// GiveUp ends the session's attempts that have no outcome: their messages become FAILED with an uncertain
	// outcome. The caller must know that no message of the session is in flight. Attempts without an outcome remain
	// after a server stopped, or after a failover. Codes: not_found; busy (a device holds messages of the session).
	GiveUp(ctx context.Context, id SessionID, now time.Time) error

	// UpdateSession changes the session's name, its pace, or both. If the argument known is not empty, the stored
	// version must be in it. Codes: not_found, precondition_failed.
	UpdateSession(ctx context.Context, id SessionID, p SessionPatch, known ...Version) error

	// SetDefaultPair sets the session's default sequences; 0: none. If the argument known is not empty, the stored
	// version of the pair must be in it. Codes: not_found (the session; or a sequence, with a fault at body.start or
	// body.stop); precondition_failed.
	SetDefaultPair(ctx context.Context, id SessionID, start, stop SequenceID, known ...Version) error
}

// TemplateStore stores templates.
type TemplateStore interface {
	CreateTemplate(ctx context.Context, t Template, o *Idempotency) (TemplateID, error) // conflict: another template has the name; the function o.Answer gets the TemplateID
	// UpdateTemplate replaces the template. If the argument known is not empty, the stored version must be in it.
	// Codes: not_found; precondition_failed; conflict (another template has the name; or the name changes, and a
	// sequence uses the old name).
	UpdateTemplate(ctx context.Context, t Template, known ...Version) error
	Template(ctx context.Context, id TemplateID) (Template, error)     // code not_found
	Templates(ctx context.Context, p Page) ([]Template, string, error) // sorted by id; code invalid: the cursor is wrong
	TemplatesNamed(ctx context.Context, names []string) (map[string]Template, error)
	DeleteTemplate(ctx context.Context, id TemplateID) error // codes: not_found; conflict: a sequence names it
}

// BlacklistStore stores the numbers that a client must never write to.
type BlacklistStore interface {
	// AddBlacklisted adds an entry. It counts one call, and the cap never refuses it. If the number, or its mark after
	// an erasure, is already there, nothing changes. The argument o may be nil; its function Answer gets nil.
	AddBlacklisted(ctx context.Context, e BlacklistEntry, day Date, o *Idempotency) error
	// RemoveBlacklisted removes all names of the person, and their marks. It returns whether the blacklist had one of
	// them. It counts one call in any case.
	RemoveBlacklisted(ctx context.Context, p Person, day Date) (bool, error)
	Blacklist(ctx context.Context, p Page) ([]BlacklistEntry, string, error) // sorted by id

	// The dashboard calls the methods below. They count no call.

	// FindBlacklisted lists entries, newest first, which means by falling id. Codes: invalid (the cursor).
	FindBlacklisted(ctx context.Context, f BlacklistFilter, p Page) ([]BlacklistEntry, string, error)
	BlacklistEntry(ctx context.Context, id int64) (BlacklistEntry, error) // code not_found
	// AddAllBlacklisted adds entries, each in the same way as AddBlacklisted, and returns how many entries are new. The
	// caller sorts them by phone, each phone once. One transaction adds at most 1,000 entries. If the call fails, the
	// caller may repeat it; the repeat adds the missing entries.
	AddAllBlacklisted(ctx context.Context, all []BlacklistEntry) (added int, err error)
	// RemoveBlacklistEntry removes the entry with this id. The entry may have only a mark, after an erasure. Codes:
	// not_found.
	RemoveBlacklistEntry(ctx context.Context, id int64) error
}

// SandboxStore reads the messages that the simulated network received from a client.
type SandboxStore interface {
	SandboxMessages(ctx context.Context, p Page) ([]SandboxMessage, string, error) // oldest first

	// SandboxChat lists at most limit messages that the simulated network received from a session, newest first. It
	// reads only the client's last 2,000 messages. phone "" means all recipients.
	SandboxChat(ctx context.Context, session SessionID, phone string, limit int) ([]SandboxMessage, error)
}

// PrivacyStore erases persons.
type PrivacyStore interface {
	// Erase removes all names of the person and all texts from the client's rows. Rows, states, times and credits stay.
	// Erase cancels the pending messages to all names. Uncertain messages become FAILED. Erase counts one call, and the
	// cap never refuses this call. Erase uses several small transactions. If Erase fails, the caller may repeat the
	// call, and the repeat finishes the rest. Codes: busy, if a message to the phone is being sent or repeated now;
	// then no call is counted, but the rest is done.
	Erase(ctx context.Context, e Erasure) (ErasureResult, error)
}

// PartnerTenant is all that a partner's key can reach. A client that was deleted, or that belongs to another partner,
// is missing: CodeNotFound.
type PartnerTenant interface {
	ClientStore
	KeyStore
	UserStore
	AuditStore
	BrandStore
	OverviewStore
	WebhookStore // the partner's own webhooks, which get events of all its clients
	DeliveryStore
	IdempotencyStore // the partner's own records, separate from those of its clients
}

// ClientStore stores a partner's clients.
type ClientStore interface {
	// CreateClient creates the client, its login, its default session and its key in one transaction. The argument o
	// may be nil; its function Answer gets the CreatedIDs. Codes: conflict (another login of this partner has the
	// e-mail).
	CreateClient(ctx context.Context, c NewClient, o *Idempotency) (CreatedIDs, error)
	Client(ctx context.Context, id ClientID) (Client, error)                                     // code not_found
	Clients(ctx context.Context, p Page) ([]Client, string, error)                               // sorted by id; code invalid: the cursor is wrong
	ClientsByID(ctx context.Context, ids []ClientID) (map[ClientID]Client, error)                // leaves out unknown ids
	UpdateClient(ctx context.Context, id ClientID, c ClientPatch, now time.Time) (Client, error) // codes: not_found; invalid: the credits; precondition_failed
	// Quotas returns the limits that the partner set for the given clients. If the result lacks a client, the client
	// has the defaults. A method that creates a limited thing returns quota_reached beyond the limit. The limits are
	// exact under any concurrency.
	Quotas(ctx context.Context, ids []ClientID) (map[ClientID]Quotas, error)

	// DeleteClient deletes the client; this cannot be undone. Its login e-mail becomes free, its keys are revoked, its
	// sessions are deleted, and its pending messages are cancelled. Messages in flight end in the same way as after
	// [RunStore.Stop]. The rows of messages and of the ledger stay.
	DeleteClient(ctx context.Context, id ClientID, now time.Time) error // code not_found
}

// KeyStore stores the keys of a partner (client 0) and of its clients. not_found means that the key is unknown,
// revoked, or expired after a rotation. A method that makes a key may also return quota_reached (for a client), or
// conflict (the partner has MaxPartnerKeys).
type KeyStore interface {
	Keys(ctx context.Context, client ClientID, now time.Time) ([]Key, error) // only valid keys, sorted by id
	// CreateKey stores a new key. The argument o may be nil; its function Answer gets the KeyID.
	CreateKey(ctx context.Context, client ClientID, k Key, o *Idempotency) (KeyID, error)
	// RotateClientKey stores the key next. The key old works until the time graceEnds. The argument o may be nil; its
	// function Answer gets the KeyID of the key next.
	RotateClientKey(ctx context.Context, client ClientID, old KeyID, next Key, graceEnds, now time.Time, o *Idempotency) (KeyID, error)
	RevokeKey(ctx context.Context, client ClientID, id KeyID, now time.Time) error
}

// Operator is the part of the store that serves all tenants. The command line and authentication use it. A caller
// declares only the interfaces that it needs.
type Operator interface {
	TenantStore
	DeviceLogin
	PartnerStore
	MaintenanceStore
	HookStore
}

// TenantStore finds the owner of a key. It also gives the handles with which callers reach the data of one tenant.
type TenantStore interface {
	// Principal finds the owner of a key. Codes: unauthorized if the key is unknown, revoked or expired.
	Principal(ctx context.Context, hash KeyHash, now time.Time) (Principal, error)
	// ClientOf reads a client. Codes: not_found (also if the client was deleted).
	ClientOf(ctx context.Context, id ClientID) (Client, error)
	Tenant(id ClientID) Tenant
	// Uncounted returns a Tenant for people in dashboards. Its calls are not counted, and the cap never refuses them.
	Uncounted(id ClientID) Tenant
	Partner(id PartnerID) PartnerTenant
}

// PartnerStore creates partners, and refills the credits of all clients.
type PartnerStore interface {
	// CreatePartner creates the partner, its login and its key in one transaction.
	CreatePartner(ctx context.Context, p Partner, l Login, k Key) (PartnerID, error)
	// RotateKey stores the key next for the owner of the key with this hash. The old key works until graceEnds.
	RotateKey(ctx context.Context, hash KeyHash, next Key, graceEnds, now time.Time) error
	// Refill refills the clients whose RefillAt is not later than now. It raises their credits to RefillTo, and sets
	// RefillAt to the result of the function next (zero: no more refills). Refill returns how many clients it refilled.
	// Any number of nodes may call it at the same time. If one client cannot be refilled, the others still are; the
	// error names the client.
	Refill(ctx context.Context, now time.Time, next func(Client) time.Time) (int, error)
}

// MaintenanceStore does the regular clean-up of the store.
type MaintenanceStore interface {
	// Maintain does a bounded amount of work in one call. Any number of nodes may call it at the same time. The next
	// call repeats work that failed. Maintain does the following.
	//
	// It ends the unfinished messages of deleted clients and sessions, and deletes the contacts of deleted clients. It
	// deletes idempotency records older than two days, counts of calls older than 400 days, and windows that are
	// closed. It removes the requests and contents of runs whose messages all ended before the time blank (zero: it
	// removes none).
	Maintain(ctx context.Context, now, blank time.Time) error
	// Remember adds the recipients of runs to the contacts of clients whose settings ask for it
	// ([ClientSettings].Remember). It also updates the fields of these contacts. It skips runs that are younger than
	// the duration settle. The pure function read makes a contact from a run, or returns false if the run gives none.
	// One call does a bounded amount of work. Any number of nodes may call it at the same time.
	Remember(ctx context.Context, settle time.Duration, now time.Time, read func(CalledRun) (Contact, bool)) error
	// Check writes something to the disk, and returns an error if the store does not answer.
	Check(ctx context.Context) error
}

// DueMessage is a message that is due now or soon.
type DueMessage struct {
	Client     ClientID
	ID         MessageID
	Session    SessionID
	Campaign   CampaignID // messages of campaigns wait behind all other messages of the session; 0: no campaign
	Run        RunID
	Step       int // index into the Steps of the run
	Phone      string
	Due        time.Time
	Next       time.Time
	ValidUntil time.Time
	Intent     int64 // > 0: an attempt began, and its outcome is not known
	IntentAt   time.Time
	Attempt    int
	Repeats    int
	Generation int
}

// Before reports whether m comes before o, for two messages to one person.
func (m DueMessage) Before(o DueMessage) bool {
	return cmp.Or(m.Due.Compare(o.Due), cmp.Compare(m.Run, o.Run), cmp.Compare(m.Step, o.Step), cmp.Compare(m.ID, o.ID)) < 0
}

// Queue has all methods with which the dispatcher reads and changes messages in the store.
type Queue interface {
	QueueReader
	AttemptStore
}

// QueueReader reads which messages are due, and what the dispatcher needs to send them.
type QueueReader interface {
	// Due returns, for each cursor, at most limit open messages of the cursor's queue, sorted by (next, id). Their Next
	// is not later than the argument horizon. The result includes uncertain messages that the dispatcher must look at
	// again.
	Due(ctx context.Context, from []QueueCursor, horizon time.Time, limit int) ([]DueMessage, error)

	// Expiring returns at most limit messages of a session, sorted by deadline. They are open and due, have no intent,
	// and their deadline is not later than the argument end. If a session cannot send, the dispatcher closes these
	// messages, even if it has not read them from the queue. Expiring reads all due messages of the session, so do not
	// call it every second. Expiring leaves out messages that a campaign holds back.
	Expiring(ctx context.Context, session SessionID, end time.Time, limit int) ([]DueMessage, error)

	// Retrying returns the sessions' open messages that are in retry. Their last attempt began after the argument
	// since, and their Next is not later than the argument end. A new owner of the sessions needs these messages to
	// keep the order of messages to each recipient. For each session, Retrying reads at most maximum open messages,
	// with or without an attempt. The result crowded contains the sessions in which it read maximum messages, because
	// these sessions may have more.
	Retrying(ctx context.Context, sessions []SessionID, since, end time.Time, maximum int) (tried []DueMessage, crowded []SessionID, err error)

	// Contents reads steps of runs. It leaves out steps that do not exist, or whose content was removed.
	Contents(ctx context.Context, steps []StepRef) (map[StepRef]StepContent, error)

	// SendPermissions returns for each client whether its messages may leave.
	SendPermissions(ctx context.Context, clients []ClientID) (map[ClientID]SendPermission, error)
}

// AttemptStore begins attempts, and stores what became of messages.
type AttemptStore interface {
	// Claim writes the intents of a batch in one transaction, under the node's lease. The answers have the order of
	// the items. [ErrFenced]: the lease is gone, and nothing was claimed.
	Claim(ctx context.Context, c Claim) ([]ClaimAnswer, error)

	// Record stores the outcomes of attempts, if the message still has the attempt's token. If the message has another
	// token, only a proof of delivery has an effect. Record returns for each outcome whether it was stored unchanged.
	// Record needs no lease.
	Record(ctx context.Context, now time.Time, results []Result) ([]bool, error)

	// Settle closes or postpones messages that are open and have no intent. It skips a message that changed after the
	// dispatcher read it.
	Settle(ctx context.Context, node NodeID, now time.Time, s []Settlement) error
}

// QueueCursor is a position in one of a session's two queues: after the message with this Next and this ID. If both are
// zero, the position is the beginning of the queue.
type QueueCursor struct {
	Session  SessionID
	Campaign bool // true: the campaign queue, without campaigns that hold their messages back; false: all other messages
	Next     time.Time
	ID       MessageID
}

// StepRef names a step of a run by its index in the run's Steps.
type StepRef struct {
	RunRef
	Step int
}

// StepContent is what Contents returns for a step.
type StepContent struct {
	Zone    string // zone of the run
	Content Content
	Window  *Window // when the message may leave; nil: at any time
}

// Claim is a request to begin attempts.
type Claim struct {
	Node     NodeID
	Token    int64 // token of this batch; positive, and never used before
	Now      time.Time
	Messages []ClaimItem
}

// ClaimItem names one message as the dispatcher last read it. Intent 0 begins a first attempt or a retry. Intent > 0
// repeats an attempt whose answer was lost, under the same connector id. A repeat reserves no second credit, and adds
// one to Repeats.
type ClaimItem struct {
	MessageRef
	// Session is the message's session when the dispatcher read the message. If the message has another session now,
	// the answer is ClaimStale. 0: any session.
	Session  SessionID
	Campaign CampaignID // the message's campaign when the dispatcher read it
	Phone    string
	Mark     string // mark of the phone, which is needed if the client erased persons; "": none
	Intent   int64
}

// ClaimAnswer is what Claim did with one message.
type ClaimAnswer int8

const (
	ClaimStale       ClaimAnswer = iota // the message was cancelled or claimed, or got a new time or session, after the dispatcher read it; or it expired
	ClaimGranted                        // the intent is on disk: the message may be sent
	ClaimBlacklisted                    // the message became BLACKLISTED
	ClaimHeld                           // the client may not send now (credits, expiry, suspension): the message did not change
	ClaimPaused                         // the message's campaign is not running: the message did not change
	ClaimNoConsent                      // the person did not agree to marketing: the message became FAILED
	ClaimUnmarked                       // the client erased persons: claim again with the phone's mark; the message did not change
)

// Result is the outcome of one attempt.
type Result struct {
	MessageRef
	Token   int64
	Outcome Outcome
}

// Settlement asks to close an open message (State Failed) or to postpone it (State Pending, to the time Next), with a
// reason.
type Settlement struct {
	MessageRef
	Intent int64 // the message's intent when the dispatcher read it: 0, or the token of an attempt that is given up as uncertain
	State  State
	Next   time.Time
	Reason Reason
	Detail Reason
}

// Fleet stores the nodes and their leases, and which node sends for which session.
type Fleet interface {
	// Join registers a new node with a lease, and returns its id.
	Join(ctx context.Context, lease time.Duration) (NodeID, error)
	// Beat prolongs the node's lease. [ErrFenced]: the lease is gone.
	Beat(ctx context.Context, node NodeID, lease time.Duration) error
	// Reap removes nodes whose lease ended, and frees the sessions and triggers of nodes that are gone. It returns how
	// many sessions it freed. If a node has an open claim, only a later call removes the node.
	Reap(ctx context.Context) (freed int, err error)
	// Roster returns the ids of the live nodes. It also returns the sessions that the node owns or that nobody owns.
	Roster(ctx context.Context, node NodeID) ([]NodeID, []Session, error)
	// Assign gives the sessions that the node owner still owns to the node newOwner. 0 means no node. Assign returns
	// the sessions that changed owner.
	Assign(ctx context.Context, owner, newOwner NodeID, sessions []SessionID) ([]SessionID, error)
	// Leave frees the node's sessions and removes the node.
	Leave(ctx context.Context, node NodeID) error
}

// Wakeup informs the dispatcher that a message of the session is due at the time due. If due is zero, the wakeup says
// that sessions changed. A wakeup may be lost, so every loop also polls.
type Wakeup func(session SessionID, due time.Time)

// SecretStore stores a few small secrets of the server. They are only as safe as the database.
type SecretStore interface {
	// Secret returns the value, or nil if there is none.
	Secret(ctx context.Context, name string) ([]byte, error)
	// SetSecret stores the argument value if the stored value equals the argument old; old is nil if no value is
	// stored. It returns whether it stored value.
	SetSecret(ctx context.Context, name string, old, value []byte) (bool, error)
}
