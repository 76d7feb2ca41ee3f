//go:build !mutate_lockorder

package queue

// CancelsBackwards is false: cancellations lock messages in the same order as claims. The build tag mutate_lockorder
// changes this, to show that the tests notice it.
const CancelsBackwards = false
