// Package campaignclient is a program's half of docs/campaigns.md. Through the API of a running server it makes a campaign,
// uploads its list, has it checked, starts it and looks how far it is.
//
// A call whose answer is lost is repeated until there is one. No repeat does a thing twice. A creation bears an
// Idempotency-Key, an upload replaces the list, and the server knows the digest of a start that it made.
package campaignclient
