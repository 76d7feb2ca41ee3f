//go:build !mutate_lockorder

package queue

// CancelsBackwards is false: cancellations lock messages in the same order as claims. The build with the tag
// mutate_lockorder shows that the tests notice when they do not.
const CancelsBackwards = false
