// Package whatsapptest is a loopback WhatsApp for tests. It has a server: real whatsmeow clients link to it, log in to
// it, and exchange encrypted messages through it. It also has phones that receive the messages. Nothing leaves the
// machine.
//
// # In one process
//
// A [Network] listens on loopback. Clients reach it through [Network.HTTPClient], whose connections all go to it, for
// any host name. Importing the package makes every whatsmeow client of the process trust its certificates.
//
//	net := whatsapptest.New(t)
//	client := whatsmeow.NewClient(device, nil)
//	client.SetPreLoginHTTPClient(net.HTTPClient())
//	client.SetWebsocketHTTPClient(net.HTTPClient())
//	client.SetMediaHTTPClient(net.HTTPClient())
//
// An [Account] is a number that has WhatsApp. It links clients by the code that they show, as the phone's owner would:
//
//	shop := net.Account("393330000001")
//	err := shop.ScanQR(ctx, code)            // one of events.QR.Codes
//	err = shop.EnterCode(ctx, "ABCD-1234")   // what Client.PairPhone returned
//
// A [Phone] is an account whose primary device is a real whatsmeow client, so it really decrypted all that it shows:
//
//	anna := net.Phone("393330000002")
//	message := anna.Await(t, whatsapptest.Text("ciao"))
//	err = anna.MarkRead(ctx, message)
//	id, err := anna.Send(ctx, "393330000001", "eccomi")
//
// It also does other things that phones do: [Phone.Share] sends the phone's name and history to the linked devices.
//
// # Behind a proxy
//
// [Network.Proxy] is an HTTPS proxy with a certificate authority of its own, for tests of a built program. Run the copy
// of the program that [PatchRoot] makes, with the environment of [Proxy.Env]. The copy trusts this process's root key.
//
// # What it checks
//
// The network is strict. A stanza, an attribute or a child that it does not know fails the test when the test ends. So
// does an ack for a stanza that it never sent, or a request to a host that it does not play. [Network.Unknown] lists
// them. The network keeps a message, receipt or notification for a device until the device acknowledges it, and sends
// what is left at the next login.
//
// It proves that our code and the library fit together. It does not prove that WhatsApp would accept them: it uses the
// library's own codec, and refuses only what it was written to refuse.
//
// # What it tells
//
// [Network.Ledger] has what phones show, and can be kept in a file. [Network.Messages] and [Network.Stanzas] have what
// clients sent, without content. Other actions of clients are in [Network.Queries], [Network.Logins],
// [Network.MostArriving], [Network.Nacks], [Account.Pending], [Network.VersionReads] and [Proxy.Tunnels]. The Await
// methods wait for an event, and not for a time.
//
// # Faults
//
// [Network.Inject] and the methods of [Account] make the network misbehave. Acks are errors, late or missing.
// Ciphertexts are damaged, queries fail, and logins are refused. There are bans, time-locks, kicks and cuts. Each
// method says what it does and for how long.
//
// # What to mind with the library (2026-09-21)
//
//   - A client acknowledges most stanzas before it has handled them. It handles one after the other, so the last one
//     sent is handled last. It reports a message to a group twice: first the group's key that came with it, then the
//     message.
//   - The race detector reports a race in exsync.Event.GetChan when a cut meets two of a client's requests. Such a request
//     follows the first message to a person; [Network.AwaitToken] waits for it.
//   - A client may encrypt for a person while it decrypts a message of theirs. Then it may write the older of two states
//     of the session. The next message is taken for a repeat, is acknowledged, and never shown. A [Phone] does not do this.
//   - A cut in the middle of a handshake costs a client 20 seconds.
//   - A frame that comes while a client disconnects leaves a goroutine behind, in FrameSocket.frameComplete.
//   - A client that is linked makes 812 keys, one insert each: see [Network.FewKeys].
package whatsapptest
