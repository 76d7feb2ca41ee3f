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
func (in *Intake) takeMessages(ctx context.Context, now time.Time, log sessionLog, all []puntuale.InboundMessage) error {
	taken := make([]puntuale.TakenMessage, len(all))
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
				t.MayChangeConsent = func(set puntuale.ClientSettings) bool { return changeOf(whole, set) != 0 }
			}
		}
		taken[i] = t
	}
	stopped, err := in.cfg.Store.KeepInbound(ctx, now, taken)
	if errors.Is(err, puntuale.ErrConsentFirst) {
		if err := in.consents(ctx, now, log, taken); err != nil {
			return err
		}
		stopped, err = in.cfg.Store.KeepInbound(ctx, now, taken)
	}
	if err != nil {
		return fmt.Errorf("keep what people wrote: %w", err)
	}
	if stopped > 0 {
		log().Info("a reply stopped messages", "messages", stopped)
	}
	return nil
}

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
		t.Phone, t.Keep = puntuale.ShownName(names), set.KeepReplies
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

// changeOf returns the change of consent that the whole message requests, or 0 for none. It may return an undo even if
// the person never withdrew consent.
func changeOf(whole string, set puntuale.ClientSettings) puntuale.ConsentChange {
	words := set.OptOutWords
	if words == nil {
		words = puntuale.DefaultOptOutWords()
	}
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
	switch e.Change = changeOf(keyword.Whole(m.Text), set); e.Change {
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
