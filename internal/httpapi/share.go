package httpapi

import (
	"net/http"
	"sync"

	"puntuale"
	"puntuale/internal/httpkit"
)

// shares remembers whose the keys are that were found lately, so that the gate can tell callers apart before their keys
// are looked up. It decides nothing but who waits with whom: whether a key is valid is asked each time. Safe for
// concurrent use.
type shares struct {
	mu    sync.Mutex
	owner map[puntuale.KeyHash]httpkit.Share
}

// mostShares bounds what is remembered; beyond it any key is forgotten, and its next call waits with those of strangers.
const mostShares = 1 << 16

// of returns whose a key is, if it was found lately.
func (s *shares) of(key puntuale.KeyHash) (who httpkit.Share, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, found = s.owner[key]
	return who, found
}

// found notes whose call a key let in, or that it is nobody's.
func (s *shares) found(key puntuale.KeyHash, c *call, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeUnauthorized:
		delete(s.owner, key)
		return
	case err != nil:
		return
	case s.owner == nil:
		s.owner = map[puntuale.KeyHash]httpkit.Share{}
	}
	owner := c.share()
	if _, known := s.owner[key]; !known && len(s.owner) >= mostShares {
		for any := range s.owner {
			delete(s.owner, any)
			break
		}
	}
	s.owner[key] = owner
}

// share is whose call it is.
func (c *call) share() httpkit.Share {
	if c.device != nil {
		return httpkit.Share{Side: puntuale.DeviceSide, ID: int64(c.device.ID)}
	}
	if c.client != nil {
		return httpkit.Share{Side: puntuale.ClientSide, ID: int64(c.client.ID())}
	}
	return httpkit.Share{Side: puntuale.PartnerSide, ID: int64(c.partner.ID())}
}

// lane is how the gate treats an operation's calls.
func (op operation) lane() httpkit.Lane {
	switch {
	case op.prevents:
		return httpkit.LanePrevent
	case op.method == http.MethodGet:
		return httpkit.LaneRead
	}
	return httpkit.LaneWrite
}

// turnAway refuses a call before anything of it was looked at. A small body is let come, for a new connection would cost
// both sides more.
func (a *api) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	httpkit.Quieten(r.Context())
	if r.ContentLength >= 0 && r.ContentLength <= smallBody {
		a.refuse(w, r, err)
		return
	}
	a.refuse(w, r, err)
}

// smallBody is the size, in bytes, up to which net/http may throw a body away before it answers.
const smallBody = 16 << 10
