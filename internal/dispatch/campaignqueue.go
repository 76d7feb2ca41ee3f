package dispatch

import "puntuale"

// second is a lane's second queue: what campaigns fed. It is read beside the first one, always from its beginning, and
// little of it is in memory. What is in the first one leaves before it, and waits for nobody in it.
type campaignQueue struct {
	ready fifo[*queuedMessage] // due and prepared
	open  bool                 // some campaign may have messages to send
	held  int                  // in memory and not yet claimed
}

// Sizes of what is in memory of a second queue: a quarter of the memory is for all of them.
const (
	campaignMost   = 1024
	campaignMemory = memory / 4
)

// secondRoom is how many messages of a lane's second queue may be in memory.
func (s *scheduler) campaignRoom() int {
	return min(max(campaignMemory/max(1, len(s.queues)), queueLeast), campaignMost)
}

// person is a recipient in one of a lane's two queues.
type recipientKey struct {
	phone    string
	campaign bool
}

func recipientKeyOf(row *puntuale.DueMessage) recipientKey {
	return recipientKey{row.Phone, row.Campaign != 0}
}

// first is how many messages of the lane's first queue are in memory.
func (q *sessionQueue) withoutCampaigns() int { return len(q.messages) - q.campaign.held }

// queueOf is where a due message waits to leave.
func (q *sessionQueue) readyList(m *queuedMessage) *fifo[*queuedMessage] {
	switch {
	case m.repeat():
		return &q.repeats
	case m.row.Campaign != 0:
		return &q.campaign.ready
	}
	return &q.ready
}

// drop takes an entry out of memory.
func (s *scheduler) removeFromMemory(m *queuedMessage) {
	q := m.queue
	if q.messages[m.row.ID] != m {
		return
	}
	delete(q.messages, m.row.ID)
	s.inMemory--
	if m.row.Campaign != 0 {
		q.campaign.held--
	}
}

// seconds are the places of the second queues among the lanes', and how many messages a read may bring of each.
func (s *scheduler) campaignCursors(lanes []*sessionQueue) (from []puntuale.Place, limit int) {
	for _, q := range lanes {
		if q.campaign.open {
			from = append(from, puntuale.Place{Session: q.session.ID, Campaign: true})
			limit = glanceRows
		}
	}
	if len(lanes) == 1 {
		limit = s.campaignRoom() + lanes[0].campaign.held
	}
	return from, limit
}

// gotSeconds takes into memory what was read of second queues.
func (s *scheduler) gotCampaigns(r *readResult) {
	now := s.cfg.Clock.Now()
	count := make(map[puntuale.SessionID]int, len(r.queues))
	for i := range r.campaigns {
		row := &r.campaigns[i]
		q := s.queues[row.Session]
		if q == nil || !q.lookahead.Reading() {
			continue
		}
		count[row.Session]++
		if q.campaign.held < s.campaignRoom() || row.Intent != 0 || !q.canSend() {
			s.takeRow(q, row, now)
		}
	}
	if r.err != nil {
		return
	}
	for _, q := range r.queues {
		q.lookahead.SetMoreOfCampaigns(r.campaignLimit > 0 && count[q.session.ID] >= r.campaignLimit)
	}
}

// pausedCampaign drops what is in memory of a campaign that may not send now. The next read leaves it out.
func (s *scheduler) dropCampaign(q *sessionQueue, id puntuale.CampaignID) {
	for _, m := range q.messages {
		if m.row.Campaign == id && m.stage != settling {
			s.forget(m)
		}
	}
}
