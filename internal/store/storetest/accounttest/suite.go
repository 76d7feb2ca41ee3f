// Package accounttest checks what a store must do for partners and their clients: users, sign-in, keys, quotas, notices
// and the overview. It belongs to the suite of package storetest, and runs on any database.
package accounttest

import (
	"testing"

	"puntuale/internal/store/storetest"
)

// Run runs the tests. Each test has its own database.
func Run(t *testing.T, d storetest.Driver) { storetest.RunTests(t, d, suite) }

var suite = []func(*testing.T, *storetest.World){
	testUsers, testOwnerStays, testUsersByEmail, testVisits, testTickets, testTries, testFailures, testAudit, testBrand, testHosts, testInvitations, testInvitedOwner,
	testQuotas, testPartnerKeys, testFindClients, testPulses, testTotals,
	testNotices, testIncidents, testNoticesBounded, testNoticesForgotten, testNoticeMails, testBadNoticeMail, testNoticeMailsBounded,
}
