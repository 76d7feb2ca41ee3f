package httpapi

import (
	"net/http"
	"sync"

	"puntuale"
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
)

// callerKeys remembers which caller each recently used key belongs to. With this knowledge, the gate separates callers
// before their keys are looked up. The knowledge decides only which calls wait together, because the store still checks
// the key of each call. Many goroutines may call its methods at the same time.
type callerKeys struct {
	mu    sync.Mutex
	owner map[puntuale.KeyHash]admission.CallerKey
}

// maxCallerKeys is the largest number of remembered keys. When it is exceeded, a random key is forgotten. The next
// call with the forgotten key waits together with the calls of unknown callers.
const maxCallerKeys = 1 << 16

// callerOf returns the caller of an API key, if the key was used recently.
func (s *callerKeys) callerOf(key puntuale.KeyHash) (caller admission.CallerKey, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	caller, found = s.owner[key]
	return caller, found
}

// found remembers which caller a key belongs to. If err says that the key is not valid, found forgets the key.
func (s *callerKeys) found(key puntuale.KeyHash, c *call, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeUnauthorized:
		delete(s.owner, key)
		return
	case err != nil:
		return
	case s.owner == nil:
		s.owner = map[puntuale.KeyHash]admission.CallerKey{}
	}
	owner := c.callerKey()
	if _, known := s.owner[key]; !known && len(s.owner) >= maxCallerKeys {
		for any := range s.owner {
			delete(s.owner, any)
			break
		}
	}
	s.owner[key] = owner
}

// callerKey returns the caller key of a call.
func (c *call) callerKey() admission.CallerKey {
	if c.device != nil {
		return admission.CallerKey{Side: puntuale.DeviceSide, ID: int64(c.device.ID)}
	}
	if c.client != nil {
		return admission.CallerKey{Side: puntuale.ClientSide, ID: int64(c.client.ID())}
	}
	return admission.CallerKey{Side: puntuale.PartnerSide, ID: int64(c.partner.ID())}
}

// owningPartner returns the partner of the call's client, or the partner that calls.
func (c *call) owningPartner() puntuale.PartnerID {
	switch {
	case c.device != nil:
		return c.device.Partner()
	case c.client != nil:
		return c.client.Account().Partner
	}
	return c.partner.ID()
}

// priority returns the gate's priority for an operation's calls.
func (op operation) priority() admission.Priority {
	switch {
	case op.prevents:
		return admission.PriorityPrevent
	case op.method == http.MethodGet:
		return admission.PriorityRead
	}
	return admission.PriorityWrite
}

// turnAway refuses a call before its body is read, because there are too many calls. The call's line in the access log
// has level debug.
func (a *api) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	httpkit.Quieten(r.Context())
	a.refuse(w, r, err)
}
