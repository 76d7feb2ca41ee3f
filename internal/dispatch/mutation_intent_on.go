//go:build mutate_intent

package dispatch

// This mutation gives messages to the connector before their intent is on disk, whatever the claim answers. Tests
// must fail on it.
const sendsUnclaimed = true

func (s *scheduler) beforeClaim(batch []*queuedMessage) {
	for _, m := range batch {
		s.startSend(m)
	}
}

func (s *scheduler) afterClaim(*queuedMessage) {}
