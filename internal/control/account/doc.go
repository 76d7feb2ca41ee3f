// Package account has everything that partners and people who sign in may ask, with one file for each noun. A partner's side: clients and
// their limits, keys, users, the brand, the host name and the audit log. A person's side: signing in, the second factor, invitations and
// visits. An operator's commands for partners are here, too.
//
// What a client may ask is in package control, which knows nothing of this one. Reading requests is in control/request.
package account
