package control

import (
	"context"
	"fmt"
	"strconv"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/keyword"
)

// Settings returns the client's settings, such as the rules for contacts, consent and replies.
func (c *Client) Settings(ctx context.Context) (puntuale.ClientSettings, error) {
	s, err := c.tenant.Settings(ctx)
	if err != nil {
		return s, fmt.Errorf("read settings: %w", err)
	}
	return s, nil
}

// UpdateSettings changes the settings that the patch contains. If known is not empty, it must contain the stored
// version. found contains the faults that the calling package already found in the request. Codes: invalid,
// precondition_failed.
func (c *Client) UpdateSettings(ctx context.Context, p puntuale.SettingsPatch, known []puntuale.Version, found ...puntuale.Fault) (puntuale.ClientSettings, error) {
	f := request.Faults(found)
	CheckSettings(&f, p)
	if err := f.Err(); err != nil {
		return puntuale.ClientSettings{}, err
	}
	s, err := c.tenant.UpdateSettings(ctx, p, known...)
	if err != nil {
		return s, fmt.Errorf("change settings: %w", err)
	}
	return s, nil
}

const faultSettingNoWord puntuale.ReasonCode = "setting.no_word"

// CheckSettings adds a fault for each value in a patch that is not allowed.
func CheckSettings(f *request.Faults, p puntuale.SettingsPatch) {
	if p.KeepReplies != nil {
		f.Word("body.keep_replies", string(*p.KeepReplies), string(puntuale.KeepKnownReplies), string(puntuale.KeepAllReplies), string(puntuale.KeepNoReplies))
	}
	if p.Consent != nil {
		f.Word("body.consent", string(*p.Consent), string(puntuale.ConsentFree), string(puntuale.ConsentRequired))
	}
	checkWords(f, "body.opt_out_words", p.OptOutWords)
	checkWords(f, "body.confirm_words", p.ConfirmWords)
	checkWords(f, "body.cancel_words", p.CancelWords)
	if p.ButtonLine != nil {
		f.Text("body.button_line", *p.ButtonLine, puntuale.MaxOptOutWord)
	}
	if p.OptOutAnswer != nil {
		f.Text("body.opt_out_answer", *p.OptOutAnswer, puntuale.MaxText)
	}
	if p.TakeoverHours != nil && (*p.TakeoverHours < 0 || *p.TakeoverHours > puntuale.MaxTakeoverHours) {
		f.Add("body.takeover_hours", puntuale.FaultNotWholeInRange, *p.TakeoverHours, "0", strconv.Itoa(puntuale.MaxTakeoverHours))
	}
	if p.AutomatedMost != nil && (*p.AutomatedMost < 0 || *p.AutomatedMost > puntuale.MaxAutomatedMost) {
		f.Add("body.automated_most", puntuale.FaultNotWholeInRange, *p.AutomatedMost, "0", strconv.Itoa(puntuale.MaxAutomatedMost))
	}
}

func checkWords(f *request.Faults, name string, words *[]string) {
	if words == nil {
		return
	}
	f.Entries(name, len(*words), puntuale.MaxOptOutWords)
	for i, word := range *words {
		at := request.At(name, i)
		f.Text(at, word, puntuale.MaxOptOutWord)
		if keyword.Fold(word) == "" {
			f.Add(at, faultSettingNoWord, word)
		}
	}
}
