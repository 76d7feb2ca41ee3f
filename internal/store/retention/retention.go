package retention

import (
	"sync/atomic"

	"puntuale/internal/store/engine"
)

// Retention removes the contents of old runs, and the data of erased persons. Its methods are safe for concurrent use.
type Retention struct {
	*engine.DB

	blank, erase  *engine.Kind
	blankedClient atomic.Int64 // the client that Blank read last; 0: Blank begins with the first client
}

// New returns the Retention of a database.
func New(db *engine.DB) *Retention {
	s := &Retention{DB: db, blank: engine.NewSingle("blank", engine.PriorityCall), erase: engine.NewSingle("erase", engine.PriorityPrevent)}
	s.blank.Check, s.erase.Check = engine.RunAgain, engine.RunAgain // a second run changes nothing, because the runs are already blanked or erased
	s.blank.Background = true
	return s
}
