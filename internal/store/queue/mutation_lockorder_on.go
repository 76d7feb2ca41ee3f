//go:build mutate_lockorder

package queue

const CancelsBackwards = true
