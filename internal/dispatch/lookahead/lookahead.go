package lookahead

import (
	"time"

	"puntuale"
)

// Phase says what is under way.
type Phase int8

// The phases. The package comment draws how one follows another.
const (
	Idle    Phase = iota // no read is wanted
	Waiting              // a read is wanted, and a timer is set: it must not begin yet
	Listed               // a read is wanted, and the session is in the list of the poll
	Urgent               // a read is wanted, and the session is in the urgent list
	Reading              // a read is under way
	Again                // a read is under way, and another is wanted after it
)

func (p Phase) String() string {
	return [...]string{"idle", "waiting", "listed", "urgent", "reading", "again"}[p]
}

// ActionKind says what the scheduler must do.
type ActionKind int8

// The kinds of actions.
const (
	Nothing    ActionKind = iota
	List                  // put the session into the list of the poll
	ListUrgent            // put the session into the urgent list
	SetTimer              // call TimerFired at the action's moment
)

// Action is what follows from an event.
type Action struct {
	Kind ActionKind
	At   time.Time // the moment for SetTimer
}

// Lookahead is one session's reading. The zero value has read nothing and wants nothing. One goroutine may use it at a
// time.
type Lookahead struct {
	phase     Phase
	notBefore time.Time // the next read must not be listed before: a session spends half its time reading at most
	polled    time.Time // when the poll last wanted a read
	horizon   horizon
	cursor    cursor
	backlog   backlog
	expiry    expiry
	takeover  takeover

	// left has the messages that left memory while the read was under way. The read may show them as they were before.
	left map[puntuale.MessageID]struct{}
}

// Phase returns the present phase.
func (l *Lookahead) Phase() Phase { return l.phase }

// Wanted reports whether another read is wanted: it has not begun yet.
func (l *Lookahead) Wanted() bool { return l.Pending() || l.phase == Again }

// Pending reports whether a read is wanted and none is under way. A session that is taken from a list may have none
// pending: the other list was served first.
func (l *Lookahead) Pending() bool {
	return l.phase == Waiting || l.phase == Listed || l.phase == Urgent
}

// Reading reports whether a read is under way.
func (l *Lookahead) Reading() bool { return l.phase == Reading || l.phase == Again }

// Want asks for a read as far as the horizon.
func (l *Lookahead) Want(urgent bool, now time.Time) Action {
	l.horizon.full = true
	return l.want(urgent, now)
}

// Wakeup asks for an urgent read as far as a moment, because something is due until then. With full, it asks for a read as far as the
// horizon.
func (l *Lookahead) Wakeup(until time.Time, full bool, now time.Time) Action {
	l.horizon.reach(until)
	l.horizon.full = l.horizon.full || full
	return l.want(true, now)
}

// Resume asks for an urgent read of a session that may send again. It waits for nothing.
func (l *Lookahead) Resume(now time.Time) Action {
	l.notBefore = time.Time{}
	return l.Want(true, now)
}

// Delay prevents that a read is listed before a moment. A read that is already listed stays listed.
func (l *Lookahead) Delay(until time.Time) { l.notBefore = until }

// TimerFired acts on the timer that an earlier action set. The timer may be out of date.
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

// enlist puts the session into a list, now or by a timer. A session in the poll's list stays there.
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

// Read is what one read asks the database for.
type Read struct {
	From     puntuale.QueueCursor // without its session; zero: from the beginning
	Until    time.Time            // how far ahead
	Takeover bool                 // also reads what is in retry under the former owner
}

// Begin begins the read that was wanted. With goOn, it continues after the cursor, if there is one. ahead is how far the horizon is from
// now.
func (l *Lookahead) Begin(goOn bool, ahead time.Duration, now time.Time) Read {
	l.phase = Reading
	return Read{
		From:     l.cursor.begin(goOn, now),
		Until:    l.horizon.take(now.Add(ahead)),
		Takeover: !l.takeover.known,
	}
}

// Result is what came of a read, once its rows are in memory.
type Result struct {
	Failed  bool                 // the database did not answer
	Took    time.Duration        // how long the read took, from its beginning
	Poll    time.Duration        // the interval of the poll
	Alone   bool                 // no other session was read with it
	Last    puntuale.QueueCursor // the last row that was taken, without its session; zero: none was
	Cut     bool                 // it brought all rows that it could: there may be more
	NoRoom  bool                 // memory was full: some rows were not taken
	CanSend bool                 // the session may send
	Lost    bool                 // the session is no longer this node's
}

// Got notes that a read was answered, before its rows are taken. crowded says that the session has more in retry than
// the read could bring.
func (l *Lookahead) Got(failed, crowded bool, now time.Time) {
	l.takeover.crowded = crowded
	if !failed && !crowded {
		l.takeover.known = true
		l.expiry.next = now.Add(expiryEvery)
	}
}

// End ends the read. If another was wanted meanwhile, it is urgent now. After a failure the poll asks again.
func (l *Lookahead) End(r Result, now time.Time) Action {
	again := l.phase == Again || l.takeover.crowded
	l.phase = Idle
	clear(l.left)
	switch {
	case r.Failed:
		l.notBefore = now.Add(r.Poll / 4)
		return Action{}
	case r.CanSend:
		l.notBefore = now.Add(min(r.Took, r.Poll)) // a read that was held up is no reason to put off the next one
	default:
		l.notBefore = now.Add(r.Poll) // there is no hurry
	}
	if l.takeover.crowded {
		l.horizon.full = true
	}
	l.backlog.cut = r.Cut
	l.backlog.more = l.backlog.more || r.Cut
	if r.Alone {
		l.cursor.end(r, now)
	}
	if r.Lost || !again {
		return Action{}
	}
	return l.enlist(true, now)
}

// Leave notes that a message left memory. If a read is under way, its row is stale.
func (l *Lookahead) Leave(id puntuale.MessageID) {
	if !l.Reading() {
		return
	}
	if l.left == nil {
		l.left = map[puntuale.MessageID]struct{}{}
	}
	l.left[id] = struct{}{}
}

// Left reports whether a message left memory since the read began.
func (l *Lookahead) Left(id puntuale.MessageID) bool {
	_, left := l.left[id]
	return left
}

// PollDue reports whether the poll's interval went by since the last [Lookahead.Polled].
func (l *Lookahead) PollDue(poll time.Duration, now time.Time) bool {
	return !now.Before(l.polled.Add(poll))
}

// Polled notes that the poll wanted a read.
func (l *Lookahead) Polled(now time.Time) { l.polled = now }

// SetBack moves all moments for which the lookahead waits, when the clock was set back.
func (l *Lookahead) SetBack(by time.Duration) {
	for _, t := range []*time.Time{&l.polled, &l.notBefore, &l.expiry.next, &l.expiry.behind, &l.cursor.until} {
		if !t.IsZero() {
			*t = t.Add(-by)
		}
	}
}
