//go:build mutate_lockorder

package store

const cancelsBackwards = true
