package web_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/jpeg"
	"net/http"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// keeps fetches and keeps all files that wait.
func (w *world) keeps() {
	w.t.Helper()
	ctx := context.Background()
	for {
		due, _, err := w.store.DueIncoming(ctx, w.clock.Now(), 0)
		w.must(err)
		if len(due) == 0 {
			return
		}
		for _, x := range due {
			x, _, err := w.store.ClaimIncoming(ctx, x, w.clock.Now().Add(time.Minute))
			w.must(err)
			if err := w.Client().KeepFile(ctx, x); err != nil {
				k := puntuale.KeptFile{Code: "media.unavailable"}
				if e, ok := err.(*puntuale.Error); ok && len(e.Faults) > 0 { //nolint:errorlint // the verb's own error
					k = puntuale.KeptFile{Code: e.Faults[0].Code, Args: e.Faults[0].Args}
				}
				w.must(w.store.SettleIncoming(ctx, x, time.Time{}, k))
			}
		}
	}
}

func somePhoto(t *testing.T) []byte {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, 640, 480))
	for y := range 480 {
		for x := range 640 {
			picture.Set(x, y, color.RGBA{uint8(x / 3), uint8(y / 2), 160, 255})
		}
	}
	var out bytes.Buffer
	if err := jpeg.Encode(&out, picture, nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestKeptFiles: the conversation shows the small picture of a kept image, a link for other files, and in plain words why a
// file is not there.
func TestKeptFiles(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		const phone = "+393331234567"
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/settings")
		b.click(`input[name="keep_media"]`)
		b.check("setting")
		b.leaves(func() { b.click(`main form button[type=submit]`) })
		if s, err := w.Client().Settings(t.Context()); err != nil || !s.KeepMedia {
			t.Errorf("%+v, %v", s, err)
		}
		sends := func(content []byte, kind puntuale.ReplyKind, f puntuale.ReplyMedia) {
			w.media = content
			w.wrote(phone, "", brings(kind, f))
			w.keeps()
		}
		sends(somePhoto(t), puntuale.ReplyImage, puntuale.ReplyMedia{Type: "image/jpeg", Until: w.clock.Now().Add(time.Hour)})
		sends([]byte("%PDF-1.7 offerta"), puntuale.ReplyDocument, puntuale.ReplyMedia{Type: "application/pdf", Name: "\u202efdp.offerta"})
		sends([]byte("<svg onload='alert(1)'/>"), puntuale.ReplyDocument, puntuale.ReplyMedia{Type: "image/jpeg", Name: "foto.svg"})
		w.wrote(phone, "", brings(puntuale.ReplyDocument, puntuale.ReplyMedia{Type: "application/pdf", Name: "virus.pdf"}))
		due, _, err := w.store.DueIncoming(t.Context(), w.clock.Now(), 0)
		w.must(err)
		x, _, err := w.store.ClaimIncoming(t.Context(), due[0], w.clock.Now().Add(time.Minute))
		w.must(err)
		w.must(w.store.SettleIncoming(t.Context(), x, time.Time{}, puntuale.KeptFile{Code: "file.infected", Args: []string{"Eicar-Test-Signature"}}))
		w.wrote(phone, "Arriva?", brings(puntuale.ReplyVideo, puntuale.ReplyMedia{Type: "video/mp4", Size: 3 << 20}))
		b.open(w.personURL(phone))
		b.until(`document.querySelector(".turns img.bubble-picture")?.naturalWidth === 160`)
		b.reads("fdp.offerta.pdf")
		said := b.text(".turns")
		for italian, english := range map[string]string{
			"Non conservato. Il file contiene un virus: Eicar-Test-Signature": "Not kept. The file contains a virus: Eicar-Test-Signature",
			"Non conservato. Questo tipo di file non è ammesso":               "Not kept. This type of file is not allowed",
			"Il file viene scaricato":                                         "The file is being fetched",
		} {
			if !strings.Contains(said, italian) && !strings.Contains(said, english) {
				t.Errorf("the page does not say %q: %s", italian, said)
			}
		}
		b.check("conversation")
		b.open(w.pages + "/files")
		if said := b.text("main"); !strings.Contains(said, "L’ha inviato una persona") && !strings.Contains(said, "A person sent it") {
			t.Errorf("the page does not say who sent it: %s", said)
		}
		b.check("files")

		all, _, err := w.Client().Replies(t.Context(), phone, false, request.Page{})
		w.must(err)
		v := w.visitor(w.clients[puntuale.Reader])
		w.media = nil // the network has nothing any more
		for i, want := range map[int]struct {
			status      int
			kind, shows string
		}{4: {http.StatusOK, "image/jpeg", "inline"}, 3: {http.StatusOK, "application/pdf", "attachment"}, 1: {http.StatusNotFound, "text/html; charset=utf-8", ""}} {
			r := v.get(w.pages + "/replies/" + all[i].ID.String() + "/media")
			if h := r.header; r.status != want.status || h.Get("Content-Type") != want.kind || !strings.HasPrefix(h.Get("Content-Disposition"), want.shows) || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%d: %d %q %q", i, r.status, h.Get("Content-Type"), h.Get("Content-Disposition"))
			}
		}
	})
}

// TestKeptImageWithoutSmallPicture: a conversation shows a link to a kept image that is too large for a small picture.
func TestKeptImageWithoutSmallPicture(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const phone = "+393331234567"
	_, err := w.Client().UpdateSettings(t.Context(), puntuale.SettingsPatch{KeepMedia: new(true)}, nil)
	w.must(err)
	var large bytes.Buffer
	w.must(jpeg.Encode(&large, image.NewGray(image.Rect(0, 0, 6000, 4001)), nil))
	v := w.visitor(w.clients[puntuale.Reader])
	for _, test := range []struct {
		content []byte
		shown   int
	}{{large.Bytes(), 0}, {somePhoto(t), 1}} {
		w.media = test.content
		w.wrote(phone, "", brings(puntuale.ReplyImage, puntuale.ReplyMedia{Type: "image/jpeg"}))
		w.keeps()
		all, _, err := w.Client().Replies(t.Context(), phone, false, request.Page{})
		w.must(err)
		page := v.get(w.personURL(phone)).body
		if n := strings.Count(page, "bubble-picture"); all[0].FileOf() == "" || n != test.shown || !strings.Contains(page, "/replies/"+all[0].ID.String()+"/media") {
			t.Errorf("%d small pictures, want %d: %+v", n, test.shown, all[0].Kept)
		}
	}
}
