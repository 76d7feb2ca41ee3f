package puntuale

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// NoticeID names a notice.
type NoticeID int64

// NoticeKind says what a notice is about. The database contains the kind's number, so the number never changes. The
// same number is the kind's bit in a [NoticeSet].
type NoticeKind int8

const (
	NoticeDisconnected NoticeKind = 1 + iota // a session was offline for [NoticeWait]; there is one such notice for each outage
	NoticeReconnected                        // the session is online again; only if there was a NoticeDisconnected
	NoticeCreditLow
	NoticeCreditOut
	NoticeCapReached
	NoticeExpiring // the account expires in some days, or has expired
	NoticeCampaignDone
	NoticeCampaignPaused // the server paused the campaign
	NoticeWebhookDisabled
	NoticeKeyCreated
	NoticeSignIn         // the user signed in with a browser that is new to the user
	NoticeClientExpiring // tells the partner's users what NoticeExpiring tells the client's users
	NoticeAnswer         // a person answered about a booking, and the answer changed nothing
	NoticeCalendar       // a calendar could not be read, or so many of its entries are gone that a person must decide
	NoticeHealth         // Meta says something about a number or its business that people should know
	NoticeTemplate       // Meta made a template marketing, and its messages wait until a person decides
	NoticeBudget         // most of the budget of the month is used, or all of it
	NoticeClientBudget   // tells the partner's users what NoticeBudget tells the client's users
	lastNotice
)

var noticeNames = [...]string{
	"disconnected", "reconnected", "credit_low", "credit_out", "cap_reached", "expiring", "campaign_done", "campaign_paused", "webhook_disabled", "key_created", "sign_in", "client_expiring", "answer", "calendar", "health", "template", "budget", "client_budget",
}

func (k NoticeKind) String() string {
	if k < 1 || k >= lastNotice {
		return "unknown"
	}
	return noticeNames[k-1]
}

// ParseNoticeKind returns the kind with a name.
func ParseNoticeKind(name string) (NoticeKind, error) {
	for i, n := range noticeNames {
		if n == name {
			return NoticeKind(i + 1), nil
		}
	}
	return 0, fmt.Errorf("%q is no kind of notice", name)
}

// NoticeSet is a set of kinds, with one bit for each kind. The database contains it as a number.
type NoticeSet int64

// NoticesOf returns the set of the given kinds.
func NoticesOf(kinds ...NoticeKind) (s NoticeSet) {
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has reports whether the set contains the kind.
func (s NoticeSet) Has(k NoticeKind) bool { return s&(1<<k) != 0 }

// Kinds returns the kinds in the set, sorted by number.
func (s NoticeSet) Kinds() (all []NoticeKind) {
	for k := NoticeKind(1); k < lastNotice; k++ {
		if s.Has(k) {
			all = append(all, k)
		}
	}
	return all
}

const (
	// NoticeWait is how long a session must be offline before people get a notice.
	NoticeWait = 5 * time.Minute
	// KeepNotices is how long notices are stored. At most MaxNotices of one kind are stored for the same readers.
	KeepNotices = 90 * 24 * time.Hour
	MaxNotices  = 40
	// ListedNotices is the largest number of notices in a list.
	ListedNotices = 100
	// NoticeMails is how many e-mails with notices a user gets in one NoticeMailPeriod. Further notices in this period
	// wait for one e-mail after the period.
	NoticeMails      = 10
	NoticeMailPeriod = 24 * time.Hour
	// MailedNotices is how many notices one e-mail shows. The e-mail only counts the others.
	MailedNotices = 20
)

// Notice informs people about something that happened. The transaction that stores the fact also writes the notice.
type Notice struct {
	ID      NoticeID
	Partner PartnerID
	Client  ClientID // 0: the notice is for the partner's own users
	User    UserID   // 0: the notice is for all users of the partner or client
	Kind    NoticeKind
	Subject int64        // id of the session, campaign, webhook, key or client; 0: none
	Name    string       // the subject's name, read together with the notice; "": the subject has no name, or was deleted
	Detail  NoticeDetail // has the same member names as the event's detail
	At      time.Time    // when the fact happened
	Read    bool         // the reader has read the notice
}

// NoticeDetail contains facts that are not in the subject's row. The store writes it as JSON. It contains no phone
// number and no text of a person.
type NoticeDetail struct {
	Reason  string    `json:"reason,omitempty"`  // the reason in the event's detail; with NoticeTemplate: the template's name
	State   string    `json:"state,omitempty"`   // the campaign's state
	Event   EventType `json:"event,omitempty"`   // the last event of the session, or of the account that expires
	Days    int       `json:"days,omitempty"`    // days until the account's last day
	Clients int       `json:"clients,omitempty"` // only with NoticeClientExpiring: how many clients the notice is about; 0: one, which is the subject
	Address string    `json:"address,omitempty"` // only with NoticeSignIn: IP address of the browser; "": unknown
}

// The sets of kinds that a user may get.
var (
	clientNotices = NoticesOf(NoticeDisconnected, NoticeReconnected, NoticeCreditLow, NoticeCreditOut, NoticeCapReached, NoticeExpiring, NoticeCampaignDone,
		NoticeCampaignPaused, NoticeWebhookDisabled, NoticeKeyCreated, NoticeSignIn, NoticeAnswer, NoticeCalendar, NoticeHealth, NoticeTemplate, NoticeBudget)
	partnerNotices = NoticesOf(NoticeWebhookDisabled, NoticeKeyCreated, NoticeSignIn, NoticeClientExpiring, NoticeClientBudget)
	ownerNotices   = NoticesOf(NoticeKeyCreated) // only owners see keys

	// Owners get an e-mail for every kind except NoticeCampaignDone, which can wait. Other users get e-mails only about
	// problems that they can solve.
	ownerMails = (clientNotices | partnerNotices) &^ NoticesOf(NoticeCampaignDone)
	staffMails = NoticesOf(NoticeDisconnected, NoticeReconnected, NoticeCampaignPaused, NoticeSignIn, NoticeHealth)
	otherMails = NoticesOf(NoticeSignIn)
)

// Notices returns the kinds that the user may get.
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

// NoticeChoice says which kinds a user gets by e-mail. For kinds in neither set, the default of the user's role
// applies.
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

// Codes of the sentences in notices. Argument {1} is the subject's name, unless a comment says otherwise.
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
	noticeExpiring        ReasonCode = "notice.expiring"      // {1}: number of days
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
	noticePausedAccount   ReasonCode = "notice.paused_standing"
	noticePausedNumber    ReasonCode = "notice.paused_number"
	noticePausedRestore   ReasonCode = "notice.paused_restore"
	noticeWebhook         ReasonCode = "notice.webhook_disabled"
	noticeWebhookWhy      ReasonCode = "notice.webhook_disabled_why" // {1}: why the webhook was disabled
	noticeKeyCreated      ReasonCode = "notice.key_created"
	noticeKeyCreatedWhy   ReasonCode = "notice.key_created_why"
	noticeSignIn          ReasonCode = "notice.sign_in"
	noticeSignInWhy       ReasonCode = "notice.sign_in_why"
	noticeAnswer          ReasonCode = "notice.answer"
	noticeAnswerWhy       ReasonCode = "notice.answer_why"
	noticeCalendar        ReasonCode = "notice.calendar"
	noticeCalendarWhy     ReasonCode = "notice.calendar_why" // {1}: why the calendar could not be read
	noticeTemplate        ReasonCode = "notice.template"     // {1}: the name
	noticeTemplateWhy     ReasonCode = "notice.template_why"
	noticeCalendarAsks    ReasonCode = "notice.calendar_asks"
	noticeHealth          ReasonCode = "notice.health"
	noticeSignInFrom      ReasonCode = "notice.sign_in_from"         // {1}: the IP address
	noticeClientExpiring  ReasonCode = "notice.client_expiring"      // {2}: number of days
	noticeClientSoon      ReasonCode = "notice.client_expiring_soon" // {2}: today or tomorrow
	noticeClientExpired   ReasonCode = "notice.client_expired"
	noticeClientWhy       ReasonCode = "notice.client_expiring_why"

	noticeBudgetLow       ReasonCode = "notice.budget_low" // {1}: the part that is used, in percent
	noticeBudgetLowWhy    ReasonCode = "notice.budget_low_why"
	noticeBudgetOut       ReasonCode = "notice.budget_out"
	noticeBudgetOutWhy    ReasonCode = "notice.budget_out_why"
	noticeClientBudgetLow ReasonCode = "notice.client_budget_low" // {1}: the client, {2}: the part that is used, in percent
	noticeClientBudgetOut ReasonCode = "notice.client_budget_out" // {1}: the client
	noticeClientBudgetWhy ReasonCode = "notice.client_budget_why"

	noticeClientsExpiring ReasonCode = "notice.clients_expiring"      // {1}: number of clients, {2}: number of days
	noticeClientsSoon     ReasonCode = "notice.clients_expiring_soon" // {2}: today or tomorrow
	noticeClientsExpired  ReasonCode = "notice.clients_expired"
	noticeClientsWhy      ReasonCode = "notice.clients_expiring_why"
)

// pausedWhy has the sentence for each code with which the server pauses a campaign.
var pausedWhy = map[string]ReasonCode{
	CampaignByCanary: noticePausedCanary, CampaignByCredit: noticePausedCredit, CampaignByAccount: noticePausedAccount, CampaignByNumber: noticePausedNumber,
	CampaignByRestore: noticePausedRestore, CampaignByFailover: noticePausedRestore,
}

// when has the words for today and tomorrow.
var when = [2]Reason{Because(noticeToday), Because(noticeTomorrow)}

// Title returns a short sentence that says what happened.
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
	case NoticeAnswer:
		return Because(noticeAnswer)
	case NoticeCalendar:
		if n.Detail.asks() {
			return Because(noticeCalendarAsks, name)
		}
		return Because(noticeCalendar, name)
	case NoticeHealth:
		return Because(noticeHealth, name)
	case NoticeTemplate:
		return Because(noticeTemplate, Quoted(n.Detail.Reason).Stored())
	case NoticeBudget:
		if n.Detail.Event == EventBudgetOut {
			return Because(noticeBudgetOut)
		}
		return Because(noticeBudgetLow, strconv.Itoa(BudgetWarning))
	case NoticeClientBudget:
		if n.Detail.Event == EventBudgetOut {
			return Because(noticeClientBudgetOut, name)
		}
		return Because(noticeClientBudgetLow, name, strconv.Itoa(BudgetWarning))
	case NoticeClientExpiring:
		many := strconv.Itoa(n.Detail.Clients)
		switch {
		case n.Detail.Clients > 0 && n.Detail.Event == EventAccountExpired:
			return Because(noticeClientsExpired, many)
		case n.Detail.Clients > 0 && n.Detail.Days <= 1:
			return Because(noticeClientsSoon, many, when[max(n.Detail.Days, 0)].Stored())
		case n.Detail.Clients > 0:
			return Because(noticeClientsExpiring, many, days)
		case n.Detail.Event == EventAccountExpired:
			return Because(noticeClientExpired, name)
		case n.Detail.Days <= 1:
			return Because(noticeClientSoon, name, when[max(n.Detail.Days, 0)].Stored())
		}
		return Because(noticeClientExpiring, name, days)
	}
	return Reason{}
}

// Text returns the sentence that explains the notice and says what to do.
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
	case NoticeAnswer:
		return Because(noticeAnswerWhy)
	case NoticeCalendar:
		if n.Detail.asks() {
			return ParseReason(n.Detail.Reason)
		}
		return Because(noticeCalendarWhy, n.Detail.Reason)
	case NoticeHealth:
		return ParseReason(n.Detail.Reason)
	case NoticeTemplate:
		return Because(noticeTemplateWhy)
	case NoticeBudget:
		if n.Detail.Event == EventBudgetOut {
			return Because(noticeBudgetOutWhy)
		}
		return Because(noticeBudgetLowWhy)
	case NoticeClientBudget:
		return Because(noticeClientBudgetWhy)
	case NoticeClientExpiring:
		if n.Detail.Clients > 0 {
			return Because(noticeClientsWhy)
		}
		return Because(noticeClientWhy)
	}
	return Reason{}
}

// asks reports whether a calendar that can be read needs a person.
func (d NoticeDetail) asks() bool {
	switch ParseReason(d.Reason).Code {
	case NoticeCalendarGone, NoticeCalendarRefused, NoticeCalendarPaused:
		return true
	}
	return false
}

// hostOf returns the host of a receiver's address. Notices do not show the rest of the address, which may be a secret.
func hostOf(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	if at := strings.IndexAny(rest, "/?#"); at >= 0 {
		rest = rest[:at]
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}
