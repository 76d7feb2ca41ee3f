//go:build e2e && figures

package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestFigureRedirects follows the links of sent messages at 5,000 a second, each from another address, and prints how
// long redirects take, and start calls before and meanwhile. The callers share the server's processors.
func TestFigureRedirects(t *testing.T) {
	conditions(t)
	const rate, lasting, callers, linked = 5000, 15 * time.Second, 32, 2000
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database, "--public-url", "https://wa.example.com")
		who := createTenant(t, s.base, createPartner(t, database), "full", step("Ciao, https://negozio.example/offerta?da=sms", 0, "seconds"))
		must(t, "PATCH", s.base+"/api/settings", who.key, map[string]any{"track_links": true})
		for n := range linked {
			startOne(t, s.base, who, n)
		}
		var codes []string
		eventually(t, time.Minute, "all left", func() bool {
			codes = nil
			for _, m := range ledger(t, s.base, who.key) {
				if found := regexp.MustCompile(`https://wa\.example\.com(/r/\w+)`).FindStringSubmatch(m.Text); found != nil {
					codes = append(codes, found[1])
				}
			}
			return len(codes) == linked
		})
		time.Sleep(5 * time.Second)
		before := startDelays(t, s, who, lasting)

		through := &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}
		began := time.Now()
		var all sync.WaitGroup
		took := make([][]time.Duration, callers)
		for c := range callers {
			all.Go(func() {
				for n := c; ; n += callers {
					due := began.Add(time.Duration(n) * time.Second / rate)
					if due.Sub(began) > lasting {
						return
					}
					time.Sleep(time.Until(due))
					r, err := http.NewRequestWithContext(t.Context(), "GET", s.base+codes[n%linked], nil)
					if err != nil {
						t.Error(err)
						return
					}
					r.Header.Set("User-Agent", "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X)")
					r.Header.Set("X-Forwarded-For", fmt.Sprintf("100.%d.%d.%d", 64+n>>16&63, n>>8&255, n&255))
					answer, err := through.RoundTrip(r)
					if err != nil {
						t.Error(err)
						return
					}
					if answer.Body.Close(); answer.StatusCode != http.StatusFound {
						t.Errorf("%d", answer.StatusCode)
						return
					}
					took[c] = append(took[c], time.Since(due))
				}
			})
		}
		during := startDelays(t, s, who, lasting)
		all.Wait()
		spent := time.Since(began)
		redirects := slices.Sorted(slices.Values(slices.Concat(took...)))
		eventually(t, time.Minute, "all clicks are counted", func() bool {
			return number(t, database, "select coalesce(sum(clicks), 0) from link") == len(redirects)
		})
		t.Logf("REDIRECTS: %d in %v, %.0f a second: p50 %v, p99 %v; start calls before: p50 %v, p99 %v; meanwhile: p50 %v, p99 %v",
			len(redirects), spent.Round(10*time.Millisecond), float64(len(redirects))/spent.Seconds(), quantile(redirects, 0.5), quantile(redirects, 0.99),
			quantile(before, 0.5), quantile(before, 0.99), quantile(during, 0.5), quantile(during, 0.99))
	})
}
