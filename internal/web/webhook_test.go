package web_test

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/request"
	"puntuale/internal/control/webhook"
)

// subscribe creates a webhook for events of the type reply.
func (w *world) subscribe(o *webhook.Owner) webhook.IssuedWebhook {
	w.t.Helper()
	made, err := o.Create(context.Background(), webhook.NewWebhook{URL: new("https://crm.example.com/puntuale.php?token=4711"), Types: []string{"reply.received"}, Description: new("gestionale")},
		control.Once[webhook.IssuedWebhook]{})
	w.must(err)
	return made
}

// number gives events their numbers, as a node does.
func (w *world) number() {
	w.t.Helper()
	_, err := w.store.NumberEvents(context.Background(), w.clock.Now())
	w.must(err)
}

// failed records a failed attempt of a webhook's newest delivery, and returns the delivery's webhook-id.
func (w *world) failed(o *webhook.Owner, id puntuale.WebhookID) string {
	w.t.Helper()
	return w.ended(o, id, puntuale.DeliveryResult{State: puntuale.DeliveryWaiting, Next: w.clock.Now().Add(5 * time.Minute), Status: 500, Took: 84 * time.Millisecond,
		Answer: "<b>Fatal error</b>: Uncaught TypeError in /var/www/puntuale.php:12"})
}

func (w *world) ended(o *webhook.Owner, id puntuale.WebhookID, r puntuale.DeliveryResult) string {
	w.t.Helper()
	rows, _, err := o.Deliveries(context.Background(), id.String(), webhook.DeliveryQuery{Page: request.Page{}})
	w.must(err)
	r.Webhook, r.Client, r.Seq, r.At = id, rows[0].Client, rows[0].Seq, w.clock.Now()
	w.must(w.store.EndAttempts(context.Background(), w.clock.Now(), []puntuale.DeliveryResult{r}))
	return fmt.Sprintf("evt_%d_%d", r.Client, r.Seq)
}

var webhookSecret = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)

// scriptedReceiver gives the answers that the test sets, and stores the requests.
type scriptedReceiver struct {
	url string

	mu     sync.Mutex
	status int
	header http.Header
	body   []byte
}

func newScriptedReceiver(t *testing.T) *scriptedReceiver {
	r := &scriptedReceiver{status: http.StatusOK}
	h := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.header = request.Header.Clone()
		r.body, _ = io.ReadAll(request.Body)
		rw.WriteHeader(r.status)
		_, _ = io.WriteString(rw, "<script>grazie</script>")
	}))
	t.Cleanup(h.Close)
	r.url = h.URL + "/hook?token=4711"
	return r
}

// TestWebhookWorks does everything that an owner may do with a webhook, in a client's and in a partner's dashboard.
func TestWebhookWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for base, user := range map[string]puntuale.UserID{w.pages + "/webhooks": w.clients[puntuale.Owner], "/partner/webhooks": w.partners[puntuale.Owner]} {
		v, r := w.visitor(user), newScriptedReceiver(t)
		made := v.post(base, url.Values{"url": {r.url}, "which": {"some"}, "types": {"message.sent", "message.failed"}, "description": {"CRM"}})
		first := webhookSecret.FindString(made.body)
		if made.status != http.StatusOK || first == "" || made.header.Get("Cache-Control") != "no-store" || !strings.Contains(made.body, `data-copy="`+first) {
			t.Fatalf("%s: %d %s", base, made.status, made.body)
		}
		list := v.get(base).body
		found := regexp.MustCompile(base + `/(\d+)"`).FindStringSubmatch(list)
		if found == nil || strings.Contains(list, first) || !strings.Contains(list, "CRM") || strings.Contains(list, "4711") {
			t.Fatalf("%s: %s", base, inMain(list))
		}
		one := base + "/" + found[1]
		signedBy := func(secrets ...string) {
			t.Helper()
			for _, secret := range secrets {
				library, err := standardwebhooks.NewWebhook(secret)
				w.must(err)
				if err := library.VerifyIgnoringTimestamp(r.body, r.header); err != nil {
					t.Errorf("%s: %v", base, err)
				}
			}
			if n := len(strings.Fields(r.header.Get("webhook-signature"))); n != len(secrets) {
				t.Errorf("%s: %d signatures", base, n)
			}
		}
		if got := v.htmx(one+"/test", nil); got.status != http.StatusOK || !strings.Contains(got.body, "200 · ") || !strings.Contains(got.body, "&lt;script&gt;grazie") || strings.Contains(got.body, "<main") {
			t.Errorf("%s, test: %d %s", base, got.status, got.body)
		}
		signedBy(first)
		r.status = http.StatusTeapot
		if got := v.post(one+"/test", nil); got.status != http.StatusOK || !strings.Contains(got.body, "418 · ") || !strings.Contains(got.body, "Non accettato") || !strings.Contains(got.body, "<main") {
			t.Errorf("%s, a test that fails: %d %s", base, got.status, inMain(got.body))
		}
		rotated := v.post(one+"/rotate", nil)
		second := webhookSecret.FindString(rotated.body)
		if second == "" || second == first || !strings.Contains(rotated.body, "21 nov, 10:00") {
			t.Errorf("%s, rotated: %s", base, inMain(rotated.body))
		}
		v.post(one+"/test", nil)
		signedBy(second, first)
		page := v.get(one).body
		if !strings.Contains(page, "firma ancora, fino a") || webhookSecret.MatchString(page) || !strings.Contains(page, "token=4711") {
			t.Errorf("%s, after the rotation: %s", base, inMain(page))
		}
		if got := v.post(one+"/off", nil); got.to() != one || !strings.Contains(v.get(one).body, "/on") {
			t.Errorf("%s, off: %d", base, got.status)
		}
		v.post(one+"/on", nil)
		form := v.get(one + "/edit").body
		if !strings.Contains(form, `value="message.failed" checked`) || strings.Contains(form, `value="message.read" checked`) {
			t.Errorf("%s, the form: %s", base, inMain(form))
		}
		if got := v.post(one+"/edit", url.Values{"url": {r.url}, "which": {"all"}, "description": {"CRM nuovo"}}); got.status != http.StatusSeeOther {
			t.Errorf("%s, changed: %d %s", base, got.status, inMain(got.body))
		}
		if list := v.get(base).body; !strings.Contains(list, "CRM nuovo") || !strings.Contains(list, "Tutti gli eventi") {
			t.Errorf("%s, changed: %s", base, inMain(list))
		}
		if got := v.post(one+"/delete", nil); got.to() != base || strings.Contains(v.get(base).body, "CRM nuovo") {
			t.Errorf("%s, deleted: %d", base, got.status)
		}
	}
	log := v0(w).get("/partner/audit").body
	for _, said := range []string{"Webhook creato", "Segreto del webhook sostituito", "Webhook spento", "Webhook acceso", "Webhook modificato", "Webhook eliminato"} {
		if !strings.Contains(log, said) {
			t.Errorf("the audit log does not say %q", said)
		}
	}
}

// v0 returns a visitor that is signed in as the partner's owner.
func v0(w *world) *visitor { return w.visitor(w.partners[puntuale.Owner]) }

// TestWebhookFaults: each fault is shown at its field, and typed values stay in the form.
func TestWebhookFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v, base := w.visitor(w.clients[puntuale.Owner]), w.pages+"/webhooks"
	for address, says := range map[string]string{
		"":                           "È obbligatorio",
		"crm.example.com":            "Deve essere un indirizzo http o https",
		"https://10.1.2.3/hook":      "È un indirizzo privato: il gestore del server può permettere la sua rete con --webhook-allow",
		"http://192.168.1.10/hook":   "È un indirizzo privato: il gestore del server può permettere la sua rete con --webhook-allow",
		"http://93.184.215.14/hook":  "Deve iniziare con https: http va solo alle reti che il gestore del server permette con --webhook-allow",
		"https://user:pw@x.example/": "senza nome utente",
	} {
		got := v.htmx(base, url.Values{"url": {address}, "which": {"all"}, "description": {"il mio CRM"}})
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(between(got.body, `id="f-url-fault"`, "</p>"), says) || !strings.Contains(got.body, "il mio CRM") || strings.Contains(got.body, "<main") {
			t.Errorf("%q: %d %s", address, got.status, got.body)
		}
	}
	got := v.post(base, url.Values{"url": {"https://x.example/"}, "which": {"some"}, "description": {strings.Repeat("d", 201)}, "id_sessione": {"987654"}})
	for _, field := range []string{"types", "description", "id_sessione"} {
		if field != "id_sessione" && !strings.Contains(got.body, `id="f-`+field+`-fault"`) {
			t.Errorf("no fault at %s: %s", field, inMain(got.body))
		}
	}
	if list := v.get(base).body; !strings.Contains(list, "Ancora nessun webhook") {
		t.Errorf("something was made: %s", inMain(list))
	}
	for range puntuale.MaxWebhooks {
		w.subscribe(w.ownWebhooks())
	}
	if got := v.htmx(base, url.Values{"url": {"https://x.example/"}, "which": {"all"}}); got.status == http.StatusOK || !strings.Contains(got.body, "Ci sono già 10 webhook") {
		t.Errorf("beyond the most: %d %s", got.status, got.body)
	}
}

func (w *world) ownWebhooks() *webhook.Owner {
	w.t.Helper()
	o, err := w.webhooks.OfClient(w.Client(), "")
	w.must(err)
	return o
}

// TestPartnerDeliveries: a partner sees the client's name for each event. After the client is deleted, the partner sees
// only the client's id.
func TestPartnerDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.webhooks.OfPartner(w.partner, "")
	made := w.subscribe(o)
	w.everything(w.client)
	partner := w.newPartnerHandle()
	_, err := partner.ChangeClient(t.Context(), w.client.String(), account.ClientChange{Name: puntuale.ChangeTo("Bianchi <i>& figli")})
	w.must(err)
	name := w.failed(o, made.ID)
	v, one := v0(w), "/partner/webhooks/"+made.ID.String()
	for page, before := range map[string]string{one: " · ", one + "/deliveries/" + name: "<dd>"} {
		got := inMain(v.get(page).body)
		if !strings.Contains(got, before+"Bianchi &lt;i&gt;&amp; figli") || strings.Contains(got, "cliente "+w.client.String()) {
			t.Errorf("%s: %s", page, got)
		}
	}
	w.must(partner.DeleteClient(t.Context(), w.client.String()))
	if got := inMain(v.get(one).body); strings.Contains(got, "Bianchi") || !strings.Contains(got, "cliente "+w.client.String()) {
		t.Errorf("after the deletion: %s", got)
	}
}

// TestDeliveries: a delivery's page shows the request as it was sent. It shows the signature only while the secret is
// known. One delivery, some deliveries, or all failed deliveries can be sent again.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.everything(w.client)
	o := w.ownWebhooks()
	all, err := o.List(context.Background())
	w.must(err)
	id := all[0].ID
	one := w.pages + "/webhooks/" + id.String()
	_, _, err = o.Rotate(context.Background(), id.String())
	w.must(err)
	w.clock.Advance(25 * time.Hour)
	next, _, err := o.Rotate(context.Background(), id.String())
	w.must(err)
	name := w.failed(o, id)

	reader, owner := w.visitor(w.clients[puntuale.Reader]), w.visitor(w.clients[puntuale.Owner])
	list := reader.get(one).body
	for _, shown := range []string{"Risposta ricevuta", "Si riprova", "500", one + "/deliveries/" + name} {
		if !strings.Contains(list, shown) {
			t.Errorf("the list does not show %q: %s", shown, inMain(list))
		}
	}
	for _, hidden := range []string{"4711", "/replay", "/rotate", "/test"} {
		if strings.Contains(inMain(list), hidden) {
			t.Errorf("a reader sees %q", hidden)
		}
	}
	page := reader.get(one + "/deliveries/" + name).body
	if strings.Contains(page, "4711") || !strings.Contains(page, "POST /puntuale.php?… HTTP/1.1") || !strings.Contains(page, "&lt;b&gt;Fatal error") {
		t.Errorf("the delivery: %s", inMain(page))
	}
	header, body := wire(t, page)
	library, err := standardwebhooks.NewWebhook(next.Secret)
	w.must(err)
	if err := library.VerifyIgnoringTimestamp(body, header); err != nil || header.Get("webhook-timestamp") != strconv.FormatInt(w.clock.Now().Unix(), 10) || header.Get("webhook-id") != name {
		t.Errorf("%v: %v %s", err, header, body)
	}
	w.clock.Advance(time.Minute)
	_, _, err = o.Rotate(context.Background(), id.String())
	w.must(err)
	if page = reader.get(one + "/deliveries/" + name).body; strings.Contains(page, "Webhook-Signature") || !strings.Contains(page, "la firma di allora non si conosce") {
		t.Errorf("after another secret: %s", inMain(page))
	}

	w.ended(o, id, puntuale.DeliveryResult{State: puntuale.DeliveryFailed, Answer: puntuale.Because(puntuale.ReasonWebhookTimeout).Stored(), Took: 15 * time.Second})
	if page = reader.get(one + "/deliveries/" + name).body; !strings.Contains(page, "Nessuna risposta in tempo") || !strings.Contains(page, "15.0 s") {
		t.Errorf("without an answer: %s", inMain(page))
	}
	for state, existing := range map[string]bool{"failed": true, "waiting": false, "delivered": false} {
		if got := strings.Contains(reader.get(one+"?state="+state).body, "/deliveries/"+name); got != existing {
			t.Errorf("listed as %s: %t", state, got)
		}
	}
	waits := func(want bool) {
		t.Helper()
		if got := strings.Contains(reader.get(one+"?state=waiting").body, "/deliveries/"+name); got != want {
			t.Errorf("it waits again: %t", got)
		}
	}
	if got := owner.post(one+"/replay", url.Values{"failed": {"on"}, "from": {"2026-11-24T00:00"}}); got.to() != one {
		t.Errorf("nothing of that time failed: %d", got.status)
	}
	waits(false)
	if got := owner.htmx(one+"/replay", url.Values{"from": {"domani"}, "to": {"2026-11-24T00:00"}}); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `id="f-from-fault"`) {
		t.Errorf("no time: %d %s", got.status, got.body)
	}
	owner.post(one+"/replay", url.Values{"failed": {"on"}})
	if page := owner.get(one).body; !strings.Contains(page, "1 evento riparte") {
		t.Errorf("all that failed: %s", page)
	}
	waits(true)
	w.ended(o, id, puntuale.DeliveryResult{State: puntuale.DeliveryDone, Status: 204})
	waits(false)
	if got := owner.post(one+"/deliveries/"+name+"/again", nil); got.to() != one+"/deliveries/"+name {
		t.Errorf("one again: %d %s", got.status, got.to())
	}
	waits(true)
	w.ended(o, id, puntuale.DeliveryResult{State: puntuale.DeliveryDone, Status: 204})
	owner.post(one+"/replay", url.Values{"from": {"2026-11-20T00:00"}, "to": {"2026-11-20T23:59"}})
	waits(true)
	if got := reader.post(one+"/replay", nil); got.status != http.StatusForbidden {
		t.Errorf("a reader sends again: %d", got.status)
	}
}

// wire parses the request that a delivery's page shows.
func wire(t *testing.T, page string) (http.Header, []byte) {
	t.Helper()
	head, body, found := strings.Cut(html.UnescapeString(between(page, `<pre tabindex="0" aria-label="Richiesta"><code>`, "</code>")), "\n\n")
	if !found {
		t.Fatal("the page shows no request")
	}
	header := http.Header{}
	for _, line := range strings.Split(head, "\n")[1:] {
		name, value, _ := strings.Cut(line, ": ")
		header.Set(name, value)
	}
	return header, []byte(body)
}

// TestWebhookDisabled: the page of a disabled webhook shows the reason, and can turn the webhook on again.
func TestWebhookDisabled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.everything(w.client)
	o, v := w.ownWebhooks(), w.visitor(w.clients[puntuale.Owner])
	all, err := o.List(context.Background())
	w.must(err)
	one := w.pages + "/webhooks/" + all[0].ID.String()
	w.ended(o, all[0].ID, puntuale.DeliveryResult{State: puntuale.DeliveryFailed, Status: http.StatusGone, ReceiverGone: true})
	for _, page := range []string{v.get(w.pages + "/webhooks").body, v.get(one).body} {
		if !strings.Contains(page, "Disattivato") || !strings.Contains(page, "l’indirizzo non serve più (410)") {
			t.Errorf("no reason: %s", inMain(page))
		}
	}
	golden(t, "webhooks", inMain(v.get(w.pages+"/webhooks").body))
	golden(t, "webhook", inMain(v.get(one).body))
	golden(t, "webhook-edit", inMain(v.get(one+"/edit").body))
	v.post(one+"/on", nil)
	if page := inMain(v.get(one).body); strings.Contains(page, "410)") || !strings.Contains(page, "Attivo") {
		t.Errorf("still disabled: %s", page)
	}
}
