//go:build !nosocket

package whatsapptest_test

import (
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types/events"

	"puntuale/internal/connector/socket/whatsapptest"
)

// TestExample shows how to use the package. Two clients are linked, one by QR code and one by a typed code. They
// exchange a text, its receipts, a picture and a group's message. The phones of both numbers are off.
func TestExample(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	shop, anna := net.Account("393330000001"), net.Account("393330000002")

	first := newClient(t, net) // openClient connects the client to the network
	if err := first.Connect(); err != nil {
		t.Fatal(err)
	}
	code := await[*events.QR](first, 0, nil).Codes[0]
	if err := shop.ScanQR(t.Context(), code); err != nil {
		t.Fatal(err)
	}
	await[*events.Connected](first, 0, nil)

	second := newClient(t, net)
	if err := second.Connect(); err != nil {
		t.Fatal(err)
	}
	await[*events.QR](second, 0, nil)
	typed, err := second.PairPhone(t.Context(), anna.Number(), true, whatsmeow.PairClientChrome, "Chrome (Linux)")
	if err != nil {
		t.Fatal(err)
	}
	if err := anna.EnterCode(t.Context(), typed); err != nil {
		t.Fatal(err)
	}
	await[*events.Connected](second, 0, nil)

	id := first.sendText(anna.JID(), "ciao")
	text := await(second, 0, func(m *events.Message) bool { return m.Info.ID == id })
	if text.Message.GetConversation() != "ciao" || text.Info.Chat != shop.LID() || text.Info.SenderAlt.ToNonAD() != shop.JID() {
		t.Errorf("received %+v", text)
	}
	await(first, 0, func(r *events.Receipt) bool {
		return r.MessageIDs[0] == id && r.Type == "inactive" && r.Chat == anna.LID()
	})
	if err := second.MarkRead(t.Context(), []string{id}, text.Info.Timestamp, text.Info.Chat, text.Info.Sender); err != nil {
		t.Fatal(err)
	}
	await(first, 0, func(r *events.Receipt) bool { return r.MessageIDs[0] == id && r.Type == "read" })

	id = second.sendImage(shop.JID(), picture)
	seen := await(first, 0, func(m *events.Message) bool { return m.Info.ID == id })
	if content, err := first.Download(t.Context(), seen.Message.GetImageMessage()); err != nil || string(content) != picture {
		t.Errorf("the picture is %q: %v", content, err)
	}

	group := net.Group("Clienti", shop, anna)
	id = first.sendText(group.JID(), "a tutti")
	told := await(second, 0, func(m *events.Message) bool { return m.Message.GetConversation() == "a tutti" }) // an event with the group's key comes before the text
	if told.Info.ID != id || told.Info.Chat != group.JID() || told.Info.Sender.User != shop.LID().User {
		t.Errorf("the group got %+v", told)
	}
	await(first, 0, func(r *events.Receipt) bool { return r.MessageIDs[0] == id && r.Chat == group.JID() })
}
