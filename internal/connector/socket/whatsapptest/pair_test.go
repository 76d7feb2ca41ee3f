//go:build !nosocket

package whatsapptest_test

import (
	"errors"
	"strings"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"puntuale/internal/connector/socket/whatsapptest"
)

// TestPairByCode links a client by the code of 8 characters that the client shows. A wrong code does not link the
// client.
func TestPairByCode(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	shop := net.Account("393330000001")
	c := newClient(t, net)
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	await[*events.QR](c, 0, nil)
	if err := shop.EnterCode(t.Context(), "ABCD-EFGH"); err == nil {
		t.Error("a code was taken before there was one")
	}
	if _, err := c.PairPhone(t.Context(), "+39 333 000 0001", true, whatsmeow.PairClientChrome, "Puntuale"); !errors.Is(err, whatsmeow.ErrIQBadRequest) {
		t.Errorf("a name that is no browser's: %v", err)
	}
	code, err := c.PairPhone(t.Context(), "+39 333 000 0001", true, whatsmeow.PairClientChrome, "Chrome (Linux)")
	if err != nil {
		t.Fatal(err)
	}
	wrong := "1" + code[1:]
	if code[0] == '1' {
		wrong = "2" + code[1:]
	}
	if err := shop.EnterCode(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong code: %v", err)
	}
	if code, err = c.PairPhone(t.Context(), shop.Number(), true, whatsmeow.PairClientChrome, "Chrome (Linux)"); err != nil {
		t.Fatal(err)
	}
	if err := net.Account("393330000009").EnterCode(t.Context(), code); err == nil {
		t.Error("another number's phone took the code")
	}
	if err := shop.EnterCode(t.Context(), strings.ToLower(code)); err != nil {
		t.Fatal(err)
	}
	success := await[*events.PairSuccess](c, 0, nil)
	await[*events.Connected](c, 0, nil)
	if success.ID.User != "393330000001" || success.LID.User != shop.LID().User || success.ID.Device != 1 {
		t.Errorf("linked as %s, %s", success.ID, success.LID)
	}
}

// TestCodes checks that each of the six QR codes links a waiting client, and only once.
func TestCodes(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	shop := net.Account("393330000001")
	c := newClient(t, net)
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	codes := await[*events.QR](c, 0, nil).Codes
	if len(codes) != 6 {
		t.Fatalf("%d codes", len(codes))
	}
	swapped := strings.Split(codes[0], ",")
	swapped[1], swapped[2] = swapped[2], swapped[1]
	for name, code := range map[string]string{"no code": "https://wa.me/393330000001", "other keys": strings.Join(swapped, ","), "unknown": strings.Replace(codes[0], "2@", "2@x", 1)} {
		if err := shop.ScanQR(t.Context(), code); err == nil {
			t.Errorf("%s: linked", name)
		}
	}
	if err := shop.ScanQR(t.Context(), codes[5]); err != nil {
		t.Fatal(err)
	}
	if err := shop.ScanQR(t.Context(), codes[0]); err == nil {
		t.Error("a client was linked twice")
	}
	await[*events.Connected](c, 0, nil)
	if devices := shop.Devices(); len(devices) != 2 || devices[1].ID != 1 || !devices[1].Online || devices[1].Platform == "" {
		t.Errorf("devices %+v", devices)
	}
}

// TestClientRefuses shows that a client that refuses its identity is not linked.
func TestClientRefuses(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	shop := net.Account("393330000001")
	c := newClient(t, net)
	c.PrePairCallback = func(types.JID, string, string) bool { return false }
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	code := await[*events.QR](c, 0, nil).Codes[0]
	if err := shop.ScanQR(t.Context(), code); err == nil {
		t.Error("linked")
	}
	await[*events.PairError](c, 0, nil)
	if devices := shop.Devices(); len(devices) != 1 {
		t.Errorf("devices %+v", devices)
	}
}

// TestPasskey links no client: first the phone is too old, then the account requires a passkey.
func TestPasskey(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	shop := net.Account("393330000001")
	shop.RequirePasskey(true)
	c := newClient(t, net)
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	code := await[*events.QR](c, 0, nil).Codes[0]
	shop.OldPhone(true)
	if err := shop.ScanQR(t.Context(), code); !errors.Is(err, whatsapptest.ErrOldPhone) {
		t.Fatalf("scanned: %v", err)
	}
	await[*events.QRScannedWithoutMultidevice](c, 0, nil)
	shop.OldPhone(false)
	if err := shop.ScanQR(t.Context(), code); !errors.Is(err, whatsapptest.ErrPasskey) {
		t.Fatalf("scanned: %v", err)
	}
	if asked := await[*events.PairPasskeyRequest](c, 0, nil); asked.PublicKey.RelyingPartID != "whatsapp.com" {
		t.Errorf("asked for %+v", asked.PublicKey)
	}
}

// TestRotatedCodes checks that codes become invalid in two cases: the client changed their secret, or nobody scanned a
// code in time.
func TestRotatedCodes(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	shop := net.Account("393330000001")
	shop.SetBusiness("Bottega")
	c := newClient(t, net)
	c.EnableAutoReconnect = false // reconnecting would read the store while the next pairing writes to it
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	codes := await[*events.QR](c, 0, nil).Codes
	net.RotateCodes()
	secrets := await[*events.RotateADVSecret](c, 0, nil)
	if err := shop.ScanQR(t.Context(), codes[0]); err == nil {
		t.Error("a code with an old secret linked")
	}
	await(c, 0, func(e *events.PairError) bool { return errors.Is(e.Error, whatsmeow.ErrPairInvalidDeviceIdentityHMAC) })
	if strings.Contains(codes[0], secrets.NewSecret) || !strings.Contains(codes[0], secrets.OldSecret) {
		t.Errorf("secrets %+v in %s", secrets, codes[0])
	}

	before := c.events()
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	codes = await[*events.QR](c, before, nil).Codes
	net.ExpireCodes()
	await[*events.Disconnected](c, before, nil)
	if err := shop.ScanQR(t.Context(), codes[0]); err == nil {
		t.Error("a code that was over linked")
	}
	before = c.events()
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	if err := shop.ScanQR(t.Context(), await[*events.QR](c, before, nil).Codes[0]); err != nil {
		t.Fatal(err)
	}
	if success := await[*events.PairSuccess](c, before, nil); success.BusinessName != "Bottega" {
		t.Errorf("linked as %+v", success)
	}
	await[*events.Connected](c, before, nil)
}

// TestAdopt links a device without a pairing. It also shows that a number that left WhatsApp has no account.
func TestAdopt(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	shop, anna := net.Account("393330000001"), net.Phone("393330000002")
	c := newClient(t, net)
	if err := shop.Adopt(c.Store); err != nil {
		t.Fatal(err)
	}
	if err := c.Store.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = openClient(t, net, whatsmeow.NewClient(c.Store, nil))
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	await[*events.Connected](c, 0, nil)
	anna.Await(t, whatsapptest.ID(c.sendText(anna.JID(), "ciao")))
	anna.SwitchOff()
	anna.Leave()
	if found, err := c.IsOnWhatsApp(t.Context(), []string{"+" + anna.Number()}); err != nil || found[0].IsIn {
		t.Errorf("found %+v: %v", found, err)
	}
	if err := c.try(t.Context(), anna.JID(), "ci sei?"); err == nil || !strings.HasSuffix(err.Error(), " 404") {
		t.Errorf("sent to nobody: %v", err)
	}
}

// TestShare sends a linked client the phone's name and history. A contact token shows that the client got the history.
func TestShare(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	owner, anna := net.Phone("393330000001"), net.Phone("393330000002")
	owner.SetName("Bottega")
	owner.Know(anna.Account)
	shop := linked(t, net, owner.Account)
	if err := owner.Share(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := await(shop, 0, func(m *events.Message) bool {
		return m.Message.GetProtocolMessage().GetHistorySyncNotification() != nil
	})
	past, err := shop.DownloadHistorySync(t.Context(), told.Message.GetProtocolMessage().GetHistorySyncNotification(), true)
	if err != nil {
		t.Fatal(err)
	}
	if talks := past.GetConversations(); len(talks) != 1 || talks[0].GetMessages()[0].GetMessage().GetMessage().GetConversation() != "un mese fa" {
		t.Errorf("the history is %+v", talks)
	}
	anna.Await(t, whatsapptest.ID(shop.sendText(anna.JID(), "ciao")))
	owner.AwaitSettled(t)
	await(shop, 0, func(e *events.AppStateSyncComplete) bool { return e.Name == appstate.WAPatchRegularLow })
	if err := shop.SendPresence(t.Context(), types.PresenceAvailable); err != nil || shop.Store.PushName != "Bottega" {
		t.Errorf("present as %q: %v", shop.Store.PushName, err)
	}
	if err := shop.SendAppState(t.Context(), appstate.BuildSettingPushName("Bottega nuova")); err != nil {
		t.Errorf("change the name: %v", err)
	}
	await(shop, 0, func(e *events.PushNameSetting) bool { return e.Action.GetName() == "Bottega nuova" })
}

// TestUnlink removes a client in two ways: the owner removes it on the phone, and the client logs itself out. After
// each way another client can be linked.
func TestUnlink(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	shop := net.Account("393330000001")
	first := linked(t, net, shop)
	shop.Kick(whatsapptest.Removed)
	if out := await[*events.LoggedOut](first, 0, nil); out.OnConnect {
		t.Errorf("%+v", out)
	}
	second := linked(t, net, shop)
	if err := second.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	third := linked(t, net, shop)
	if id := third.Store.GetJID(); id.Device != 3 || len(shop.Devices()) != 2 {
		t.Errorf("linked as %s, devices %+v", id, shop.Devices())
	}
}

// TestDeviceLists: a person writes to an account, and then a device is linked to it. The person's next message also
// reaches the new device.
func TestDeviceLists(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	anna, bruno, shopPhone := net.Phone("393330000002"), net.Phone("393330000003"), net.Phone("393330000001")
	if _, err := anna.Send(t.Context(), shopPhone.Number(), "uno"); err != nil {
		t.Fatal(err)
	}
	shopPhone.Await(t, whatsapptest.Text("uno"))
	shop := linked(t, net, shopPhone.Account)
	after, err := bruno.Send(t.Context(), anna.Number(), "intanto") // the client handles this message after the notification of the new device
	if err != nil {
		t.Fatal(err)
	}
	anna.Await(t, whatsapptest.ID(after))
	id, err := anna.Send(t.Context(), shopPhone.Number(), "due")
	if err != nil {
		t.Fatal(err)
	}
	await(shop, 0, func(m *events.Message) bool { return m.Info.ID == id })
	// The phone also shows messages that its owner writes on the linked client.
	mine := shop.sendText(anna.JID(), "tre")
	if m := shopPhone.Await(t, whatsapptest.ID(mine)); !m.FromMe || m.Chat != anna.Number() || m.Text != "tre" {
		t.Errorf("the owner's phone shows %+v", m)
	}
	if m := anna.Await(t, whatsapptest.ID(mine)); m.FromMe || m.Chat != shopPhone.Number() {
		t.Errorf("the other phone shows %+v", m)
	}
}
