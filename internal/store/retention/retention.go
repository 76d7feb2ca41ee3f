package retention

import (
	"sync/atomic"

	"puntuale/internal/store/engine"
)

// Retention removes the contents of old runs, and the data of a person who asks for it. Its methods may be called by many goroutines at
// once.
type Retention struct {
	*engine.DB

	blank, erase  *engine.Kind
	blankedClient atomic.Int64 // the client that Blank looked at last; 0: from the beginning
}

// New returns the retention of a database.
func New(db *engine.DB) *Retention {
	s := &Retention{DB: db, blank: engine.NewSingle("blank", engine.PriorityCall), erase: engine.NewSingle("erase", engine.PriorityPrevent)}
	s.blank.Check, s.erase.Check = engine.RunAgain, engine.RunAgain // a second run does not find blanked runs
	s.blank.Background = true
	return s
}
