package intake_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/intake"
	"puntuale/internal/store/storetest"
)

// TestTake stores every kind of report of a network. It also checks that no log contains a number or a person's words.
func TestTake(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const phone = "+393471112223"
			w := storetest.NewWorld(t, driver(t))
			c := w.Client(puntuale.AccountFull)
			var log bytes.Buffer
			mark := func(client puntuale.ClientID, phone string) string {
				return puntuale.MarkPrefix + client.String() + phone[1:]
			}
			in := intake.New(intake.Config{Store: w.Store, Mark: mark, MessageMark: messageMark, Clock: w.DB.Clock, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))})
			ctx := context.Background()
			ids := c.MustStart(phone, storetest.Begin, 2)
			c.MustSend(w.MustJoin(), storetest.Begin, ids[0])
			if err := c.UpdateSequence(ctx, puntuale.Sequence{ID: c.Sequence, Name: "s", StopOnReply: true, Steps: []puntuale.Step{{Text: "uno"}}}); err != nil {
				t.Fatal(err)
			}
			prefer := func(phone string) puntuale.Preference {
				return puntuale.Preference{Client: c.ID, Session: c.Session, Phone: phone, Stop: true, At: storetest.Begin, Reason: "non vuole"}
			}
			reported := puntuale.InboundBatch{
				Receipts: []puntuale.DeliveryReceipt{
					{MessageRef: puntuale.MessageRef{Client: c.ID, ID: ids[0]}, Session: c.Session, Token: 1, Kind: puntuale.ReceiptRead, At: storetest.Begin},
					{MessageRef: puntuale.MessageRef{Client: c.ID, ID: 1}, Session: c.Session, Token: 1, Kind: puntuale.ReceiptRead, At: storetest.Begin},
				},
				Messages:    []puntuale.InboundMessage{{Client: c.ID, Session: c.Session, Phone: phone, At: storetest.Begin}},
				Preferences: []puntuale.Preference{prefer(phone)},
			}
			for range 2 {
				if err := in.Take(ctx, c.Session, reported); err != nil {
					t.Fatal(err)
				}
			}
			if d := c.Detail(ids[0]); d.Read.IsZero() {
				t.Errorf("the receipt: %+v", d)
			}
			if d := c.Detail(ids[1]); d.State != puntuale.Cancelled {
				t.Errorf("after the reply: %v", d.State)
			}
			if windowEnd, err := w.ReplyWindowEnd(ctx, c.ID, c.Session, phone); err != nil || !windowEnd.Equal(storetest.Begin.Add(24*time.Hour)) {
				t.Errorf("the window: %v, %v", windowEnd, err)
			}
			if n := w.Int("select count(*) from blacklist where client_id = $1", c.ID); n != 0 {
				t.Errorf("%d entries in the blacklist: a preference speaks of marketing only", n)
			}
			if all, _, err := c.Consents(ctx, puntuale.Person{Names: []string{phone}, Mark: func(name string) string { return mark(c.ID, name) }}, puntuale.Page{}); err != nil || len(all) != 1 || all[0].Change != puntuale.ConsentWithdraw || all[0].Words != "non vuole" {
				t.Errorf("the ledger: %+v, %v", all, err)
			}
			for _, secret := range []string{phone[1:], "non vuole"} {
				if strings.Contains(log.String(), secret) {
					t.Errorf("the log holds %q: %s", secret, log.String())
				}
			}
			if !strings.Contains(log.String(), "messages=1") {
				t.Errorf("the log says nothing: %s", log.String())
			}
			w.DB.Clock.Advance(time.Hour)
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			for _, part := range []puntuale.InboundBatch{{Receipts: reported.Receipts}, {Messages: reported.Messages}, {Preferences: reported.Preferences}} {
				if err := in.Take(ctx, c.Session, part); err == nil {
					t.Errorf("what was not kept is taken as kept: %+v", part)
				}
			}
		})
	}
}
