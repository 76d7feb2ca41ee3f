//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	cdp "github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestAssistedPhone uses the phone's page on the built server. Four messages are due: one is sent, one is skipped, one
// is cancelled before it is tapped, and one is returned. The person declares some outcomes while the network is away.
// Each outcome reaches the server once. On PostgreSQL there are two servers: the phone calls the first server, and all
// other callers call the second server.
func TestAssistedPhone(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		p := newDevicePost(t, database)
		b := newBrowser(t)
		network := listen(t, func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(p.nodes[0].base, "http://")) })
		base := "http://" + network.listener.Addr().String() // the phone's way to its server
		phones := []string{"+393331234500", "+393331234501", "+393331234502", "+393331234503"}
		ids := make([]string, len(phones))
		other := p.nodes[len(p.nodes)-1]
		for i, phone := range phones {
			var made struct{ ID []string }
			must(t, "POST", other.base+"/api/messages", p.key, map[string]any{"phone": phone, "text": "Ciao & benvenuta", "id_sessione": p.session}).into(t, &made)
			ids[i] = made.ID[0]
		}
		var offered struct {
			Code string `json:"pairing_code"`
		}
		must(t, "POST", other.base+"/api/sessions/"+p.session+"/pair", p.key, map[string]any{}).into(t, &offered)

		b.do(chromedp.EmulateViewport(390, 844),
			chromedp.Navigate(base+"/phone#code="+url.QueryEscape(offered.Code)))
		b.waitFor(`document.querySelector("#assisted-code")?.value && document.querySelector("#assisted-name")?.value`)
		opened := make(chan string, 100)
		if err := chromedp.Listen(b.ctx, func(event any) {
			if e, ok := event.(*page.EventWindowOpen); ok {
				opened <- e.URL
			}
		}); err != nil {
			t.Fatal(err)
		}
		b.tap(".assisted-main form .btn-primary")
		b.waitFor(onPhoneCard(phones[3], ".btn-primary"))
		b.screenshot("phone-list")

		b.tapCard(phones[0], onPhoneCard(phones[0], answersSent))
		if got, want := <-opened, "https://wa.me/393331234500?text=Ciao%20%26%20benvenuta"; got != want {
			t.Errorf("WhatsApp is opened with %s, want %s", got, want)
		}
		b.tapCard(phones[1], onPhoneCard(phones[1], answersSkipped))
		b.waitFor(`navigator.serviceWorker.controller`)
		b.away(network, true)
		b.waitFor(onPhoneCard(phones[2], ".btn-primary") + `.disabled`)
		b.answers(phones[0], answersSent)
		b.waitFor(`!` + onPhoneCard(phones[0], "h2"))
		b.answers(phones[1], answersSkipped)
		b.waitFor(`!document.querySelector(".assisted-held")`)
		b.do(chromedp.Navigate(base + "/phone")) // the page also works without a network, and still has the declared outcomes
		b.waitFor(`document.querySelectorAll(".assisted-notices .notice:not([style*=none])").length === 2`)
		b.screenshot("phone-away")
		for _, id := range ids[:2] {
			if m := details(t, other.base, p.key, []string{id})[id]; m.State != "PENDING" {
				t.Errorf("before the network came back message %s was %v", id, m)
			}
		}
		b.away(network, false)
		b.waitFor(`document.querySelector(".assisted-notices").innerText.trim() === "" && ` + onPhoneCard(phones[3], ".btn-primary"))

		must(t, "POST", other.base+"/api/messages/cancel", p.key, map[string]any{"id": []string{ids[2]}})
		b.tapCard(phones[2], `!`+onPhoneCard(phones[2], "h2")) // a notice tells it, unless the page learns of the cancellation before the tap
		b.tapCard(phones[3], onPhoneCard(phones[3], answersLater))
		b.answers(phones[3], answersLater)
		b.waitFor(`!document.querySelector(".assisted-held") && ` + onPhoneCard(phones[3], ".btn-primary"))
		b.screenshot("phone-returned")

		eventually(t, 20*time.Second, "the declarations are recorded", func() bool {
			m := details(t, other.base, p.key, ids)
			return m[ids[0]].State == "COMPLETED" && m[ids[1]].State == "FAILED" && m[ids[2]].State == "CANCELLED" && m[ids[3]].State == "PENDING"
		})
		for i, words := range []string{"dichiarato dall'operatore", "saltato"} {
			if m := details(t, other.base, p.key, []string{ids[i]})[ids[i]]; m.Detail == nil || !strings.Contains(*m.Detail, words) {
				t.Errorf("message %d: %v %v", i, m, m.Detail)
			}
		}
		outcomes := string(must(t, "GET", other.base+"/api/messages/statusByPeriod?"+url.Values{
			"start": {time.Now().Add(-time.Hour).Format("02/01/2006 15:04")}, "end": {time.Now().Add(2 * time.Hour).Format("02/01/2006 15:04")}}.Encode(), p.key, nil).body)
		for i, id := range ids {
			if n, want := strings.Count(outcomes, fmt.Sprintf(`"message_id":%s,`, id)), []int{1, 1, 0, 0}[i]; n != want {
				t.Errorf("message %d has %d outcomes, want %d: %s", i, n, want, outcomes)
			}
		}
	})
}

// Selectors of the buttons with which a person answers, by their position.
const (
	answersSent    = ".assisted-answers .btn:nth-child(1)"
	answersSkipped = ".assisted-answers .btn:nth-child(2)"
	answersLater   = ".assisted-answers .btn:nth-child(4)"
)

// onPhoneCard returns a script that finds the card of a number, and then the selector's element in this card.
func onPhoneCard(phone, selector string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".assisted-cards li")].find(e => e.querySelector("h2").innerText.replaceAll(" ", "").includes(%q))?.querySelector(%q)`, phone, selector)
}

// tapCard sends a real tap to the button of a message's card, because the browser opens a window only for a
// user's input. Cards move when other cards are answered. Therefore a tap that misses its card is repeated.
func (b *browser) tapCard(phone string, effect string) {
	b.t.Helper()
	find := onPhoneCard(phone, ".btn-primary")
	for range 10 {
		b.waitFor(find + ` && !` + find + `.disabled || (` + effect + `)`)
		place := func() []float64 {
			return evaluate[[]float64](b, `((e) => {
				if (!e) return [];
				e.scrollIntoView({block: "center"});
				const r = e.getBoundingClientRect();
				return [r.x + r.width / 2, r.y + r.height / 2];
			})(`+find+`)`)
		}
		look := time.NewTicker(20 * time.Millisecond)
		before := place()
		<-look.C
		if now := place(); len(now) == 2 && slices.Equal(before, now) { // it does not move any more
			b.do(chromedp.MouseClickXY(now[0], now[1]))
		}
		for range 100 {
			if evaluate[bool](b, "Boolean("+effect+")") {
				look.Stop()
				return
			}
			<-look.C
		}
		look.Stop()
	}
	b.t.Fatalf("%s was tapped, and nothing happened", phone)
}

// answers presses one of the buttons on the card of a message that the phone holds. It uses a script, because the card
// may move during an input event.
func (b *browser) answers(phone, answer string) {
	b.t.Helper()
	b.waitFor(onPhoneCard(phone, answer))
	evaluate[bool](b, `(`+onPhoneCard(phone, answer)+`.click(), true)`)
}

// away turns the phone's network off, or on again. The browser's own emulation would not do: a page that is loaded
// again may call the server before the emulation reaches the page.
func (b *browser) away(network *proxy, away bool) {
	b.t.Helper()
	if away {
		network.reset()
	} else {
		network.heal()
	}
	if _, err := chromedp.Call(b.ctx, cdp.OverrideNetworkState, cdp.OverrideNetworkStateParams{Offline: away, DownloadThroughput: -1, UploadThroughput: -1}); err != nil {
		b.t.Fatal(err)
	}
	b.waitFor(fmt.Sprintf(reached, !away))
}

// reached is a script that checks whether the page reaches its server.
const reached = `(fetch("/ready?" + Math.random(), {cache: "no-store"}).then(() => { window.reached = true }, () => { window.reached = false }), window.reached === %t)`
