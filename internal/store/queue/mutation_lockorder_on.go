//go:build mutate_lockorder

package queue

// CancelsBackwards takes locks against their order.
const CancelsBackwards = true
