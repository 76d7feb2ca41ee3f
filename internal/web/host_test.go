package web_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"puntuale"
	"puntuale/internal/control/account"
)

// dns is a DNS resolver with records that the test sets.
type dns struct {
	mu    sync.Mutex
	texts map[string][]string
	fails error
}

func (d *dns) LookupTXT(_ context.Context, name string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails != nil {
		return nil, d.fails
	}
	if texts, ok := d.texts[name]; ok {
		return texts, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func (d *dns) set(name string, texts ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.texts = map[string][]string{name: texts}
}

// The method at returns the sign-in page under a host name.
func (w *world) at(host string) string {
	w.t.Helper()
	return w.visitor(0).do(http.MethodGet, "/login", nil, http.Header{"Host": {host}}).body
}

// TestOwnHost: the service's own host name never belongs to a partner, in any spelling and with any stored data.
func TestOwnHost(t *testing.T) {
	t.Parallel()
	w := newWorldAt(t, "https://app.example")
	v := w.visitor(w.partners[puntuale.Owner])
	aliases := []string{"app.example", "APP.Example", "app.example.", "app.example:443", " app.example ", "ａｐｐ.example", "app。example", "app.example.:8443"}
	for _, host := range aliases {
		r := v.post("/partner/brand", url.Values{"name": {"Messaggi Aurora"}, "host": {host}})
		if r.status != http.StatusUnprocessableEntity || !strings.Contains(r.body, `id="f-host-fault"`) {
			t.Errorf("%q: %d", host, r.status)
		}
	}
	p := w.store.Partner(w.partner) // sets a host name as earlier versions did, without a proof
	w.must(p.SetBrand(context.Background(), puntuale.Brand{Name: "Messaggi Aurora", Host: "app.example"}))
	w.must(p.ConfirmHost(context.Background(), "app.example"))
	for _, host := range []string{"app.example", "APP.example.", "app.example:443"} {
		if strings.Contains(w.at(host), "Messaggi Aurora") {
			t.Errorf("the login page at %s is a partner's", host)
		}
		login := url.Values{"email": {"altra@example.com"}, "password": {password}}
		if r := w.visitor(0).do(http.MethodPost, "/login", login, http.Header{"Host": {host}}); r.status != http.StatusSeeOther {
			t.Errorf("another partner signs in at %s: %d", host, r.status)
		}
	}
}

// TestHostProof: a host name belongs to a partner only after DNS or the operator confirms it. Before that, any partner
// may enter it.
func TestHostProof(t *testing.T) {
	t.Parallel()
	w := newWorldAt(t, "https://app.example")
	const host = "xn--nchste-bua.example"
	ctx := context.Background()
	v := w.visitor(w.partners[puntuale.Owner])
	other := w.newPartner("Terza Agenzia", "terza@example.com")
	w.must(other.SetBrand(ctx, account.BrandChange{Host: host}))
	if r := v.post("/partner/brand", url.Values{"name": {"Messaggi Aurora"}, "host": {"Nächste.example"}}); r.status != http.StatusSeeOther {
		t.Fatalf("ask for a name that another asks for, too: %d", r.status)
	}
	proof := w.newPartnerHandle().HostProof(host)
	page := v.get("/partner/brand").body
	if proof.Name != "_puntuale."+host || !strings.Contains(page, proof.Name) || !strings.Contains(page, proof.Text) || proof.Text == other.HostProof(host).Text {
		t.Errorf("the page does not show the record %+v", proof)
	}
	prove := func(want int, says string) {
		t.Helper()
		r := v.post("/partner/brand/host", nil)
		if r.status != want || !strings.Contains(r.body, says) {
			t.Errorf("prove it: %d, want %d and %q", r.status, want, says)
		}
		if served := strings.Contains(w.at(host), "Messaggi Aurora"); served != (want == http.StatusSeeOther) {
			t.Errorf("after the answer %d: served %v", want, served)
		}
	}
	prove(http.StatusUnprocessableEntity, "DNS non c’è ancora")
	w.dns.set(proof.Name+".", "v=spf1 -all", other.HostProof(host).Text)
	prove(http.StatusUnprocessableEntity, "DNS non c’è ancora")
	w.dns.fails = &net.DNSError{Err: "timeout", IsTimeout: true}
	prove(http.StatusConflict, "non ha risposto")
	w.dns.fails = nil
	w.dns.set(proof.Name+".", "v=spf1 -all", proof.Text)
	prove(http.StatusSeeOther, "")
	if page := v.get("/partner/brand").body; strings.Contains(page, proof.Text) || !strings.Contains(page, host+" è confermato") {
		t.Error("the page still asks for a proof")
	}
	if !strings.Contains(v.get("/partner/audit").body, "Nome host confermato") {
		t.Error("the log does not have it")
	}
	w.dns.set(proof.Name+".", other.HostProof(host).Text)
	if err := other.ProveHost(ctx); puntuale.CodeOf(err) != puntuale.CodeConflict {
		t.Errorf("another partner proves it later: %v", err)
	}
	w.must(w.accounts.WithdrawHost(ctx, w.partner))
	if strings.Contains(w.at(host), "Messaggi Aurora") {
		t.Error("served after the operator withdrew it")
	}
	w.must(w.accounts.ConfirmHost(ctx, other.ID(), "NÄCHSTE.example."))
	if !strings.Contains(w.at(host), "Terza Agenzia") {
		t.Error("what the operator confirms is not served")
	}
}

// TestLargeLogo: a logo that is too large is a fault at its field. The other values that the person typed stay in the
// form.
func TestLargeLogo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.partners[puntuale.Owner])
	for name, size := range map[string]int{"a little": account.MaxLogo + 1, "beyond what a form may have": 3 << 20} {
		body := "--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nMessaggi Aurora\r\n" +
			"--x\r\nContent-Disposition: form-data; name=\"logo\"; filename=\"logo.png\"\r\n\r\n" + strings.Repeat("x", size) + "\r\n--x--\r\n"
		r := v.send("/partner/brand", body, http.Header{"Content-Type": {"multipart/form-data; boundary=x"}, "Hx-Request": {"true"}})
		if r.status != http.StatusUnprocessableEntity || !strings.Contains(r.body, `id="f-logo-fault"`) || !strings.Contains(r.body, `value="Messaggi Aurora"`) {
			t.Errorf("%s: %d %.200s", name, r.status, r.body)
		}
	}
}
