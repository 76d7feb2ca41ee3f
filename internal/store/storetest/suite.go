package storetest

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// Run runs the suite, each test on a database of its own.
func Run(t *testing.T, d Driver) {
	for _, test := range suite {
		name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
		t.Run(strings.TrimPrefix(name[strings.LastIndex(name, ".")+1:], "test"), func(t *testing.T) {
			t.Parallel()
			test(t, NewWorld(t, d(t)))
		})
	}
}

var suite = []func(*testing.T, *World){
	testStart, testEmptyStart, testReplay, testTwins, testRefusedKeyIsFree, testStaleStart, testIfRunning,
	testIfRunningTogether, testBadMember, testExpiredCaller,
	testCapExact, testCapCountsWhatPassed, testNoCap, testAlwaysCounted,
	testStop, testCancelPending, testCancelChunks, testCancelledIsNeverGranted, testClaimsAndCancelsDoNotDeadlock,
	testClaimOnce, testClaimConditions, testClaimHeld, testClaimBlacklisted, testTakeover,
	testOutcomes, testRetry, testUncertain, testLateEvidence, testSettle, testMoves,
	testCreditsRunOut, testCreditsAddUp,
	testFleet, testFence, testReapWaitsForClaims,
	testTenantsApart, testPages, testOddText, testSequences, testSessions, testBlacklist, testAccounts, testKeys, testSandbox,
	testIDs, testReopen, testDueOrder, testRetrying, testStandings,
}
