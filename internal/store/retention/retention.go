package retention

import (
	"sync/atomic"

	"puntuale/internal/store/engine"
)

// Retention removes the contents of old runs, and the data of erased persons. Many goroutines may call its methods at
// once.
type Retention struct {
	*engine.DB

	blank, erase  *engine.Kind
	blankedClient atomic.Int64 // the client that Blank looked at last; 0: Blank begins with the first client
}

// New returns the Retention of a database.
func New(db *engine.DB) *Retention {
	s := &Retention{DB: db, blank: engine.NewSingle("blank", engine.PriorityCall), erase: engine.NewSingle("erase", engine.PriorityPrevent)}
	s.blank.Check, s.erase.Check = engine.RunAgain, engine.RunAgain // a second run finds nothing to do, because the runs are blanked
	s.blank.Background = true
	return s
}
