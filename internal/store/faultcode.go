package store

import "puntuale"

// Faults of this package. internal/catalogue has their sentences.
const (
	faultCallerCapReached puntuale.ReasonCode = "caller.cap_reached"
)
