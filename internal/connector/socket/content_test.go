//go:build !nosocket

package socket_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/socket/whatsapptest"
)

// opus returns the parts of an Ogg file that the connector reads. These are the name of the codec, and the granule
// position (the number of samples) of the last Ogg page.
func opus(seconds int) []byte {
	last := append([]byte("OggS\x00\x04"), binary.LittleEndian.AppendUint64(nil, uint64(seconds)*48_000)...)
	return append(append([]byte("OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00 OpusHead\x01\x01"), bytes.Repeat([]byte{0}, 600)...), append(last, "the rest of the page"...)...)
}

func picture(t *testing.T) []byte {
	t.Helper()
	p := image.NewRGBA(image.Rect(0, 0, 400, 200))
	for x := range 400 {
		for y := range 200 {
			p.Set(x, y, color.RGBA{uint8(x), uint8(y), 100, 255})
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, p); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Each kind of content arrives as the same kind, with the same bytes.
func TestContents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shots := picture(t)
	have := files{}
	for url, one := range map[string]struct {
		kind string
		body []byte
	}{
		"https://x/foto.png": {"image/png", shots}, "https://x/film.mp4": {"video/mp4", []byte("film")}, "https://x/canzone.mp3": {"audio/mpeg", []byte("canzone")},
		"https://x/nota.ogg": {"audio/ogg", opus(7)}, "https://x/a/listino.pdf": {"application/pdf", []byte("%PDF")}, "https://x/finta.ogg": {"audio/ogg", []byte("OggS vorbis")},
	} {
		have[url] = one
	}
	w.media = have
	w.stop()
	w.start()
	anna := w.net.Phone(annaNumber)
	w.link()
	tests := []struct {
		content puntuale.Content
		kind    string
		name    string
		mime    string
	}{
		{puntuale.Content{MediaURL: "https://x/foto.png", Text: "guarda"}, "image", "", "image/png"},
		{puntuale.Content{MediaURL: "https://x/film.mp4", Text: "guarda"}, "video", "", "video/mp4"},
		{puntuale.Content{MediaURL: "https://x/canzone.mp3"}, "audio", "", "audio/mpeg"},
		{puntuale.Content{MediaURL: "https://x/nota.ogg"}, "voice", "", "audio/ogg; codecs=opus"},
		{puntuale.Content{MediaURL: "https://x/a/listino.pdf", Text: "il listino"}, "document", "listino.pdf", "application/pdf"},
		{puntuale.Content{MediaURL: "https://x/a/listino.pdf", MediaName: "Listino 2026.pdf"}, "document", "Listino 2026.pdf", "application/pdf"},
	}
	for _, test := range tests {
		r := w.mustSend(w.message("+"+annaNumber, test.content))
		m := anna.Await(t, func(m whatsapptest.Message) bool { return m.ID == r.Detail.String() })
		if m.Kind != test.kind || m.Text != test.content.Text || m.FileName != test.name || m.MimeType != test.mime {
			t.Errorf("%s: %+v", test.content.MediaURL, m)
		}
		body, err := anna.Download(t.Context(), m)
		if err != nil || !bytes.Equal(body, have[test.content.MediaURL].body) {
			t.Errorf("%s: %d bytes, %v", test.content.MediaURL, len(body), err)
		}
		switch test.kind {
		case "voice":
			if m.Seconds != 7 {
				t.Errorf("it lasts %d s", m.Seconds)
			}
		case "image":
			i := m.Raw().GetImageMessage()
			if i.GetWidth() != 400 || i.GetHeight() != 200 {
				t.Errorf("%d × %d", i.GetWidth(), i.GetHeight())
			}
			small, _, err := image.Decode(bytes.NewReader(i.GetJPEGThumbnail()))
			if err != nil || small.Bounds().Dx() != 96 || small.Bounds().Dy() != 48 {
				t.Errorf("the thumbnail: %v, %v", small, err)
			}
		}
	}
	for _, c := range []puntuale.Content{
		{MediaURL: "https://x/canzone.mp3", Text: "con un testo"}, {MediaURL: "https://x/finta.ogg"}, {Text: "x", Official: &puntuale.Approved{}},
	} {
		if _, err := w.send(w.message("+"+annaNumber, c)); kindOf(err) != puntuale.Final {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Messages go to groups by id and by invitation, and to people by LID. The first receipt from any member counts as the
// group's receipt.
func TestGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna, bert := w.net.Phone(annaNumber), w.net.Phone(bertNumber)
	w.link()
	group := w.net.Group("Clienti", w.shop, anna.Account, bert.Account)
	for name, to := range map[string]string{"id": group.JID().String(), "invitation": group.Code()} {
		e := w.text(to, "al gruppo per "+name)
		w.mustSend(e)
		for _, p := range []*whatsapptest.Phone{anna, bert} {
			if m := p.Await(t, whatsapptest.Text("al gruppo per "+name)); m.Chat != group.ID() {
				t.Errorf("%s: %+v", name, m)
			}
		}
		w.await("it was delivered", func() bool { return len(w.receipts(e.Message)) > 0 })
	}
	e := w.text(anna.LID().String(), "per LID")
	w.mustSend(e)
	anna.Await(t, whatsapptest.Text("per LID"))
	w.await("it was delivered", func() bool { return len(w.receipts(e.Message)) > 0 })

	// If a person writes in a group that we wrote to, the message counts as the group's answer. If we wrote to a person
	// by LID, the person's answer comes by LID.
	if _, err := bert.Send(t.Context(), group.JID().String(), "qui"); err != nil {
		t.Fatal(err)
	}
	w.await("the group was heard", func() bool { return w.wrote[group.JID().String()] })
	if _, err := anna.Send(t.Context(), shopNumber, "qui"); err != nil {
		t.Fatal(err)
	}
	w.await("Anna was heard", func() bool { return w.wrote["+"+annaNumber] && w.wrote[anna.LID().String()] })
	w.mu.Lock()
	if w.wrote["+"+bertNumber] {
		t.Error("who writes in a group is taken for somebody who wrote to the number")
	}
	w.mu.Unlock()

	group.Remove(w.shop)
	// The library changes its list of the group's members while a send may read it. So the test waits for a later event, which
	// the library handles after that change.
	w.mu.Lock()
	clear(w.wrote)
	w.mu.Unlock()
	if _, err := anna.Send(t.Context(), shopNumber, "dopo"); err != nil {
		t.Fatal(err)
	}
	w.await("Anna was heard again", func() bool { return w.wrote["+"+annaNumber] })
	if _, err := w.send(w.text(group.JID().String(), "da fuori")); kindOf(err) != puntuale.Final {
		t.Errorf("from outside: %v", err)
	}
	group.RevokeCode()
}

// If a device cannot read a message, it requests the message again, even after the connector restarted.
func TestAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna := w.net.Phone(annaNumber)
	w.link()
	w.net.Inject(whatsapptest.Fault{From: shopNumber, Corrupt: true, Times: 1})
	anna.SwitchOff()
	w.mustSend(w.text("+"+annaNumber, "illeggibile"))
	w.stop()
	if err := anna.SwitchOn(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.open()
	anna.Await(t, whatsapptest.Text("illeggibile"))
}

// A phone that is off gets its messages when it is on again. A message that reached a device in the background counts
// as delivered.
func TestOffline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna, bert := w.net.Phone(annaNumber), w.net.Phone(bertNumber)
	w.link()
	anna.SwitchOff()
	e := w.text("+"+annaNumber, "a telefono spento")
	w.mustSend(e)
	if _, err := bert.Send(t.Context(), shopNumber, "dopo"); err != nil {
		t.Fatal(err)
	}
	w.await("Bert was heard", func() bool { return w.wrote["+"+bertNumber] }) // so all earlier events were handled, too
	w.mu.Lock()
	if reported := w.receipts(e.Message); len(reported) > 0 {
		t.Errorf("told while it is off: %v", reported)
	}
	w.mu.Unlock()
	anna.InBackground(true)
	if err := anna.SwitchOn(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.await("it was delivered", func() bool {
		reported := w.receipts(e.Message)
		return len(reported) == 1 && reported[0] == puntuale.ReceiptDelivered
	})
}

// Messages to cold contacts have a pace of their own. This pace does not delay messages to known people. Messages that
// left before a restart also count.
func TestColdContacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pace = puntuale.Pace{ColdPerMinute: 6, ColdPerDay: 2}
	w.net.Phone(annaNumber)
	w.net.Phone(bertNumber)
	w.net.Phone(carlNumber)
	w.link()
	w.mustSend(w.text("+"+annaNumber, "uno"))
	second := w.text("+"+bertNumber, "due")
	_, err := w.send(second)
	refusal := puntuale.AsSendError(err)
	if refusal == nil || refusal.Kind != puntuale.Deferred || refusal.After < 5*time.Second || refusal.After > 10*time.Second {
		t.Fatalf("the second stranger: %+v", refusal)
	}
	if _, again := w.send(second); kindOf(again) != puntuale.Deferred || puntuale.AsSendError(again).After > refusal.After {
		t.Errorf("its slot moved: %v", again)
	}
	w.mustSend(w.text("+"+annaNumber, "a chi si conosce"))
	_, err = w.send(w.text("+"+carlNumber, "tre"))
	if refusal := puntuale.AsSendError(err); refusal == nil || refusal.Kind != puntuale.Deferred || refusal.After < 23*time.Hour {
		t.Errorf("the third stranger: %+v", refusal)
	}
	w.stop()
	w.pace = puntuale.Pace{ColdPerDay: 1}
	w.start()
	w.open()
	w.await("it is online again", func() bool { return w.conn.Online(theSession) })
	_, err = w.send(w.text("+"+carlNumber, "tre"))
	if refusal := puntuale.AsSendError(err); refusal == nil || refusal.After < 23*time.Hour || refusal.After > 24*time.Hour {
		t.Errorf("after a restart: %+v", refusal)
	}
	w.conn.SetPace(theSession, puntuale.Pace{})
	e := w.text("+"+carlNumber, "quattro")
	w.mustSend(e)
}

// When a session is deleted, its keys are removed, and the phone no longer lists the device.
func TestDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link()
	w.mu.Lock()
	w.gone[theSession] = true
	w.mu.Unlock()
	w.conn.Close(t.Context(), theSession)
	if n := len(w.shop.Devices()); n != 1 {
		t.Errorf("%d devices are listed", n)
	}
	var rows int
	if err := w.db.QueryRow("select count(*) from socket_device").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d devices are kept (%v)", rows, err)
	}
}
