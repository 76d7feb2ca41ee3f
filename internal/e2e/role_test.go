//go:build e2e

package e2e

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestRoles: one server answers calls and two others send. When a call starts a message, the senders get it
// immediately. If one sender is killed, the other sender sends the messages of both.
func TestRoles(t *testing.T) {
	database := postgres(t)
	api := serve(t, database, "--roles", "api", "--lease", "2s")
	var senders []*server
	for range 2 {
		senders = append(senders, serve(t, database, "--roles", "dispatch", "--lease", "2s"))
	}
	f := &fleet{t: t, database: database}
	partner := createPartner(t, database)
	var tenants []tenant
	for range 8 {
		tenants = append(tenants, createTenant(t, api.base, partner, "full", step("{{n}}", 0, "seconds")))
	}
	f.await("both senders own sessions, and nobody else does", func() bool {
		return f.owners() == 2 && f.free() == 0 && f.number("select count(*) from node") == 2
	})
	response, err := http.Get(senders[0].base + "/api/sequences") // a plain request, because the OpenAPI document does not describe this answer
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("a server without api answers a call with %d", response.StatusCode)
	}
	var took []time.Duration
	for _, who := range tenants {
		took = append(took, arrivals(t, api.base, who, "hinted", 20)...)
	}
	slices.Sort(took)
	t.Logf("from a call at one server to the network by another: p50 %v, max %v", took[len(took)/2], took[len(took)-1])

	senders[0].kill()
	for _, who := range tenants {
		must(t, "POST", api.base+"/api/start/"+who.sequence, who.key, map[string]any{"phone": "+393470000000", "n": "later"})
	}
	for _, who := range tenants {
		f.await("the other sender took over", func() bool { return len(ledger(t, api.base, who.key)) == 21 })
	}
	for _, who := range tenants {
		seen := map[string]int{}
		for _, r := range ledger(t, api.base, who.key) {
			if seen[r.Phone+r.Text]++; seen[r.Phone+r.Text] > 1 {
				t.Errorf("%s arrived twice", r.Text)
			}
		}
	}
	for _, s := range []*server{api, senders[1]} {
		if code := s.terminate(20 * time.Second); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}
