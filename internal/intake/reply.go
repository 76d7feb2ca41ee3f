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

// Confirmation is the one answer to an opt-out.
type Confirmation struct {
	Client  puntuale.ClientID
	Session puntuale.SessionID
	Phone   string
	Text    string
	Key     string // of the opt-out: a second call with the same key sends nothing
}

// takeMessages takes what people wrote. A message that was taken wholly before is passed over. The ledger of consent and the
// blacklist change first. Then pending marketing is cancelled, and the answer sent. The mark of a taken message
// comes last. So a crash in between repeats the rest, and each part has its effect once.
//
// Few messages change consent. So the store takes all at once, and reads the settings itself, in the transaction. It gives back
// what may change consent.
func (in *Intake) takeMessages(ctx context.Context, now time.Time, log sessionLog, all []puntuale.InboundMessage) error {
	taken := make([]puntuale.TakenMessage, len(all))
	for i, m := range all {
		t := puntuale.TakenMessage{InboundMessage: m}
		if in.cfg.MessageMark != nil && m.ID != "" && !m.Group {
			t.Text = cut(m.Text)
			t.Mark = in.cfg.MessageMark(m.Client, m.Session, cmp.Or(m.Chat, m.Phone), m.ID) // as it was told: an alias that is learnt later changes nothing
			if speaks(m) {
				whole := keyword.Whole(t.Text)
				t.Asks = func(set puntuale.ClientSettings) bool { return changeOf(whole, set) != 0 }
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

// consents makes the messages' changes of consent, with their answers. Afterwards nothing more is to be found out about the
// messages.
func (in *Intake) consents(ctx context.Context, now time.Time, log sessionLog, all []puntuale.TakenMessage) error {
	settings := map[puntuale.ClientID]puntuale.ClientSettings{}
	for i := range all {
		t := &all[i]
		names, err := in.cfg.Store.Recipients(ctx, t.Client, t.Session, t.Phone)
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

// speaks reports whether a person says something in words of their own, or by a button.
func speaks(m puntuale.InboundMessage) bool {
	return !m.Own && (m.Kind == puntuale.ReplyText || m.Kind == puntuale.ReplyButton)
}

// changeOf is the change of consent that a whole message stands for; 0: none. Undo is also what a person writes who never
// withdrew.
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

// cut bounds a text, and removes characters that databases do not accept.
func cut(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
	if utf8.RuneCountInString(text) <= puntuale.MaxReply {
		return text
	}
	return string([]rune(text)[:puntuale.MaxReply])
}

// consent makes the change of consent that a message stands for, if any.
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
	case seen: // the message was taken before, so it has no effect now
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

// optOutReason is the reason of a blacklist entry.
func optOutReason(words string) string {
	all := []rune(puntuale.OptOutReason + strings.TrimSpace(words))
	return string(all[:min(len(all), puntuale.MaxName)])
}

// enter changes the consent of a person under each name, and answers what the change did. After a withdrawal it cancels
// pending marketing.
func (in *Intake) enter(ctx context.Context, now time.Time, log sessionLog, names []string, e puntuale.ConsentEntry) (did puntuale.ConsentResult, err error) {
	if e.At.After(now) {
		e.At = now
	}
	e.Entered = now
	for _, e.Phone = range names {
		e.Mark = in.cfg.Mark(e.Client, e.Phone)
		r, err := in.cfg.Store.EnterConsent(ctx, e)
		if err != nil {
			return did, fmt.Errorf("enter what a person agreed to: %w", err)
		}
		if r.Changed || did.Change == 0 {
			did = r
		}
		if r.Changed {
			log().Info("a person changed their consent", "change", r.Change.String())
		}
		if !r.Applied || r.Change != puntuale.ConsentWithdraw {
			continue
		}
		cancelled, err := in.cfg.Store.CancelMarketing(ctx, e.Client, e.Phone, now)
		if err != nil {
			return did, fmt.Errorf("cancel marketing: %w", err)
		}
		if cancelled > 0 {
			log().Info("an opt-out cancelled messages", "messages", cancelled)
		}
	}
	return did, nil
}

// preference takes what a person set in WhatsApp. It speaks of marketing only, so the blacklist stays as it is.
func (in *Intake) preference(ctx context.Context, now time.Time, log sessionLog, p puntuale.Preference) error {
	names, err := in.cfg.Store.Recipients(ctx, p.Client, p.Session, p.Phone)
	if err != nil {
		return fmt.Errorf("find whose preference it is: %w", err)
	}
	e := puntuale.ConsentEntry{Client: p.Client, Consent: puntuale.Consent{
		Purpose: puntuale.PurposeMarketing, Change: puntuale.ConsentUndo, Source: puntuale.ConsentSourcePreference, Words: p.Reason, At: p.At,
	}}
	if p.Stop {
		e.Change = puntuale.ConsentWithdraw
	}
	if in.cfg.MessageMark != nil { // a preference has no id, so two equal ones in the same second count as one
		e.ReplyMark = in.cfg.MessageMark(p.Client, p.Session, p.Phone, fmt.Sprintf("preference %t %d", p.Stop, p.At.Unix()))
	}
	_, err = in.enter(ctx, now, log, names, e)
	return err
}
