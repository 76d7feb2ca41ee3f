// Package account executes the requests of partners and of people who sign in, with one file for each kind of object. A
// partner's requests are about clients and their limits, keys, users, the brand, the host name and the audit log. A
// person's requests are about sign-in, second factor, invitations and visits. The package also contains operators'
// commands about partners.
//
// In comments, "Codes:" lists the codes of the errors that a method may return. A method with an argument of type
// [control.Once] may also return conflict: a call with a different body used the idempotency key.
//
// The requests of clients are in package control, which does not import this package. Package control/request parses
// requests.
package account
