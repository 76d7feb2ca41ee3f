package puntuale

import (
	"time"
)

// RestoreResult says what one client must decide after a restore. The zero value means that there is nothing to
// decide.
type RestoreResult struct {
	Since   time.Time // time of the backup: the store contains nothing that happened later
	At      time.Time // when the backup was restored
	Unknown int       // messages that may have left already, and that nobody has decided about yet
	Held    time.Time // since when the client is held: the client's messages leave only after a person releases the client; zero: not held
}

// RestoredClient is the RestoreResult of one client, for the operator.
type RestoredClient struct {
	Client  ClientID
	Partner PartnerID
	Name    string
	RestoreResult
}
