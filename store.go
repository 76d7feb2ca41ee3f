package puntuale

import (
	"context"
	"time"
)

// The store's promises, by role. A caller asks for the roles it needs; only a store implements them all. Unless a
// comment says otherwise: a method that changes something returns after its commit is on disk, or with an error and
// nothing changed; CodeUnavailable means the database could not be reached; all methods may be called by many
// goroutines at once.

// Tenant is all that a client's key can reach. Everything in it belongs to that client; what belongs to another is
// CodeNotFound.
type Tenant interface {
	RunStore
	MessageStore
	SequenceStore
	SessionStore
	BlacklistStore
	SandboxStore
}

// RunStore starts and stops.
type RunStore interface {
	// Start stores the run, its messages, the day's usage and the idempotency record in one transaction shared with
	// whoever else is waiting. Codes: cap_reached with the counters (exact under any concurrency; nothing stored or
	// counted), conflict (if_running reject; the idempotency key with another body), not_found (the sequence or
	// session is gone).
	Start(ctx context.Context, s StartRun) (StartedRun, error)

	// Replay returns the answer kept under the idempotency key, nil when there is none. Codes: conflict (another body).
	Replay(ctx context.Context, key Idempotency) (*StartedRun, error)

	// Stop cancels every PENDING message without an open intent of the sequence's runs for the phone, and counts one
	// call, never refused. Messages go in chunks of at most 1,000 a transaction. A cancelled message is never sent.
	// Codes: not_found for a sequence that never was the client's, nothing counted; a deleted one can still be stopped.
	Stop(ctx context.Context, sequence SequenceID, phone string, day Date, now time.Time) (Stopped, error)

	// CancelPending does the same for all messages to the phones, or for all of the client when all is true.
	CancelPending(ctx context.Context, phones []string, all bool, day Date, now time.Time) ([]CancelledMessage, error)
}

// MessageStore reads messages.
type MessageStore interface {
	// Details returns the messages found, in the order asked, a repeated id once.
	Details(ctx context.Context, ids []MessageID) ([]MessageDetail, error)
}

// Page asks for a part of a list: at most Limit rows after the one that Cursor names ("" from the beginning). The
// cursor of the next page is "" at the end. Lists stay stable while rows are inserted.
type Page struct {
	Limit  int
	Cursor string
}

// SequenceStore keeps sequences.
type SequenceStore interface {
	CreateSequence(ctx context.Context, s Sequence) (SequenceID, error) // not_found: its session
	UpdateSequence(ctx context.Context, s Sequence) error               // not_found
	Sequence(ctx context.Context, id SequenceID) (Sequence, error)      // not_found
	Sequences(ctx context.Context, p Page) ([]Sequence, string, error)  // by id; invalid: the cursor

	// StartInfo reads what a start needs in one go: the sequence and the session that it would use.
	StartInfo(ctx context.Context, id SequenceID) (Sequence, Session, error) // not_found

	// DeleteSequence removes it. With pending messages it is a conflict naming their count, unless keep is true (they
	// are sent; stop still reaches them) or cancel is true.
	DeleteSequence(ctx context.Context, id SequenceID, keep, cancel bool, now time.Time) error
}

// SessionStore keeps sessions.
type SessionStore interface {
	CreateSession(ctx context.Context, s Session) (SessionID, error)
	Session(ctx context.Context, id SessionID) (Session, error)      // not_found
	Sessions(ctx context.Context, p Page) ([]Session, string, error) // by id; invalid: the cursor
}

// BlacklistStore keeps the numbers that a client must never write to.
type BlacklistStore interface {
	// AddBlacklisted counts one call, never refused; adding twice changes nothing.
	AddBlacklisted(ctx context.Context, e BlacklistEntry, day Date) error
	// RemoveBlacklisted reports whether the phone was there; it counts one call either way.
	RemoveBlacklisted(ctx context.Context, phone string, day Date) (bool, error)
	Blacklist(ctx context.Context, p Page) ([]BlacklistEntry, string, error) // by id
}

// SandboxStore reads what the simulated network received of a client.
type SandboxStore interface {
	SandboxMessages(ctx context.Context, p Page) ([]SandboxMessage, string, error) // oldest first
}

// PartnerTenant is all that a partner's key can reach.
type PartnerTenant interface {
	// CreateClient creates the client, its login, its default session and its key in one transaction.
	// Codes: conflict (the login e-mail exists among this partner's).
	CreateClient(ctx context.Context, c NewClient) (ClientID, SessionID, error)
	Client(ctx context.Context, id ClientID) (Client, error) // not_found
}

// Operator is what commands and authentication ask across tenants.
type Operator interface {
	// CreatePartner creates the partner, its login and its key in one transaction.
	CreatePartner(ctx context.Context, p Partner, l Login, k Key) (PartnerID, error)
	// Principal finds who a key belongs to; unauthorized when nobody, or the key is revoked or past its grace.
	Principal(ctx context.Context, hash KeyHash, now time.Time) (Principal, error)
	// RotateKey stores next for the owner of the key named by hash, which stays valid until graceEnds.
	RotateKey(ctx context.Context, hash KeyHash, next Key, graceEnds, now time.Time) error
	Tenant(id ClientID) Tenant
	Partner(id PartnerID) PartnerTenant
	// Check reports whether the store answers, with a write that reaches the disk.
	Check(ctx context.Context) error
}

// DueMessage is a message that will soon be, or is, due, as the queue sees it.
type DueMessage struct {
	Client     ClientID
	ID         MessageID
	Session    SessionID
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

// Queue is what the dispatcher asks about messages.
type Queue interface {
	// Due returns, for each of the sessions, the first open messages whose Next is not after horizon, at most limit a
	// session, by (next, id). Messages with an unknown outcome are among them once they should be looked at again.
	Due(ctx context.Context, sessions []SessionID, horizon time.Time, limit int) ([]DueMessage, error)

	// Retrying returns the sessions' open messages that were tried before, as far as horizon: what a new owner must
	// know to keep the order of each recipient.
	Retrying(ctx context.Context, sessions []SessionID, horizon time.Time) ([]DueMessage, error)

	// Contents reads the runs' steps.
	Contents(ctx context.Context, runs []RunRef) (map[RunRef]RunContent, error)

	// Standings reads the standing of the clients.
	Standings(ctx context.Context, clients []ClientID) (map[ClientID]Standing, error)

	// Claim writes the intents of a batch in one transaction, under the node's lease. [ErrFenced]: the lease is gone
	// and nothing was claimed. The answers come in the order asked.
	Claim(ctx context.Context, c Claim) ([]Granted, error)

	// Record stores outcomes of attempts where the attempt's token still stands, and merges evidence of delivery
	// where it does not. It answers for each whether it was applied as it stands. It needs no lease.
	Record(ctx context.Context, now time.Time, results []Result) ([]bool, error)

	// Close and postpone messages that are open and without an intent; a message that is no longer so is left alone.
	Settle(ctx context.Context, node NodeID, now time.Time, s []Settlement) error
}

// RunContent is what Contents returns for a run.
type RunContent struct {
	Zone  string
	Steps []FrozenStep
}

// Claim asks to begin attempts.
type Claim struct {
	Node     NodeID
	Token    int64 // of this batch; positive and never used before
	Now      time.Time
	Messages []ClaimItem
}

// ClaimItem names one message as the dispatcher last saw it. Intent 0 claims an open message; Intent > 0 takes over an
// attempt whose answer was lost, to repeat it under the same connector id: no credit is taken again, and Repeats counts.
type ClaimItem struct {
	MessageRef
	Phone  string
	Intent int64
}

// Granted is a claim's answer for one message.
type Granted int8

const (
	ClaimGone        Granted = iota // no longer as the dispatcher saw it: cancelled, moved, taken, expired
	ClaimGranted                    // the intent is on disk: send
	ClaimBlacklisted                // closed as BLACKLISTED
	ClaimHeld                       // the client may not send now (credit, expiry, suspension): still open, untouched
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
	Reason string
	Detail string
}

// Fleet is who sends for whom.
type Fleet interface {
	// Join registers a new incarnation with a lease.
	Join(ctx context.Context, lease time.Duration) (NodeID, error)
	// Beat prolongs the lease; ErrFenced when it is gone.
	Beat(ctx context.Context, node NodeID, lease time.Duration) error
	// Reap removes nodes whose lease ended, waiting for their open claims, and frees their sessions.
	Reap(ctx context.Context) (freed int, err error)
	// Roster returns the live nodes and the sessions that are the node's or nobody's.
	Roster(ctx context.Context, node NodeID) ([]NodeID, []Session, error)
	// Assign moves sessions from one owner to another (0: nobody) where from still owns them, and returns those moved.
	Assign(ctx context.Context, from, to NodeID, sessions []SessionID) ([]SessionID, error)
	// Leave frees the node's sessions and removes it.
	Leave(ctx context.Context, node NodeID) error
}

// Hint tells the dispatcher that a session has something due at a moment, or (zero moment) that sessions changed. It is
// only a hint: every loop also polls.
type Hint func(session SessionID, due time.Time)
