package puntuale

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
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

// What notices say. {1} is the name of the subject.
const (
	noticeDisconnected    ReasonCode = "notice.disconnected"
	noticeOffline         ReasonCode = "notice.offline_why"
	noticeUnlinked        ReasonCode = "notice.unlinked_why"
	noticeRestricted      ReasonCode = "notice.restricted_why"
	noticeReconnected     ReasonCode = "notice.reconnected"
	noticeLeaveNow        ReasonCode = "notice.reconnected_why"
	noticeCreditLow       ReasonCode = "notice.credit_low"
	noticeCreditLowWhy    ReasonCode = "notice.credit_low_why"
	noticeCreditOut       ReasonCode = "notice.credit_out"
	noticeCreditOutWhy    ReasonCode = "notice.credit_out_why"
	noticeCapReached      ReasonCode = "notice.cap_reached"
	noticeCapReachedWhy   ReasonCode = "notice.cap_reached_why"
	noticeExpiring        ReasonCode = "notice.expiring"      // {1}: days
	noticeExpiringSoon    ReasonCode = "notice.expiring_soon" // {1}: today or tomorrow
	noticeToday           ReasonCode = "notice.today"
	noticeTomorrow        ReasonCode = "notice.tomorrow"
	noticeExpiringWhy     ReasonCode = "notice.expiring_why"
	noticeExpired         ReasonCode = "notice.expired"
	noticeExpiredWhy      ReasonCode = "notice.expired_why"
	noticeCampaignDone    ReasonCode = "notice.campaign_done"
	noticeCampaignFailed  ReasonCode = "notice.campaign_failed"
	noticeCampaignDoneWhy ReasonCode = "notice.campaign_done_why"
	noticeCampaignPaused  ReasonCode = "notice.campaign_paused"
	noticePaused          ReasonCode = "notice.campaign_paused_why"
	noticePausedCanary    ReasonCode = "notice.paused_canary"
	noticePausedCredit    ReasonCode = "notice.paused_credit"
	noticePausedStanding  ReasonCode = "notice.paused_standing"
	noticePausedNumber    ReasonCode = "notice.paused_number"
	noticePausedRestore   ReasonCode = "notice.paused_restore"
	noticeWebhook         ReasonCode = "notice.webhook_disabled"
	noticeWebhookWhy      ReasonCode = "notice.webhook_disabled_why" // {1}: the reason
	noticeKeyCreated      ReasonCode = "notice.key_created"
	noticeKeyCreatedWhy   ReasonCode = "notice.key_created_why"
	noticeSignIn          ReasonCode = "notice.sign_in"
	noticeSignInWhy       ReasonCode = "notice.sign_in_why"
	noticeSignInFrom      ReasonCode = "notice.sign_in_from"         // {1}: the address
	noticeClientExpiring  ReasonCode = "notice.client_expiring"      // {2}: days
	noticeClientSoon      ReasonCode = "notice.client_expiring_soon" // {2}: today or tomorrow
	noticeClientExpired   ReasonCode = "notice.client_expired"
	noticeClientWhy       ReasonCode = "notice.client_expiring_why"
)

// pausedWhy are the reasons for which a campaign pauses by itself.
var pausedWhy = map[string]ReasonCode{
	CampaignByCanary: noticePausedCanary, CampaignByCredit: noticePausedCredit, CampaignByStanding: noticePausedStanding, CampaignByNumber: noticePausedNumber,
	CampaignByRestore: noticePausedRestore, CampaignByFailover: noticePausedRestore,
}

// when are the words for an account's last day.
var when = [2]Reason{Because(noticeToday), Because(noticeTomorrow)}

// Title says in a few words what happened.
func (n Notice) Title() Reason {
	name := Quoted(cmp.Or(n.Name, strconv.FormatInt(n.Subject, 10))).Stored()
	days := strconv.Itoa(n.Detail.Days)
	switch n.Kind {
	case NoticeDisconnected:
		return Because(noticeDisconnected, name)
	case NoticeReconnected:
		return Because(noticeReconnected, name)
	case NoticeCreditLow:
		return Because(noticeCreditLow)
	case NoticeCreditOut:
		return Because(noticeCreditOut)
	case NoticeCapReached:
		return Because(noticeCapReached)
	case NoticeExpiring:
		switch {
		case n.Detail.Event == EventAccountExpired:
			return Because(noticeExpired)
		case n.Detail.Days <= 1:
			return Because(noticeExpiringSoon, when[max(n.Detail.Days, 0)].Stored())
		}
		return Because(noticeExpiring, days)
	case NoticeCampaignDone:
		if n.Detail.State == CampaignFailed.String() {
			return Because(noticeCampaignFailed, name)
		}
		return Because(noticeCampaignDone, name)
	case NoticeCampaignPaused:
		return Because(noticeCampaignPaused, name)
	case NoticeWebhookDisabled:
		return Because(noticeWebhook, Quoted(cmp.Or(hostOf(n.Name), strconv.FormatInt(n.Subject, 10))).Stored())
	case NoticeKeyCreated:
		return Because(noticeKeyCreated, name)
	case NoticeSignIn:
		return Because(noticeSignIn)
	case NoticeClientExpiring:
		switch {
		case n.Detail.Event == EventAccountExpired:
			return Because(noticeClientExpired, name)
		case n.Detail.Days <= 1:
			return Because(noticeClientSoon, name, when[max(n.Detail.Days, 0)].Stored())
		}
		return Because(noticeClientExpiring, name, days)
	}
	return Reason{}
}

// Text says what it means, and what to do.
func (n Notice) Text() Reason {
	switch n.Kind {
	case NoticeDisconnected:
		switch n.Detail.Event {
		case EventSessionUnlinked:
			return Because(noticeUnlinked)
		case EventSessionRestricted:
			return Because(noticeRestricted)
		}
		return Because(noticeOffline)
	case NoticeReconnected:
		return Because(noticeLeaveNow)
	case NoticeCreditLow:
		return Because(noticeCreditLowWhy)
	case NoticeCreditOut:
		return Because(noticeCreditOutWhy)
	case NoticeCapReached:
		return Because(noticeCapReachedWhy)
	case NoticeExpiring:
		if n.Detail.Event == EventAccountExpired {
			return Because(noticeExpiredWhy)
		}
		return Because(noticeExpiringWhy)
	case NoticeCampaignDone:
		return Because(noticeCampaignDoneWhy)
	case NoticeCampaignPaused:
		return Because(cmp.Or(pausedWhy[n.Detail.Reason], noticePaused))
	case NoticeWebhookDisabled:
		return Because(noticeWebhookWhy, n.Detail.Reason)
	case NoticeKeyCreated:
		return Because(noticeKeyCreatedWhy)
	case NoticeSignIn:
		if n.Detail.Address != "" {
			return Because(noticeSignInFrom, n.Detail.Address)
		}
		return Because(noticeSignInWhy)
	case NoticeClientExpiring:
		return Because(noticeClientWhy)
	}
	return Reason{}
}

// hostOf is the host of a receiver's address. The rest of the address may be a secret.
func hostOf(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	if at := strings.IndexAny(rest, "/?#"); at >= 0 {
		rest = rest[:at]
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}
