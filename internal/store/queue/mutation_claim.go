//go:build !mutate_claim

package queue

// claimCompares makes a claim compare the intent that the dispatcher saw. The build tag mutate_claim removes this
// condition. Then a test must fail.
const claimCompares = " and message.intent = u.x"
