package web_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/control"
)

// TestSendOne: somebody writes one message for tomorrow, with a photo of the computer. The page does not preselect a
// purpose. A file that cannot be sent is refused under its button.
func TestSendOne(t *testing.T) {
	photo, drawing := filepath.Join(t.TempDir(), "foto.jpg"), filepath.Join(t.TempDir(), "disegno.svg")
	plain, err := base64.StdEncoding.DecodeString(smallPhoto)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{photo: append(plain, 0xff, 0xd9), drawing: []byte("<svg/>")} {
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
		b.fill("phone", "333 123 4567")
		b.click("main form button.btn-primary")
		b.until(`document.querySelectorAll(".fault").length === 1`)
		b.check("fault")
		w.contact("+393331234567", "Giulia Neri")
		b.fill("phone", "")
		b.click("#f-phone")
		b.do(chromedp.KeyEvent("giulia"))
		b.until(`document.querySelector("#send-picks [data-pick]")`)
		b.until(`document.activeElement.id === "f-phone"`) // not the field with the fault
		b.check("picks")
		b.enter()
		b.until(`document.querySelector("#f-phone").value === "+393331234567" && !document.querySelector("#send-picks [data-pick]") && location.pathname.endsWith("/messages/new")`)
		b.fill("text", "Il suo ordine è pronto.")
		b.click("details:has(.upload) > summary")
		b.do(chromedp.SetUploadFiles(chromedp.CSS(".upload input"), []string{drawing}))
		b.until(`document.querySelector(".upload-says.fault") && document.querySelector("#f-media").value === ""`)
		b.do(chromedp.SetUploadFiles(chromedp.CSS(".upload input"), []string{photo}))
		b.until(`document.querySelector("#f-media").value.startsWith("file:") && document.querySelector(".upload-look").naturalWidth === 1 && document.querySelector(".bubble-picture")?.naturalWidth === 1`)
		b.check("photo")
		b.until(`document.querySelector("[name=purpose]:checked").value === "service"`)
		b.click("[name=when][value=date]")
		b.fill("date", w.clock.Now().Add(24*time.Hour).Format("2006-01-02")+"T09:30")
		b.check("later")
		b.click("main form button.btn-primary")
		b.until(`/\/messages\/\d+$/.test(location.pathname) && document.querySelector("[data-toast]")`)
		b.check("sent")
		sent, _, err := w.Client().Messages(t.Context(), control.MessageQuery{})
		w.must(err)
		if len(sent) != 1 {
			t.Fatalf("sent: %d messages", len(sent))
		}
		if sent[0].Phone != "+393331234567" || sent[0].Content.Text != "Il suo ordine è pronto." || sent[0].Origin != puntuale.OriginSingle ||
			!strings.HasPrefix(sent[0].Content.MediaURL, "file:") || sent[0].Content.MediaName != "foto.jpg" {
			t.Fatalf("sent to %s, %s: %+v", sent[0].Phone, sent[0].Origin, sent[0].Content)
		}
		if got := sent[0].Planned(); !got.After(w.clock.Now().Add(20*time.Hour)) || got.UTC().Format("15:04") != "08:30" {
			t.Errorf("planned: %v", got)
		}
	})
}

const smallPhoto = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA="

// TestFilesStory: somebody uploads a photo and a document on the page of files, sees what uses them, and deletes one. The
// photo is dropped there. Then the person pastes and drops a picture in a conversation and sends it without words.
func TestFilesStory(t *testing.T) {
	folder := t.TempDir()
	photo, price := filepath.Join(folder, "vetrina.jpg"), filepath.Join(folder, "listino.pdf")
	var content bytes.Buffer
	if err := jpeg.Encode(&content, shop(), nil); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{photo: content.Bytes(), price: []byte("%PDF-1.7\nListino")} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	large, book := filepath.Join(folder, "film.mp4"), filepath.Join(folder, "libro.PDF")
	for name, size := range map[string]int64{large: puntuale.MaxFileBytes + 1, book: 1<<20 + 1} {
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, size)); err != nil {
			t.Fatal(err)
		}
	}
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/files")
		b.check("empty")
		b.do(chromedp.SetUploadFiles(chromedp.CSS(".upload input[type=file]"), []string{large}))
		b.until(`document.querySelector(".upload-says.fault")?.textContent.includes("16 MB")`)
		b.until(`Object.assign(document.querySelector(".upload").dataset, { mostDocument: "1048576", largeDocument: "al massimo 1 MB" })`) // another limit of documents
		b.do(chromedp.SetUploadFiles(chromedp.CSS(".upload input[type=file]"), []string{book}))
		b.until(`document.querySelector(".upload-says.fault")?.textContent === "al massimo 1 MB"`)
		b.do(chromedp.SetUploadFiles(chromedp.CSS(".upload input[type=file]"), []string{large}))
		b.until(`document.querySelector(".upload-says.fault")?.textContent.includes("16 MB")`)
		for i, name := range []string{price, photo} {
			if i == 0 {
				b.do(chromedp.SetUploadFiles(chromedp.CSS(".upload input[type=file]"), []string{name}))
			} else {
				b.drop(".upload", name)
			}
			b.until(fmt.Sprintf(`document.readyState === "complete" && document.querySelectorAll(".file-cell").length === %d`, i+1))
		}
		b.until(`document.querySelector("img.file-small")?.naturalWidth === 160`)
		files, err := w.Client().Files(t.Context())
		w.must(err)
		slices.SortFunc(files, func(x, y puntuale.File) int { return strings.Compare(y.Name, x.Name) }) // they have the same time
		if len(files) != 2 || files[0].Name != "vetrina.jpg" || files[1].Name != "listino.pdf" {
			t.Fatalf("files: %+v", files)
		}
		_, err = w.Client().CreateTemplate(t.Context(), control.NewTemplate{Template: puntuale.Template{Name: "Vetrina", Media: files[0].ID.Address()}}, control.Once[control.Template]{})
		w.must(err)
		b.open(w.pages + "/files")
		b.reads("Vetrina")
		b.check("list")
		b.click(`a[href$="/delete"]`)
		b.until(`document.querySelector("form[action$='/delete']") && document.readyState === "complete"`)
		b.check("delete")
		b.click(`form[action$="/delete"] button`)
		b.until(`document.querySelectorAll(".file-cell").length === 1 && document.querySelector("[data-toast]")`)

		b.open(w.pages + "/person?phone=%2B393331234567")
		b.until(`document.querySelector("#f-answer")`)
		evaluate[any](b, `(async () => {
			const data = new DataTransfer(), picture = await (await fetch("`+w.pages+`/files/`+string(files[0].ID)+`/small")).blob();
			data.items.add(new File([picture], "image.jpg", { type: "image/jpeg" }));
			document.querySelector("#f-answer").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
		})()`)
		b.until(`document.querySelector("#f-media").value.startsWith("file:") && document.querySelector(".answer .upload-look").naturalWidth === 160`)
		b.check("pasted")
		detach := func() {
			b.click("[data-detach]")
			b.until(`document.querySelector("#f-media").value === "" && document.querySelector(".answer .upload-look").hidden`)
		}
		detach()
		b.drop(".answer .upload", photo)
		b.until(`document.querySelector("#f-media").value === "` + files[0].ID.Address() + `" && document.querySelector("#f-media_name").value === "vetrina.jpg" && document.querySelector(".answer .upload-look").naturalWidth === 400`)
		b.drop(".answer .upload", large) // it is refused, and the picture stays
		b.until(`document.querySelector(".answer .upload-says.fault")?.textContent.includes("16 MB") && document.querySelector("#f-media").value !== ""`)
		detach()
		b.do(chromedp.SetUploadFiles(chromedp.CSS(".answer .upload input[type=file]"), []string{photo}))
		b.until(`document.querySelector("#f-media").value.startsWith("file:")`)
		evaluate[bool](b, `(document.querySelector("#f-answer").scrollIntoView({ block: "center" }), true)`)
		b.until(`innerWidth > 960 || (button => button.top > 0 && button.bottom < document.querySelector(".phone").getBoundingClientRect().top + 1)(document.querySelector(".answer .actions .btn-primary").getBoundingClientRect())`)
		b.picture("attached")
		b.click(`form[action$="/person/answer"] button[type=submit]`)
		b.until(`document.querySelector(".turns .bubble-picture")?.naturalWidth === 400`)
		b.check("answered")
		sent, _, err := w.Client().Messages(t.Context(), control.MessageQuery{Phone: "+393331234567"})
		w.must(err)
		if len(sent) != 1 || sent[0].Content.Text != "" || sent[0].Content.MediaURL != files[0].ID.Address() || sent[0].Content.MediaName != "vetrina.jpg" {
			t.Errorf("sent: %+v", sent)
		}
	})
}

// drop drags a file of this computer on an element, and lets it fall there.
func (b *browser) drop(selector, file string) {
	b.t.Helper()
	evaluate[bool](b, `(document.querySelector(`+quote(selector)+`).scrollIntoView({ block: "center" }), true)`)
	at := evaluate[struct{ X, Y float64 }](b, `(box => ({ X: box.left + box.width / 2, Y: box.top + box.height / 2 }))(document.querySelector(`+quote(selector)+`).getBoundingClientRect())`)
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop} {
		command(b, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: at.X, Y: at.Y, Data: &input.DragData{Items: []*input.DragDataItem{}, Files: []string{file}, DragOperationsMask: 1}})
	}
}

// shop is a picture of 400 × 300 pixels.
func shop() image.Image {
	m := image.NewRGBA(image.Rect(0, 0, 400, 300))
	for y := range 300 {
		for x := range 400 {
			m.SetRGBA(x, y, color.RGBA{uint8(80 + x/4), uint8(160 - y/3), uint8(120 + y/4), 0xff})
		}
	}
	return m
}

// TestUploads: only people of the client upload and see its files, which are sent so that a browser runs nothing in them.
func TestUploads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var photo bytes.Buffer
	w.must(jpeg.Encode(&photo, shop(), nil))
	form := func(content string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"foto.jpg\"\r\n\r\n" + content + "\r\n--x--\r\n"
	}
	kind := http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}
	picture := form(photo.String())
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
	if r := staff.send(w.pages+"/files", strings.TrimSuffix(picture, "\r\n--x--\r\n"), kind); r.status != http.StatusBadRequest {
		t.Errorf("a form without its end: %d %s", r.status, r.body)
	}
	small := staff.get(at + "/small")
	if h := small.header; small.status != http.StatusOK || h.Get("Content-Type") != "image/jpeg" || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the small picture: %d %v", small.status, h)
	}
	if r := w.visitor(w.foreignOwner).get(at + "/small"); r.status != http.StatusNotFound {
		t.Errorf("a stranger sees the small picture: %d", r.status)
	}
	for content, want := range map[string]string{"<svg onload=alert(1)>": "non si può inviare", "": "vuoto", strings.Repeat("x", 16<<20+1): "16 MB"} {
		if r := staff.send(w.pages+"/files", form(content), kind); r.status < 400 || r.status >= 500 || !strings.Contains(r.body, want) {
			t.Errorf("%.20q: %d %s", content, r.status, r.body)
		}
	}
}

// TestSendLimits: the page says which files the chosen session's network takes, and not those of others. The purpose is
// service unless the person chooses another.
func TestSendLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, err := w.store.Tenant(w.client).CreateOfficial(t.Context(), puntuale.Session{Name: "Ufficiale", Type: puntuale.Official, Created: w.clock.Now()}, func(puntuale.SessionID) []byte { return []byte("x") }, nil)
	w.must(err)
	v, address := w.visitor(w.clients[puntuale.Staff]), w.pages+"/messages/new"
	page := v.get(address).body
	if text := words(inMain(page)); !strings.Contains(text, "nessuna rete riceve il file") || strings.Contains(text, "5 MB") {
		t.Errorf("the sandbox's limits: %s", text)
	}
	form := formTo(page, address)
	if form.Get("purpose") != "service" {
		t.Errorf("the purpose is %q", form.Get("purpose"))
	}
	form.Set("do", "look")
	form.Set("id_sessione", id.String())
	if text := words(v.htmx(address, form).body); !strings.Contains(text, "immagini JPEG o PNG fino a 5 MB") || strings.Contains(text, "nessuna rete") {
		t.Errorf("the Official number's limits: %s", text)
	}
	w.contact("+393331234567", "Giulia Neri")
	picked := v.do(http.MethodGet, w.pages+"/search?picks=phone&phone=giul", nil, http.Header{"HX-Request": {"true"}})
	if !strings.Contains(picked.body, `data-pick="+393331234567"`) || strings.Contains(picked.body, "<a ") {
		t.Errorf("people for the field: %s", picked.body)
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

// TestFileDropped: a picture that is dropped on the editor's button is uploaded, and the step has its address and its name. A text
// that is dropped there changes nothing.
func TestFileDropped(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		id := w.sequence(control.NewSequence{Name: "Vetrina", Steps: []puntuale.Step{{Text: "Ecco", Media: "https://negozio.example/a.jpg", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}})
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/sequences/" + id + "/edit")
		const media = `document.getElementById("f-steps[0].media").value`
		// drop drops something on the button, and returns whether the page took it.
		drop := func(data string) bool {
			return evaluate[bool](b, `(async () => {
				const data = new DataTransfer(), button = document.querySelector("[data-media='f-steps[0].media'] .upload-button span");
				`+data+`
				let took = true;
				for (const name of ["dragover", "drop"]) took = !button.dispatchEvent(new DragEvent(name, { dataTransfer: data, bubbles: true, cancelable: true })) && took;
				return took;
			})()`)
		}
		if drop(`data.setData("text/plain", "Ciao");`) || evaluate[string](b, media) != "https://negozio.example/a.jpg" {
			t.Error("the page took a text")
		}
		var content bytes.Buffer
		w.must(jpeg.Encode(&content, shop(), nil))
		if !drop(`data.items.add(new File([Uint8Array.from(atob("` + base64.StdEncoding.EncodeToString(content.Bytes()) + `"), c => c.charCodeAt(0))], "vetrina.jpg", { type: "image/jpeg" }));`) {
			t.Error("the browser opens the file itself")
		}
		b.until(media + `.startsWith("file:") && document.querySelector("[data-media='f-steps[0].media'] .upload-look").naturalWidth === 400 && document.querySelector(".file-facts").innerText.includes("image/jpeg")`)
		b.check("dropped")
		files, err := w.Client().Files(t.Context())
		w.must(err)
		if len(files) != 1 || files[0].Name != "vetrina.jpg" || files[0].ID.Address() != evaluate[string](b, media) {
			t.Errorf("files: %+v", files)
		}
		b.leaves(func() { b.click(".editor-save button.btn-primary") })
		saved, err := w.Client().Sequence(t.Context(), id)
		w.must(err)
		if len(files) == 1 && saved.Steps[0].Media != files[0].ID.Address() {
			t.Errorf("the step has %q", saved.Steps[0].Media)
		}
	})
}
