package puntuale

import (
	"cmp"
	"strconv"
	"strings"
)

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
