package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/booking"
	"puntuale/internal/keyword"
)

// Confirmation is the confirmation of an opt-out.
type Confirmation struct {
	Client  puntuale.ClientID
	Session puntuale.SessionID
	Phone   string
	Text    string
	Key     string // identifies the opt-out: a second call with the same key sends nothing
}

// takeMessages stores messages that people wrote. It skips a message that an earlier call stored completely. If a
// message changes consent, the ledger and the blacklist change first. After that, pending marketing is cancelled, and
// the confirmation is sent. The store writes the message's keyed hash last. If the server crashes before this, and the
// network sends the message again, takeMessages does the rest. Each part has its effect only once.
//
// Few messages change consent. Therefore, the store first gets all messages in one call, and reads the settings in its
// transaction. If a message may change consent, the store refuses them ([puntuale.ErrConsentFirst]). In this case,
// consents handles the changes of consent first.
//
// A message that answers a question of a booking is treated alike ([puntuale.ErrAnswerFirst]): answers then changes the
// booking, and stores the message in the same transaction.
func (in *Intake) takeMessages(ctx context.Context, now time.Time, log sessionLog, all []puntuale.InboundMessage) error {
	taken := make([]puntuale.TakenMessage, len(all))
	found := make([]*booking.FoundAnswer, len(all)) // what the messages answer
	for i, m := range all {
		t := puntuale.TakenMessage{InboundMessage: m}
		if in.cfg.MessageMark != nil && m.ID != "" && !m.Group {
			t.Text = cut(m.Text)
			t.Mark = in.cfg.MessageMark(m.Client, m.Session, cmp.Or(m.Chat, m.Phone), m.ID) // uses the names in the network's report, so that a later alias does not change the keyed hash
			if !m.Own && m.Kind != puntuale.ReplyReaction && m.Kind != puntuale.ReplyCall {
				t.Says = func(words []string) bool { return keyword.In(keyword.Whole(t.Text), words) }
			}
			if speaks(m) {
				whole := keyword.Whole(t.Text)
				if in.cfg.Tap != nil && m.Payload != "" {
					t.Tap, _ = in.cfg.Tap(m.Client, m.Payload)
					m.Payload = cmp.Or(t.Tap.Payload, m.Payload)
					t.Payload = m.Payload
				}
				t.MayChangeConsent = func(set puntuale.ClientSettings) bool { return changeBy(whole, m, set) != 0 }
				t.Answers = func(a puntuale.AskedQuestions) bool {
					f, ok := booking.Match(whole, m, t.Tap, a, now)
					if found[i] = nil; ok && changeBy(whole, m, a.Settings) == 0 {
						found[i] = &f
					}
					return found[i] != nil
				}
			}
		}
		taken[i] = t
	}
	for {
		clear(found)
		stopped, err := in.cfg.Store.KeepInbound(ctx, now, taken)
		switch {
		case errors.Is(err, puntuale.ErrConsentFirst):
			err = in.consents(ctx, now, log, taken)
		case errors.Is(err, puntuale.ErrAnswerFirst):
			err = in.answers(ctx, now, log, taken, found)
		case err != nil:
			return fmt.Errorf("keep what people wrote: %w", err)
		default:
			if stopped > 0 {
				log().Info("a reply stopped messages", "messages", stopped)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// answers changes the bookings that the messages answer. Each message is stored in the transaction that changes its
// booking. If it is not clear which booking is meant, or the booking cannot be changed, the message is only stored, and
// people get a notice. found has what the store found so far.
func (in *Intake) answers(ctx context.Context, now time.Time, log sessionLog, all []puntuale.TakenMessage, found []*booking.FoundAnswer) error {
	changed := map[puntuale.BookingID]bool{}
	for i, f := range found {
		t := &all[i]
		if f == nil || t.Decided || changed[f.Booking] { // a second answer about a booking is looked up again, because the first closes questions
			continue
		}
		t.Decided, changed[f.Booking] = true, true
		if f.Several {
			t.Effect = puntuale.ReplyUnclear
			continue
		}
		t.InReplyTo, t.Matched, t.Button = f.Message, f.Matched, f.Button.Label
		if err := in.cfg.Store.StopByReply(ctx, now, *t); err != nil {
			return fmt.Errorf("stop what an answer stops: %w", err)
		}
		var err error = errNoBookings
		if in.cfg.Answer != nil {
			err = in.cfg.Answer(ctx, *t, *f)
		}
		switch puntuale.CodeOf(err) {
		case "":
		case puntuale.CodeInvalid, puntuale.CodeNotFound, puntuale.CodeForbidden, puntuale.CodeConflict:
			log().Warn("an answer could not change its booking", "booking_id", int64(f.Booking), "error", err)
			t.Effect = puntuale.ReplyUnclear
		default:
			return fmt.Errorf("answer a question: %w", err)
		}
	}
	return nil
}

var errNoBookings = puntuale.NotFound(puntuale.NoBooking)

// consents makes the changes of consent that the messages request, and sends the confirmations. After that, each
// message contains all names of the person. The store then accepts the messages.
func (in *Intake) consents(ctx context.Context, now time.Time, log sessionLog, all []puntuale.TakenMessage) error {
	settings := map[puntuale.ClientID]puntuale.ClientSettings{}
	for i := range all {
		t := &all[i]
		names, err := in.cfg.Store.Recipients(ctx, t.Client, t.Phone)
		if err != nil {
			return fmt.Errorf("find who wrote: %w", err)
		}
		if t.Names = names; t.Mark == "" {
			continue
		}
		set, ok := settings[t.Client]
		if !ok {
			if set, err = in.cfg.Store.SettingsOf(ctx, t.Client); err != nil {
				return fmt.Errorf("read a client's settings: %w", err)
			}
			settings[t.Client] = set
		}
		if t.Phone, t.Keep = puntuale.ShownName(names), set.KeepReplies; t.Decided {
			continue
		}
		if t.Effect, err = in.consent(ctx, now, log, *t, set); err != nil {
			return err
		}
	}
	return nil
}

// speaks reports whether the message is a person's text or pressed button, and not an own message of the client.
func speaks(m puntuale.InboundMessage) bool {
	return !m.Own && (m.Kind == puntuale.ReplyText || m.Kind == puntuale.ReplyButton)
}

// changeBy returns the change of consent that a text or the payload of a pressed button requests.
func changeBy(whole string, m puntuale.InboundMessage, set puntuale.ClientSettings) puntuale.ConsentChange {
	if change := changeOf(whole, set); change != 0 || m.Payload == "" {
		return change
	}
	return changeOf(keyword.Whole(m.Payload), set)
}

// changeOf returns the change of consent that the whole message requests, or 0 for none. It may return an undo even if
// the person never withdrew consent.
func changeOf(whole string, set puntuale.ClientSettings) puntuale.ConsentChange {
	words, _, _ := set.Words()
	switch {
	case keyword.In(whole, words):
		return puntuale.ConsentWithdraw
	case keyword.In(whole, puntuale.OptInWords()):
		return puntuale.ConsentUndo
	}
	return 0
}

// cut shortens a text to [puntuale.MaxReply] characters, and removes characters that databases do not accept.
func cut(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
	if utf8.RuneCountInString(text) <= puntuale.MaxReply {
		return text
	}
	return string([]rune(text)[:puntuale.MaxReply])
}

// consent makes the change of consent that a message requests, if there is one.
func (in *Intake) consent(ctx context.Context, now time.Time, log sessionLog, m puntuale.TakenMessage, set puntuale.ClientSettings) (puntuale.ReplyEffect, error) {
	if !speaks(m.InboundMessage) {
		return puntuale.ReplyNoEffect, nil
	}
	e := puntuale.ConsentEntry{Client: m.Client, ReplyMark: m.Mark, Consent: puntuale.Consent{
		Purpose: puntuale.PurposeMarketing, Source: puntuale.ConsentSourceReply, Words: m.Text, Message: m.ID, At: m.At,
	}}
	switch e.Change = changeBy(keyword.Whole(m.Text), m.InboundMessage, set); e.Change {
	case puntuale.ConsentWithdraw:
		e.Blacklist = optOutReason(m.Text)
	case puntuale.ConsentUndo:
	default:
		return puntuale.ReplyNoEffect, nil
	}
	switch seen, err := in.cfg.Store.Seen(ctx, m.Client, m.Mark); {
	case err != nil:
		return 0, fmt.Errorf("look whether a message was taken: %w", err)
	case seen: // the message was processed before, so it has no further effect
		return puntuale.ReplyNoEffect, nil
	}
	r, err := in.enter(ctx, now, log, m.Names, e)
	if err != nil {
		return 0, err
	}
	switch {
	case e.Change == puntuale.ConsentUndo && r.Change != 0:
		return puntuale.ReplyOptIn, nil
	case e.Change == puntuale.ConsentUndo:
		return puntuale.ReplyNoEffect, nil
	}
	if r.Changed && set.OptOutAnswer != "" && in.cfg.Confirm != nil {
		if err := in.cfg.Store.OpenWindows(ctx, now, m); err != nil {
			return 0, fmt.Errorf("open the window of an answer: %w", err)
		}
		c := Confirmation{Client: m.Client, Session: m.Session, Phone: m.Phone, Text: set.OptOutAnswer, Key: m.Mark}
		switch err := in.cfg.Confirm(ctx, c); {
		case puntuale.CodeOf(err) == puntuale.CodeUnavailable:
			return 0, fmt.Errorf("confirm an opt-out: %w", err)
		case err != nil:
			log().Warn("an opt-out could not be confirmed", "error", err)
		}
	}
	return puntuale.ReplyOptOut, nil
}

// optOutReason returns the reason of the blacklist entry for an opt-out with these words.
func optOutReason(words string) string {
	all := []rune(puntuale.OptOutReason + strings.TrimSpace(words))
	return string(all[:min(len(all), puntuale.MaxName)])
}

// enter changes the consent of a person under each of the person's names, and returns what changed. After a withdrawal
// it cancels pending marketing.
func (in *Intake) enter(ctx context.Context, now time.Time, log sessionLog, names []string, e puntuale.ConsentEntry) (result puntuale.ConsentResult, err error) {
	if e.At.After(now) {
		e.At = now
	}
	e.Entered = now
	for _, e.Phone = range names {
		e.Mark = func(name string) string { return in.cfg.Mark(e.Client, name) }
		r, err := in.cfg.Store.EnterConsent(ctx, e)
		if err != nil {
			return result, fmt.Errorf("enter what a person agreed to: %w", err)
		}
		if r.Changed || result.Change == 0 {
			result = r
		}
		if r.Changed {
			log().Info("a person changed their consent", "change", r.Change.String())
		}
		if !r.Applied || r.Change != puntuale.ConsentWithdraw {
			continue
		}
		cancelled, err := in.cfg.Store.CancelMarketing(ctx, e.Client, e.Phone, now)
		if err != nil {
			return result, fmt.Errorf("cancel marketing: %w", err)
		}
		if cancelled > 0 {
			log().Info("an opt-out cancelled messages", "messages", cancelled)
		}
	}
	return result, nil
}

// preference stores a preference that a person set in WhatsApp. A preference is only about marketing, so a stop adds
// nothing to the blacklist.
func (in *Intake) preference(ctx context.Context, now time.Time, log sessionLog, p puntuale.Preference) error {
	names, err := in.cfg.Store.Recipients(ctx, p.Client, p.Phone)
	if err != nil {
		return fmt.Errorf("find whose preference it is: %w", err)
	}
	e := puntuale.ConsentEntry{Client: p.Client, Consent: puntuale.Consent{
		Purpose: puntuale.PurposeMarketing, Change: puntuale.ConsentUndo, Source: puntuale.ConsentSourcePreference, Words: p.Reason, At: p.At,
	}}
	if p.Stop {
		e.Change = puntuale.ConsentWithdraw
	}
	if in.cfg.MessageMark != nil { // a preference has no id, so two equal preferences of one person in the same second count as one
		e.ReplyMark = in.cfg.MessageMark(p.Client, p.Session, p.Phone, fmt.Sprintf("preference %t %d", p.Stop, p.At.Unix()))
	}
	_, err = in.enter(ctx, now, log, names, e)
	return err
}
