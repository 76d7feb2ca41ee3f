// Package campaignclient calls the API of docs/campaigns.md. It runs in a user's terminal, not in the server. It
// creates a campaign on a running server, uploads its list, checks it, starts it and reads its progress.
//
// If the answer to a call is lost, the client repeats the call until there is an answer. A repeated call has no second
// effect. A creation has an Idempotency-Key, an upload replaces the list, and a start contains the digest of its check.
package campaignclient
