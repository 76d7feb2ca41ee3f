//go:build !mutate_intent

package dispatch

// sendsUnclaimed is true only in the mutation that sends a message before its intent is on disk.
const sendsUnclaimed = false

func (s *scheduler) beforeClaim([]*queuedMessage) {}

// afterClaim gives a claimed message to its connector.
func (s *scheduler) afterClaim(m *queuedMessage) { s.startSend(m) }
