package puntuale

import (
	"context"
	"time"
)

// MailID names an e-mail in the queue.
type MailID int64

// MailKind says what an e-mail is about. The database contains these numbers, so a number must never change.
type MailKind int8

const (
	MailResetAsked MailKind = 1 + iota // somebody asked for a new password; the sender later looks for users with this address
	MailReset                          // has the link with which a user sets a new password
	MailInvitation                     // has the link of a user's [Invitation]
	MailNotices                        // lists [Notice]s; a user has at most one such e-mail that was not attempted yet
)

const (
	// GiveUpMailAfter is how long the server tries to send an e-mail.
	GiveUpMailAfter = 24 * time.Hour
	// MailClaimTime is how long a claimed e-mail belongs to the node that claimed it. One attempt takes less time.
	MailClaimTime = 5 * time.Minute
	// MaxResets is approximately the largest number of requests for a new password that may wait for one partner.
	MaxResets = 1000
)

// Mail is an e-mail that waits to be sent. It contains no address and no text, because each attempt makes both from the
// stored data. So a user who was removed gets no e-mail.
type Mail struct {
	ID       MailID
	Partner  PartnerID // 0: unknown
	User     UserID    // 0: not known yet
	Kind     MailKind
	Sealed   []byte // data that the kind needs; sealed if the data contain a secret
	Queued   time.Time
	Attempts int // number of attempts, including the present one after a claim
}

// Letter is the content of an e-mail for one user.
type Letter struct {
	Kind     MailKind
	To       string // the e-mail address
	Language string // language of the letter, "it" or "en"
	Host     Host   // the partner whose brand the letter shows
	Link     string // address that the letter's button opens
	Until    time.Time

	// The fields below are only used with MailNotices. Link then opens the page on which the user chooses notices.
	Notices []LetterNotice
	More    int // number of further notices, which the e-mail does not show
}

// LetterNotice is a notice in a letter.
type LetterNotice struct {
	Title, Text Reason
	Link        string    // address of the page on which the reader can solve the problem
	At          time.Time // when the fact happened, in the reader's zone
}

// MailStore is the queue of e-mails.
type MailStore interface {
	// QueueMails adds e-mails to the queue, and removes one e-mail, in one transaction. The argument replaced is the id
	// of the e-mail to remove; 0: none. A new e-mail also replaces a waiting e-mail of the same kind for the same user.
	// Codes: rate_limited ([MaxResets] requests wait).
	QueueMails(ctx context.Context, all []Mail, replaced MailID) error

	// ClaimMails returns at most limit due e-mails. It chooses them in rounds. Each round chooses one e-mail of each
	// partner. For [MailClaimTime] no other caller gets these e-mails. If the caller dies before EndMail, the e-mail is
	// due again after [MailClaimTime].
	ClaimMails(ctx context.Context, now time.Time, limit int) ([]Mail, error)

	// EndMail ends a claimed attempt. The e-mail is due again at the time retryAt; zero: the e-mail is done and is
	// removed. If the e-mail was deleted, or another caller claimed it, EndMail changes nothing.
	EndMail(ctx context.Context, m Mail, retryAt time.Time) error

	// OldestMail returns when the e-mail that has waited longest was queued; zero: none waits. If more than [MaxBacklog]
	// wait, it looks at those whose next attempt is the furthest, because they failed most often.
	OldestMail(ctx context.Context) (time.Time, error)
}
