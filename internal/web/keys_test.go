package web_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"puntuale"
)

var clientKey = regexp.MustCompile(`ck_[A-Za-z0-9_-]+`)

// works reports whether the API accepts a key.
func (w *world) works(key string) bool {
	_, err := w.control.Authenticate(context.Background(), key)
	return err == nil
}

// TestOwnKeys: a key is shown once. It works, can be rotated, and can be revoked. Only an owner can open these pages.
func TestOwnKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v, page := w.visitor(w.clients[puntuale.Owner]), w.pages+"/keys"
	if r := v.post(page, url.Values{"name": {" "}}); r.status != http.StatusUnprocessableEntity {
		t.Errorf("without a name: %d", r.status)
	}
	r := v.post(page, url.Values{"name": {"gestionale"}})
	made := clientKey.FindString(r.body)
	if r.status != http.StatusOK || !w.works(made) || r.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d, the key %q does not work", r.status, made)
	}
	list := v.get(page).body
	if strings.Contains(list, made) || !strings.Contains(list, "gestionale") {
		t.Error("the key is shown again, or missing")
	}
	if _, row, _ := strings.Cut(words(list), "gestionale"); !strings.Contains(row, "usata l’ultima volta 10:00") {
		t.Errorf("the page does not say when the key was last used: %s", row)
	}
	ids := regexp.MustCompile(`/keys/([0-9]+)/revoke`).FindAllStringSubmatch(list, -1)
	last := ids[len(ids)-1][1]
	next := clientKey.FindString(v.post(page+"/"+last+"/rotate", nil).body)
	if !w.works(next) || !w.works(made) || next == made {
		t.Error("after a rotation one of the keys does not work")
	}
	if r := v.post(page+"/"+last+"/revoke", nil); r.status != http.StatusSeeOther || w.works(made) || !w.works(next) {
		t.Errorf("revoked: %d", r.status)
	}
	golden(t, "keys", inMain(clientKey.ReplaceAllString(v.get(page).body, "ck_KEY")))
}

func TestUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	golden(t, "usage", inMain(w.visitor(w.clients[puntuale.Reader]).get(w.pages+"/usage").body))
}
