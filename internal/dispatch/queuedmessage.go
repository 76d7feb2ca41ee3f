package dispatch

import (
	"time"

	"puntuale"
)

// stage is how far a message in memory has come.
type stage int8

const (
	loading  stage = iota // its content is being read and prepared
	ready                 // may leave
	claiming              // its intent is being written
	sending               // the connector has it
	answered              // its outcome is on the way to disk
	settling              // it is being closed or postponed without an attempt
	gone                  // no longer in memory
)

// queuedMessage is one message in memory. The scheduler owns it. The goroutine that loads, prepares, claims or sends it
// may read it. The one that loads it also writes what it found.
type queuedMessage struct {
	row   puntuale.DueMessage
	queue *sessionQueue
	stage stage

	// What loading found.
	content  puntuale.Content
	window   *puntuale.Window
	zone     *time.Location
	prepared puntuale.Prepared
	failed   error // why it could not be prepared

	timer  timer
	parked bool // waits for an earlier message to its recipient

	token    int64     // names its attempt
	begun    time.Time // when the present attempt was claimed
	sentPoll int64     // the poll after which it was handed over
	late     bool      // given up unanswered; its answer may still come
}

// repeat reports whether the message's next attempt repeats an unanswered one.
func (m *queuedMessage) repeat() bool { return m.row.Intent > 0 }

func (m *queuedMessage) ref() puntuale.MessageRef {
	return puntuale.MessageRef{Client: m.row.Client, ID: m.row.ID}
}

func (m *queuedMessage) due(now time.Time) bool { return !now.Before(m.row.Next) }

func (m *queuedMessage) expired(now time.Time) bool { return !now.Before(m.row.ValidUntil) }
