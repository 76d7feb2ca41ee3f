package lookahead

import (
	"time"

	"puntuale"
)

// Phase says whether a read is wanted or running.
type Phase int8

// The phases. The package comment shows how they follow each other.
const (
	Idle    Phase = iota // no read is wanted
	Waiting              // a read is wanted, but must not begin yet: a timer is set
	Listed               // a read is wanted, and the session is in the list of the poll
	Urgent               // a read is wanted, and the session is in the urgent list
	Reading              // a read is running
	Again                // a read is running, and another read is wanted after it
)

func (p Phase) String() string {
	return [...]string{"idle", "waiting", "listed", "urgent", "reading", "again"}[p]
}

// ActionKind is the kind of an [Action].
type ActionKind int8

// The kinds of actions.
const (
	Nothing    ActionKind = iota
	List                  // the scheduler puts the session into the list of the poll
	ListUrgent            // the scheduler puts the session into the urgent list
	SetTimer              // the scheduler calls TimerFired at the action's time
)

// Action is what the scheduler must do after an event.
type Action struct {
	Kind ActionKind
	At   time.Time // the time of the timer; only for SetTimer
}

// Lookahead is the state of one session's reads. The zero value has read nothing, and no read is wanted. It is not safe
// for concurrent use.
type Lookahead struct {
	phase     Phase
	notBefore time.Time // the next read must not be listed before this time, so that a session spends at most half its time on reads
	polled    time.Time // when the poll last requested a read
	horizon   horizon
	cursor    cursor
	backlog   backlog
	expiry    expiry
	takeover  takeover

	// left contains the messages that left memory since the read began. The read may return them in their old state.
	left map[puntuale.MessageID]struct{}
}

// Phase returns the current phase.
func (l *Lookahead) Phase() Phase { return l.phase }

// Wanted reports whether a read is wanted that has not begun yet.
func (l *Lookahead) Wanted() bool { return l.Pending() || l.phase == Again }

// Pending reports whether a read is wanted and none is running. A session in a list may no longer have a pending read,
// because its entry in the other list has already started the read.
func (l *Lookahead) Pending() bool {
	return l.phase == Waiting || l.phase == Listed || l.phase == Urgent
}

// Reading reports whether a read is running.
func (l *Lookahead) Reading() bool { return l.phase == Reading || l.phase == Again }

// Want requests a read that looks as far as the horizon.
func (l *Lookahead) Want(urgent bool, now time.Time) Action {
	l.horizon.full = true
	return l.want(urgent, now)
}

// Wakeup requests an urgent read, because a message is due soon. The read looks at least until horizonEnd. If full is
// true, it looks as far as the horizon.
func (l *Lookahead) Wakeup(horizonEnd time.Time, full bool, now time.Time) Action {
	l.horizon.reach(horizonEnd)
	l.horizon.full = l.horizon.full || full
	return l.want(true, now)
}

// Resume requests an urgent read, because the session may send again.
func (l *Lookahead) Resume(now time.Time) Action {
	l.notBefore = time.Time{}
	return l.Want(true, now)
}

// Delay sets the time before which a read must not be listed. It has no effect on a session that is already in a list.
func (l *Lookahead) Delay(notBefore time.Time) { l.notBefore = notBefore }

// TimerFired handles a timer that an earlier action set. It ignores a timer that is out of date.
func (l *Lookahead) TimerFired(now time.Time) Action {
	if l.phase == Waiting || l.phase == Listed {
		return l.enlist(true, now)
	}
	return Action{}
}

func (l *Lookahead) want(urgent bool, now time.Time) Action {
	switch l.phase {
	case Idle:
		return l.enlist(urgent, now)
	case Waiting, Listed:
		if urgent {
			return l.enlist(true, now)
		}
	case Reading:
		l.phase = Again
	case Urgent, Again:
	}
	return Action{}
}

// enlist puts the session into a list now, or sets a timer that does so later. If the session is already in the list of
// the poll, it also stays there.
func (l *Lookahead) enlist(urgent bool, now time.Time) Action {
	switch {
	case now.Before(l.notBefore):
		if l.phase != Listed {
			l.phase = Waiting
		}
		return Action{Kind: SetTimer, At: l.notBefore}
	case urgent:
		l.phase = Urgent
		return Action{Kind: ListUrgent}
	}
	l.phase = Listed
	return Action{Kind: List}
}

// Read describes one read of the database.
type Read struct {
	From     puntuale.QueueCursor // position without its session; zero: the beginning
	Until    time.Time            // read messages that are due until this time
	Takeover bool                 // true: the read also includes messages in retry under the former owner
}

// Begin begins the wanted read. If fromCursor is true, the read continues at the cursor, if there is one. ahead is the
// distance of the horizon from now.
func (l *Lookahead) Begin(fromCursor bool, ahead time.Duration, now time.Time) Read {
	l.phase = Reading
	return Read{
		From:     l.cursor.begin(fromCursor, now),
		Until:    l.horizon.take(now.Add(ahead)),
		Takeover: !l.takeover.known,
	}
}

// Result describes a read that has ended and whose rows are in memory.
type Result struct {
	Failed  bool                 // the database did not answer
	Took    time.Duration        // how long the read took
	Poll    time.Duration        // interval of the poll
	Alone   bool                 // no other session was read together with this one
	Last    puntuale.QueueCursor // the position of the last row that was handled; its Session is 0; zero: no row was handled
	Cut     bool                 // the read returned as many rows as it may, so there may be more
	NoRoom  bool                 // memory was full, so some rows were not added
	CanSend bool                 // the session may send
	Lost    bool                 // the node no longer owns the session
}

// ReadReturned records that the database answered a read, before the rows of this read are added to memory. crowded is
// true if the session has more messages in retry than the read could return.
func (l *Lookahead) ReadReturned(failed, crowded bool, now time.Time) {
	l.takeover.crowded = crowded
	if !failed && !crowded {
		l.takeover.known = true
		l.expiry.next = now.Add(expiryEvery)
	}
}

// End ends the read. If another read was requested in the meantime, that read is urgent now. After a failure, the poll
// requests a read again.
func (l *Lookahead) End(r Result, now time.Time) Action {
	readAgain := l.phase == Again || l.takeover.crowded
	l.phase = Idle
	clear(l.left)
	switch {
	case r.Failed:
		l.notBefore = now.Add(r.Poll / 4)
		return Action{}
	case r.CanSend:
		l.notBefore = now.Add(min(r.Took, r.Poll)) // at most the poll's interval, because a read that the store delayed must not delay the next read
	default:
		l.notBefore = now.Add(r.Poll) // the session cannot send, so its next read is not urgent
	}
	if l.takeover.crowded {
		l.horizon.full = true
	}
	l.backlog.cut = r.Cut
	l.backlog.more = l.backlog.more || r.Cut
	if r.Alone {
		l.cursor.end(r, now)
	}
	if r.Lost || !readAgain {
		return Action{}
	}
	return l.enlist(true, now)
}

// Leave records that a message left memory. A read that is running may return an old row of this message.
// LeftMemory then reports the message, so that the caller ignores the row.
func (l *Lookahead) Leave(id puntuale.MessageID) {
	if !l.Reading() {
		return
	}
	if l.left == nil {
		l.left = map[puntuale.MessageID]struct{}{}
	}
	l.left[id] = struct{}{}
}

// LeftMemory reports whether a message left memory since the running read began.
func (l *Lookahead) LeftMemory(id puntuale.MessageID) bool {
	_, left := l.left[id]
	return left
}

// PollDue reports whether the poll's interval has passed since the last call of [Lookahead.Polled].
func (l *Lookahead) PollDue(poll time.Duration, now time.Time) bool {
	return !now.Before(l.polled.Add(poll))
}

// Polled records that the poll requested a read.
func (l *Lookahead) Polled(now time.Time) { l.polled = now }

// SetBack moves back all times for which the lookahead waits, because the clock was set back. jump says how far.
func (l *Lookahead) SetBack(jump time.Duration) {
	for _, t := range []*time.Time{&l.polled, &l.notBefore, &l.expiry.next, &l.expiry.behind, &l.cursor.validUntil} {
		if !t.IsZero() {
			*t = t.Add(-jump)
		}
	}
}
