//go:build mutate_intent

package dispatch

// This mutation hands messages to the connector before their intent is on disk, and whatever the claim answers. It
// exists so that tests can show that they notice.
const sendsUnclaimed = true

func (s *scheduler) beforeClaim(batch []*queuedMessage) {
	for _, m := range batch {
		s.startSend(m)
	}
}

func (s *scheduler) afterClaim(*queuedMessage) {}
