package puntuale

import (
	"context"
	"fmt"
	"time"
)

// NoticeID names a notice.
type NoticeID int64

// NoticeKind says what a notice tells of. Its number is stored and never changes. It is also the kind's bit in a [NoticeSet].
type NoticeKind int8

const (
	NoticeDisconnected NoticeKind = 1 + iota // a session, once in each incident, after [NoticeWait]
	NoticeReconnected                        // the same session; only if NoticeDisconnected was told
	NoticeCreditLow
	NoticeCreditOut
	NoticeCapReached
	NoticeExpiring // the account, in so many days, or it expired
	NoticeCampaignDone
	NoticeCampaignPaused // by itself
	NoticeWebhookDisabled
	NoticeKeyCreated
	NoticeSignIn         // of the user, in a browser that is new to them
	NoticeClientExpiring // NoticeExpiring of a client, to its partner's users
	lastNotice
)

var noticeNames = [...]string{
	"disconnected", "reconnected", "credit_low", "credit_out", "cap_reached", "expiring", "campaign_done", "campaign_paused", "webhook_disabled", "key_created", "sign_in", "client_expiring",
}

func (k NoticeKind) String() string {
	if k < 1 || k >= lastNotice {
		return "unknown"
	}
	return noticeNames[k-1]
}

// ParseNoticeKind reads a kind's name.
func ParseNoticeKind(name string) (NoticeKind, error) {
	for i, n := range noticeNames {
		if n == name {
			return NoticeKind(i + 1), nil
		}
	}
	return 0, fmt.Errorf("%q is no kind of notice", name)
}

// NoticeSet is a set of kinds: a bit for each. Stores keep it as a number.
type NoticeSet int64

// NoticesOf returns the set of the kinds.
func NoticesOf(kinds ...NoticeKind) (s NoticeSet) {
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has reports whether the set has the kind.
func (s NoticeSet) Has(k NoticeKind) bool { return s&(1<<k) != 0 }

// Kinds returns the set's kinds by their numbers.
func (s NoticeSet) Kinds() (all []NoticeKind) {
	for k := NoticeKind(1); k < lastNotice; k++ {
		if s.Has(k) {
			all = append(all, k)
		}
	}
	return all
}

const (
	// NoticeWait is how long a session is offline before people are told.
	NoticeWait = 5 * time.Minute
	// KeepNotices is how long notices are kept. Of one kind to the same readers, MaxNotices are kept.
	KeepNotices = 90 * 24 * time.Hour
	MaxNotices  = 40
	// ListedNotices is how many notices a list has.
	ListedNotices = 100
	// NoticeMails is how many e-mails with notices a user gets in NoticeMailPeriod. Later notices of the period share one e-mail after it.
	NoticeMails      = 10
	NoticeMailPeriod = 24 * time.Hour
	// MailedNotices is how many notices one e-mail shows. It counts the others.
	MailedNotices = 20
)

// Notice tells people of something that happened. The transaction of the fact writes it.
type Notice struct {
	ID      NoticeID
	Partner PartnerID
	Client  ClientID // 0: it is for the partner's own users
	User    LoginID  // 0: for all users of that side
	Kind    NoticeKind
	Subject int64        // the id of the session, campaign, webhook, key or client; 0: none
	Name    string       // of the subject, read with the notice; "": it has none, or is gone
	Detail  NoticeDetail // by the names of the event's detail
	At      time.Time    // of the fact
	Read    bool         // by the reader
}

// NoticeDetail is what a notice's subject does not tell. The JSON form is what stores keep. It has no number and no text of a person.
type NoticeDetail struct {
	Reason  string    `json:"reason,omitempty"`  // why, as the event says it
	State   string    `json:"state,omitempty"`   // of the campaign
	Event   EventType `json:"event,omitempty"`   // what happened last to the session, or to the account that expires
	Days    int       `json:"days,omitempty"`    // until the account's last day
	Address string    `json:"address,omitempty"` // of NoticeSignIn: where the browser was; "": not known
}

// These are the kinds that a user may get.
var (
	clientNotices = NoticesOf(NoticeDisconnected, NoticeReconnected, NoticeCreditLow, NoticeCreditOut, NoticeCapReached, NoticeExpiring, NoticeCampaignDone,
		NoticeCampaignPaused, NoticeWebhookDisabled, NoticeKeyCreated, NoticeSignIn)
	partnerNotices = NoticesOf(NoticeWebhookDisabled, NoticeKeyCreated, NoticeSignIn, NoticeClientExpiring)
	ownerNotices   = NoticesOf(NoticeKeyCreated) // only owners see keys

	// Owners get all kinds by e-mail except what can wait. Others get what they can mend.
	ownerMails = (clientNotices | partnerNotices) &^ NoticesOf(NoticeCampaignDone)
	staffMails = NoticesOf(NoticeDisconnected, NoticeReconnected, NoticeCampaignPaused, NoticeSignIn)
	otherMails = NoticesOf(NoticeSignIn)
)

// Notices returns the kinds that the user gets.
func (u User) Notices() NoticeSet {
	all := clientNotices
	if u.Client == 0 {
		all = partnerNotices
	}
	if u.Role < Owner {
		all &^= ownerNotices
	}
	return all
}

// NoticeChoice is which kinds a user gets by e-mail. Kinds that are in neither set are as for everybody.
type NoticeChoice struct {
	On, Off NoticeSet
}

// Mailed returns the kinds that the user gets by e-mail.
func (c NoticeChoice) Mailed(u User) NoticeSet {
	usual := otherMails
	switch u.Role {
	case Owner:
		usual = ownerMails
	case Staff:
		usual = staffMails
	}
	return (usual | c.On) &^ c.Off & u.Notices()
}

// NoticeStore reads notices for a user, who sees those of their side since they are a user, by their role. The user is as stored.
type NoticeStore interface {
	// LatestNotices returns what was told by now, newest first, at most ListedNotices.
	LatestNotices(ctx context.Context, u User, now time.Time) ([]Notice, error)
	// UnreadNotices counts what was told by now and the user did not read, at most so many.
	UnreadNotices(ctx context.Context, u User, now time.Time, limit int) (int, error)
	// ReadNotices marks one notice as read, or with 0 all that were told by now. What the user does not see stays as it is.
	ReadNotices(ctx context.Context, u User, id NoticeID, now time.Time) error

	// NoticeChoice returns what the user chose. ChooseNotices replaces it.
	NoticeChoice(ctx context.Context, u User) (NoticeChoice, error)
	ChooseNotices(ctx context.Context, u User, c NoticeChoice) error

	// QueueNotices puts e-mails about notices that were told by now into the queue, each notice once, and returns how many notices it looked
	// at. Notices older than MailPatience get no e-mail. Any number of nodes may call it at once.
	QueueNotices(ctx context.Context, now time.Time) (int, error)
	// QueuedNotices returns the notices of an e-mail, oldest first, at most MailedNotices. It leaves out those that the user read, or does
	// not want any more. more counts notices that did not fit.
	QueuedNotices(ctx context.Context, u User, m Mail) (all []Notice, more int, err error)
}
