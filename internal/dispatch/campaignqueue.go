package dispatch

import "puntuale"

// second is a lane's second queue: what campaigns fed. It is read beside the first one, always from its beginning, and
// little of it is in memory. What is in the first one leaves before it, and waits for nobody in it.
type second struct {
	ready fifo[*entry] // due and prepared
	open  bool         // some campaign may have messages to send
	held  int          // in memory and not yet claimed
}

// Sizes of what is in memory of a second queue: a quarter of the memory is for all of them.
const (
	secondMost  = 1024
	secondShare = memory / 4
)

// secondRoom is how many messages of a lane's second queue may be in memory.
func (s *scheduler) secondRoom() int {
	return min(max(secondShare/max(1, len(s.lanes)), laneLeast), secondMost)
}

// person is a recipient in one of a lane's two queues.
type person struct {
	phone    string
	campaign bool
}

func personOf(m *puntuale.DueMessage) person { return person{m.Phone, m.Campaign != 0} }

// first is how many messages of the lane's first queue are in memory.
func (l *lane) first() int { return len(l.entries) - l.second.held }

// queueOf is where a due message waits to leave.
func (l *lane) queueOf(e *entry) *fifo[*entry] {
	switch {
	case e.repeat():
		return &l.again
	case e.m.Campaign != 0:
		return &l.second.ready
	}
	return &l.ready
}

// drop takes an entry out of memory.
func (s *scheduler) drop(e *entry) {
	l := e.lane
	if l.entries[e.m.ID] != e {
		return
	}
	delete(l.entries, e.m.ID)
	s.held--
	if e.m.Campaign != 0 {
		l.second.held--
	}
}

// seconds are the places of the second queues among the lanes', and how many messages a read may bring of each.
func (s *scheduler) seconds(lanes []*lane) (from []puntuale.Place, limit int) {
	for _, l := range lanes {
		if l.second.open {
			from = append(from, puntuale.Place{Session: l.session.ID, Campaign: true})
			limit = glanceRows
		}
	}
	if len(lanes) == 1 {
		limit = s.secondRoom() + lanes[0].second.held
	}
	return from, limit
}

// gotSeconds takes into memory what was read of second queues.
func (s *scheduler) gotSeconds(r *rows) {
	now := s.cfg.Clock.Now()
	count := make(map[puntuale.SessionID]int, len(r.lanes))
	for i := range r.second {
		m := &r.second[i]
		l := s.lanes[m.Session]
		if l == nil || !l.lookahead.Reading() {
			continue
		}
		count[m.Session]++
		if l.second.held < s.secondRoom() || m.Intent != 0 || l.blocked() || l.share.held {
			s.admit(l, m, now)
		}
	}
	if r.err != nil {
		return
	}
	for _, l := range r.lanes {
		l.lookahead.SetMoreOfCampaigns(r.secondLimit > 0 && count[l.session.ID] >= r.secondLimit)
	}
}

// pausedCampaign drops what is in memory of a campaign that may not send now. The next read leaves it out.
func (s *scheduler) pausedCampaign(l *lane, id puntuale.CampaignID) {
	for _, e := range l.entries {
		if e.m.Campaign == id && e.stage != settling {
			s.forget(e)
		}
	}
}
