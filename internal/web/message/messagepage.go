package message

import (
	"puntuale"
)

// SeenSession is a session in the form for pages about messages.
type SeenSession struct {
	ID      puntuale.SessionID // 0: the session was deleted
	Name    string
	State   puntuale.LinkState
	Number  string
	Hint    puntuale.Reason // what a person can do
	Sandbox bool
}

// Failure is one reason why messages did not leave, with the last of these messages.
type Failure struct {
	Reason   puntuale.Reason // the sentence that the contract calls risposta
	Messages []puntuale.MessageDetail
}

// Story is one message and its history.
type Story struct {
	puntuale.MessageDetail
	Events  []puntuale.MessageEvent  // oldest first
	Resent  []puntuale.MessageID     // the messages that resends of this message made
	Earlier []puntuale.MessageDetail // the message before each move, oldest first
	Later   *puntuale.MessageDetail  // the message that a move put in the place of this one; nil: none
	Session SeenSession

	Unwanted map[puntuale.MessageID]puntuale.ReasonCode // pending messages that will not leave, each with the reason
}

// AgendaDay has the messages that are to leave on one day.
type AgendaDay struct {
	Day      puntuale.Date
	Count    int
	Hours    [24]int                  // how many messages in each hour, in the client's zone
	Messages []puntuale.MessageDetail // only the first messages of the day
}
