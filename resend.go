package puntuale

import "time"

// Resend asks for messages to be sent again, all or none. Each gets a new message with its origin, sequence, run,
// session, content and request.
type Resend struct {
	Messages []ResendMessage // in the order asked, each id once
	Day      Date            // the client's present day, whose cap counts one call
	Now      time.Time
	Once     *Once // nil: none; its Answer gets the [Resent]
	Unknown  bool  // every message must be one that a restore left unknown (RestoreStore); it is closed as FAILED first
	Campaign bool  // it is the retry of a campaign: the new messages wait behind others, as the old ones did
	Move     bool  // every message must be PENDING still; one that is not is a conflict
}

// ResendMessage is one of them with its new moments.
type ResendMessage struct {
	ID         MessageID
	Desired    time.Time // zero: none
	Due        time.Time
	ValidUntil time.Time
}

// Resent is the answer: the new messages in the order asked, and the client's usage.
type Resent struct {
	IDs   []MessageID
	Usage Usage
}
