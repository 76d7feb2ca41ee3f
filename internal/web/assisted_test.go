package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/httpapi"
)

// desk is a session whose messages are sent by phones, with the data for a test.
type desk struct {
	w             *world
	session       control.Session
	page          string
	answersLostAt atomic.Pointer[string] // for this path, the server carries out calls but their answers are lost; nil: no answers are lost
	lostAnswers   chan string            // receives the path of each lost answer
}

// newDesk creates a session whose messages are sent by phones, for the world's client. It also serves the API at
// the address of the pages.
func (w *world) newDesk() *desk {
	w.t.Helper()
	ctx := context.Background()
	_, err := w.store.Join(ctx, 24*time.Hour) // a device can take messages only while a server has the lease
	w.must(err)
	d := &desk{w: w, lostAnswers: make(chan string, 100)}
	simulated := false
	d.session, err = w.Client().CreateSession(ctx, control.NewSession{Name: "Segreteria", Type: string(puntuale.SendApp), Sandbox: &simulated, Devices: true}, control.Once[control.Session]{})
	w.must(err)
	d.page = w.pages + "/sessions/" + d.session.ID.String()
	api, err := httpapi.New(httpapi.Config{Control: w.control, Now: w.clock.Now, Logger: slog.New(slog.NewTextHandler(testWriter{w.t}, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	w.must(err)
	w.calls = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if path := d.answersLostAt.Load(); path != nil && *path == r.URL.Path {
			api.ServeHTTP(discard{http.Header{}}, r)
			d.lostAnswers <- *path
			panic(http.ErrAbortHandler)
		}
		api.ServeHTTP(rw, r)
	})
	return d
}

// discard is a ResponseWriter that drops the answer.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// code returns a new one-time code that links a phone.
func (d *desk) code() string {
	d.w.t.Helper()
	s, err := d.w.Client().Pair(context.Background(), d.session.ID.String(), control.Pairing{})
	d.w.must(err)
	return s.Code.Text
}

// due creates a message that is due now, and returns its id.
func (d *desk) due(phone, text string) string {
	d.w.t.Helper()
	words, err := json.Marshal(text)
	d.w.must(err)
	started, err := d.w.Client().Send(context.Background(), control.SingleCall{Phone: phone, Session: d.session.ID.String(), Fields: map[string]json.RawMessage{"text": words}})
	d.w.must(err)
	return started.IDs[0].String()
}

// state returns a message's state and detail.
func (d *desk) state(id string) string {
	d.w.t.Helper()
	found, err := d.w.Client().Details(context.Background(), []string{id})
	d.w.must(err)
	if len(found) != 1 {
		return "nowhere"
	}
	return strings.TrimSpace(fmt.Sprint(found[0].State, " ", catalogue.Italian.Sentence(found[0].Detail)))
}

// becomes waits until a message's state, followed by its detail, begins with these words. The wait is necessary because
// the app shows the person's answer before it reports the answer to the server.
func (d *desk) becomes(id, words string) {
	d.w.t.Helper()
	deadline, look := time.Now().Add(within), time.NewTicker(20*time.Millisecond)
	defer look.Stop()
	for !strings.HasPrefix(d.state(id), words) {
		if time.Now().After(deadline) {
			d.w.t.Fatalf("message %s: %q, want %q", id, d.state(id), words)
		}
		<-look.C
	}
}

// The method windows records the browser windows that the page opens. The returned function returns their addresses.
// The test's browser cannot load these addresses.
func (b *browser) windows() func() string {
	b.t.Helper()
	opened := make(chan string, 10)
	b.listen(func(event any) {
		if e, ok := event.(*page.EventWindowOpen); ok {
			opened <- e.URL
		}
	})
	return func() string {
		b.t.Helper()
		select {
		case address := <-opened:
			return address
		case <-time.After(within):
			b.t.Fatal("no window was opened")
			return ""
		}
	}
}

// offline disconnects the page and its service worker from the network if away is true. Otherwise it reconnects them.
// While away is true, the server also refuses all requests of this world. The reason: Chromium may let the first
// request of a new page through.
func (b *browser) offline(away bool) {
	b.t.Helper()
	b.w.away.Store(away)
	rules := []*network.Conditions{{Offline: away, DownloadThroughput: -1, UploadThroughput: -1}}
	command(b, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{EmulateOfflineServiceWorker: &away, MatchedNetworkConditions: rules})
	command(b, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: away, DownloadThroughput: -1, UploadThroughput: -1})
	b.until(fmt.Sprintf(reached, !away))
}

// reached is a script that checks whether the page can reach its server. The browser's network service learns of a
// change a little later than the page.
const reached = `(fetch("/ready?" + Math.random(), {cache: "no-store"}).then(() => { window.reached = true }, () => { window.reached = false }), window.reached === %t)`

// links links the browser to the session as a phone.
func (b *browser) links(d *desk) {
	b.t.Helper()
	b.open("/phone?p=agenzia-aurora#code=" + d.code())
	b.until(`document.querySelector("#assisted-code")?.value`)
	b.tap(".assisted-main form .btn-primary")
	b.until(`document.querySelector(".assisted-from").innerText === "Segreteria"`)
}

// onCard returns a script that finds the card of a phone number, and on this card the element of the selector.
func onCard(phone, selector string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".assisted-cards li")].find(e => e.querySelector("h2").innerText.replaceAll(" ", "").includes(%q))?.querySelector(%q)`, phone, selector)
}

// onCard clicks an element on the card of a phone number.
func (b *browser) onCard(phone, selector string) {
	b.t.Helper()
	b.until(onCard(phone, selector))
	evaluate[bool](b, `((e) => {
		document.querySelector("[data-tapped]")?.removeAttribute("data-tapped");
		e.dataset.tapped = "";
		e.scrollIntoView({block: "center"});
		return true;
	})(`+onCard(phone, selector)+`)`)
	b.do(chromedp.Click(chromedp.CSS("[data-tapped]"))) // a real click, because the browser opens no window for a simulated one
}

// Selectors of the buttons with which a person answers, by the buttons' positions.
const (
	saysSent    = ".assisted-answers .btn:nth-child(1)"
	saysSkipped = ".assisted-answers .btn:nth-child(2)"
	saysLater   = ".assisted-answers .btn:nth-child(4)"
)

// oddText contains characters with a special meaning in an address.
const oddText = "Ciao Anna 👋🏽,\nsconto del 20% & caffè + dolce?\n#1 = “tu”/io"

// TestAssisted: a code in the page's address links a phone. Four messages are due. The person sends the first message,
// skips the second, and puts the fourth back. The third is cancelled before the person taps it. A report that was made
// without a network waits on the phone. It arrives when the network is back, even if the page was opened again.
func TestAssisted(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		d := w.newDesk()
		phones := []string{"+393331234500", "+393331234501", "+393331234502", "+393331234503"}
		ids := make([]string, len(phones))
		for i, phone := range phones {
			ids[i] = d.due(phone, oddText)
		}
		windows := b.windows()
		b.open("/phone?p=agenzia-aurora#code=" + d.code())
		b.until(`document.querySelector("#assisted-name")?.value`)
		if hash := evaluate[string](b, `location.hash`); hash != "" {
			t.Errorf("the code stays in the address: %q", hash)
		}
		b.check("link")
		b.tap(".assisted-main form .btn-primary")
		b.until(onCard(phones[3], ".btn-primary"))
		b.check("list")

		b.onCard(phones[0], ".btn-primary")
		b.until(onCard(phones[0], saysSent))
		if got, want := windows(), "https://wa.me/393331234500?text="+strings.ReplaceAll(url.QueryEscape(oddText), "+", "%20"); got != want {
			t.Errorf("WhatsApp is opened with %s, want %s", got, want)
		}
		b.check("held")
		b.onCard(phones[1], ".btn-primary")
		b.until(onCard(phones[1], saysSkipped))
		b.until(`navigator.serviceWorker.controller`)
		b.offline(true)
		b.until(onCard(phones[2], ".btn-primary") + `.disabled`)
		b.onCard(phones[0], saysSent)
		b.until(`!` + onCard(phones[0], "h2") + ` && document.querySelectorAll(".assisted-notices .notice:not([style*=none])").length === 2`) // the remaining cards now have new positions
		b.onCard(phones[1], saysSkipped)
		b.until(`!document.querySelector(".assisted-held")`)
		b.check("offline")
		b.open("/phone")
		b.until(`document.querySelectorAll(".assisted-notices .notice:not([style*=none])").length === 2`)
		b.check("offline-anew")
		b.offline(false)
		b.until(`document.querySelector(".assisted-notices").innerText.trim() === "" && ` + onCard(phones[3], ".btn-primary"))

		_, err := w.Client().CancelMessages(t.Context(), []string{ids[2]})
		w.must(err)
		b.onCard(phones[2], ".btn-primary")
		b.until(`document.querySelector(".assisted-notices").innerText.includes("` + phones[2] + `") && !` + onCard(phones[2], "h2"))
		b.check("gone")
		b.onCard(phones[3], ".btn-primary")
		b.onCard(phones[3], saysLater)
		b.until(`!document.querySelector(".assisted-held") && ` + onCard(phones[3], ".btn-primary"))
		by := " dichiarato dall'operatore (" + evaluate[string](b, `document.querySelector(".assisted-device .soft").innerText`) + ")"
		for i, want := range []string{"COMPLETED" + by, "FAILED" + by + ": saltato", "CANCELLED", "PENDING" + by} {
			if got := d.state(ids[i]); got != want {
				t.Errorf("message %d: %q, want %q", i, got, want)
			}
		}
	})
}

// TestAssistedOnce: if an answer is lost, the message is still taken only once, and its report is counted only once. A
// group is refused with its reason. An unlinked phone shows that it is unlinked, and stores its unsent reports until
// the person deletes them.
func TestAssistedOnce(t *testing.T) {
	t.Parallel()
	startChromium(t)
	w := newWorld(t)
	d := w.newDesk()
	b := newBrowser(t, w, screen{390, 844, "dark", "en"})
	const first, second, group = "+393331234500", "+393331234501", "120363040000000000@g.us"
	ids := []string{d.due(first, "Ciao"), d.due(second, "Ciao"), d.due(group, "A tutti")}
	windows := b.windows()
	b.links(d)
	b.deafTo(d, "/device/take", func() { b.onCard(first, ".btn-primary") })
	b.until(onCard(first, saysSent))
	b.onCard(first, "a[target]")
	_ = windows()
	b.deafTo(d, "/device/report", func() { b.onCard(first, saysSent) })
	b.until(`document.querySelector(".assisted-notices").innerText.trim() === ""`)
	b.onCard("group", ".btn-primary")
	b.reads("is marked as impossible to send")
	d.becomes(ids[2], "FAILED")

	b.onCard(second, ".btn-primary")
	b.until(onCard(second, saysSent))
	b.check("held")
	b.offline(true)
	b.onCard(second, saysSent)
	b.reads("One declaration waits")
	all, err := w.Client().Devices(t.Context(), d.session.ID.String())
	w.must(err)
	w.must(w.Client().UnlinkDevice(t.Context(), d.session.ID.String(), fmt.Sprint(all[0].ID)))
	b.offline(false)
	b.reads("This phone is no longer linked")
	b.reads("One declaration never reached the server")
	b.check("ended")
	b.open("/phone")
	b.reads("One declaration never reached the server")
	b.press("Delete")
	b.until(`!document.querySelector(".assisted-left").checkVisibility()`)
	for i, want := range []string{"COMPLETED", "PENDING", "FAILED"} {
		if got := d.state(ids[i]); !strings.HasPrefix(got, want) {
			t.Errorf("message %d: %s", i, got)
		}
	}
	if got := d.state(ids[2]); !strings.Contains(got, "un gruppo") {
		t.Errorf("the group: %s", got)
	}
}

// deafTo calls the function do, while the server's answers at this path are lost. It waits until the page shows the
// problem. After that, answers arrive again.
func (b *browser) deafTo(d *desk, path string, do func()) {
	b.t.Helper()
	d.answersLostAt.Store(&path)
	do()
	select {
	case <-d.lostAnswers:
	case <-time.After(within):
		b.t.Fatalf("%s was not called", path)
	}
	b.until(`document.querySelector(".assisted-notices").innerText.trim() !== ""`)
	d.answersLostAt.Store(nil)
	evaluate[bool](b, `dispatchEvent(new Event("online"))`)
}

// TestAssistedPush: the browser can install the app. A phone subscribes to notices, and unsubscribes. When a push
// arrives, an open page looks for messages. If no page is open, a notice without number and text is shown.
func TestAssistedPush(t *testing.T) {
	t.Parallel()
	startChromium(t)
	w := newWorld(t)
	d := w.newDesk()
	b := newBrowser(t, w, screen{390, 844, "light", "it"})
	registered := b.registrations()
	command(b, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{Permission: &cdpbrowser.PermissionDescriptor{Name: "notifications"}, Setting: cdpbrowser.PermissionSettingGranted, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID})
	// A test cannot use a real push service, so this script replaces the browser's subscription.
	service := `PushManager.prototype.subscribe = async () => ({ toJSON: () => ({ endpoint: "https://push.example/1", keys: { p256dh: "` + pushKey + `", auth: "AAAAAAAAAAAAAAAAAAAAAA" } }) });
		Notification.requestPermission = async () => "granted";`
	command(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: service})
	b.links(d)
	b.until(`navigator.serviceWorker.controller`)
	evaluate[bool](b, `window.former = true`)
	command(b, page.Reload, page.ReloadParams{IgnoreCache: new(true)}) // such a page loads without its worker, as a page that loads while the worker starts
	b.until(`!window.former && navigator.serviceWorker.controller`)
	pushed := func() bool {
		all, err := w.Client().Devices(t.Context(), d.session.ID.String())
		w.must(err)
		return all[0].Pushed
	}
	b.press("Avvisami")
	b.until(`[...document.querySelectorAll("button")].some(e => e.checkVisibility() && e.innerText.trim() === "Non avvisarmi più")`)
	b.check("told")
	if !pushed() {
		t.Error("the server does not know where to tell the phone")
	}

	d.due("+393331234500", "Ciao")
	b.push(registered())
	b.until(onCard("+393331234500", ".btn-primary"))
	b.press("Non avvisarmi più")
	b.until(`[...document.querySelectorAll("button")].some(e => e.checkVisibility() && e.innerText.trim() === "Avvisami")`)
	if pushed() {
		t.Error("the server goes on telling the phone")
	}
	if faults := b.notInstallable(); len(faults) > 0 {
		t.Errorf("the browser would not install the app: %q", faults)
	}
	b.open("/login")
	faults := b.notInstallable()
	if len(faults) == 0 {
		t.Error("the browser would install any page")
	}
	if !slices.Contains(faults, "no-manifest") {
		return // only Chromium shows notices; its headless shell does not
	}
	const script = `navigator.serviceWorker.getRegistration("/phone").then(r => r.getNotifications()).then(all => all.map(n => n.title + ": " + n.body))`
	var got []string
	for deadline := time.Now().Add(within); len(got) == 0 && time.Now().Before(deadline); { // at first, the worker still has the previous page in its list
		b.push(registered())
		got = evaluate[[]string](b, script)
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "Puntuale: ") || strings.ContainsAny(got[0], "0123456789") {
		t.Errorf("the notice says %q", got)
	}
}

// notInstallable returns the browser's reasons not to install a page as an app. It ignores the reason that the test's
// tab is private. Chromium's headless shell only finds faults of the manifest.
func (b *browser) notInstallable() (faults []string) {
	b.t.Helper()
	manifest, err := chromedp.Call(b.ctx, page.GetAppManifest, page.GetAppManifestParams{})
	b.w.must(err)
	if manifest.Data == "" {
		faults = append(faults, "no manifest")
	}
	for _, e := range manifest.Errors {
		faults = append(faults, e.Message)
	}
	found, err := chromedp.Call(b.ctx, page.GetInstallabilityErrors, cdp.Empty{})
	b.w.must(err)
	for _, e := range found.InstallabilityErrors {
		if e.ErrorID != "in-incognito" {
			faults = append(faults, e.ErrorID)
		}
	}
	return faults
}

// registrations returns a function that waits for the app's worker and returns the worker's id.
func (b *browser) registrations() func() string {
	b.t.Helper()
	ids := make(chan string, 100)
	b.listen(func(event any) {
		if e, ok := event.(*serviceworker.EventWorkerRegistrationUpdated); ok {
			for _, r := range e.Registrations {
				if !r.IsDeleted {
					ids <- string(r.RegistrationID)
				}
			}
		}
	})
	command(b, serviceworker.Enable, cdp.Empty{})
	var id string
	return func() string {
		b.t.Helper()
		if id != "" {
			return id
		}
		select {
		case id = <-ids:
		case <-time.After(within):
			b.t.Fatal("no worker was registered")
		}
		return id
	}
}

// push makes the browser deliver a push message to a worker.
func (b *browser) push(registration string) {
	b.t.Helper()
	command(b, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{Origin: b.w.base, RegistrationID: serviceworker.RegistrationID(registration), Data: "{}"})
}

// TestAssistedBrand: a person types the app's address and the code. The app then shows the brand of the phone's partner, and
// the recipient's name above the number.
func TestAssistedBrand(t *testing.T) {
	onScreens(t, func(_ *testing.T, w *world, b *browser) {
		w.must(w.newPartnerHandle().SetBrand(w.t.Context(), account.BrandChange{Name: "Messaggi Aurora", Colour: "#7a1fa2"}))
		d := w.newDesk()
		_, err := w.Client().AddContact(context.Background(), control.NewContact{Phone: "+393331234500", Name: "Lucia Neri", Source: "test"}, control.Once[puntuale.Contact]{})
		w.must(err)
		d.due("+393331234500", "Ciao")
		b.open("/phone")
		b.until(`document.querySelector("#assisted-code") && document.querySelector("#assisted-name").value && document.querySelector(".assisted-top").innerText.includes("Puntuale")`)
		evaluate[bool](b, `((e) => { e.value = `+quote(d.code())+`; e.dispatchEvent(new Event("input")); return true })(document.querySelector("#assisted-code"))`)
		b.tap(".assisted-main form .btn-primary")
		b.until(`location.search === "?p=agenzia-aurora" && document.querySelector(".assisted-top").innerText.includes("Messaggi Aurora")`)
		b.until(`document.querySelector(".assisted-cards h2")?.innerText.replace(/\s+/g, " ") === "Lucia Neri +39 333 123 4500"`)
		b.check("branded")
	})
}

// TestAssistedParts: the app can be installed under its partner's name, in the reader's language. Its worker stores
// only the page's files. A changed page gets a new worker.
func TestAssistedParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.newPartnerHandle().SetBrand(t.Context(), account.BrandChange{Name: "Messaggi Aurora", Colour: "#7a1fa2", Logo: picture(t, 300, 100)}))
	plain, branded, english := w.visitor(0), w.visitor(0), w.visitor(0)
	english.language = "en"
	opened := branded.get("/phone?p=agenzia-aurora")
	if policy := opened.header.Get("Content-Security-Policy"); !strings.Contains(policy, "worker-src 'self'") || !strings.Contains(policy, "script-src 'self';") || strings.Contains(policy, "unsafe") {
		t.Errorf("the page's policy: %s", policy)
	}
	workers := map[string]bool{}
	for name, v := range map[string]*visitor{"Puntuale": plain, "Messaggi Aurora": branded, "english": english} {
		worker := v.get("/phone/worker.js")
		line, code, _ := strings.Cut(worker.body, "\n")
		var shell struct {
			Version, Page, Title, Body string
			Files                      []string
		}
		if err := json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimPrefix(line, "const shell = "), ";")), &shell); err != nil || !strings.Contains(code, "skipWaiting") {
			t.Fatalf("the worker: %v, %s", err, line)
		}
		if worker.header.Get("Service-Worker-Allowed") != "/phone" || !strings.HasPrefix(worker.header.Get("Content-Type"), "text/javascript") || worker.header.Get("Cache-Control") != "no-store" {
			t.Errorf("the worker's header: %v", worker.header)
		}
		for _, file := range append(shell.Files, shell.Page) {
			if r := v.get(file); r.status != http.StatusOK {
				t.Errorf("the worker keeps %s: %d", file, r.status)
			}
		}
		workers[shell.Version] = true
		if shell.Title != name && name != "english" {
			t.Errorf("notices of %s are by %s", name, shell.Title)
		}
	}
	if len(workers) != 3 {
		t.Errorf("three pages have the workers %v", workers)
	}
	for v, name := range map[*visitor]string{plain: "Puntuale", branded: "Messaggi Aurora"} {
		var manifest struct {
			Name, Display, Scope string
			Start                string `json:"start_url"`
			Icons                []struct{ Src, Sizes, Type string }
		}
		if err := json.Unmarshal([]byte(v.get("/phone/manifest.webmanifest").body), &manifest); err != nil {
			t.Fatal(err)
		}
		if manifest.Name != name || manifest.Display != "standalone" || manifest.Scope != "/phone" || !strings.HasPrefix(manifest.Start, "/phone") {
			t.Errorf("the manifest: %+v", manifest)
		}
		for _, icon := range manifest.Icons {
			drawn, err := png.Decode(strings.NewReader(v.get(icon.Src).body))
			if err != nil || fmt.Sprintf("%[1]dx%[1]d", drawn.Bounds().Dx()) != icon.Sizes || drawn.Bounds().Dx() != drawn.Bounds().Dy() {
				t.Errorf("%s: %v", icon.Src, err)
			}
		}
	}
	if r := plain.get("/phone/icon/0/0/4000.png"); r.status != http.StatusNotFound {
		t.Errorf("an icon of another size: %d", r.status)
	}
}

// picture returns a red PNG of this size.
func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = []uint8{200, 30, 30, 255}[i%4]
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
