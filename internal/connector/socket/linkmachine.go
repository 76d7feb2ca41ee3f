//go:build !nosocket

package socket

import (
	"math/rand/v2"
	"time"

	"puntuale"
)

// How long a number waits before its next login.
const (
	againFirst    = time.Second
	againLast     = 5 * time.Minute
	steady        = time.Minute      // once a number was online for this time, its earlier failures no longer count
	refusedFirst  = time.Minute      // the first wait after the network refused a login and gave no reason
	refusedLast   = time.Hour        // the longest wait after such refusals
	banUnknown    = 24 * time.Hour   // the wait if the network bans the number and gives no end
	banGrace      = 2 * time.Second  // added to the end of a ban
	quarantine    = 10 * time.Minute // the first wait if the network acknowledges no messages; later waits are longer
	quarantineMax = 6 * time.Hour    // the longest wait if the network acknowledges no messages
)

// Reasons why a number is not linked or not connected.
const (
	reasonPairingOver    puntuale.ReasonCode = "socket.pairing_over"
	reasonKeysElsewhere  puntuale.ReasonCode = "socket.keys_elsewhere"
	reasonKeysGone       puntuale.ReasonCode = "socket.keys_gone"
	reasonSilent         puntuale.ReasonCode = "socket.silent"
	reasonOutOfReach     puntuale.ReasonCode = "socket.out_of_reach"
	reasonNoAnswer       puntuale.ReasonCode = "socket.connection_silent"
	reasonDropped        puntuale.ReasonCode = "socket.connection_lost"
	reasonLoginRefused   puntuale.ReasonCode = "socket.login_refused"     // {1}: WhatsApp's code
	reasonClosed         puntuale.ReasonCode = "socket.connection_closed" // {1}: WhatsApp's code
	reasonUnacknowledged puntuale.ReasonCode = "socket.unacknowledged"
	reasonPhoneGone      puntuale.ReasonCode = "socket.phone_gone"
	reasonNumberBlocked  puntuale.ReasonCode = "socket.number_blocked"
	reasonPhoneUnlinked  puntuale.ReasonCode = "socket.phone_unlinked"
)

// Reasons that WhatsApp gives for a ban of limited time.
const (
	reasonBanStrangers puntuale.ReasonCode = "socket.ban_strangers"
	reasonBanBlocked   puntuale.ReasonCode = "socket.ban_blocked"
	reasonBanGroups    puntuale.ReasonCode = "socket.ban_groups"
	reasonBanSame      puntuale.ReasonCode = "socket.ban_same_message"
	reasonBanBroadcast puntuale.ReasonCode = "socket.ban_broadcast"
	reasonBanTerms     puntuale.ReasonCode = "socket.ban_terms"
)

// linkMachine is the link state of a number, and the time of its next login. It starts no work itself: the type number
// calls a method for each event, and then reads next. API, metrics and pages all show this state.
type linkMachine struct {
	link  puntuale.LinkReport
	next  time.Time // when the server begins the next login by itself; zero: no time is planned
	moved bool      // true: the state changed, and [number] has not reacted to the change yet
	since time.Time // when the number came online

	failures    int // how many logins in a row failed or ended early
	quarantines int // how many times in a row the network acknowledged no messages
}

// opened sets the state of a session that was just opened. l is the stored state. linked says whether the number has
// keys. If l contradicts linked, opened uses linked and ignores l.
func (m *linkMachine) opened(l puntuale.Link, linked bool, number string, now time.Time) {
	m.link.Limited = l.Limited
	switch {
	case !linked && l.Condition == puntuale.LoggedOut:
		m.set(puntuale.LinkUnlinked, puntuale.LoggedOut, l.Detail)
	case !linked && l.State == puntuale.LinkPairing:
		m.unlinked(puntuale.Because(reasonPairingOver))
	case !linked && (l.State == puntuale.LinkLinked || l.State == puntuale.LinkOnline):
		m.unlinked(puntuale.Because(reasonKeysElsewhere))
	case !linked:
		m.unlinked(l.Detail)
	default:
		m.link.Number = number
		m.reopened(l, now)
	}
}

// reopened sets the state of an opened session whose number has keys.
func (m *linkMachine) reopened(l puntuale.Link, now time.Time) {
	switch {
	case l.Condition == puntuale.Replaced:
		m.set(puntuale.LinkLinked, puntuale.Replaced, l.Detail)
	case l.Condition == puntuale.Banned && l.Until.After(now):
		m.set(puntuale.LinkLinked, puntuale.Banned, l.Detail)
		m.link.Until, m.next = l.Until, l.Until.Add(banGrace)
	default:
		m.connecting(now)
	}
}

func (m *linkMachine) set(s puntuale.LinkState, c puntuale.Condition, detail puntuale.Reason) {
	m.link.State, m.link.Condition, m.link.Detail, m.moved = s, c, detail, true
	m.link.Code, m.link.Until, m.next = puntuale.PairingCode{}, time.Time{}, time.Time{}
	if s == puntuale.LinkUnlinked || s == puntuale.LinkPairing {
		m.link.Number = ""
	}
}

// connecting starts a login immediately.
func (m *linkMachine) connecting(now time.Time) {
	m.set(puntuale.LinkLinked, puntuale.Connecting, puntuale.Reason{})
	m.next = now
}

// begun records that the planned login is under way.
func (m *linkMachine) begun() {
	m.link.Condition, m.link.Detail, m.link.Until = puntuale.Connecting, puntuale.Reason{}, time.Time{}
}

// online records that the login succeeded. From now on messages may leave.
func (m *linkMachine) online(number string, now time.Time) {
	m.set(puntuale.LinkOnline, puntuale.ConditionNone, puntuale.Reason{})
	m.link.Number, m.since = number, now
}

// acknowledged records that the network acknowledges messages again.
func (m *linkMachine) acknowledged() { m.quarantines = 0 }

// lost records that the connection ended, or could not be made.
func (m *linkMachine) lost(detail puntuale.Reason, now time.Time) {
	if m.link.State == puntuale.LinkOnline && now.Sub(m.since) >= steady {
		m.failures = 0
	}
	m.wait(detail, backoff(againFirst, againLast, m.failures), now)
	m.failures++
}

// refused records that the network refused the login and gave no reason.
func (m *linkMachine) refused(detail puntuale.Reason, now time.Time) {
	m.wait(detail, backoff(refusedFirst, refusedLast, m.failures), now)
	m.failures++
}

// unacknowledged records that the network accepts messages but acknowledges none of them.
func (m *linkMachine) unacknowledged(detail puntuale.Reason, now time.Time) {
	m.wait(detail, backoff(quarantine, quarantineMax, m.quarantines), now)
	m.quarantines++
}

func (m *linkMachine) wait(detail puntuale.Reason, d time.Duration, now time.Time) {
	m.set(puntuale.LinkLinked, puntuale.Waiting, detail)
	m.link.Until = now.Add(d)
	m.next = m.link.Until
}

// banned records that the network refuses the number for the duration d. If d is not positive, banUnknown applies.
func (m *linkMachine) banned(d time.Duration, detail puntuale.Reason, now time.Time) {
	if d <= 0 {
		d = banUnknown
	}
	m.set(puntuale.LinkLinked, puntuale.Banned, detail)
	m.link.Until = now.Add(d)
	m.next = m.link.Until.Add(banGrace)
}

// outdated records that the network refuses the version of the protocol. No login begins until a later version is
// known.
func (m *linkMachine) outdated() { m.set(puntuale.LinkLinked, puntuale.Outdated, puntuale.Reason{}) }

// replaced records that the network closed this connection because the number connected elsewhere. The number does not
// reconnect by itself: two programs that both reconnect would end each other's connections for ever.
func (m *linkMachine) replaced() { m.set(puntuale.LinkLinked, puntuale.Replaced, puntuale.Reason{}) }

// loggedOut records that the network ended the link. The link's keys are no longer valid.
func (m *linkMachine) loggedOut(detail puntuale.Reason) {
	m.set(puntuale.LinkUnlinked, puntuale.LoggedOut, detail)
	m.failures, m.quarantines = 0, 0
}

func (m *linkMachine) unlinked(detail puntuale.Reason) {
	m.set(puntuale.LinkUnlinked, puntuale.ConditionNone, detail)
	m.link.Limited, m.failures, m.quarantines = time.Time{}, 0, 0
}

// pairing shows a code until expiresAt. The empty code means that no code can be shown now.
func (m *linkMachine) pairing(code puntuale.PairingCode, expiresAt time.Time) {
	m.set(puntuale.LinkPairing, puntuale.ConditionNone, puntuale.Reason{})
	m.link.Code, m.link.Until = code, expiresAt
}

// passkey records that the phone asks for a passkey. Only a browser at WhatsApp's own address can give one.
func (m *linkMachine) passkey() {
	m.set(puntuale.LinkPairing, puntuale.NeedsPasskey, puntuale.Reason{})
}

// limit sets the time until which messages to cold contacts wait. Zero means that they do not wait.
func (m *linkMachine) limit(limitEnd time.Time) { m.link.Limited = limitEnd }

const faultSessionBanned puntuale.ReasonCode = "session.banned"

// mayReconnect returns an error if a person may not ask for a login now.
func (m *linkMachine) mayReconnect(now time.Time) error {
	switch {
	case m.link.State != puntuale.LinkLinked && m.link.State != puntuale.LinkOnline:
		return puntuale.Conflict(puntuale.FaultSessionNotLinked)
	case m.link.Condition == puntuale.Banned && now.Before(m.link.Until):
		return puntuale.Conflict(faultSessionBanned)
	}
	return nil
}

// backoff returns the wait after n earlier failures: first, then twice as long after each failure, up to last. It adds
// or subtracts up to a fifth, at random, so that not all numbers log in at the same time after an outage.
func backoff(first, last time.Duration, n int) time.Duration {
	d := last
	if n < 20 {
		d = min(first<<n, last)
	}
	return d - d/5 + rand.N(2*d/5+1) //nolint:gosec // a guessed number gives no advantage
}
