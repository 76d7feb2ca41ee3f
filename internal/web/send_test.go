package web_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/control"
)

// TestSendOne: somebody writes one message for tomorrow, with a photo of the computer. The page does not preselect a
// purpose. A file that cannot be sent is refused under its button.
func TestSendOne(t *testing.T) {
	photo, drawing := filepath.Join(t.TempDir(), "foto.jpg"), filepath.Join(t.TempDir(), "disegno.svg")
	bytes, err := base64.StdEncoding.DecodeString(smallPhoto)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{photo: append(bytes, 0xff, 0xd9), drawing: []byte("<svg/>")} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/messages")
		b.click(`main a[href$="/messages/new"]`)
		b.until(`document.querySelector("#f-phone") && document.readyState === "complete"`)
		b.check("new")
		b.fill("phone", "333 123 4567", "text", "Il suo ordine è pronto.")
		b.click("main form button.btn-primary")
		b.until(`document.querySelectorAll(".fault").length === 1`)
		b.check("fault")
		b.click("details:has(.upload) > summary")
		b.do(chromedp.SetUploadFiles(chromedp.CSS(".upload input"), []string{drawing}))
		b.until(`document.querySelector(".upload-says.fault") && document.querySelector("#f-media").value === ""`)
		b.do(chromedp.SetUploadFiles(chromedp.CSS(".upload input"), []string{photo}))
		b.until(`document.querySelector("#f-media").value.startsWith("file:") && document.querySelector(".upload-look").naturalWidth === 1 && document.querySelector(".bubble-picture")?.naturalWidth === 1`)
		b.check("photo")
		b.click("[name=purpose][value=service]")
		b.click("[name=when][value=date]")
		b.fill("date", w.clock.Now().Add(24*time.Hour).Format("2006-01-02")+"T09:30")
		b.check("later")
		b.click("main form button.btn-primary")
		b.until(`/\/messages\/\d+$/.test(location.pathname) && document.querySelector("[data-toast]")`)
		b.check("sent")
		sent, _, err := w.Client().Messages(t.Context(), control.MessageQuery{})
		w.must(err)
		if len(sent) != 1 || sent[0].Phone != "+393331234567" || sent[0].Content.Text != "Il suo ordine è pronto." || sent[0].Origin != puntuale.OriginSingle ||
			!strings.HasPrefix(sent[0].Content.MediaURL, "file:") || sent[0].Content.MediaName != "foto.jpg" {
			t.Fatalf("sent: %+v", sent)
		}
		if got := sent[0].Planned(); !got.After(w.clock.Now().Add(20*time.Hour)) || got.UTC().Format("15:04") != "08:30" {
			t.Errorf("planned: %v", got)
		}
	})
}

const smallPhoto = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA="

// TestUploads: only people of the client upload and see its files, which are sent so that a browser runs nothing in them.
func TestUploads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	photo, err := base64.StdEncoding.DecodeString(smallPhoto)
	w.must(err)
	form := func(content string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"foto.jpg\"\r\n\r\n" + content + "\r\n--x--\r\n"
	}
	kind := http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}
	picture := form(string(photo) + "\xff\xd9")
	for who, want := range map[puntuale.UserID]int{w.clients[puntuale.Reader]: http.StatusForbidden, w.foreignOwner: http.StatusNotFound} {
		if r := w.visitor(who).send(w.pages+"/files", picture, kind); r.status != want {
			t.Errorf("user %d uploads: %d %s", who, r.status, r.body)
		}
	}
	staff := w.visitor(w.clients[puntuale.Staff])
	r := staff.send(w.pages+"/files", picture, kind)
	var told struct{ Media, Name, Says string }
	if err := json.Unmarshal([]byte(r.body), &told); err != nil || r.status != http.StatusOK || told.Name != "foto.jpg" || !strings.Contains(told.Says, "foto.jpg") {
		t.Fatalf("%d %s", r.status, r.body)
	}
	at := w.pages + "/files/" + strings.TrimPrefix(told.Media, "file:")
	got := staff.get(at)
	if h := got.header; got.status != http.StatusOK || h.Get("Content-Type") != "image/jpeg" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != "default-src 'none'; sandbox" || !strings.HasPrefix(h.Get("Content-Disposition"), "inline") {
		t.Errorf("%d %v", got.status, h)
	}
	if r := w.visitor(w.foreignOwner).get(at); r.status != http.StatusNotFound {
		t.Errorf("a stranger sees it: %d", r.status)
	}
	for content, want := range map[string]string{"<svg onload=alert(1)>": "non si può inviare", "": "vuoto", strings.Repeat("x", 16<<20+1): "16 MB"} {
		if r := staff.send(w.pages+"/files", form(content), kind); r.status < 400 || r.status >= 500 || !strings.Contains(r.body, want) {
			t.Errorf("%.20q: %d %s", content, r.status, r.body)
		}
	}
}

// TestSendOneTwice: a form is sent twice, but only one message is sent. A user with the role reader cannot send.
func TestSendOneTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	form := url.Values{"phone": {"3331234567"}, "text": {"x"}, "purpose": {"marketing"}, "when": {"now"}, "key": {"once"}}
	page := w.pages + "/messages/new"
	if r := w.visitor(w.clients[puntuale.Reader]).post(page, form); r.status != http.StatusForbidden {
		t.Errorf("a reader: %d", r.status)
	}
	if r := w.visitor(w.foreignOwner).post(page, form); r.status != http.StatusNotFound {
		t.Errorf("a stranger: %d", r.status)
	}
	v := w.visitor(w.clients[puntuale.Staff])
	first, second := v.post(page, form), v.post(page, form)
	sent, _, err := w.Client().Messages(t.Context(), control.MessageQuery{})
	w.must(err)
	if first.status != http.StatusSeeOther || first.to() != second.to() || len(sent) != 1 {
		t.Errorf("%d %s, %d %s: %d messages", first.status, first.to(), second.status, second.to(), len(sent))
	}
}
