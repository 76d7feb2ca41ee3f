package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// TestLinkAsksForOneSession: any text of --session becomes exactly one escaped segment of the path.
func TestLinkAsksForOneSession(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.RequestURI+" "+r.Header.Get("Authorization"))
		_, _ = w.Write([]byte(`{"state": "online", "number": "+393331234567"}`))
	}))
	t.Cleanup(server.Close)
	for id, path := range map[string]string{"7": "7", "7/../8?x#y": "7%2F..%2F8%3Fx%23y"} {
		asked = nil
		code, out, said := newConsole(t, nil).runs("pk_x\n", "link", "--session", id, "--server", server.URL+"/")
		if code != exitDone || out != "linked +393331234567\n" {
			t.Errorf("%s: exit code %d, %q %s", id, code, out, said)
		}
		if want := []string{"POST /api/sessions/" + path + "/pair Bearer pk_x"}; !slices.Equal(asked, want) {
			t.Errorf("%s: asked for %q, want %q", id, asked, want)
		}
	}
}
