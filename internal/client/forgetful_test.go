package client_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"puntuale/internal/client"
	"puntuale/internal/clock"
)

// forgetful is a server that executes each call, but loses the first answer to each. Its ledger contains the effects.
type forgetful struct {
	t      *testing.T
	mu     sync.Mutex
	heard  map[string]bool
	once   string // the idempotency key of the created campaign
	list   string
	state  string
	digest string // the digest in the start call
	ledger []string
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	call := r.Method + " " + r.URL.Path
	status, answer := f.does(call, r.Header.Get("Idempotency-Key"), string(body))
	if err != nil || status == http.StatusTeapot {
		f.t.Errorf("%s %s: %v", call, body, err)
	}
	if !f.heard[call] {
		f.heard[call] = true
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	fmt.Fprint(w, answer)
}

// does executes a call. A repeated call changes nothing, as docs/api.md says.
func (f *forgetful) does(call, once, body string) (status int, answer string) {
	did := func(what string) { f.ledger = append(f.ledger, what) }
	campaign := func() (int, string) { return http.StatusOK, fmt.Sprintf(`{"id":"7","state":%q}`, f.state) }
	switch call {
	case "POST /api/campaigns":
		if once == "" || f.once != "" && f.once != once {
			return http.StatusTeapot, ""
		}
		if f.once == "" {
			f.once, f.state = once, "draft"
			did("made")
		}
		return campaign()
	case "PUT /api/campaigns/7/recipients":
		f.list = body
		return http.StatusOK, `{"recipients":1}`
	case "POST /api/campaigns/7/check":
		f.state = "ready"
		return http.StatusOK, fmt.Sprintf(`{"digest":"sum of %d","valid":1,"recipients":1}`, len(f.list))
	case "POST /api/campaigns/7/start":
		if want := fmt.Sprintf(`{"digest":"%s"}`, cmp.Or(f.digest, fmt.Sprintf("sum of %d", len(f.list)))); body != want {
			return http.StatusConflict, `{"code":"conflict","detail":"it runs"}`
		}
		if f.digest == "" {
			f.digest, f.state = fmt.Sprintf("sum of %d", len(f.list)), "running"
			did("started")
		}
		return campaign()
	case "GET /api/campaigns/7":
		return campaign()
	case "POST /api/campaigns/7/pause":
		if f.state == "running" {
			f.state = "paused"
			did("paused")
		}
		return campaign()
	}
	return http.StatusTeapot, ""
}

// The server executes every call, but its first answer is lost. Each effect still happens only once.
func TestForgetfulServer(t *testing.T) {
	t.Parallel()
	f := &forgetful{t: t, heard: map[string]bool{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	c := client.New(server.URL, theKey, &jump{Clock: clock.System()})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	made, err := c.CreateCampaign(ctx, client.CampaignOrder{Name: "Saldi"}, "a key of the order")
	must(err)
	_, err = c.UploadList(ctx, made.ID, client.File{From: strings.NewReader(list), Size: int64(len(list))}, "", func(int64) {})
	must(err)
	check, err := c.CheckCampaign(ctx, made.ID, func(client.Check) {})
	must(err)
	_, err = c.StartCampaign(ctx, made.ID, check.Digest)
	must(err)
	found, err := c.Campaign(ctx, made.ID)
	must(err)
	paused, err := c.ChangeCampaign(ctx, made.ID, "pause")
	must(err)
	if found.State != "running" || paused.State != "paused" || f.list != list {
		t.Errorf("it was %s, then %s, with the list %q", found.State, paused.State, f.list)
	}
	if want := []string{"made", "started", "paused"}; !slices.Equal(f.ledger, want) {
		t.Errorf("the server did %q, want %q", f.ledger, want)
	}
}
