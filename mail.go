package puntuale

import (
	"context"
	"time"
)

// MailID names an e-mail in the queue.
type MailID int64

// MailKind says what an e-mail is about. The numbers are what stores keep.
type MailKind int8

const (
	MailResetAsked MailKind = 1 + iota // somebody asked for a new password; whether a user has the address is found out later
	MailReset                          // the link with which a user sets a new password
	MailInvitation                     // the link of a user's [Invitation]
	MailNotices                        // [Notice]s; one e-mail that was never tried waits for each user
)

const (
	// MailPatience is how long an e-mail is tried.
	MailPatience = 24 * time.Hour
	// MailHold is how long a claimed e-mail is left to its node. An attempt takes less.
	MailHold = 5 * time.Minute
	// MaxResets is about how many requests for a new password may wait for one partner.
	MaxResets = 1000
)

// Mail is an e-mail that waits to be sent. It has neither address nor text: both are made for the attempt, so a user who is removed gets
// none.
type Mail struct {
	ID       MailID
	Partner  PartnerID // 0: not known
	User     LoginID   // 0: not known yet
	Kind     MailKind
	Sealed   []byte // what the kind needs besides; sealed, except what a store writes there by itself
	Queued   time.Time
	Attempts int // this one included, once it is claimed
}

// Letter is the content of an e-mail for one user.
type Letter struct {
	Kind     MailKind
	To       string // the address
	Language string // "it", "en"
	Host     Host   // whose brand it has
	Link     string // what its button opens
	Until    time.Time

	// Of MailNotices. Link then opens the user's choices.
	Notices []LetterNotice
	More    int // further notices that the e-mail only counts
}

// LetterNotice is a notice in a letter.
type LetterNotice struct {
	Title, Text Reason
	Link        string    // what mends it
	At          time.Time // in the zone of the reader
}

// MailStore is the queue of e-mails.
type MailStore interface {
	// QueueMails puts e-mails into the queue, and takes the one out that they replace (0: none), all or nothing. Each replaces another of
	// its kind for the same user. Codes: rate_limited (MaxResets requests wait).
	QueueMails(ctx context.Context, all []Mail, instead MailID) error

	// ClaimMails returns e-mails that are due, at most so many, in turn between the partners. For MailHold only the caller gets them. What is
	// not ended within it, because its node died, is due again.
	ClaimMails(ctx context.Context, now time.Time, most int) ([]Mail, error)

	// EndMail ends a claimed attempt. The e-mail is due again at the moment; zero: it is done. An e-mail that is gone, or claimed again, is
	// left alone.
	EndMail(ctx context.Context, m Mail, again time.Time) error
}
