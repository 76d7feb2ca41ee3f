package dispatch

import (
	"time"

	"puntuale"
)

// stage says how far a message in memory has come.
type stage int8

const (
	loading  stage = iota // the dispatcher reads its content and prepares it
	ready                 // it may leave at its moment
	claiming              // the dispatcher writes its intent
	sending               // the connector is sending it
	answered              // its outcome is known and not on disk yet
	settling              // it is being closed or postponed without an attempt
	gone                  // it is no longer in memory
)

// queuedMessage is one message in memory. The scheduler owns it. The goroutine that loads, prepares, claims or sends
// it may read it. The goroutine that loads it also writes the fields below that loading fills in.
type queuedMessage struct {
	row   puntuale.DueMessage
	queue *sessionQueue
	stage stage

	// Loading fills in these fields.
	content  puntuale.Content
	window   *puntuale.Window
	zone     *time.Location
	prepared puntuale.Prepared
	failed   error // why the message could not be prepared

	timer  timer
	parked bool // it waits for an earlier message to its recipient

	token    int64     // token of its attempt
	begun    time.Time // when its present attempt was claimed
	sentPoll int64     // number of the last poll before it was handed over
	late     bool      // it was given up without an answer; the answer may still come
}

// repeat reports whether the next attempt repeats an attempt that got no answer.
func (m *queuedMessage) repeat() bool { return m.row.Intent > 0 }

func (m *queuedMessage) ref() puntuale.MessageRef {
	return puntuale.MessageRef{Client: m.row.Client, ID: m.row.ID}
}

func (m *queuedMessage) due(now time.Time) bool { return !now.Before(m.row.Next) }

func (m *queuedMessage) expired(now time.Time) bool { return !now.Before(m.row.ValidUntil) }
