//go:build !nosocket

package whatsapptest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"puntuale/internal/connector/socket/whatsapptest"
)

// TestTyping checks that a phone learns who is online and who is typing, and that the test can read these stanzas.
func TestTyping(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	net.Trace()
	anna := net.Phone("393330000002")
	shop := linked(t, net, net.Account("393330000001"))
	saw := &client{Client: anna.Client(), t: t, changed: make(chan struct{})}
	saw.AddEventHandler(saw.handle)
	if err := anna.Client().SubscribePresence(t.Context(), number("393330000001")); err != nil {
		t.Fatal(err)
	}
	await(saw, 0, func(p *events.Presence) bool { return p.Unavailable })
	shop.Store.PushName = "Bottega"
	if err := shop.SendPresence(t.Context(), types.PresenceAvailable); err != nil {
		t.Fatal(err)
	}
	await(saw, 0, func(p *events.Presence) bool { return !p.Unavailable })
	if err := shop.SendChatPresence(t.Context(), anna.LID(), types.ChatPresenceComposing, types.ChatPresenceMediaAudio); err != nil {
		t.Fatal(err)
	}
	await(saw, 0, func(p *events.ChatPresence) bool {
		return p.State == types.ChatPresenceComposing && p.Media == types.ChatPresenceMediaAudio
	})
	if shown := net.Stanzas(); len(shown) != 1 || shown[0].Tag != "chatstate" || shown[0].Chat != anna.Number() || shown[0].Type != "composing" {
		t.Errorf("stanzas %+v", shown)
	}
	if m := anna.Await(t, whatsapptest.ID(shop.sendText(anna.JID(), "ecco"))); m.Raw().GetConversation() != "ecco" {
		t.Errorf("shown %+v", m)
	}
}

// TestReceipts uses two phones. One is in the background, and the owner of the other plays voice messages.
func TestReceipts(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	owner, anna := net.Phone("393330000001"), net.Phone("393330000002")
	shop := linked(t, net, owner.Account)
	anna.InBackground(true)
	id := shop.sendText(anna.JID(), "ciao")
	await(shop, 0, func(r *events.Receipt) bool { return r.Type == "inactive" && r.MessageIDs[0] == id })
	message := anna.Await(t, whatsapptest.ID(id))
	if err := anna.MarkPlayed(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	await(shop, 0, func(r *events.Receipt) bool { return r.Type == types.ReceiptTypePlayed && r.MessageIDs[0] == id })
	owner.AwaitReceipt(t, id, "played") // the phone also gets receipts for messages that its owner wrote on other devices
	more, err := anna.Send(t.Context(), owner.Number(), "letto?")
	if err != nil {
		t.Fatal(err)
	}
	seen := owner.Await(t, whatsapptest.ID(more))
	if err := owner.MarkRead(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
	await(shop, 0, func(r *events.Receipt) bool {
		return r.IsFromMe && r.Type == "read" && slices.Contains(r.MessageIDs, more)
	})
	if _, err := shop.SetPrivacySetting(t.Context(), types.PrivacySettingTypeReadReceipts, types.PrivacySettingNone); err != nil {
		t.Fatal(err)
	}
	if nacks := net.Nacks(); len(nacks) != 0 {
		t.Errorf("refused: %q", nacks)
	}
}

// TestMembers changes the members of a group, and cuts all connections in between.
func TestMembers(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	account, anna, bruno := net.Account("393330000001"), net.Phone("393330000002"), net.Phone("393330000003")
	shop := linked(t, net, account)
	group := net.Group("Clienti", account, anna.Account)
	anna.Await(t, whatsapptest.ID(shop.sendText(group.JID(), "in due")))
	group.Add(bruno.Account)
	await(shop, 0, func(g *events.GroupInfo) bool { return len(g.Join) == 1 })
	bruno.Await(t, whatsapptest.ID(shop.sendText(group.JID(), "in tre")))
	before := shop.events()
	net.CutAll()
	await[*events.Connected](shop, before, nil)
	if _, err := shop.UpdateGroupParticipants(t.Context(), group.JID(), []types.JID{anna.LID()}, whatsmeow.ParticipantChangePromote); err != nil {
		t.Fatal(err)
	}
	if _, err := shop.UpdateGroupParticipants(t.Context(), group.JID(), []types.JID{bruno.LID()}, whatsmeow.ParticipantChangeRemove); err != nil {
		t.Fatal(err)
	}
	if info, err := shop.GetGroupInfo(t.Context(), group.JID()); err != nil || len(info.Participants) != 2 || !info.Participants[1].IsAdmin {
		t.Errorf("the group is %+v: %v", info, err)
	}
	if link, err := shop.GetGroupInviteLink(t.Context(), group.JID(), true); err != nil || !strings.HasSuffix(link, group.Code()) {
		t.Errorf("invited by %s: %v", link, err)
	}
}

// TestStrictHTTP shows that an HTTP request to an unknown address fails the test.
func TestStrictHTTP(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	for _, address := range []string{"https://graph.example.com/", "https://web.whatsapp.com/status", "https://mmg.whatsapp.net/x", "https://mmg.whatsapp.net/v/t62/image/x.enc"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := net.HTTPClient().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if unknown := net.Forgive(); response.StatusCode < 400 || len(unknown) != 1 || !strings.Contains(unknown[0], address) {
			t.Errorf("%s: %d, unknown %q", address, response.StatusCode, unknown)
		}
	}
}
