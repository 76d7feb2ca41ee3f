package official

import (
	"context"
	"time"

	"puntuale"
)

// Store has the methods of a store that the connector needs.
type Store interface {
	// SealedKeys returns the session's client and its sealed keys. The keys are nil if the session has none. Codes:
	// not_found (also if the session is not of type Official, or is a sandbox).
	SealedKeys(ctx context.Context, session puntuale.SessionID) (puntuale.ClientID, []byte, error)

	// ForgetKeys removes the session's sealed keys.
	ForgetKeys(ctx context.Context, session puntuale.SessionID) error

	// ReplyWindowEnd returns the time until which the person may get free text. Zero: the person never wrote.
	ReplyWindowEnd(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, phone string) (time.Time, error)

	// OfficialPauses returns the end of the person's 24-hour window, and the pauses that may hold back a message to the
	// person. Without a person, it returns only pauses of the number and its business.
	OfficialPauses(ctx context.Context, k puntuale.PauseKey) (windowEnd time.Time, all []puntuale.OfficialPause, err error)

	// KeepOfficialPauses stores pauses of one client. Of two pauses with the same key, the one with the later refusal counts.
	KeepOfficialPauses(ctx context.Context, all []puntuale.OfficialPause) error

	// EndOfficialPauses ends the pauses of a session and of its business with this scope and subject. Kind 0 means all
	// pauses, except those for marketing to single persons, and those with which Meta stopped Direct Send.
	EndOfficialPauses(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, account string, scope puntuale.PauseKind, subject string) error

	// OfficialWays returns the settings of a session, and what Meta's answers say about the ways of its messages. Codes:
	// not_found.
	OfficialWays(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, now time.Time) (puntuale.OfficialWays, error)

	// NoteDirectSend stores that Meta took a message by Direct Send. If the store knows this already, it changes nothing.
	NoteDirectSend(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, at time.Time) error

	// NoteOptOut stores that the session's business told Meta not to change how messages look. Zero: it may change them.
	NoteOptOut(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, at time.Time) error

	// Addressed returns the people that the session wrote to outside their 24-hour windows, since the given time. For
	// each person it returns the latest time at which the session did this. Addressed reads all that the client sent
	// since the given time, so call it only when a session opens.
	// HealthReports returns what Meta said about the number and the business of a session.
	HealthReports(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID) ([]puntuale.HealthReport, error)

	// KeepHealth stores reports of one client. A report that is older than what the store has about the same subject
	// changes nothing. A new limit counts for all sessions of the portfolio.
	KeepHealth(ctx context.Context, all []puntuale.HealthReport, now time.Time) error

	// ConfirmHealth stores which reports Meta's answer confirms, see [puntuale.HealthReport.ConfirmedBy]. If Meta says that
	// the number can send, it forgets reports of yesterday.
	ConfirmHealth(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, can string, now time.Time) error

	// Addressed returns the people that the session's business, with all its numbers, wrote to outside their 24-hour
	// windows, since the given time. For each person it returns the latest time at which the business did this. Addressed
	// reads all that the client sent since the given time.
	Addressed(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, since time.Time) (map[string]time.Time, error)

	// Upload returns the network's id of a file that was uploaded before and is still usable at the time now. It
	// returns "" if there is none.
	Upload(ctx context.Context, u puntuale.Upload, now time.Time) (string, error)

	// KeepUpload stores the id. The id is valid until the time expiresAt. If id is "", KeepUpload deletes the stored
	// id.
	KeepUpload(ctx context.Context, u puntuale.Upload, id string, expiresAt time.Time) error

	// NoteOfficial stores Meta's ids of the session's number and business. "" means unknown.
	NoteOfficial(ctx context.Context, session puntuale.SessionID, number, account string) error

	// OfficialSessions returns the sessions with Meta's id of a number. With number "", it returns the sessions of a
	// business. With a number that begins with +, it returns the business's sessions that show this number.
	OfficialSessions(ctx context.Context, number, account string) ([]puntuale.SessionID, error)

	// KeepNetworkTemplates stores a list of templates. The argument at is when the list was read. The list replaces the
	// templates of the client's business. Templates that are not in the list become DELETED. The list does not undo the
	// effect of an event that came after the time in the argument at. If problem is not zero, problem is stored instead
	// of the list. If account is not the business of the session, nothing is stored.
	KeepNetworkTemplates(ctx context.Context, session puntuale.SessionID, account string, at time.Time, all []puntuale.NetworkTemplate, problem puntuale.Reason) error

	// TellNetworkTemplate stores an event of a template. It does nothing if the store has later data about it, or if the
	// client has no session of the business.
	TellNetworkTemplate(ctx context.Context, n puntuale.TemplateEvent) error

	// OpenTemplateRequests returns the requests about templates that the session's calls must finish, the oldest first.
	OpenTemplateRequests(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, limit int) ([]puntuale.TemplateRequest, error)

	// ProgressTemplateRequest stores State, Upload, Called and Due of an open request whose state is before. It returns
	// false if the request has another state.
	ProgressTemplateRequest(ctx context.Context, r puntuale.TemplateRequest, before puntuale.TemplateRequestState) (bool, error)

	// EndTemplateRequest stores the end of an open request, and the template as it is now. nil: it did not change.
	EndTemplateRequest(ctx context.Context, r puntuale.TemplateRequest, now *puntuale.NetworkTemplate) error

	// TemplateLanguages returns the languages of a template of the client's business, and the language of the contact with
	// this phone ("" if it is not known).
	TemplateLanguages(ctx context.Context, client puntuale.ClientID, account, name, phone string) ([]puntuale.NetworkTemplate, string, error)

	// NetworkTemplate returns what the store knows about a template of the client. It returns false if the store does
	// not know the template.
	NetworkTemplate(ctx context.Context, client puntuale.ClientID, account, name, language string) (puntuale.NetworkTemplate, bool, error)
}
