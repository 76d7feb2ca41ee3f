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

// BackupJob is one of the jobs that backups by schedule consist of. The database contains the number.
type BackupJob int8

const (
	JobBackup    BackupJob = 1 // writes a backup, and stores it at its place
	JobRehearsal BackupJob = 2 // restores the newest stored backup into an empty database, and compares
	JobWarning   BackupJob = 3 // tells the operator that one of the others did not succeed for too long
)

// BackupTooOld is the age from which the operator is told about the last good backup: a day, and two hours for a large
// backup.
const BackupTooOld = 26 * time.Hour

func (j BackupJob) String() string {
	switch j {
	case JobRehearsal:
		return "rehearsal"
	case JobWarning:
		return "warning"
	}
	return "backup"
}

// BackupState says how far a job is. The zero value means that it never began.
type BackupState struct {
	Planned time.Time // the planned moment of the last attempt
	Token   int64     // names the last attempt
	Began   time.Time // when the last attempt began, by the database's clock
	Until   time.Time // no other attempt begins before this; zero: one may begin
	Tries   int       // failed attempts for this planned moment
	Done    time.Time // the planned moment of the last success; zero: none
	DoneAt  time.Time // when the last success ended, by the database's clock
	Result  string    // what the last success made; its form belongs to package backup
	Fault   string    // why the last attempt failed; "": it did not
	FaultAt time.Time // when the last attempt failed
	Opener  []byte    // sealed: what opens the newest encrypted backup, until it is rehearsed; nil: nothing does
}
