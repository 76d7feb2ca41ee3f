package web_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/auth"
)

// screen is the size, colours and language with which a person sees a page.
type screen struct {
	width, height int64
	scheme        string // light or dark
	language      string // it or en
}

func (s screen) String() string { return fmt.Sprintf("%d-%s-%s", s.width, s.scheme, s.language) }

// screens returns the screens on which a test runs. Each test has a pair of screens: a phone and a desktop that differ
// in size, colours and language. The pair depends on the test's name, so that all tests together use all eight screens.
// "make test" uses one screen of the pair, and "make pages" the other (PUNTUALE_SCREENS=other). With
// PUNTUALE_SCREENS=all, each test uses all eight screens.
func screens(t *testing.T) []screen {
	t.Helper()
	phones := []screen{{390, 844, "light", "it"}, {390, 844, "dark", "en"}, {390, 844, "dark", "it"}, {390, 844, "light", "en"}}
	desks := []screen{{1280, 900, "dark", "en"}, {1280, 900, "light", "it"}, {1280, 900, "light", "en"}, {1280, 900, "dark", "it"}}
	name := fnv.New32a()
	_, _ = name.Write([]byte(t.Name())) // this cannot fail
	hash := name.Sum32()
	pair := []screen{phones[hash%4], desks[hash%4]}
	if hash/4%2 == 1 {
		slices.Reverse(pair)
	}
	switch chosen := os.Getenv("PUNTUALE_SCREENS"); chosen {
	case "":
		return pair[:1]
	case "other":
		return pair[1:]
	case "all":
		return append(phones, desks...)
	default:
		t.Fatalf("PUNTUALE_SCREENS is %q, not other or all", chosen)
		return nil
	}
}

// chromium is one browser process for all tests of the package. The first test with a browser starts the process, and
// TestMain ends it.
var chromium struct {
	sync.Mutex
	ctx   context.Context
	stops []func()
	tabs  chan struct{} // at most three tabs are open at the same time, because more would only wait for each other
}

func TestMain(m *testing.M) {
	auth.CheapForTests()
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	// With two stories at the same time, two processors are idle for a third of the time, because stories wait for the
	// browser. So three stories run at the same time.
	if at := flag.Lookup("test.parallel"); !asked && at.Value.String() == "2" {
		_ = at.Value.Set("3")
	}
	code := m.Run()
	for i := len(chromium.stops) - 1; i >= 0; i-- {
		chromium.stops[i]()
	}
	os.Exit(code)
}

func startChromium(t testing.TB) context.Context {
	t.Helper()
	program := os.Getenv("PUNTUALE_TEST_CHROMIUM")
	if program == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("PUNTUALE_TEST_CHROMIUM is not set: in CI the browser tests must run")
		}
		t.Skip("PUNTUALE_TEST_CHROMIUM is not set, so pages are not tried in a browser; run with scripts/with-chromium")
	}
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx != nil {
		return chromium.ctx
	}
	profile, err := os.MkdirTemp("", "puntuale-browser")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		// A page is open for about a second, so JavaScript's optimising compilers cost more time than they save.
		chromedp.Flag("js-flags", "--no-turbofan --no-maglev"),
		// A page can load nothing from other hosts.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	first, closeFirst := chromedp.NewContext(allocated)
	if err := chromedp.Do(first); err != nil {
		stop()
		t.Fatalf("start the browser: %v", err)
	}
	chromium.ctx, chromium.tabs = first, make(chan struct{}, 3)
	chromium.stops = []func(){func() { _ = os.RemoveAll(profile) }, stop, closeFirst}
	return first
}

// browser is a tab with its own cookies. It records what its pages do. The test fails if a page broke its policy, sent
// a request to another server, or wrote an error to the console.
type browser struct {
	t    *testing.T
	w    *world
	ctx  context.Context
	look screen

	taps, typed int // how many clicks and filled fields a person would need

	mu       sync.Mutex
	requests []*network.Request
	said     []string // what the pages wrote to the console, and their exceptions
}

// newBrowser opens a tab with this screen.
func newBrowser(t *testing.T, w *world, look screen) *browser { //nolint:thelper // each browser test begins with newBrowser, and the browser stores t
	t.Helper()
	process := startChromium(t)
	chromium.tabs <- struct{}{}
	ctx, closeTab := chromedp.NewContext(process, chromedp.WithNewBrowserContext())
	t.Cleanup(func() { closeTab(); <-chromium.tabs })
	b := &browser{t: t, w: w, ctx: ctx, look: look}
	if err := chromedp.Listen(b.ctx, b.note); err != nil {
		t.Fatal(err)
	}
	const violations = `globalThis.violations = []; addEventListener("securitypolicyviolation",
		e => violations.push(e.violatedDirective + " " + e.blockedURI + " " + e.sourceFile + ":" + e.lineNumber + " " + e.sample));`
	rules, err := axe()
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{violations, rules} {
		command(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	}
	command(b, network.Enable, network.EnableParams{})
	b.turn(look)
	t.Cleanup(b.keepsToItself)
	return b
}

// listen calls the function hear for every event of the tab.
func (b *browser) listen(hear func(event any)) {
	b.t.Helper()
	if err := chromedp.Listen(b.ctx, hear); err != nil {
		b.t.Fatal(err)
	}
}

// command calls the browser's DevTools protocol.
func command[P, R any](b *browser, c cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, c, params); err != nil {
		b.t.Fatalf("%s: %v", c.Method, err)
	}
}

// turn changes the tab's screen. It also sets the language that pages use for readers who have not chosen a language.
func (b *browser) turn(look screen) {
	b.t.Helper()
	b.look = look
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: look.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	command(b, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": look.language}})
	b.do(chromedp.EmulateViewport(look.width, look.height))
}

// note stores an event. The browser's event loop calls it.
func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request)
	case *runtime.EventExceptionThrown:
		words := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			words += " " + e.ExceptionDetails.Exception.Description
		}
		b.said = append(b.said, "exception: "+words)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			words, _ := json.Marshal(e.Args)
			b.said = append(b.said, fmt.Sprintf("%s: %s", e.Type, words))
		}
	}
}

// within is the time limit of one action in the browser. It is long, because the machine may be busy.
const within = time.Minute

// do runs actions in the browser. The test fails if an action fails.
func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for i, step := range steps {
		var err error
		for range 5 { // the page may replace an element between the search for it and the click on it; then nothing was clicked
			ctx, cancel := context.WithTimeout(b.ctx, within)
			err = chromedp.Do(ctx, step)
			cancel()
			if err == nil || !strings.Contains(err.Error(), "Could not find node") {
				break
			}
		}
		if err != nil {
			b.picture("failed")
			b.t.Fatalf("%s, step %d: %v; the console says %q", b.look, i, err, b.said)
		}
	}
}

// evaluate returns the result of a script in the page. If the script returns a promise, evaluate waits for it.
func evaluate[T any](b *browser, script string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, within)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.picture("failed")
		b.t.Fatalf("%s: %.200s: %v", b.look, script, err)
	}
	return value
}

// open opens a page, and waits until the page is ready.
func (b *browser) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.w.base + path))
	b.until(`document.readyState === "complete"`)
}

// signIn signs a user in. The browser then shows the user's first page.
func (b *browser) signIn(user puntuale.UserID) {
	b.t.Helper()
	b.open("/ticket?t=" + b.w.ticket(user))
	b.until(`location.pathname !== "/ticket" && document.readyState === "complete"`)
}

// holds runs a script once, and reports whether the script returned true. holds returns an error while the browser
// loads another page.
func (b *browser) holds(script string) (bool, error) {
	ctx, cancel := context.WithTimeout(b.ctx, within)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+script+")"))
}

// The method until runs a script again and again, until the script returns true.
func (b *browser) until(script string) {
	b.t.Helper()
	deadline, look := time.Now().Add(within), time.NewTicker(20*time.Millisecond)
	defer look.Stop()
	for {
		done, err := b.holds(script)
		if done {
			return
		}
		if time.Now().After(deadline) {
			b.picture("failed")
			b.t.Fatalf("%s: never came true: %s (%v); the page says %.600q; the console says %q", b.look, script, err, b.text("body"), b.said)
		}
		<-look.C
	}
}

// click waits for the element of the selector, and clicks on the element.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector(%q)`, selector))
	b.taps++
	// Scroll the element to the middle first, because the bar on a phone covers the bottom of the page.
	evaluate[bool](b, fmt.Sprintf(`(document.querySelector(%q).scrollIntoView({block: "center"}), true)`, selector))
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// enter presses the Enter key as a keyboard does: if the page prevents the key's default action, the browser sends no
// form. chromedp.KeyEvent sends the typed character apart from the key, and such a character always sends the form.
func (b *browser) enter() {
	b.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		key := input.DispatchKeyEventParams{Type: kind, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13}
		if kind == input.DispatchKeyEventTypeKeyDown {
			key.Text, key.UnmodifiedText = "\r", "\r"
		}
		command(b, input.DispatchKeyEvent, key)
	}
}

// press clicks on the visible button or link with these words.
func (b *browser) press(words string) {
	b.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("dialog[open] :is(button, a, summary), :is(button, a, summary)")].find(e => e.checkVisibility() && (e.innerText.trim() === %[1]q || e.ariaLabel === %[1]q))`, words)
	b.until(find)
	evaluate[bool](b, `((e) => { e.scrollIntoView({block: "center"}); e.click(); return true })(`+find+`)`)
}

// leaves runs the function act, which makes the browser go to another page. Then it waits until that page is ready.
// Without this wait, a test could look at the former page, which still gets updates from the server.
func (b *browser) leaves(act func()) {
	b.t.Helper()
	evaluate[bool](b, `window.former = true`) // the next page does not have this variable
	act()
	b.until(`!window.former && document.readyState === "complete"`)
}

// fill types texts into fields. The argument pairs contains each field's name, followed by its text. fill looks for a
// field first in the open dialog, then in the page.
func (b *browser) fill(pairs ...string) {
	b.t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		b.taps, b.typed = b.taps+1, b.typed+utf8.RuneCountInString(pairs[i+1])
		selector := "[name='" + pairs[i] + "']"
		field := fmt.Sprintf(`(document.querySelector(%q) || document.querySelector(%q))`, "dialog[open] "+selector, selector)
		b.until(field)
		evaluate[bool](b, fmt.Sprintf(`((e, text) => { e.focus(); e.value = text; e.dispatchEvent(new Event("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true})); return true })(%s, %s)`, field, quote(pairs[i+1])))
	}
}

func quote(text string) string {
	content, _ := json.Marshal(text)
	return string(content)
}

// text returns the visible text of an element, or "" if there is no such element.
func (b *browser) text(selector string) string {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector)))
	if err != nil {
		return err.Error()
	}
	return value
}

// reads waits until the page shows these words.
func (b *browser) reads(words string) {
	b.t.Helper()
	b.until(`document.body?.innerText.replace(/\s+/g, " ").includes(` + quote(words) + `)`)
}

// picture stores a screenshot as TEST-SCREEN-NAME.png, if PUNTUALE_SCREENSHOTS names a folder.
func (b *browser) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("PUNTUALE_SCREENSHOTS")
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, within)
	defer cancel()
	content, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, strings.ReplaceAll(b.t.Name()+"-"+name, "/", "-")+".png"), content, 0o600)
	}
	if err != nil {
		b.t.Log(err)
	}
}

// axe is a script that defines loadAxe, which loads axe-core, a checker of accessibility. The browser adds the script
// to every page, and stores it compiled. Sending the script for each check would take a third of the check's time.
var axe = sync.OnceValues(func() (string, error) {
	content, err := os.ReadFile(filepath.Join("testdata", "axe-core", "axe.min.js"))
	return "globalThis.loadAxe = () => {" + string(content) + "}", err
})

// check checks the present page. The page must break no rule of accessibility. No element may be wider than the screen
// or its card. No text may be missing. check also stores a picture of the page.
func (b *browser) check(name string) {
	b.t.Helper()
	b.until(`document.readyState === "complete"`) // a page that is still loading is not complete
	b.picture(name)
	found := evaluate[[]string](b, `loadAxe(), axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.flatMap(v =>
		v.nodes.map(n => v.id + " (" + v.impact + "): " + n.html.slice(0, 160) + " — " + n.failureSummary.replace(/\s+/g, " ").slice(0, 240))))`)
	for _, f := range found {
		b.t.Errorf("%s, %s: axe: %s", name, b.look, f)
	}
	if wide := evaluate[[]string](b, beyond); len(wide) > 0 {
		b.t.Errorf("%s, %s: %d elements reach beyond the page: %q", name, b.look, len(wide), wide[:min(len(wide), 8)])
	}
	if cut := evaluate[[]string](b, `[...document.querySelectorAll(".card")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.className + ": " + e.innerText.slice(0, 60))`); len(cut) > 0 {
		b.t.Errorf("%s, %s: cut off at their right: %q", name, b.look, cut)
	}
	if missing := evaluate[[]string](b, `document.documentElement.outerHTML.match(/⟦[^⟧]*⟧/g) || []`); len(missing) > 0 {
		b.t.Errorf("%s, %s: texts are missing: %q", name, b.look, missing)
	}
}

// beyond is a script that returns the elements that reach beyond the page's right edge and make the page wider.
const beyond = `(() => {
	const page = document.documentElement;
	if (page.scrollWidth <= page.clientWidth) return [];
	return [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > page.clientWidth + 0.5)
		.map(e => e.tagName + "." + e.className + " " + Math.round(e.getBoundingClientRect().right));
})()`

// keepsToItself fails the test if a page broke its policy, sent a request to another server, or wrote an error to the
// console.
func (b *browser) keepsToItself() {
	b.t.Helper()
	look := chromedp.Evaluate[[]string]("globalThis.violations || []")
	within, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	broken, err := chromedp.Run(within, look)
	for err != nil && strings.Contains(err.Error(), "navigated or closed") && within.Err() == nil { // the story's last click still loads a page
		broken, err = chromedp.Run(within, look)
	}
	if err != nil || len(broken) > 0 {
		b.t.Errorf("%s: %d violations of the content security policy: %q, %v", b.look, len(broken), broken, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.requests {
		if !strings.HasPrefix(r.URL, b.w.base+"/") && !strings.HasPrefix(r.URL, "data:") {
			b.t.Errorf("%s: the page asked for %s", b.look, r.URL)
		}
	}
	for _, words := range b.said {
		b.t.Errorf("%s: the console says %s", b.look, words)
	}
}

// onScreens runs a story on each screen of the test. Each run has its own tab and its own world.
func onScreens(t *testing.T, story func(t *testing.T, w *world, b *browser)) {
	t.Helper()
	t.Parallel()
	startChromium(t)
	for _, look := range screens(t) {
		t.Run(look.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			story(t, w, newBrowser(t, w, look))
		})
	}
}
