package message

import (
	"puntuale"
)

// SeenSession is a session in the form for pages about messages.
type SeenSession struct {
	ID      puntuale.SessionID // 0: it was deleted
	Name    string
	State   puntuale.LinkState
	Number  string
	Hint    puntuale.Reason // what to do, for people
	Sandbox bool
}

// Failure is one reason why messages did not leave, with the last of these messages.
type Failure struct {
	Reason   puntuale.Reason // as in risposta
	Messages []puntuale.MessageDetail
}

// Story is one message and its history.
type Story struct {
	puntuale.MessageDetail
	Events  []puntuale.MessageEvent  // oldest first
	Resent  []puntuale.MessageID     // what it was sent again as
	Earlier []puntuale.MessageDetail // what it was before each time that it was moved, oldest first
	Later   *puntuale.MessageDetail  // what it was moved to; nil: it was not
	Session SeenSession

	Unwanted map[puntuale.MessageID]puntuale.ReasonCode // pending ones that will not leave, and why
}

// AgendaDay has the messages that are to leave on one day.
type AgendaDay struct {
	Day      puntuale.Date
	Count    int
	Hours    [24]int                  // of them, by the hour of the client's clocks
	Messages []puntuale.MessageDetail // the first ones
}
