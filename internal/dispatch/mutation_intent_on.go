//go:build mutate_intent

package dispatch

// This mutation sends messages to the connector before their intent is on disk, even if the claim is refused later.
// Tests must fail because of it.
const sendsUnclaimed = true

func (s *scheduler) beforeClaim(batch []*queuedMessage) {
	for _, m := range batch {
		s.startSend(m)
	}
}

func (s *scheduler) afterClaim(*queuedMessage) {}
