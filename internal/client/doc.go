// Package client calls the API of a running server, for the commands that run in a user's terminal: the API of
// campaigns (docs/campaigns.md), of devices (docs/device.md), and of sessions.
//
// If the answer to a call is lost, a command repeats the call until there is an answer. A repeated call has no second
// effect. A creation has an Idempotency-Key, an upload replaces the list, a start contains the digest of its check, a
// call that takes messages has an id, and a report names its attempt.
package client
