package fleet

import (
	"time"

	"puntuale"
)

// ReadPayload reads the payload of a notification.
var ReadPayload = readPayload

func Word(session puntuale.SessionID, due time.Time) string {
	return pendingWakeup{changed: due.IsZero(), horizonEnd: due}.word(session)
}

// Words returns the part of a payload that contains one session's wakeups.
func Words(session puntuale.SessionID, changed bool, due ...time.Time) string {
	t := &notifier{waiting: map[puntuale.SessionID]pendingWakeup{}, wake: make(chan struct{}, 1)}
	if changed {
		t.add(session, time.Time{})
	}
	for _, at := range due {
		t.add(session, at)
	}
	return t.take()[0]
}

// Waiting returns how many sessions have wakeups that were not sent yet.
func Waiting(s *Fleet) int {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	return len(s.notifier.waiting)
}
