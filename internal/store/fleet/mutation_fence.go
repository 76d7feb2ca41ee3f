//go:build !mutate_fence

package fleet

// claimsAreFenced makes a claim depend on its node's lease. The build with the tag mutate_fence shows that the tests
// notice when it does not.
const claimsAreFenced = true
