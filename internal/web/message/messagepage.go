package message

import (
	"puntuale"
)

// SeenSession is a session in the form that pages about messages use.
type SeenSession struct {
	ID      puntuale.SessionID // 0: the session was deleted
	Name    string
	State   puntuale.LinkState
	Number  string
	Hint    puntuale.Reason // what a person can do about the session's state
	Sandbox bool
}

// Failure is one reason why messages did not leave, with the newest of these messages.
type Failure struct {
	Reason   puntuale.Reason // the reason; the contract calls its sentence risposta
	Messages []puntuale.MessageDetail
}

// Story is one message and its history.
type Story struct {
	puntuale.MessageDetail
	Events  []puntuale.MessageEvent  // the oldest event comes first
	Resent  []puntuale.MessageID     // the new messages that resends of this message created
	Earlier []puntuale.MessageDetail // if the message got a new time: the messages that it replaced, oldest first
	Later   *puntuale.MessageDetail  // if the message got a new time: the message that replaced it; nil: it kept its time
	Session SeenSession

	Unwanted map[puntuale.MessageID]puntuale.ReasonCode // pending messages that will not leave, each with the reason
}

// AgendaDay contains the pending messages of one day.
type AgendaDay struct {
	Day      puntuale.Date
	Count    int
	Hours    [24]int                  // how many of the messages are due in each hour, in the client's zone
	Messages []puntuale.MessageDetail // only the first messages of the day
}
