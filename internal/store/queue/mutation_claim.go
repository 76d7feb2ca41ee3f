//go:build !mutate_claim

package queue

// claimCompares makes a claim depend on the intent the dispatcher saw. The build with the tag mutate_claim shows that
// the tests notice when it does not.
const claimCompares = " and message.intent = u.x"
