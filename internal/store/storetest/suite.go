package storetest

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// Run runs the suite. Each test has its own database. The tests of accounts are in package accounttest.
func Run(t *testing.T, d Driver) { RunTests(t, d, suite) }

// RunManyWriters runs additional tests for a database that has several writers.
func RunManyWriters(t *testing.T, d Driver) { RunTests(t, d, manyWriters) }

// RunTests runs tests, each with its own database. The name of a test is the name of its function without "test".
func RunTests(t *testing.T, d Driver, tests []func(*testing.T, *World)) {
	for _, test := range tests {
		name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
		t.Run(strings.TrimPrefix(name[strings.LastIndex(name, ".")+1:], "test"), func(t *testing.T) {
			t.Parallel()
			test(t, NewWorld(t, d(t)))
		})
	}
}

var suite = []func(*testing.T, *World){
	testStart, testEmptyStart, testReplay, testTwins, testRefusedKeyIsFree, testStaleStart, testIfRunning,
	testIfRunningTogether, testIfRunningByReference, testIfRunningByReferenceTogether, testBadMember, testExpiredCaller,
	testCapExact, testCapCountsWhatPassed, testNoCap, testAlwaysCounted, testUncounted,
	testStop, testReference, testStoppedInFlight, testStoppedOutcomes, testStoppedIsNotRunning, testStoppedReopenedByVersionBefore, testCancelPending, testCancelChunks, testCancelledIsNeverGranted,
	testClaimOnce, testClaimConditions, testClaimHeld, testClaimBlacklisted, testTakeover,
	testOutcomes, testRetry, testUncertain, testLateReceipt, testSettle, testMoves,
	testCreditsRunOut, testCreditsAddUp,
	testFleet, testFence,
	testOutcomesStayAfterResend, testCorrectedOutcome, testOutcomePages, testFormerUncertain, testReasonsComeBack,
	testResend, testResendAllOrNone, testResendCap, testResendAfterSessionIsGone, testResendTogether, testLateReceiptAfterResend, testStopReachesResent,
	testCancelMessages, testListMessages, testListMessagesPages, testListMessagesTo,
	testOnceKeepsAnswer, testOnceTwins, testOnceRefusedKeyIsFree,
	testTemplates, testTemplateNamesUnique, testTemplateOfSequenceStays, testFiles, testFilesEnd, testFilesOfPeople, testFilesComeBack, testFilesOutside, testFilesEndOutside, testFilesOfPeopleOutside, testFilesComeBackOutside,
	testIncomingFiles, testIncomingSmallPicture, testIncomingSameBytes, testIncomingShares, testIncomingFilesEnd, testErasedFileNames, testReplyErasedByVersionBefore,
	testDefaultPair, testDeleteSession, testDeleteSessionMoves, testDeleteSessionInFlight, testGiveUp, testMovedMessageIsNotClaimedByOldSession,
	testClients, testUpdateClient, testCreditsByHand, testDeleteClient, testDeletedClientStaysDeleted, testClientKeys,
	testRefillOnce, testRefillKeepsMore, testStoredBytes,
	testTenantsApart, testPartnersApart, testPages, testOddText, testSequences, testVersions, testSessions, testBlacklist, testFindBlacklisted, testAudit, testAccounts, testKeys, testSandbox,
	testCommand, testCommandRefused, testCommandOfDeadOwner, testLinks, testLinkingPage, testEndedLinkingPage, testLinkOfOwnerBefore, testDeletedLinks,
	testBlank, testBlankLate, testBlankedIsNotResent, testBlankTogether,
	testErase, testEraseInFlight, testErasedStaysBlacklisted, testEraseAgain, testEraseTogether, testEraseAnswers,
	testReceiptsAnyOrder, testReceiptLeavesAlone, testReceiptAfterResend,
	testWindow, testReplyStops, testOptOut, testOwnEntryOverOptOut, testMarketingNeedsConsent, testCancelMarketing, testSettings, testReplies, testInboundLooks, testInboundGathers, testKeepReplies, testForgetReplies, testOfficialKeys, testUploads, testAddressed, testNetworkTemplates, testAliases, testNames, testKnownRecipients, testDeparted, testGatewayKeys, testNetworkIDs, testOpenAttempts, testGatewayHealth,
	testLinkDevice, testTake, testTakeBudget, testTakeTogether, testHolds, testDedupingDevice, testTakePace, testRepeatBeforeNew, testHeldIsBusy, testPushes, testPushEnds, testPushesTogether,
	testCountCampaigns, testFeedOnce, testPausedCampaign, testPausedWhileResuming, testResentDuringPause, testListCompared, testCancelledCampaign, testFinishedCampaign, testErasedRecipient, testStartCampaign, testKnownPersons, testSessionLoad, testCharges, testChargesTogether,
	testMergeContacts, testFindContacts, testTagContacts, testLongContacts, testChangeContact, testContactOnce, testContactsTogether, testForgottenContacts, testFindByName, testStatementOnce, testStatementParts, testRemember,
	testInvitationMails, testMails, testMailsTogether,
	testSearchMessages, testSearchSequences, testLastStarted, testUncertainFound, testAmongBlacklisted,
	testEnded, testUpcoming, testVersion, testMove, testMessageEvents, testSandboxChat,
	testAutomations, testHooks,
	testBadRun, testBadCampaign, testBadRuleForReplies,
	testIDs, testReopen, testDueOrder, testExpiring, testRetrying, testSendPermissions,
}

// manyWriters contains tests of transactions that wait for each other, and of servers that take over from each other.
// SQLite has only one writer, so these tests are not for SQLite.
var manyWriters = []func(*testing.T, *World){testClaimsAndCancelsDoNotDeadlock, testReapWaitsForClaims, testOnceWaitsForTwin, testBlankWaitsForResend, testErasureMeetsKeptFile,
	testTimelineFence, testTakeFence, testQuarantine, testQuarantineTogether, testQuarantineMarked, testLeftBehind}
