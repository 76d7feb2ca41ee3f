//go:build mutate_fence

package fleet

const claimsAreFenced = false
