package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/booking"
	"puntuale/internal/control"
	"puntuale/internal/store/storetest"
)

// replyLimits are the limits of calls about replies, consent, and drafts of templates.
var replyLimits = []limit{
	{"AnswerFromSandbox", "invalid body.phone body.text", func(ctx context.Context, w *limited) error {
		_, err := w.client.AnswerFromSandbox(ctx, control.SandboxReply{Phone: nul, Text: long, Session: w.session})
		return err
	}},
	{"AddConsent", "invalid body.phone body.purpose body.change body.source body.words", func(ctx context.Context, w *limited) error {
		_, err := w.client.AddConsent(ctx, control.ConsentCall{Phone: nul, Purpose: long, Change: long, Source: long, Words: long}, control.Once[puntuale.Consent]{})
		return err
	}},
	{"AddConsent", "invalid body.purpose body.change body.source", func(ctx context.Context, w *limited) error {
		_, err := w.client.AddConsent(ctx, control.ConsentCall{Phone: "3331234567"}, control.Once[puntuale.Consent]{})
		return err
	}},
	{"Consents", "invalid query.phone query.limit query.cursor", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Consents(ctx, nul, wide)
		return sorted(err, "query.phone", "query.limit", "query.cursor")
	}},
	{"ConsentStatuses", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.ConsentStatuses(ctx, nul+long)
		return err
	}},
	{"MarketingRefused", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.MarketingRefused(ctx, nul, long)
		return err
	}},
	{"Replies", "invalid query.phone query.limit query.cursor", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Replies(ctx, nul, true, wide)
		return sorted(err, "query.phone", "query.limit", "query.cursor")
	}},
	{"Thread", "invalid query.phone query.limit query.cursor", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Thread(ctx, nul, wide)
		return sorted(err, "query.phone", "query.limit", "query.cursor")
	}},
	{"Conversations", saysWide, func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Conversations(ctx, true, wide)
		return err
	}},
	{"Conversation", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.Conversation(ctx, nul+long)
		return err
	}},
	{"MarkRead", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.MarkRead(ctx, nul+long, math.MaxInt64)
		return err
	}},
	{"MarkReadAsked", "invalid body.phone body.last", func(ctx context.Context, w *limited) error {
		_, err := w.client.MarkReadAsked(ctx, nul, long)
		return err
	}},
	{"ReplyWindowEnd", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.ReplyWindowEnd(ctx, math.MaxInt64, nul+long)
		return err
	}},
	{"Person", "invalid body.phone", func(ctx context.Context, w *limited) error {
		_, err := w.client.Person(ctx, long)
		return err
	}},
	{"Answer", "invalid body.phone body.text", func(ctx context.Context, w *limited) error {
		_, err := w.client.Answer(ctx, control.SingleCall{Phone: nul, Fields: map[string]json.RawMessage{"text": json.RawMessage(`"` + long + `"`)}})
		return err
	}},
	{"Send", "invalid body.purpose", func(ctx context.Context, w *limited) error {
		_, err := w.client.Send(ctx, control.SingleCall{Phone: "3331234567", Purpose: nul, Fields: map[string]json.RawMessage{"text": json.RawMessage(`"a"`)}})
		return err
	}},
	{"AnswerBooking", "not_found", func(ctx context.Context, w *limited) error {
		return w.client.AnswerBooking(ctx, puntuale.TakenMessage{}, booking.FoundAnswer{Question: puntuale.Question{Reference: long}})
	}},
	{"UpdateSettings", "invalid body.keep_replies body.consent body.opt_out_words body.opt_out_answer body.takeover_hours body.automated_most", func(ctx context.Context, w *limited) error {
		_, err := w.client.UpdateSettings(ctx, puntuale.SettingsPatch{
			KeepReplies: new(puntuale.KeepReplies(nul)), Consent: new(puntuale.ConsentRule(long)), OptOutWords: &many, OptOutAnswer: new(long), TakeoverHours: new(math.MaxInt), AutomatedMost: new(-1),
		}, nil)
		return err
	}},
	{"UpdateSettings", "invalid body.opt_out_words[0] body.opt_out_words[1]", func(ctx context.Context, w *limited) error {
		_, err := w.client.UpdateSettings(ctx, puntuale.SettingsPatch{OptOutWords: &[]string{"!?", long}}, nil)
		return err
	}},
	{"CreateNetworkTemplate", saysDraft, func(ctx context.Context, w *limited) error {
		_, err := w.client.CreateNetworkTemplate(ctx, w.official, longDraft)
		return err
	}},
	{"LintTemplate", saysDraft, func(ctx context.Context, w *limited) error {
		_, err := w.client.LintTemplate(ctx, w.official, longDraft)
		return err
	}},
	{"EditNetworkTemplate", "not_found", func(ctx context.Context, w *limited) error { // the same checks follow, for a template that there is
		_, err := w.client.EditNetworkTemplate(ctx, w.official, long, longDraft)
		return err
	}},
}

var longDraft = control.NewDraft{TemplateDraft: puntuale.TemplateDraft{
	Name: long, Language: long, Category: long, Text: long, Footer: long, Header: &puntuale.DraftHeader{Kind: "text", Text: long},
	Buttons: []puntuale.DraftButton{{Kind: "quick_reply", Text: long}},
}}

const saysDraft = "invalid body.name body.language body.category body.text body.header.text body.footer body.buttons[0].text"

// slotted is a network with one file. open counts the files that were not closed yet: each has a slot of its client.
type slotted struct {
	io.Reader
	open int
}

func (s *slotted) OpenMedia(context.Context, puntuale.Session, puntuale.ReplyMedia, int64) (*puntuale.ReplyFile, error) {
	s.open++
	s.Reader = strings.NewReader("file")
	return &puntuale.ReplyFile{ReadCloser: s, Size: 4}, nil
}

func (s *slotted) Close() error {
	s.open--
	return nil
}

// TestScannedFilesKeepTheirSlots: a file that the virus scanner saw has its slot until its reader ends, because its copy takes
// disk so long. A file that is refused returns the slot.
func TestScannedFilesKeepTheirSlots(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	w := newLimited(t, db)
	network, store, finding, away := &slotted{}, db.Open(t), "", error(nil)
	c := control.New(control.Config{Tenants: store, Devices: store, Maintenance: store, Clock: db.Clock, Opener: network, Scan: func(_ context.Context, content io.Reader) (string, error) {
		_, err := io.Copy(io.Discard, content)
		return finding, errors.Join(err, away)
	}})
	id, err := puntuale.ParseID[puntuale.ClientID](w.id)
	if err != nil {
		t.Fatal(err)
	}
	session, err := puntuale.ParseID[puntuale.SessionID](w.session)
	if err != nil {
		t.Fatal(err)
	}
	client, err := c.OfNetwork(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	reply := puntuale.Reply{Session: session, Media: &puntuale.ReplyMedia{}}
	f, err := client.OpenMedia(t.Context(), reply)
	if err != nil {
		t.Fatal(err)
	}
	if network.open != 1 {
		t.Errorf("%d slots while a copy is read", network.open)
	}
	if content, err := io.ReadAll(f); err != nil || string(content) != "file" {
		t.Errorf("%q, %v", content, err)
	}
	if err := f.Close(); err != nil || network.open != 0 {
		t.Errorf("%d slots after its end, %v", network.open, err)
	}
	finding = "Eicar"
	if _, err := client.OpenMedia(t.Context(), reply); puntuale.CodeOf(err) != puntuale.CodeGone || network.open != 0 {
		t.Errorf("a virus: %d slots, %v", network.open, err)
	}
	away = errors.New("the scanner does not answer")
	if _, err := client.OpenMedia(t.Context(), reply); err == nil || network.open != 0 {
		t.Errorf("no scanner: %d slots, %v", network.open, err)
	}
}
