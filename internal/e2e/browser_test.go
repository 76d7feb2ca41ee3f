//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a headless Chromium with one tab. It records what its pages do.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []*network.Request
	said     []string // lines on the console, and exceptions
}

// newBrowser starts Chromium. In CI the test fails if Chromium is missing.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	program := os.Getenv("PUNTUALE_TEST_CHROMIUM")
	if program == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("PUNTUALE_TEST_CHROMIUM is not set: in CI the browser tests must run")
		}
		t.Skip("PUNTUALE_TEST_CHROMIUM is not set (scripts/with-chromium sets it)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		// Pages cannot load anything from other servers.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	within, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the page of the API has a hundred and fifty calls, and CI is slow
	t.Cleanup(cancel)
	allocated, stop := chromedp.NewExecAllocator(within, options...)
	t.Cleanup(stop)
	b := &browser{t: t}
	var closeTab context.CancelFunc
	b.ctx, closeTab = chromedp.NewContext(allocated)
	t.Cleanup(closeTab)
	if err := chromedp.Listen(b.ctx, b.note); err != nil {
		t.Fatal(err)
	}
	const violations = `globalThis.violations = []; addEventListener("securitypolicyviolation",
		e => violations.push(e.violatedDirective + " " + e.blockedURI + " " + e.sourceFile + ":" + e.lineNumber));`
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: violations}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return b
}

// note stores an event. The browser's event loop calls it.
func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request)
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, fmt.Sprintf("exception: %s", e.ExceptionDetails.Text))
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			words, _ := json.Marshal(e.Args)
			b.said = append(b.said, fmt.Sprintf("%s: %s", e.Type, words))
		}
	}
}

// do executes actions in the browser. Each action must succeed.
func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for i, step := range steps {
		ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
		err := chromedp.Do(ctx, step)
		cancel()
		if err != nil {
			b.screenshot(fmt.Sprintf("failed-%d", i))
			b.t.Fatalf("step %d: %v; the console says %q", i, err, b.said)
		}
	}
}

// evaluate runs a script in the page and returns its result.
func evaluate[T any](b *browser, script string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return value
}

// screenshot stores a picture of the visible page, if PUNTUALE_SCREENSHOTS names a folder.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	folder := os.Getenv("PUNTUALE_SCREENSHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600)
	}
	if err != nil {
		b.t.Log(err)
	}
}

// keepsToItself fails the test if the page broke its content security policy, sent a request to another server, or
// wrote an error.
func (b *browser) keepsToItself(base string) {
	b.t.Helper()
	if broken := evaluate[[]string](b, "violations"); len(broken) > 0 {
		b.t.Errorf("%d violations of the content security policy: %q", len(broken), broken)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.requests) == 0 {
		b.t.Error("no request was noted")
	}
	for _, r := range b.requests {
		if !strings.HasPrefix(r.URL, base+"/") && !strings.HasPrefix(r.URL, "data:") {
			b.t.Errorf("the page asked for %s", r.URL)
		}
	}
	if len(b.said) > 0 {
		b.t.Errorf("the console says %q", b.said)
	}
}
