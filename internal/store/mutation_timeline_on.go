//go:build mutate_timeline

package store

const forgottenIsSetAside = false
