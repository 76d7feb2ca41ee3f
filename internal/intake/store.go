package intake

import (
	"context"
	"time"

	"puntuale"
)

// Store stores what networks report. A repeat of any call has no further effect.
type Store interface {
	// KeepReceipts stores receipts, and makes messages COMPLETED or FAILED as [puntuale.DeliveryStatus.Verdict] says. It changes
	// messages that are open or uncertain. A failure must contain the token of the present attempt. KeepReceipts also
	// changes COMPLETED messages that the network gave up, and FAILED messages that the network delivered. Cancelled
	// messages stay as they are.
	//
	// KeepReceipts counts the charge of a delivery for the message's campaign, once for each message. A failure gives
	// the credit back, and a later delivery takes it again. Receipts for messages that do not exist, or that belong
	// to another session, are skipped; unknown is their number.
	KeepReceipts(ctx context.Context, now time.Time, e []puntuale.DeliveryReceipt) (unknown int, err error)

	// KeepInbound opens windows for free text. If a sequence stops on a reply, KeepInbound cancels the messages of its
	// runs that started before the person wrote. KeepInbound stores each message once for its mark, as the client's
	// settings say. It returns how many messages it cancelled. After an error, some effects may be on disk; a repeat
	// with the same messages adds the missing ones. Errors: [puntuale.ErrConsentFirst], if MayChangeConsent returns true for a
	// message that is not stored yet; [puntuale.ErrAnswerFirst], if Answers does.
	KeepInbound(ctx context.Context, now time.Time, all []puntuale.TakenMessage) (cancelled int, err error)
	// StopByReply cancels what a message stops, without storing the message.
	StopByReply(ctx context.Context, now time.Time, m puntuale.TakenMessage) error

	// KeepAliases stores other names by which the network knows people.
	KeepAliases(ctx context.Context, all []puntuale.Alias) error

	// ChangeNumber moves all that is stored of a person to the new names.
	ChangeNumber(ctx context.Context, now time.Time, c puntuale.NumberChange) error

	// Recipients returns all names of the person who has the given name. The given name comes first.
	Recipients(ctx context.Context, client puntuale.ClientID, name string) ([]string, error)

	// TellNetworkTemplate is the method of Official's store.
	TellNetworkTemplate(ctx context.Context, n puntuale.TemplateEvent) error

	// Seen reports whether the message with this mark was processed completely before.
	Seen(ctx context.Context, client puntuale.ClientID, mark string) (bool, error)

	// SettingsOf reads a client's settings.
	SettingsOf(ctx context.Context, client puntuale.ClientID) (puntuale.ClientSettings, error)

	// EnterConsent adds a change to the ledger and changes the blacklist with it, in one transaction. A repeat with
	// the same ReplyMark returns the same result and changes nothing.
	EnterConsent(ctx context.Context, e puntuale.ConsentEntry) (puntuale.ConsentResult, error)

	// CancelMarketing cancels the pending marketing messages to the phone, in several transactions. It returns how
	// many messages it cancelled.
	CancelMarketing(ctx context.Context, client puntuale.ClientID, phone string, now time.Time) (int, error)

	// OpenWindows opens the 24-hour windows for all names of a message. It is called before KeepInbound, so that the
	// confirmation of an opt-out can leave.
	OpenWindows(ctx context.Context, now time.Time, m puntuale.TakenMessage) error
}
