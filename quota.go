package puntuale

import "strconv"

// Quota names a kind of thing that a client may have only a limited number of. The client's partner sets the limits. If
// a partner lowers a limit, the client keeps everything that it already has.
type Quota string

const (
	QuotaSessions  Quota = "sessions"
	QuotaSequences Quota = "sequences"
	QuotaTemplates Quota = "templates"
	QuotaUsers     Quota = "users" // users of the client's dashboard
	QuotaKeys      Quota = "keys"  // API keys; a replaced key that is still valid does not count
)

// AllQuotas has all quotas, in the order in which pages show them.
var AllQuotas = [...]Quota{QuotaSessions, QuotaSequences, QuotaTemplates, QuotaUsers, QuotaKeys}

// Default returns the limit for a client whose partner set none.
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

// Max returns the largest limit that a partner can set. For users and keys it is small, because one page lists them
// all.
func (q Quota) Max() int64 {
	switch q {
	case QuotaSessions:
		return 10_000
	case QuotaUsers, QuotaKeys:
		return MaxUsers
	default:
		return 100_000
	}
}

// Codes of faults for quotas that are used up.
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

// Quotas has the limits that a partner set for a client. For all other quotas the defaults apply.
type Quotas map[Quota]int64

// Get returns the limit that applies to the client.
func (q Quotas) Get(quota Quota) int64 {
	if n, ok := q[quota]; ok {
		return n
	}
	return quota.Default()
}

// QuotaReached returns the error for a new thing that would exceed a quota.
func QuotaReached(quota Quota, limit int64) *Error {
	reason := Because(quota.reached(), strconv.FormatInt(limit, 10))
	return &Error{Code: CodeQuotaReached, Reason: reason, Faults: []Fault{reason.At("quotas."+string(quota), limit)}}
}
