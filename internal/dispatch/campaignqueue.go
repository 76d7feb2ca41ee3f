package dispatch

import "puntuale"

// campaignQueue holds the messages that campaigns fed to one session. It is read beside the session's other messages,
// always from the beginning, and little of it is in memory. The session's other messages leave first, and never wait
// for a campaign's message.
type campaignQueue struct {
	ready    fifo[*queuedMessage] // due and prepared
	open     bool                 // some campaign may have messages to send
	inMemory int                  // in memory and not yet claimed
}

// Sizes of one campaign queue in memory. All campaign queues together have a quarter of the memory.
const (
	campaignMost   = 1024
	campaignMemory = memory / 4
)

// campaignMost is how many messages of one campaign queue may be in memory.
func (s *scheduler) campaignMost() int {
	return min(max(campaignMemory/max(1, len(s.queues)), queueLeast), campaignMost)
}

// recipientKey is a recipient in a session queue, or in its campaign queue.
type recipientKey struct {
	phone    string
	campaign bool
}

func recipientKeyOf(row *puntuale.DueMessage) recipientKey {
	return recipientKey{row.Phone, row.Campaign != 0}
}

// withoutCampaigns is how many messages of the session queue are in memory, apart from its campaign queue.
func (q *sessionQueue) withoutCampaigns() int { return len(q.messages) - q.campaign.inMemory }

// readyList is where a due message waits until it leaves.
func (q *sessionQueue) readyList(m *queuedMessage) *fifo[*queuedMessage] {
	switch {
	case m.repeat():
		return &q.repeats
	case m.row.Campaign != 0:
		return &q.campaign.ready
	}
	return &q.ready
}

// removeFromMemory takes a message out of its session queue.
func (s *scheduler) removeFromMemory(m *queuedMessage) {
	q := m.queue
	if q.messages[m.row.ID] != m {
		return
	}
	delete(q.messages, m.row.ID)
	s.inMemory--
	if m.row.Campaign != 0 {
		q.campaign.inMemory--
	}
}

// campaignCursors returns where a read of the campaign queues begins, and how many messages it may bring of each.
func (s *scheduler) campaignCursors(queues []*sessionQueue) (from []puntuale.QueueCursor, limit int) {
	for _, q := range queues {
		if q.campaign.open {
			from = append(from, puntuale.QueueCursor{Session: q.session.ID, Campaign: true})
			limit = sharedRows
		}
	}
	if len(queues) == 1 {
		limit = s.campaignMost() + queues[0].campaign.inMemory
	}
	return from, limit
}

// gotCampaigns takes into memory the messages that a read found in campaign queues.
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
		if q.campaign.inMemory < s.campaignMost() || row.Intent != 0 || !q.canSend() {
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

// dropCampaign drops the messages in memory of a campaign that may not send now. The next read leaves it out.
func (s *scheduler) dropCampaign(q *sessionQueue, id puntuale.CampaignID) {
	for _, m := range q.messages {
		if m.row.Campaign == id && m.stage != settling {
			s.forget(m)
		}
	}
}
