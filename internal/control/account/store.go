package account

import (
	"context"
	"time"

	"puntuale"
)

// SignInStore has the parts of the store that work before the server knows the user, and the notices of users. The
// caller must check with [puntuale.PendingStep.Open] whether a pending step is still open.
type SignInStore interface {
	// UsersByEmail returns at most limit users with the e-mail, sorted by id. Upper and lower case make no difference.
	// If partner is 0, it searches the users of all partners. UsersByEmail leaves out users of deleted clients.
	UsersByEmail(ctx context.Context, email string, partner puntuale.PartnerID, limit int) ([]puntuale.User, error)
	// UserByID returns a user, and the user's partner without the logo. Codes: not_found.
	UserByID(ctx context.Context, id puntuale.UserID) (puntuale.User, puntuale.Host, error)
	// HostNamed finds a partner by its confirmed host name, and HostSlug by its slug. Both return no logo. Codes:
	// not_found.
	HostNamed(ctx context.Context, name string) (puntuale.Host, error)
	HostSlug(ctx context.Context, slug string) (puntuale.Host, error)

	IssueTicket(ctx context.Context, hash string, s puntuale.PendingStep) error
	// Ticket returns the ticket of the given kind, and does not remove it. Codes: not_found.
	Ticket(ctx context.Context, hash string, kind puntuale.PendingStepKind) (puntuale.PendingStep, error)
	// SpendTicket removes the ticket of the given kind and returns it, so only one caller gets it. Codes: not_found.
	SpendTicket(ctx context.Context, hash string, kind puntuale.PendingStepKind) (puntuale.PendingStep, error)

	// Invited returns the user with this invitation, if the invitation is valid at the time now. Codes: not_found.
	Invited(ctx context.Context, hash string, now time.Time) (puntuale.UserID, error)
	// TakeInvitation accepts an invitation that is valid at the time now; this works only once. It stores the hash of
	// the user's new password, and ends the user's visits and pending steps. Codes: not_found.
	TakeInvitation(ctx context.Context, hash string, now time.Time, password string) (puntuale.UserID, error)

	Visit(ctx context.Context, token string, now time.Time) (data []byte, found bool, err error)
	KeepVisit(ctx context.Context, v puntuale.Visit) error
	EndVisit(ctx context.Context, token string) error // returns nil even if there is no such visit
	// VisitsOf lists at most limit visits in which the user is signed in, the latest one first.
	VisitsOf(ctx context.Context, user puntuale.UserID, now time.Time, limit int) ([]puntuale.Visit, error)
	// EndVisitOf ends a visit of the user for good: no running request stores it again. It returns nil even if the user has
	// no such visit.
	EndVisitOf(ctx context.Context, user puntuale.UserID, token string, now time.Time) error
	// PurgeSignIns deletes expired visits, tickets and invitations, and old counts of attempts.
	PurgeSignIns(ctx context.Context, now time.Time) error

	// Try counts one attempt for each of tries. If one of them must wait, Try counts nothing and returns the longest
	// wait. Try is exact under any concurrency and with any number of nodes.
	Try(ctx context.Context, tries []puntuale.SignInAttempt, now time.Time) (wait time.Duration, err error)
	// Forget is called after a successful sign-in. It deletes the counts under the hashes in the argument marks. It
	// subtracts one from the counts under the hashes in the argument others.
	Forget(ctx context.Context, marks, others []string) error
	// Fail notes that an attempt failed. The argument mark is the hash under which Try counted the attempt. Fail adds
	// the failures to the audit log. Within an hour, a further failure from the same address only raises Times of the
	// entry.
	// After [puntuale.MaxFailures] in a day, all further failures share one entry without an address.
	Fail(ctx context.Context, mark string, failures []puntuale.SignInFailure, now time.Time) error

	// LatestNotices returns at most ListedNotices notices that are due by now, newest first.
	LatestNotices(ctx context.Context, u puntuale.User, now time.Time) ([]puntuale.Notice, error)
	// UnreadNotices counts the notices that are due by now and that the user has not read. It stops counting at limit.
	UnreadNotices(ctx context.Context, u puntuale.User, now time.Time, limit int) (int, error)
	// ReadNotices marks one notice as read. With id 0, it marks all notices that are due by now. It changes only
	// notices that the user may see.
	ReadNotices(ctx context.Context, u puntuale.User, id puntuale.NoticeID, now time.Time) error

	// NoticeChoice returns the user's choice. ChooseNotices replaces it.
	NoticeChoice(ctx context.Context, u puntuale.User) (puntuale.NoticeChoice, error)
	ChooseNotices(ctx context.Context, u puntuale.User, c puntuale.NoticeChoice) error

	// QueueNotices queues e-mails about notices that are due by now. Each notice is queued only once. QueueNotices
	// returns how many notices it looked at. Notices older than GiveUpMailAfter get no e-mail. Any number of nodes may
	// call it at the same time.
	QueueNotices(ctx context.Context, now time.Time) (int, error)
	// QueuedNotices returns at most MailedNotices notices for an e-mail, oldest first. It leaves out notices that the
	// user has read, or no longer wants by e-mail. The result more is the number of notices that did not fit.
	QueuedNotices(ctx context.Context, u puntuale.User, m puntuale.Mail) (all []puntuale.Notice, more int, err error)
}
