package puntuale

import "context"

// KeepReplies says which replies a client keeps.
type KeepReplies string

const (
	KeepKnownReplies KeepReplies = "known" // replies of contacts, of recipients within [ReplyWindow], and replies with an effect
	KeepAllReplies   KeepReplies = "all"
	KeepNoReplies    KeepReplies = "none"
)

// ConsentRule says which consent marketing needs.
type ConsentRule string

const (
	ConsentFree     ConsentRule = "free"     // marketing may leave unless consent was withdrawn
	ConsentRequired ConsentRule = "required" // marketing needs given consent
)

// DefaultTakeover is how long automations leave a person alone after an answer by the client's people, in hours.
const DefaultTakeover = 12

// Limits of settings.
const (
	MaxOptOutWords   = 50
	MaxOptOutWord    = 100 // characters
	MaxTakeoverHours = 720
)

// ClientSettings is what a client decides about the people that it writes to.
type ClientSettings struct {
	Remember      bool // every recipient becomes a contact
	KeepReplies   KeepReplies
	Consent       ConsentRule
	OptOutWords   []string // nil: [DefaultOptOutWords]
	OptOutAnswer  string   // "": no answer is sent
	TakeoverHours int
}

// DefaultSettings apply to a client without stored settings. New clients get Consent [ConsentRequired].
func DefaultSettings() ClientSettings {
	return ClientSettings{KeepReplies: KeepKnownReplies, Consent: ConsentFree, TakeoverHours: DefaultTakeover}
}

// DefaultOptOutWords are the usual opt-out words, in Italian and English.
func DefaultOptOutWords() []string {
	return []string{"STOP", "BASTA", "CANCELLAMI", "DISISCRIVIMI", "UNSUBSCRIBE"}
}

// OptInWords undo an opt-out.
func OptInWords() []string { return []string{"START", "RIPRENDI"} }

// SettingsPatch changes some settings; nil leaves a member as it is. An empty OptOutWords means the usual words again.
type SettingsPatch struct {
	Remember      *bool
	KeepReplies   *KeepReplies
	Consent       *ConsentRule
	OptOutWords   *[]string
	OptOutAnswer  *string
	TakeoverHours *int
}

// SettingStore keeps the settings of a client.
type SettingStore interface {
	Settings(ctx context.Context) (ClientSettings, error)
	UpdateSettings(ctx context.Context, p SettingsPatch) (ClientSettings, error)
}
