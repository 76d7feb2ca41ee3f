// Package whatsapptest is a loopback WhatsApp for tests: a server that real whatsmeow clients link to, log in at and
// exchange encrypted messages through, and phones that receive them. Nothing leaves the machine.
//
// # In one process
//
// A [Network] listens on loopback. Clients reach it through [Network.HTTPClient], whose connections go to it whatever
// the host's name; importing the package makes every whatsmeow client of the process trust its certificates.
//
//	net := whatsapptest.New(t)
//	client := whatsmeow.NewClient(device, nil)
//	client.SetPreLoginHTTPClient(net.HTTPClient())
//	client.SetWebsocketHTTPClient(net.HTTPClient())
//	client.SetMediaHTTPClient(net.HTTPClient())
//
// An [Account] is a number that has WhatsApp. It links clients by what they show, as its phone's owner would:
//
//	shop := net.Account("393330000001")
//	err := shop.ScanQR(ctx, code)            // one of events.QR.Codes
//	err = shop.EnterCode(ctx, "ABCD-1234")   // what Client.PairPhone returned
//
// A [Phone] is an account whose primary device is a real whatsmeow client, so that what it shows was truly decrypted:
//
//	anna := net.Phone("393330000002")
//	message := anna.Await(t, whatsapptest.Text("ciao"))
//	err = anna.MarkRead(ctx, message)
//	id, err := anna.Send(ctx, "393330000001", "eccomi")
//
// It also does what phones do besides: [Phone.Share] sends the devices that were linked the phone's name and history.
//
// # Behind a proxy
//
// [Network.Proxy] is an HTTPS proxy with a certificate authority of its own, for a program that is tested as it was
// built: give it [Proxy.Env], and run the copy that [PatchRoot] makes, which trusts this process's root key.
//
// # What it checks
//
// The network is strict: a stanza, an attribute or a child it does not know, an ack for what it never sent, a request
// to a host it does not play, all fail the test when it ends ([Network.Unknown] lists them). It keeps a message, receipt
// or notification for a device until the device acknowledges it, and sends what is left at the next login.
//
// It proves the wiring of our code and the library to each other, not that WhatsApp would accept either: it uses the
// library's own codec, and refuses only what it was written to refuse.
//
// # What it tells
//
// What phones show is in [Network.Ledger], which can be kept in a file; what clients did is in [Network.Messages] and
// [Network.Stanzas] (without content), [Network.Queries], [Network.Logins], [Network.MostArriving], [Network.Nacks],
// [Account.Pending], [Network.VersionReads] and [Proxy.Tunnels]. The Await methods wait for a thing instead of a time.
//
// # Faults
//
// [Network.Inject] and the methods of [Account] make the network misbehave: acks that are errors, late or missing,
// damaged ciphertexts, queries that fail, logins that are refused, bans, time-locks, kicks and cuts. Each says what it
// does and for how long.
//
// # What to mind with the library (2026-09-21)
//
//   - A client acknowledges most things before it has handled them, but handles one after the other: what was sent last is
//     handled last. It shows a message to a group twice, first the key it came with.
//   - Under the race detector a cut that meets two of a client's requests is reported, in exsync.Event.GetChan. The first
//     message to somebody is followed by such a request; [Network.AwaitToken] waits for it.
//   - A client that encrypts for somebody while it decrypts a message of theirs may write the older of two states of the
//     session: the next message is then taken for a repeat, is acknowledged, and never shown. A [Phone] does not.
//   - A cut in the middle of a handshake costs a client 20 seconds.
//   - A frame that comes while a client disconnects leaves a goroutine behind, in FrameSocket.frameComplete.
//   - A client that is linked makes 812 keys, one insert each: see [Network.FewKeys].
package whatsapptest
