//go:build !nosocket

package whatsapptest_test

import (
	"os"
	"testing"

	"go.mau.fi/whatsmeow/types/events"
	"go.uber.org/goleak"

	"puntuale/internal/connector/socket/whatsapptest"
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" { // the program under test; no check for leaks, because its connections end with the process
		os.Exit(m.Run())
	}
	// The library's reader hangs if a frame comes while its client disconnects (2026-09-21).
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.mau.fi/whatsmeow/socket.(*FrameSocket).frameComplete"))
}

// TestText: a client and a phone write to each other.
func TestText(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	anna := net.Phone("393330000002")
	shop := linked(t, net, net.Account("393330000001"))

	id := shop.sendText(anna.JID(), "ciao")
	message := anna.Await(t, whatsapptest.Text("ciao"))
	if message.ID != id || message.From != "393330000001" || message.Chat != "393330000001" || message.Kind != "text" || message.Copies != 1 {
		t.Errorf("the phone shows %+v", message)
	}
	delivered := await(shop, 0, func(r *events.Receipt) bool { return r.Type == "" })
	if delivered.MessageIDs[0] != id || delivered.Sender.User != anna.LID().User {
		t.Errorf("the receipt is %+v", delivered)
	}
	if err := anna.MarkRead(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	await(shop, 0, func(r *events.Receipt) bool { return r.Type == "read" && r.MessageIDs[0] == id })

	answer, err := anna.Reply(t.Context(), message, "eccomi")
	if err != nil {
		t.Fatal(err)
	}
	got := await(shop, 0, func(m *events.Message) bool { return m.Info.ID == answer })
	if text := got.Message.GetExtendedTextMessage(); text.GetText() != "eccomi" || text.GetContextInfo().GetStanzaID() != id || got.Info.SenderAlt.User != anna.Number() {
		t.Errorf("the answer is %+v", got)
	}
	anna.AwaitReceipt(t, answer, "inactive")
}
