// Package whatsapptest is a loopback WhatsApp for tests. It has a server: real whatsmeow clients link to the server,
// log in, and exchange encrypted messages through it. It also has phones, which receive the messages. Nothing leaves
// the machine.
//
// # In one process
//
// A [Network] listens on loopback. Clients reach it through [Network.HTTPClient], whose connections for any host name
// go to this network. Importing the package makes every whatsmeow client of the process trust the network's
// certificates.
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
// A [Phone] is an account whose primary device is a real whatsmeow client. So the phone really decrypts each message
// that it shows:
//
//	anna := net.Phone("393330000002")
//	message := anna.Await(t, whatsapptest.Text("ciao"))
//	err = anna.MarkRead(ctx, message)
//	id, err := anna.Send(ctx, "393330000001", "eccomi")
//
// A Phone also has methods for other actions. For example, [Phone.Share] sends the phone's name and history to the
// linked devices.
//
// # Behind a proxy
//
// [Network.Proxy] is an HTTPS proxy with a certificate authority of its own, for tests of a built program. Copy the
// program with [PatchRoot], so that the copy trusts this process's root key. Run the copy with the environment of
// [Proxy.Env].
//
// # Checks
//
// The network is strict. If it gets a stanza, an attribute or a child that it does not know, the test fails at its end.
// The test also fails after an ack for a stanza that the network never sent, and after a request to an unknown host.
// [Network.Unknown] lists all these faults. The network stores a message, receipt or notification for a device until
// the device acknowledges it, and sends unacknowledged ones again at the next login.
//
// A passing test proves that our code and the library work together. It does not prove that WhatsApp would accept their
// messages. The network uses the library's own codec, and it makes only the checks in this package.
//
// # Results
//
// [Network.Ledger] contains the messages that phones show. It can be written to a file. [Network.Messages] and
// [Network.Stanzas] list the stanzas that clients sent, without content. Other actions of clients are in
// [Network.Queries], [Network.Logins], [Network.PeakArriving], [Network.Nacks], [Account.Pending],
// [Network.VersionReads] and [Proxy.Tunnels]. The Await methods wait for an event. They do not wait for a fixed time.
//
// # Faults
//
// [Network.Inject] and the methods of [Account] make the network misbehave. Acks are errors, late or missing.
// Ciphertexts are damaged, queries fail, and logins are refused. There are bans, time-locks, kicks and cuts. The
// comment of each method says which fault it causes and how long the fault lasts.
//
// # Behaviour of the library (2026-09-21)
//
//   - A client acknowledges most stanzas before it has handled them. It handles them one after the other, so it handles
//     the last stanza last. It reports a message to a group twice: first the group's key, then the message.
//   - The race detector reports a race in exsync.Event.GetChan when a cut happens during two of a client's requests. The
//     first message to a person causes such a request; [Network.AwaitToken] waits for it.
//   - A client may encrypt for a person while it decrypts a message from that person. Then it may write an older
//     encryption state over a newer one. The recipient treats the next message as a repeat: it acknowledges the message
//     and never shows it. A [Phone] avoids this.
//   - A cut in the middle of a handshake costs a client 20 seconds.
//   - If a frame comes while a client disconnects, a goroutine stays in FrameSocket.frameComplete for ever.
//   - When a client is linked, it makes 812 keys, with one insert each: see [Network.FewKeys].
package whatsapptest
