package puntuale

import "strconv"

// Quota names a kind of thing of which a client has a limited number. Its partner sets the limits; a client that already has more than a
// new limit keeps everything.
type Quota string

const (
	QuotaSessions  Quota = "sessions"
	QuotaSequences Quota = "sequences"
	QuotaTemplates Quota = "templates"
	QuotaUsers     Quota = "users" // of its dashboard
	QuotaKeys      Quota = "keys"  // API keys; a replaced key that is still valid is not counted here
)

// AllQuotas are the quotas, in the order in which people see them.
var AllQuotas = [...]Quota{QuotaSessions, QuotaSequences, QuotaTemplates, QuotaUsers, QuotaKeys}

// Default is the limit of a client whose partner set none.
func (q Quota) Default() int64 {
	switch q {
	case QuotaSessions:
		return 10
	case QuotaUsers:
		return 50
	case QuotaKeys:
		return 20
	default:
		return 1000
	}
}

// Most is the largest limit that a partner can set. Users and keys are listed on one page.
func (q Quota) Most() int64 {
	switch q {
	case QuotaSessions:
		return 10_000
	case QuotaUsers, QuotaKeys:
		return MaxUsers
	default:
		return 100_000
	}
}

// Faults of quotas that are used up.
const (
	faultQuotaSessions  ReasonCode = "quota.sessions"
	faultQuotaSequences ReasonCode = "quota.sequences"
	faultQuotaTemplates ReasonCode = "quota.templates"
	faultQuotaUsers     ReasonCode = "quota.users"
	faultQuotaKeys      ReasonCode = "quota.keys"
)

func (q Quota) reached() ReasonCode {
	switch q {
	case QuotaSessions:
		return faultQuotaSessions
	case QuotaSequences:
		return faultQuotaSequences
	case QuotaTemplates:
		return faultQuotaTemplates
	case QuotaUsers:
		return faultQuotaUsers
	default:
		return faultQuotaKeys
	}
}

// Quotas are the limits that a partner set for a client. The others are the defaults.
type Quotas map[Quota]int64

// Of returns the limit that applies.
func (q Quotas) Of(which Quota) int64 {
	if n, ok := q[which]; ok {
		return n
	}
	return which.Default()
}

// QuotaReached refuses a new thing because a quota is used up.
func QuotaReached(which Quota, limit int64) *Error {
	reason := Because(which.reached(), strconv.FormatInt(limit, 10))
	return &Error{Code: CodeQuotaReached, Reason: reason, Faults: []Fault{reason.At("quotas."+string(which), limit)}}
}
