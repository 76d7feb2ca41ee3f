//go:build !mutate_fence

package fleet

// claimsAreFenced makes a claim check its node's lease. The build tag mutate_fence makes it false. Then a test must
// fail.
const claimsAreFenced = true
