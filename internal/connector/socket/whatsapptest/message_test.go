//go:build !nosocket

package whatsapptest_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"puntuale/internal/connector/socket/whatsapptest"
)

// TestMedia sends every kind of media and reads it on the phone.
func TestMedia(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	anna := net.Phone("393330000002")
	shop := linked(t, net, net.Account("393330000001"))
	content := strings.Repeat("every byte counts ", 1000)
	for kind, of := range map[string]whatsmeow.MediaType{
		"image": whatsmeow.MediaImage, "video": whatsmeow.MediaVideo, "audio": whatsmeow.MediaAudio, "voice": whatsmeow.MediaAudio, "document": whatsmeow.MediaDocument,
	} {
		up, err := shop.Upload(t.Context(), []byte(content), of)
		if err != nil {
			t.Fatal(err)
		}
		message := &waE2E.Message{}
		switch kind {
		case "image":
			message.ImageMessage = &waE2E.ImageMessage{Caption: proto.String("image"), Mimetype: proto.String("image/jpeg"), DirectPath: &up.DirectPath,
				MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256, FileLength: &up.FileLength}
		case "video":
			message.VideoMessage = &waE2E.VideoMessage{Caption: proto.String("video"), Mimetype: proto.String("video/mp4"), DirectPath: &up.DirectPath,
				MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256, FileLength: &up.FileLength, Seconds: proto.Uint32(7)}
		case "audio", "voice":
			message.AudioMessage = &waE2E.AudioMessage{Mimetype: proto.String("audio/ogg; codecs=opus"), DirectPath: &up.DirectPath, PTT: proto.Bool(kind == "voice"),
				MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256, FileLength: &up.FileLength}
		case "document":
			message.DocumentMessage = &waE2E.DocumentMessage{FileName: proto.String("listino.pdf"), Mimetype: proto.String("application/pdf"), DirectPath: &up.DirectPath,
				MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256, FileLength: &up.FileLength}
		}
		if _, err := shop.SendMessage(t.Context(), anna.JID(), message); err != nil {
			t.Fatal(err)
		}
		shown := anna.Await(t, func(m whatsapptest.Message) bool { return m.Kind == kind })
		if got, err := anna.Download(t.Context(), shown); err != nil || string(got) != content || shown.FileLength != uint64(len(content)) {
			t.Errorf("%s: %+v with %d bytes: %v", kind, shown, len(got), err)
		}
	}
	net.ForgetMedia()
	shown := anna.Await(t, func(m whatsapptest.Message) bool { return m.Kind == "document" })
	if _, err := anna.Download(t.Context(), shown); !errors.Is(err, whatsmeow.ErrMediaDownloadFailedWith404) || shown.FileName != "listino.pdf" {
		t.Errorf("forgotten media of %+v: %v", shown, err)
	}
	if _, err := shop.SendMessage(t.Context(), anna.JID(), &waE2E.Message{LocationMessage: &waE2E.LocationMessage{
		DegreesLatitude: proto.Float64(45.5), DegreesLongitude: proto.Float64(9.25), Name: proto.String("Bottega"), Address: proto.String("via Roma 1"),
	}}); err != nil {
		t.Fatal(err)
	}
	if m := anna.Await(t, func(m whatsapptest.Message) bool { return m.Kind == "location" }); m.Latitude != 45.5 || m.Longitude != 9.25 || m.Place != "Bottega, via Roma 1" {
		t.Errorf("the location is %+v", m)
	}
}

// TestGroup: three members of a group exchange messages. The group addresses its members first by LID, then by number.
func TestGroup(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"lid", "pn"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			net := whatsapptest.New(t)
			anna, bruno := net.Phone("393330000002"), net.Phone("393330000003")
			account := net.Account("393330000001")
			shop := linked(t, net, account)
			group := net.Group("Clienti", account, anna.Account, bruno.Account)
			if mode == "pn" {
				group.ByNumber()
			}
			id := shop.sendText(group.JID(), "a tutti")
			for _, phone := range []*whatsapptest.Phone{anna, bruno} {
				message := phone.Await(t, whatsapptest.ID(id))
				if message.Chat != group.ID() || message.From != account.Number() || message.Text != "a tutti" {
					t.Errorf("%s shows %+v", phone.Number(), message)
				}
				if err := phone.MarkRead(t.Context(), message); err != nil {
					t.Fatal(err)
				}
				for _, kind := range []types.ReceiptType{"", "read"} {
					await(shop, 0, func(r *events.Receipt) bool {
						return r.Type == kind && r.MessageIDs[0] == id && r.Chat == group.JID() && (r.Sender.User == phone.LID().User || r.Sender.User == phone.Number())
					})
				}
			}
			answer, err := bruno.Send(t.Context(), group.JID().String(), "presente")
			if err != nil {
				t.Fatal(err)
			}
			await(shop, 0, func(m *events.Message) bool { return m.Info.ID == answer && m.Info.Chat == group.JID() })
			if m := anna.Await(t, whatsapptest.ID(answer)); m.From != bruno.Number() {
				t.Errorf("shown as %+v", m)
			}
		})
	}
}

// TestInvitation finds a group by its invitation code of 22 characters. An account that is not a member cannot write to
// the group.
func TestInvitation(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	account, anna := net.Account("393330000001"), net.Phone("393330000002")
	shop := linked(t, net, account)
	group := net.Group("Clienti", anna.Account)
	code := group.Code()
	if info, err := shop.GetGroupInfoFromLink(t.Context(), code); err != nil || len(code) != 22 || info.JID != group.JID() || info.Name != "Clienti" {
		t.Errorf("the code %s is for %+v: %v", code, info, err)
	}
	if _, err := shop.SendMessage(t.Context(), group.JID(), &waE2E.Message{Conversation: proto.String("?")}); !errors.Is(err, whatsmeow.ErrNotInGroup) {
		t.Errorf("sent to a group of others: %v", err)
	}
	if joined, err := shop.JoinGroupWithLink(t.Context(), code); err != nil || joined != group.JID() {
		t.Errorf("joined %s: %v", joined, err)
	}
	anna.Await(t, whatsapptest.ID(shop.sendText(group.JID(), "eccoci")))
	if code == group.RevokeCode() {
		t.Error("the code is the same")
	}
	if _, err := shop.GetGroupInfoFromLink(t.Context(), code); !errors.Is(err, whatsmeow.ErrInviteLinkRevoked) {
		t.Errorf("a revoked code: %v", err)
	}
	if _, err := shop.GetGroupInfoFromLink(t.Context(), strings.Repeat("x", 22)); !errors.Is(err, whatsmeow.ErrInviteLinkInvalid) {
		t.Errorf("no code: %v", err)
	}
	if _, err := shop.GetGroupInfo(t.Context(), types.NewJID("120363999999999999", types.GroupServer)); !errors.Is(err, whatsmeow.ErrGroupNotFound) {
		t.Errorf("no group: %v", err)
	}
	group.Remove(account)
	await(shop, 0, func(e *events.GroupInfo) bool { return len(e.Leave) == 1 })
	if groups, err := shop.GetJoinedGroups(t.Context()); err != nil || len(groups) != 0 {
		t.Errorf("still in %+v: %v", groups, err)
	}
}

// TestGroupManaged makes a group from a client, and changes the group from that client.
func TestGroupManaged(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	anna, bruno := net.Phone("393330000002"), net.Phone("393330000003")
	shop := linked(t, net, net.Account("393330000001"))
	info, err := shop.CreateGroup(t.Context(), whatsmeow.ReqCreateGroup{Name: "Soci", Participants: []types.JID{anna.JID()}})
	if err != nil || len(info.Participants) != 2 {
		t.Fatalf("made %+v: %v", info, err)
	}
	before := shop.events()
	if _, err := shop.UpdateGroupParticipants(t.Context(), info.JID, []types.JID{bruno.JID()}, whatsmeow.ParticipantChangeAdd); err != nil {
		t.Fatal(err)
	}
	// Meanwhile the client changes its list of members, without a lock for messages to the group.
	await(shop, before, func(e *events.GroupInfo) bool { return len(e.Join) == 1 })
	if err := shop.SetGroupName(t.Context(), info.JID, "Soci e amici"); err != nil {
		t.Fatal(err)
	}
	if link, err := shop.GetGroupInviteLink(t.Context(), info.JID, false); err != nil || len(link) != len(whatsmeow.InviteLinkPrefix)+22 {
		t.Errorf("invited by %q: %v", link, err)
	}
	id := shop.sendText(info.JID, "benvenuti")
	anna.Await(t, whatsapptest.ID(id))
	bruno.Await(t, whatsapptest.ID(id))
	if groups, err := shop.GetJoinedGroups(t.Context()); err != nil || len(groups) != 1 || groups[0].Name != "Soci e amici" || len(groups[0].Participants) != 3 {
		t.Errorf("groups %+v: %v", groups, err)
	}
	if err := shop.LeaveGroup(t.Context(), info.JID); err != nil {
		t.Fatal(err)
	}
}

// TestOffline stores messages for a phone that is off. They arrive in the order in which they were sent.
func TestOffline(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	anna := net.Phone("393330000002")
	shop := linked(t, net, net.Account("393330000001"))
	anna.SwitchOff()
	var ids []string
	for range 5 {
		ids = append(ids, shop.sendText(anna.JID(), "dormi?"))
	}
	if shown := anna.Messages(); len(shown) != 0 {
		t.Errorf("a phone that is off shows %+v", shown)
	}
	if err := anna.SwitchOn(t.Context()); err != nil {
		t.Fatal(err)
	}
	anna.Await(t, whatsapptest.ID(ids[4]))
	shown := anna.Messages()
	for i, id := range ids {
		if shown[i].ID != id || shown[i].Copies != 1 {
			t.Errorf("message %d is %+v", i, shown[i])
		}
	}
}

// TestRedelivered breaks a client's connection just after a message came. The network sends the message again.
func TestRedelivered(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	account, anna := net.Account("393330000001"), net.Phone("393330000002")
	shop := linked(t, net, account)
	account.Deafen() // the server then does not get the client's acknowledgement
	id, err := anna.Send(t.Context(), account.Number(), "ci siete?")
	if err != nil {
		t.Fatal(err)
	}
	await(shop, 0, func(m *events.Message) bool { return m.Info.ID == id })
	if n := account.Pending(); n == 0 {
		t.Error("nothing is kept")
	}
	before := shop.events()
	account.Cut()
	await[*events.OfflineSyncCompleted](shop, before, nil)
	account.AwaitSettled(t)
	anna.AwaitReceipt(t, id, "inactive")
}

// TestRefusedByHandler uses a client that acknowledges a message only after handling it. Handling one message fails at
// first. Another message cannot be decrypted.
func TestRefusedByHandler(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	account, anna := net.Account("393330000001"), net.Phone("393330000002")
	c := newClient(t, net)
	if err := account.Adopt(c.Store); err != nil {
		t.Fatal(err)
	}
	if err := c.Store.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = openClient(t, net, whatsmeow.NewClient(c.Store, nil))
	c.SynchronousAck, c.EnableDecryptedEventBuffer = true, true
	var refused atomic.Int32
	c.AddEventHandlerWithSuccessStatus(func(event any) bool {
		m, ok := event.(*events.Message)
		return !ok || m.Message.GetConversation() != "uno" || refused.Add(1) > 1
	})
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	await[*events.Connected](c, 0, nil)
	if _, err := anna.Send(t.Context(), account.Number(), "uno"); err != nil {
		t.Fatal(err)
	}
	await(c, 0, func(m *events.Message) bool { return m.Message.GetConversation() == "uno" })
	if account.Pending() == 0 {
		t.Error("what was refused is not kept")
	}
	before := c.events()
	account.Cut()
	await(c, before, func(m *events.Message) bool { return m.Message.GetConversation() == "uno" })
	account.AwaitSettled(t)
	await(c, before, func(e *events.OfflineSyncPreview) bool { return e.Messages == 1 })

	net.Inject(whatsapptest.Fault{From: anna.Number(), Corrupt: true, Times: 1})
	if _, err := anna.Send(t.Context(), account.Number(), "due"); err != nil {
		t.Fatal(err)
	}
	await(c, before, func(m *events.Message) bool { return m.Message.GetConversation() == "due" && m.RetryCount == 1 })
}

// TestLookUp queries which numbers have WhatsApp.
func TestLookUp(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	anna := net.Account("393330000002")
	shop := linked(t, net, net.Account("393330000001"))
	found, err := shop.IsOnWhatsApp(t.Context(), []string{"+393330000002", "+393330000099"})
	if err != nil || len(found) != 2 || !found[0].IsIn || found[0].JID != anna.LID() || found[0].PhoneNumber != anna.JID() || found[1].IsIn || found[1].Query != "+393330000099" {
		t.Errorf("found %+v: %v", found, err)
	}
	info, err := shop.GetUserInfo(t.Context(), []types.JID{anna.JID(), number("393330000099")})
	if err != nil || info[anna.JID()].LID != anna.LID() || len(info[anna.JID()].Devices) != 1 || !info[number("393330000099")].LID.IsEmpty() {
		t.Errorf("found %+v: %v", info, err)
	}
	if _, err := shop.SendMessage(t.Context(), number("393330000099"), &waE2E.Message{Conversation: proto.String("?")}); err == nil {
		t.Error("sent to nobody")
	}
	asked := net.Queries("usync")
	if len(asked) != 3 || !slices.Equal(asked[0].About, []string{"393330000002", "393330000099"}) || asked[0].From != "393330000001" || asked[0].Tag != "usync" {
		t.Errorf("asked %+v", asked)
	}
	if sent := net.Messages("393330000001"); len(sent) != 0 {
		t.Errorf("sent %+v", sent)
	}
}

// TestRetryAfterRestart damages a message. The sending client restarts, and sends the message again from its store.
func TestRetryAfterRestart(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	account, anna := net.Account("393330000001"), net.Phone("393330000002")
	first := linked(t, net, account)
	anna.SwitchOff()
	net.Inject(whatsapptest.Fault{From: account.Number(), Times: 1, Corrupt: true})
	id := first.sendText(anna.JID(), "importante")
	first.Disconnect()
	if err := anna.SwitchOn(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := openClient(t, net, whatsmeow.NewClient(first.Store, nil)) // the new client has the first client's store but not its memory
	if err := second.Connect(); err != nil {
		t.Fatal(err)
	}
	if m := anna.Await(t, whatsapptest.ID(id)); m.Text != "importante" || m.Retries != 1 || anna.Undecryptable() != 1 {
		t.Errorf("the phone shows %+v", m)
	}
}

// TestReinstalled writes to a phone that lost its keys, first while the phone is off and then while it is on.
func TestReinstalled(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	anna, bruno := net.Phone("393330000002"), net.Phone("393330000003")
	shop := linked(t, net, net.Account("393330000001"))
	anna.Await(t, whatsapptest.ID(shop.sendText(anna.JID(), "uno")))
	if _, err := bruno.Send(t.Context(), anna.Number(), "anch'io"); err != nil {
		t.Fatal(err)
	}
	anna.Await(t, whatsapptest.Text("anch'io"))
	anna.SwitchOff()
	second := shop.sendText(anna.JID(), "due")
	if err := anna.Reinstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := anna.Await(t, whatsapptest.ID(second)); m.Text != "due" || m.Retries == 0 {
		t.Errorf("shown as %+v", m)
	}
	await[*events.IdentityChange](shop, 0, nil)
	anna.Await(t, whatsapptest.ID(shop.sendText(anna.JID(), "tre")))
	for _, text := range []string{"ancora", "e ancora"} {
		if _, err := bruno.Send(t.Context(), anna.Number(), text); err != nil {
			t.Fatal(err)
		}
		anna.Await(t, whatsapptest.Text(text))
	}
}

// TestLedger writes the messages that phones show to a file.
func TestLedger(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	if err := net.Ledger().Keep(path); err != nil {
		t.Fatal(err)
	}
	anna := net.Phone("393330000002")
	shop := linked(t, net, net.Account("393330000001"))
	id := shop.GenerateMessageID()
	for range 2 { // like a product that does not know whether the first send succeeded
		if _, err := shop.SendMessage(t.Context(), anna.JID(), &waE2E.Message{Conversation: proto.String("una volta")}, whatsmeow.SendRequestExtra{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	anna.Await(t, func(m whatsapptest.Message) bool { return m.ID == id && m.Copies == 2 })
	kept, err := whatsapptest.ReadLedger(path)
	if err != nil || len(kept) != 1 || kept[0].Copies != 2 || kept[0].Text != "una volta" {
		t.Errorf("kept %+v: %v", kept, err)
	}
}
