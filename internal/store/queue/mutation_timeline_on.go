//go:build mutate_timeline

package queue

const forgottenIsSetAside = false
