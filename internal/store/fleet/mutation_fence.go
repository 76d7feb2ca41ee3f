//go:build !mutate_fence

package fleet

// claimsAreFenced makes a claim check its node's lease. The build tag mutate_fence turns this off, to show that the
// tests notice it.
const claimsAreFenced = true
