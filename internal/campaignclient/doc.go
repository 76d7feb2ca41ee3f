// Package campaignclient is a program's half of docs/campaigns.md. Through the API of a running server it makes a campaign, uploads its
// list, checks it, starts it and reads its progress.
//
// A call whose answer is lost is repeated until there is one. A repeat has no second effect. A creation has an Idempotency-Key, an upload
// replaces the list, and the server knows the digest of a start.
package campaignclient
