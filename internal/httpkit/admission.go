package httpkit

import (
	"net/http"
)

// Admission is what a server shares between its API, its dashboards and its webhooks. It bounds which calls are worked
// on, what memory they take, and how often unknown callers may come. The zero Admission lets everybody in.
type Admission struct {
	Gate      *Gate
	Budget    *Budget
	Strangers *Pace[Share] // by [AddressShare]
}

// From is the share of a request whose caller nobody knows yet.
func From(r *http.Request) Share { return AddressShare(CallerOf(r).Address) }

// Unknown counts a request whose caller turned out to be nobody known. Codes: rate_limited.
func (a *Admission) Unknown(r *http.Request) error { return a.Strangers.Take(From(r)) }
