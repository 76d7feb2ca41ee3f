//go:build !mutate_lockorder

package queue

// CancelsBackwards is false: cancellations lock messages in the same order as claims. The build tag mutate_lockorder
// makes it true. Then a test must fail.
const CancelsBackwards = false
