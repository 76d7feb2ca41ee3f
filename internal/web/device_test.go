package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestDevice: attempts from a browser that signed in before have their own limit. Attempts from other browsers cannot
// use this limit up. After a change of the password, only the browser of the change is still known.
func TestDevice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const signInPage, email, next = "/p/agenzia-aurora", "studio@example.com", "tramonto sul lago" // a page of one partner, so that only this partner's logins are compared
	known, other := w.visitor(0), w.visitor(0)
	r := known.post(signInPage, login(email, password))
	cookie := cookieOf(r, "device")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie lacks %s: %q", want, cookie)
		}
	}
	secure := w.visitor(0).do(http.MethodPost, signInPage, login(email, password), http.Header{"X-Forwarded-Proto": {"https"}, "Sec-Fetch-Site": {"same-origin"}})
	if c := cookieOf(secure, "__Host-device"); !strings.Contains(c, "Secure") {
		t.Errorf("by https: %q", c)
	}
	other.post(signInPage, login(email, password))
	for _, v := range []*visitor{known, other} {
		if r := v.post("/logout", nil); r.status != http.StatusSeeOther {
			t.Fatal(r.status)
		}
	}
	last := 0
	attack := func() {
		for i := range 51 {
			v := w.visitor(0)
			v.forwarded = fmt.Sprint("203.0.113.", i)
			last = v.post(signInPage, login(email, "sbagliata")).status
		}
	}
	attack()
	if r := w.visitor(0).post(signInPage, login(email, password)); last != http.StatusTooManyRequests || r.status != last || r.header.Get("Retry-After") == "" {
		t.Errorf("after 50 attempts: %d; the right one from another device: %d, Retry-After %q", last, r.status, r.header.Get("Retry-After"))
	}
	if r := known.post(signInPage, login(email, password)); r.to() != w.pages {
		t.Fatalf("the owner's device: %d", r.status)
	}

	// The browser on which the password was changed is still a known browser. All other browsers are not.
	if r := known.post("/me/password", url.Values{"present": {password}, "password": {next}}); r.status != http.StatusSeeOther {
		t.Fatal(r.status)
	}
	known.post("/logout", nil)
	attack() // the former attempts do not count for the new password
	if r := other.post(signInPage, login(email, next)); r.status != http.StatusTooManyRequests {
		t.Errorf("a device of before: %d", r.status)
	}
	if r := known.post(signInPage, login(email, next)); r.to() != w.pages {
		t.Errorf("where the password was changed: %d", r.status)
	}
	known.post("/logout", nil)
	for range 6 {
		last = known.post(signInPage, login(email, "sbagliata")).status
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("guessing at a known device: %d", last)
	}
	forged := w.visitor(0)
	at, _ := url.Parse(w.base)
	forged.http.Jar.SetCookies(at, []*http.Cookie{{Name: "device", Value: "eyJ1IjoxfQ"}})
	if r := forged.post(signInPage, login("verdi@example.com", password)); r.status != http.StatusSeeOther {
		t.Errorf("with a cookie that is not ours: %d", r.status)
	}
}

// TestSignInFlood: while unknown callers fill the queue for passwords, a known browser still signs in soon. If the
// queue has no room for a request, the request is refused with a time to wait. The test does not run in parallel,
// because the whole process has one queue.
func TestSignInFlood(t *testing.T) {
	w := newWorld(t)
	good := w.visitor(0)
	good.post("/login", login("studio@example.com", password))
	good.post("/logout", nil)
	var judged, refused atomic.Int64
	var group sync.WaitGroup
	begun := make(chan struct{})
	var once sync.Once
	flood := make([]*visitor, 120)
	for i := range flood {
		flood[i] = w.visitor(0)
		flood[i].forwarded = fmt.Sprint("203.0.113.", i%30)
	}
	for i, v := range flood {
		group.Go(func() {
			r := v.post("/login", login(fmt.Sprint("nessuno", i, "@example.com"), "x"))
			switch {
			case r.status == http.StatusUnprocessableEntity:
				judged.Add(1)
			case r.status == http.StatusTooManyRequests && r.header.Get("Retry-After") != "":
				refused.Add(1)
			default:
				t.Errorf("flood: %d", r.status)
			}
			once.Do(func() { close(begun) })
		})
	}
	<-begun
	before := judged.Load()
	r := good.post("/login", login("studio@example.com", password))
	after := judged.Load()
	group.Wait()
	if r.to() != w.pages {
		t.Errorf("the owner: %d", r.status)
	}
	if after-before > 20 {
		t.Errorf("the owner waited for %d strangers", after-before)
	}
	if refused.Load() == 0 {
		t.Errorf("nobody was refused; %d were judged", judged.Load())
	}
}
