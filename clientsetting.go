package puntuale

// KeepReplies says which replies the server stores for a client.
type KeepReplies string

const (
	KeepKnownReplies KeepReplies = "known" // replies of contacts, replies of people who got a message within [RunAnswerTime] or have a planned one, replies with an effect, and words for which an active rule waits
	KeepAllReplies   KeepReplies = "all"
	KeepNoReplies    KeepReplies = "none"
)

// ConsentRule says whether marketing needs a person's consent.
type ConsentRule string

const (
	ConsentFree     ConsentRule = "free"     // marketing may leave unless the person withdrew consent
	ConsentRequired ConsentRule = "required" // marketing may leave only if the person gave consent
)

// DefaultTakeover is the default length of a take-over, in hours. A take-over begins when the client's people answer a
// person. While it lasts, automations do not act for this person.
const DefaultTakeover = 12

// Limits of settings.
const (
	MaxOptOutWords   = 50
	MaxOptOutWord    = 100 // characters of one word
	MaxTakeoverHours = 720
)

// ClientSettings contains a client's decisions about the people that it writes to.
type ClientSettings struct {
	Remember      bool // every recipient of a message becomes a contact
	KeepReplies   KeepReplies
	Consent       ConsentRule
	OptOutWords   []string // nil: [DefaultOptOutWords]
	OptOutAnswer  string   // the text of the confirmation; "": no confirmation is sent
	TakeoverHours int
	AutomatedMost int      // how many starts and sends of automations a person gets in 24 hours; 0: none
	ConfirmWords  []string // words that confirm a booking; nil: [DefaultConfirmWords]
	CancelWords   []string // words that cancel a booking; nil: [DefaultCancelWords]
	FlattenValues bool     // true: values of approved templates are flattened ([FlattenValue]); false: [ValueBreaks] refuses them
	PauseCostlier bool     // true: messages wait if Meta makes their template MARKETING, and people get a notice
	TrackLinks    bool     // true: addresses in texts become tracked links, unless the sequence says otherwise
	KeepMedia     bool     // true: the files in people's replies become files of the client
	ButtonLine    string   // the line above the numbered lines that stand for buttons; "": [DefaultButtonLine]
}

// DefaultSettings returns the settings of a client that stored none. For a new client, the server stores
// [ConsentRequired].
func DefaultSettings() ClientSettings {
	return ClientSettings{KeepReplies: KeepKnownReplies, Consent: ConsentFree, TakeoverHours: DefaultTakeover, AutomatedMost: DefaultAutomatedMost}
}

// DefaultOptOutWords are the usual opt-out words, in Italian and English.
func DefaultOptOutWords() []string {
	return []string{"STOP", "BASTA", "CANCELLAMI", "DISISCRIVIMI", "UNSUBSCRIBE"}
}

// DefaultConfirmWords are the usual words that confirm a booking, in Italian and English.
func DefaultConfirmWords() []string {
	return []string{"confermo", "confermato", "sì", "ok", "va bene", "confirm", "confirmed", "yes", "i confirm"}
}

// DefaultCancelWords are the usual words that cancel a booking, in Italian and English.
func DefaultCancelWords() []string {
	return []string{"annulla", "annullo", "disdico", "cancel", "i cancel"}
}

// Words returns the client's own words, or else the usual ones: those that withdraw consent, that confirm a booking, and
// that cancel it.
func (s ClientSettings) Words() (optOut, confirm, cancel []string) {
	own := func(words, usual []string) []string {
		if len(words) == 0 {
			return usual
		}
		return words
	}
	return own(s.OptOutWords, DefaultOptOutWords()), own(s.ConfirmWords, DefaultConfirmWords()), own(s.CancelWords, DefaultCancelWords())
}

// OptInWords returns the words that undo an opt-out.
func OptInWords() []string { return []string{"START", "RIPRENDI"} }

// SettingsPatch changes some settings. A nil member changes nothing. An empty OptOutWords brings back
// [DefaultOptOutWords].
type SettingsPatch struct {
	Remember      *bool
	KeepReplies   *KeepReplies
	Consent       *ConsentRule
	OptOutWords   *[]string
	OptOutAnswer  *string
	TakeoverHours *int
	AutomatedMost *int
	ConfirmWords  *[]string // empty: the usual words again
	CancelWords   *[]string
	ButtonLine    *string
	FlattenValues *bool
	PauseCostlier *bool
	TrackLinks    *bool
	KeepMedia     *bool // false: what is still being fetched is not kept, either
}
