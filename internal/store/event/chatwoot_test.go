package event_test

import (
	"context"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestChatwootLink checks that a link gets events only while it has an inbox. A link is not among the client's
// webhooks. If the link changes to another account at Chatwoot, the stored conversations are deleted. An erasure
// deletes the person's conversation, and deleting the session deletes the link.
func TestChatwootLink(t *testing.T) {
	both(t, func(t *testing.T, w *storetest.World) {
		ctx := context.Background()
		c := w.Client(puntuale.AccountFull)
		node := w.MustJoin()
		asked := puntuale.ChatwootLink{Webhook: puntuale.Webhook{URL: "https://chat.example", Session: c.Session, Created: begin}, Chatwoot: puntuale.ChatwootInbox{Account: 3}}
		made, err := c.LinkChatwoot(ctx, asked, []byte("sealed"), begin)
		if err != nil || made.Active || made.Chatwoot.Inbox != 0 {
			t.Fatalf("linked: %+v, %v", made, err)
		}
		if _, err := w.ChatwootTarget(ctx, made.ID); puntuale.CodeOf(err) != puntuale.CodeNotFound {
			t.Errorf("a link that is not finished is a target: %v", err)
		}
		if made, err = c.FinishChatwoot(ctx, made.ID, 7); err != nil || !made.Active || made.Chatwoot != (puntuale.ChatwootInbox{Account: 3, Inbox: 7}) {
			t.Fatalf("finished: %+v, %v", made, err)
		}
		if all, err := c.Webhooks(ctx); err != nil || len(all) != 0 {
			t.Errorf("webhooks of the client: %+v, %v", all, err)
		}
		target, err := w.ChatwootTarget(ctx, made.ID)
		if err != nil || string(target.Secret.Present) != "sealed" || target.Chatwoot != made.Chatwoot || target.Client != c.ID {
			t.Errorf("the target: %+v, %v", target, err)
		}

		c.MustSend(node, begin, c.MustStart(phone, begin, 1)...)
		if _, err := w.NumberEvents(ctx, begin); err != nil {
			t.Fatal(err)
		}
		owned, err := w.OwnWebhooks(ctx, node, begin.Add(time.Minute))
		if err != nil || len(owned) != 1 || owned[0].ID != made.ID || owned[0].Chatwoot != made.Chatwoot {
			t.Errorf("the node sends for %+v, %v", owned, err)
		}

		talk := puntuale.ChatwootConversation{Webhook: made.ID, Client: c.ID, Phone: phone, Contact: 11, Conversation: 12, Posting: "puntuale/reply/1"}
		if err := w.StoreChatwootConversation(ctx, talk); err != nil {
			t.Fatal(err)
		}
		for _, at := range []time.Time{begin, begin.Add(time.Hour)} { // the second assignment must not change assigned_at
			if err := w.AssignChatwoot(ctx, made.ID, c.ID, phone, true, at); err != nil {
				t.Fatal(err)
			}
		}
		for _, unknown := range []string{"+393339999999", "no number"} { // the client knows nobody of this name, so nothing is stored
			if err := w.AssignChatwoot(ctx, made.ID, c.ID, unknown, true, begin); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.Int("select count(*) from chatwoot_conversation"); n != 1 {
			t.Errorf("%d conversations are stored", n)
		}
		if n := w.Int("select count(*) from chatwoot_conversation where client_id = $1 and assigned_at = $2", c.ID, begin.UnixMicro()); n != 1 {
			t.Errorf("%d conversations are assigned", n)
		}
		if got, err := w.ChatwootConversation(ctx, made.ID, c.ID, phone); err != nil || got != talk {
			t.Errorf("the conversation is %+v, %v", got, err)
		}
		if got, err := w.ChatwootPerson(ctx, made.ID, 12); err != nil || got != phone {
			t.Errorf("the person is %q, %v", got, err)
		}
		if err := w.AssignChatwoot(ctx, made.ID, c.ID, phone, false, begin); err != nil || w.Int("select count(*) from chatwoot_conversation where assigned_at <> 0") != 0 {
			t.Errorf("the conversation is assigned still: %v", err)
		}
		if _, err := c.Erase(ctx, puntuale.Erasure{Person: puntuale.Person{Names: []string{phone}, Mark: func(string) string { return "~m" }}, Day: storetest.Day, Now: begin}); err != nil {
			t.Fatal(err)
		}
		if got, err := w.ChatwootConversation(ctx, made.ID, c.ID, phone); err != nil || got.Conversation != 0 {
			t.Errorf("after the erasure the conversation is %+v, %v", got, err)
		}

		if err := w.StoreChatwootConversation(ctx, talk); err != nil {
			t.Fatal(err)
		}
		same, err := c.LinkChatwoot(ctx, asked, []byte("another"), begin)
		if err != nil || same.ID != made.ID || same.Active || same.Chatwoot.Inbox != 7 {
			t.Errorf("linked again: %+v, %v", same, err)
		}
		asked.Chatwoot.Account = 4
		if moved, err := c.LinkChatwoot(ctx, asked, []byte("another"), begin); err != nil || moved.Chatwoot.Inbox != 0 || w.Int("select count(*) from chatwoot_conversation") != 0 {
			t.Errorf("another account: %+v, %v", moved, err)
		}
		other, err := c.CreateSession(ctx, puntuale.Session{Name: "b", Type: puntuale.Socket, Sandbox: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		asked.Session = other
		gone, err := c.LinkChatwoot(ctx, asked, []byte("sealed"), begin)
		if err != nil || gone.ID == made.ID {
			t.Fatalf("another session: %+v, %v", gone, err)
		}
		if err := c.DeleteSession(ctx, other, false, 0, begin); err != nil {
			t.Fatal(err)
		}
		if err := w.Maintain(ctx, begin, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if n := w.Int("select count(*) from chatwoot_link where webhook_id = $1", gone.ID); n != 0 {
			t.Error("the link of a deleted session is there")
		}
		if err := c.UnlinkChatwoot(ctx, c.Session); err != nil || w.Int("select count(*) from webhook") != 0 {
			t.Errorf("unlinked: %v", err)
		}
	})
}
