package dispatch

import "puntuale"

// campaignQueue contains the messages that campaigns fed to one session. The dispatcher reads the campaign queue
// separately from the session's other messages, always from the beginning. It keeps only a small part of the campaign
// queue in memory. The session's other messages leave before all waiting messages of campaigns.
type campaignQueue struct {
	ready    fifo[*queuedMessage] // messages that are due and prepared
	open     bool                 // at least one campaign may have messages to send
	inMemory int                  // number of messages in memory that are not claimed yet
}

// Limits of the campaign queues in memory. All campaign queues together may use a quarter of the memory for messages.
const (
	maxCampaign    = 1024
	campaignMemory = memory / 4
)

// maxCampaign returns how many messages of one campaign queue may be in memory.
func (s *scheduler) maxCampaign() int {
	return min(max(campaignMemory/max(1, len(s.queues)), minQueue), maxCampaign)
}

// recipientKey identifies a recipient of a session. Messages of campaigns to a phone have one key, and all other
// messages to this phone have another key. Therefore, messages of campaigns and other messages to one phone do not wait
// for each other.
type recipientKey struct {
	phone    string
	campaign bool
}

func recipientKeyOf(row *puntuale.DueMessage) recipientKey {
	return recipientKey{row.Phone, row.Campaign != 0}
}

// withoutCampaigns returns how many messages of the session are in memory, not counting messages of campaigns.
func (q *sessionQueue) withoutCampaigns() int { return len(q.messages) - q.campaign.inMemory }

// readyList returns the list in which a due message waits until it leaves.
func (q *sessionQueue) readyList(m *queuedMessage) *fifo[*queuedMessage] {
	switch {
	case m.repeat():
		return &q.repeats
	case m.row.Campaign != 0:
		return &q.campaign.ready
	}
	return &q.ready
}

// removeFromMemory removes a message from its session queue.
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

// campaignCursors returns where a read of the campaign queues begins, and how many messages the read may return from
// each queue.
func (s *scheduler) campaignCursors(queues []*sessionQueue) (from []puntuale.QueueCursor, limit int) {
	for _, q := range queues {
		if q.campaign.open {
			from = append(from, puntuale.QueueCursor{Session: q.session.ID, Campaign: true})
			limit = sharedRows
		}
	}
	if len(queues) == 1 {
		limit = s.maxCampaign() + queues[0].campaign.inMemory
	}
	return from, limit
}

// gotCampaigns adds to memory the messages that a read found in campaign queues.
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
		if q.campaign.inMemory < s.maxCampaign() || row.Intent != 0 || !q.canSend() {
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

// If a campaign may not send now, dropCampaign removes the campaign's messages from memory. The next read omits this
// campaign.
func (s *scheduler) dropCampaign(q *sessionQueue, id puntuale.CampaignID) {
	for _, m := range q.messages {
		if m.row.Campaign == id && m.stage != settling {
			s.forget(m)
		}
	}
}
