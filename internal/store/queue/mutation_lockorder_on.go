//go:build mutate_lockorder

package queue

// CancelsBackwards makes cancellations lock messages in the wrong order.
const CancelsBackwards = true
