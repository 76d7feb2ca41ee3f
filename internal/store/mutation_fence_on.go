//go:build mutate_fence

package store

const claimsAreFenced = false
