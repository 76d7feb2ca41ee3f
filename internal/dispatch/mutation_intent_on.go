//go:build mutate_intent

package dispatch

// This mutation hands messages to the connector before their intent is on disk, and whatever the claim answers. It
// exists so that tests can show that they notice.
const sendsUnclaimed = true

func (s *scheduler) beforeClaim(batch []*entry) {
	for _, e := range batch {
		s.startSend(e)
	}
}

func (s *scheduler) afterClaim(*entry) {}
