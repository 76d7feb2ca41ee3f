// Package health stores what Meta's refusals hold back, and what Meta says about the numbers and businesses of Official
// sessions.
package health

import "puntuale/internal/store/engine"

// Health stores the health of all clients' Official sessions. Its methods are safe for concurrent use.
type Health struct {
	db    *engine.DB
	heard *engine.Kind
}

// New returns the health in a database. heard is the task kind for reports of networks.
func New(db *engine.DB, heard *engine.Kind) *Health { return &Health{db, heard} }
