package puntuale

import (
	"context"
	"regexp"
	"strings"
	"time"
)

// NetworkTemplate is a template as the network has it. Only templates may be sent to a person who did not write lately.
type NetworkTemplate struct {
	Account  string // the business that owns it, by the network's id
	Name     string
	Language string // as in [Approved]
	ID       string // the network's
	Status   TemplateStatus
	Category string // MARKETING, UTILITY, AUTHENTICATION
	Quality  string // GREEN, YELLOW, RED, UNKNOWN; "": unknown
	Reason   string // the network's code of why it is in this state; often ""
	Named    bool   // its placeholders have names; otherwise numbers
	Parts    []TemplatePart
	Changed  time.Time // when the network last reported the state
}

// TemplatePart is one part of a template: HEADER, BODY, FOOTER or BUTTONS. The JSON form is what stores keep.
type TemplatePart struct {
	Kind    string           `json:"type"`
	Format  string           `json:"format,omitempty"` // of a header: TEXT, IMAGE, VIDEO, DOCUMENT, LOCATION
	Text    string           `json:"text,omitempty"`   // with its placeholders as {{1}} or {{name}}
	Buttons []TemplateButton `json:"buttons,omitempty"`
}

// TemplateButton is one button of a template.
type TemplateButton struct {
	Kind string `json:"type"` // QUICK_REPLY, URL, PHONE_NUMBER, COPY_CODE and others
	Text string `json:"text,omitempty"`
	URL  string `json:"url,omitempty"` // with {{1}} at its variable end
}

// TemplateStatus is the network's status of a template, in the network's words.
type TemplateStatus string

const (
	TemplateApproved TemplateStatus = "APPROVED"
	TemplatePending  TemplateStatus = "PENDING"
	TemplateRejected TemplateStatus = "REJECTED"
	TemplatePaused   TemplateStatus = "PAUSED"
	TemplateDisabled TemplateStatus = "DISABLED"
	TemplateAppealed TemplateStatus = "IN_APPEAL"
	TemplateDeleted  TemplateStatus = "DELETED"
	TemplateDeleting TemplateStatus = "PENDING_DELETION"
	TemplateOverMost TemplateStatus = "LIMIT_EXCEEDED"
	TemplateUnknown  TemplateStatus = "UNKNOWN" // our own word: the network reported the template, but not its status
)

// TemplateUse is what a template's status allows.
type TemplateUse int8

const (
	TemplateUsable   TemplateUse = iota // also for unknown states: the network decides
	TemplateWaits                       // it may become usable again without a change: messages wait
	TemplateUnusable                    // it stays unusable: messages fail
)

// Use says what a status allows, and why the template cannot be used.
func (s TemplateStatus) Use() (TemplateUse, Reason) {
	switch s {
	case TemplatePaused:
		return TemplateWaits, Because(ReasonTemplatePaused)
	case TemplatePending:
		return TemplateWaits, Because(ReasonTemplatePending)
	case TemplateAppealed:
		return TemplateWaits, Because(ReasonTemplateAppealed)
	case TemplateOverMost:
		return TemplateWaits, Because(ReasonTemplatesOverMost)
	case TemplateDisabled:
		return TemplateUnusable, Because(ReasonTemplateDisabled)
	case TemplateRejected:
		return TemplateUnusable, Because(ReasonTemplateRejected)
	case TemplateDeleted, TemplateDeleting:
		return TemplateUnusable, Because(ReasonTemplateDeleted)
	}
	return TemplateUsable, Reason{}
}

// Why a template cannot be used.
const (
	ReasonTemplatePaused    ReasonCode = "template.paused"
	ReasonTemplateDisabled  ReasonCode = "template.disabled"
	ReasonTemplatePending   ReasonCode = "template.pending"
	ReasonTemplateAppealed  ReasonCode = "template.appealed"
	ReasonTemplateRejected  ReasonCode = "template.rejected"
	ReasonTemplateDeleted   ReasonCode = "template.deleted"
	ReasonTemplatesOverMost ReasonCode = "template.over_most" // the account has too many
	ReasonNoTemplate        ReasonCode = "template.none"      // in this language, or not approved
	ReasonTemplateValues    ReasonCode = "template.values"    // they do not fit
)

var templatePlaceholder = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_]+)\s*\}\}`)

// Part returns a part by its kind; the zero one where there is none.
func (t NetworkTemplate) Part(kind string) TemplatePart {
	for _, p := range t.Parts {
		if p.Kind == kind {
			return p
		}
	}
	return TemplatePart{}
}

// Placeholders returns what the sender must fill in, in order and each once: "1", "2" or names.
func (p TemplatePart) Placeholders() (all []string) { return placeholdersOf(p.Text) }

// Open reports whether the sender fills in the end of the button's address, its code or its payload.
func (b TemplateButton) Open() bool { return b.Kind == "COPY_CODE" || len(placeholdersOf(b.URL)) > 0 }

func placeholdersOf(text string) (all []string) {
	for _, found := range templatePlaceholder.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(" "+strings.Join(all, " ")+" ", " "+found[1]+" ") {
			all = append(all, found[1])
		}
	}
	return all
}

// TemplateEvent is one thing that the network tells of a template, outside of the list.
type TemplateEvent struct {
	Client   ClientID // who has a session of the business
	Account  string
	Name     string
	Language string
	ID       string
	Status   TemplateStatus // "": as before
	Quality  string         // likewise
	Category string         // likewise
	Reason   string         // with Status
	At       time.Time
}

// NetworkTemplates has the known templates of a session's business.
type NetworkTemplates struct {
	Number  string    // the network's id of the session's number; "" while it has no keys, or its node has not seen them
	Account string    // "": unknown which business it is
	Synced  time.Time // when the list was last read; zero: never
	Problem Reason    // why the last reading failed; zero if it succeeded
}

// NetworkTemplateStore keeps what the network tells of templates. The connector notes a session's business. The store keeps a business's
// templates for each client that has a session there.
type NetworkTemplateStore interface {
	// NoteOfficial keeps by which number and business, "" for unknown, a session is known to the network.
	NoteOfficial(ctx context.Context, session SessionID, number, account string) error

	// NoteLimit keeps how many people the session's business may write to first in 24 hours; 0: any number, or the network did not say. If
	// the number or the business changes, there is no limit until the next note.
	NoteLimit(ctx context.Context, session SessionID, limit int) error

	// OfficialSessions returns the sessions that are known by a number, or, with number "", that belong to a business.
	OfficialSessions(ctx context.Context, number, account string) ([]SessionID, error)

	// KeepNetworkTemplates stores a list, read at a moment, as the list of the client's business. Templates that are not in it become
	// DELETED. Events after the moment stay. If problem is not zero, it is stored instead of a list. A list of another business than the
	// session's is ignored.
	KeepNetworkTemplates(ctx context.Context, session SessionID, account string, at time.Time, all []NetworkTemplate, problem Reason) error

	// TellNetworkTemplate stores an event of a template, unless the store has a later one or the client has no session of the business.
	TellNetworkTemplate(ctx context.Context, n TemplateEvent) error

	// NetworkTemplate returns what is known of a template of the client's; false when the store does not know it.
	NetworkTemplate(ctx context.Context, client ClientID, account, name, language string) (NetworkTemplate, bool, error)
}

// NetworkTemplateTenant shows a client its templates. It is part of a [Tenant].
type NetworkTemplateTenant interface {
	// NetworkTemplates lists the templates of a session's business, by name and language. Codes: not_found, invalid (the cursor).
	NetworkTemplates(ctx context.Context, session SessionID, p Page) (NetworkTemplates, []NetworkTemplate, string, error)

	// NetworkTemplatesNamed returns the templates of a session's business that have one of the names.
	NetworkTemplatesNamed(ctx context.Context, session SessionID, names []string) ([]NetworkTemplate, error)
}
