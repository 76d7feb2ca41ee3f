// Package account has everything that partners and people who sign in may ask, with one file for each noun. A partner
// may ask about clients and their limits, keys, users, the brand, the host name and the audit log. A person may sign
// in, and use the second factor, invitations and visits. The commands of operators for partners are here, too.
//
// What a client may ask is in package control, which does not import this package. Package control/request reads
// requests.
package account
