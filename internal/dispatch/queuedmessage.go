package dispatch

import (
	"time"

	"puntuale"
)

// stage is the progress of a queued message in the dispatcher.
type stage int8

const (
	loading  stage = iota // the dispatcher reads the message's content and prepares it
	ready                 // the message may leave at its due time
	claiming              // the dispatcher writes the message's intent
	sending               // the connector is sending the message
	answered              // the outcome is known and not on disk yet
	settling              // the message is being closed or postponed without an attempt
	gone                  // the message is no longer in memory
)

// queuedMessage is one message in memory. The scheduler owns it. The goroutine that loads, prepares, claims or sends
// the message may read it. The goroutine that loads the message also writes the fields under "Loading".
type queuedMessage struct {
	row   puntuale.DueMessage
	queue *sessionQueue
	stage stage

	// Loading: the loading goroutine writes these fields.
	content  puntuale.Content
	window   *puntuale.Window
	zone     *time.Location
	prepared puntuale.Prepared
	failed   error // the error of the preparation

	timer  timer
	parked bool // true: the message waits for an earlier message to its recipient

	token    int64     // token of the message's attempt
	begun    time.Time // when the current attempt was claimed
	sentPoll int64     // the number of polls so far when the connector got the message; overdue measures time in polls
	late     bool      // true: the dispatcher gave up the attempt without an answer; the answer may still come
}

// repeat reports whether the next attempt repeats an attempt that got no answer.
func (m *queuedMessage) repeat() bool { return m.row.Intent > 0 }

func (m *queuedMessage) ref() puntuale.MessageRef {
	return puntuale.MessageRef{Client: m.row.Client, ID: m.row.ID}
}

func (m *queuedMessage) due(now time.Time) bool { return !now.Before(m.row.Next) }

func (m *queuedMessage) expired(now time.Time) bool { return !now.Before(m.row.ValidUntil) }
