//go:build !mutate_claim

package queue

// claimCompares makes a claim compare the intent that the dispatcher saw. The build tag mutate_claim turns this off,
// to show that the tests notice it.
const claimCompares = " and message.intent = u.x"
