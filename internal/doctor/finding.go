package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"time"
)

// Level says how bad a finding is.
type Level string

// Levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // it works, but not as well or as safely as it should
	Fault   Level = "fault"   // something does not work, or data are in danger
)

// Finding is what was found about one subject.
type Finding struct {
	Subject string `json:"subject"`
	Level   Level  `json:"level"`
	Text    string `json:"text"`
	Do      string `json:"do,omitempty"` // what the operator should do; "": nothing
}

// Config says what to look at. A nil function, or an empty field, leaves its subject out.
type Config struct {
	PublicURL string                                                            // the address at which the internet reaches the server
	Roots     *x509.CertPool                                                    // who may sign its certificate; nil: the system's
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error) // how to reach it; nil: by TCP
	Local     bool                                                              // true: the API listens only on this machine
	Folders   map[string]string
	Space     func(folder string) (free, size uint64, err error)
	Open      func(folder string) bool // reports whether other users of the machine can read a folder or a file

	Key      KeyFacts
	Mail     func(context.Context) error // signs in at the mail server
	Storage  func(context.Context) error // stores, reads and removes a file where the bytes of uploaded files are; nil: they are in the database
	Mails    bool                        // true: a mail server is set
	Scanner  func(context.Context) error // asks clamd whether it is there
	Database func(context.Context) (DatabaseFacts, error)
	Backup   func(context.Context) (BackupFacts, error)
	Server   func(context.Context) error // asks the server on this machine whether it is ready
	Clock    func() error                // reports whether the machine's clock is synchronised
	Files    uint64                      // how many files the process may open; 0: unknown
	Needed   uint64                      // how many it needs
	Now      time.Time
}

// KeyFacts are about the second key, which opens the secrets in the database.
type KeyFacts struct {
	Given  bool   // true: the key is a text in the environment
	File   string // the path of the key file; "": none
	Absent bool   // true: the file does not exist
	Open   bool   // true: other users can read the file
}

// DatabaseFacts are about the database.
type DatabaseFacts struct {
	Name   string        // for people, without a password
	Made   string        // name and version of the database program
	Old    bool          // true: this version is not supported
	Ahead  time.Duration // how far its clock is ahead of this machine's; 0: less than two seconds
	Damage error         // damage that it reported
}

// BackupFacts are about backups.
type BackupFacts struct {
	Scheduled   bool
	Remote      bool      // true: they are stored on another machine
	Encrypted   bool      // true: they are encrypted
	Last        time.Time // time of the last good backup; zero: none
	Fault       string    // why the last attempt by schedule failed
	Rehearsed   time.Time // when the newest backup was rehearsed; zero: never
	RehearsalIs string    // what the rehearsal found
	Failed      string    // why the last rehearsal failed
}

// Look looks at everything that the configuration names. It returns at least one finding for each subject. It takes at
// most about ten seconds for each thing that does not answer.
func Look(ctx context.Context, cfg *Config) (all []Finding) {
	for _, look := range []func(context.Context, *Config) []Finding{lookAtServer, lookAtPublic, lookAtClock, lookAtDisks, lookAtKey, lookAtDatabase, lookAtBackups, lookAtStorage, lookAtMail, lookAtScanner, lookAtLimits} {
		all = append(all, look(ctx, cfg)...)
	}
	return all
}

// Worst returns the highest level of the findings.
func Worst(all []Finding) Level {
	for _, level := range []Level{Fault, Warning} {
		if slices.ContainsFunc(all, func(f Finding) bool { return f.Level == level }) {
			return level
		}
	}
	return OK
}

func found(subject string, level Level, text, do string) []Finding {
	return []Finding{{subject, level, text, do}}
}

// ErrUnsynchronised means that no program keeps the machine's clock right.
var ErrUnsynchronised = errors.New("the kernel says that nothing keeps the clock right")
