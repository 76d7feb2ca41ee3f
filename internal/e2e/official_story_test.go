//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale/internal/connector/official/graphtest"
)

// public is the address at which Meta would reach the server through a proxy. The test does the work of the proxy.
const public = "https://messaggi.example.com"

// officialStory is a business that sets up an Official number in the dashboard, and sends with it.
type officialStory struct {
	t       *testing.T
	b       *browser
	s       *server
	peer    *graphtest.Peer
	number  graphtest.Number
	files   string // address of the host of files
	pages   string // address of the client's dashboard
	key     string // the client's API key
	session string // path of the session's page
	webhook string // address that Meta calls
}

// TestOfficialStory: a partner makes a client. The client sets up an Official number on the guided page, first with a
// wrong token. The client enters the webhook at Meta, and loads its templates. In the editor it makes a sequence with a
// text, an image, a document, a place and a template. A start through the contract's API sends all five messages.
// Meta's statuses then say that all were read.
func TestOfficialStory(t *testing.T) {
	files := newFiles(t)
	program := builtToFetch(t, strings.TrimPrefix(files, "http://"))
	databases(t, func(t *testing.T, database string) {
		o := &officialStory{t: t, number: graphtest.NewNumber("106540352242922"), files: files}
		o.number.Account = "102290129340398"
		o.peer = graphtest.New(t, o.number)
		o.peer.SetTemplates(o.number.Account, visitReminder())
		o.s = prepare(t, database, "--official-api-url", o.peer.URL, "--public-url", public)
		o.s.program = program
		o.s.start()
		createPartner(t, database)
		o.b = newBrowser(t)
		o.b.speak("it")
		o.client()
		o.setUp()
		o.subscribe()
		o.templates()
		sequence := o.edit()
		o.send(sequence)
		o.b.keepsToItself(o.s.base)
		o.secrets()
	})
}

// visitReminder returns a template with an image in its header, named placeholders and two buttons.
func visitReminder() graphtest.ListedTemplate {
	t := graphtest.NewTemplate("promemoria_visita", "Gentile {{nome}}, ti aspettiamo {{giorno}}.")
	t.Format = "NAMED"
	t.Components = append([]map[string]any{{"type": "HEADER", "format": "IMAGE", "example": map[string]any{"header_handle": []any{"https://scontent.example/x"}}}}, append(t.Components,
		map[string]any{"type": "FOOTER", "text": "Studio Bianchi"},
		map[string]any{"type": "BUTTONS", "buttons": []any{
			map[string]any{"type": "URL", "text": "Come arrivare", "url": "https://studio.example/{{1}}", "example": []any{"https://studio.example/x"}},
			map[string]any{"type": "QUICK_REPLY", "text": "Devo disdire"},
		}})...)
	return t
}

// newFiles starts a host with a picture and a document.
func newFiles(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch filepath.Ext(r.URL.Path) {
		case ".jpg":
			w.Header().Set("Content-Type", "image/jpeg")
			fmt.Fprint(w, "\xff\xd8\xff\xe0 ", r.URL.Path)
		case ".pdf":
			w.Header().Set("Content-Type", "application/pdf")
			fmt.Fprint(w, "%PDF-1.7 ", r.URL.Path)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// builtToFetch builds the program so that it may also fetch files from a host on loopback. This is the only difference.
func builtToFetch(t *testing.T, from string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "puntuale")
	if text, err := exec.Command("go", "build", "-ldflags", "-X main.filesFrom="+from, "-o", program, "puntuale/cmd/puntuale").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, text)
	}
	return program
}

// signIn signs in on the sign-in page.
func (o *officialStory) signIn(path, email, password string) {
	o.t.Helper()
	o.b.visit(o.s.base + path)
	o.b.fill("email", email, "password", password)
	o.b.tap("main .btn-primary, .bare-card .btn-primary")
	o.b.waitFor(`!document.querySelector("[name=password]") && document.readyState === "complete"`)
}

// client makes the partner create the client. The page shows the password once. Then the client signs in with this password.
func (o *officialStory) client() {
	t, b := o.t, o.b
	o.signIn("/login", "rossi@example.com", "una frase lunga 42")
	b.visit(o.s.base + "/partner/clients/new")
	const email, password = "studio@example.com", "una frase che nessuno indovina"
	b.fill("name", "Studio Bianchi", "phone", "+39 011 7654321", "email", email, "password", password)
	b.tap("[name=account_type][value=full]")
	b.tap("main form .btn-primary")
	b.reads("ck_")
	page := evaluate[string](b, `document.querySelector("main").innerText`)
	o.key = regexp.MustCompile(`ck_[A-Za-z0-9_-]+`).FindString(page)
	door := regexp.MustCompile(regexp.QuoteMeta(public) + `(/p/\S+)`).FindStringSubmatch(page)
	if door == nil {
		t.Fatalf("the client is not told to sign in at %s: %s", public, page)
	}
	b.tap(`form[action="/logout"] button`)
	b.waitFor(`document.querySelector("[name=password]")`)
	o.signIn(door[1], email, password)
	o.pages = o.s.base + evaluate[string](b, `location.pathname.match(/^\/c\/\d+/)[0]`)
}

// setUp enters the number's ids and secrets on the guided page. The first token is wrong. Then setUp replaces only the
// token.
func (o *officialStory) setUp() {
	t, b, n := o.t, o.b, o.number
	b.visit(o.pages + "/sessions/new")
	b.fill("name", "Segreteria")
	b.tap("[name=kind][value=official]")
	b.tap("main form .btn-primary")
	b.waitFor(`location.pathname.endsWith("/official") && document.querySelector("[name=app_secret]")`)
	o.session = strings.TrimSuffix(evaluate[string](b, "location.pathname"), "/official")
	b.looks("1-setup")
	b.fill("phone_number_id", n.ID, "business_account_id", n.Account, "access_token", "EAAwrong", "app_secret", n.Secret, "verify_token", n.Verify)
	b.tap("main form .btn-primary")
	b.waitFor(`document.querySelector("[data-copy]")`)
	shown := evaluate[[]string](b, `[...document.querySelectorAll("[data-copy]")].map(e => e.dataset.copy)`)
	id := o.session[strings.LastIndex(o.session, "/")+1:]
	if want := []string{public + "/webhooks/official/" + id, n.Verify}; !slices.Equal(shown, want) {
		t.Fatalf("to be pasted at Meta are %q, want %q", shown, want)
	}
	o.webhook = shown[0]
	b.tap(`main form[action$="/test"] button`)
	b.reads("Token di accesso scaduto o revocato: creane uno nuovo in Meta Business e sostituiscilo (codice Meta 190)")
	b.looks("2-wrong-token")

	b.visit(o.s.base + o.session)
	b.reads("Token di accesso scaduto o revocato")
	b.looks("3-unlinked")
	b.tap(`main a[href$="/official"]`)
	b.waitFor(`document.querySelector("[name=app_secret]")`)
	b.fill("access_token", n.Token)
	b.tap("main form .btn-primary")
	b.reads("Il token di verifica resta quello che hai dato a Meta.")
	b.tap(`main form[action$="/test"] button`)
	b.reads("Tutto a posto: il numero +3902123")
	b.looks("4-works")
	b.visit(o.s.base + o.session)
	b.waitFor(`document.querySelector(".link-state .tag-ok")`)
	b.looks("5-linked")
	var state struct {
		State string
		URL   string `json:"webhook_url"`
	}
	must(t, "GET", o.s.base+"/api/sessions/"+id, o.key, nil).into(t, &state)
	if state.State != "online" || state.URL != o.webhook {
		t.Errorf("the API says %+v", state)
	}
}

// subscribe copies values from the page to Meta. Meta asks for the verify token, and then sends reports to the
// webhook.
func (o *officialStory) subscribe() {
	o.t.Helper()
	o.webhook = strings.Replace(o.webhook, public, o.s.base, 1) // the proxy would replace the address in this way
	if o.peer.Subscribe(o.webhook, "something else") {
		o.t.Error("the webhook takes any word")
	}
	if !o.peer.Subscribe(o.webhook, o.number.Verify) {
		o.t.Fatal("Meta does not take the webhook's address")
	}
}

func (o *officialStory) deliver(body []byte) {
	o.t.Helper()
	if status := o.peer.Deliver(o.webhook, o.number.ID, body); status != http.StatusOK {
		o.t.Fatalf("the webhook answered %d to %s", status, body)
	}
}

// templates loads Meta's templates again with the button on their page. Then it creates a template of the client from one
// of them, and writes fields such as {{nome}} into its placeholders.
func (o *officialStory) templates() {
	b := o.b
	late := graphtest.NewTemplate("auguri_compleanno", "Auguri, {{1}}!")
	late.Status, late.Category = "PENDING", "MARKETING"
	o.peer.SetTemplates(o.number.Account, visitReminder(), late)
	b.visit(o.s.base + o.session + "/templates")
	b.reads("promemoria_visita")
	b.tap("main header form .btn")
	b.reads("auguri_compleanno")
	b.looks("6-approved")

	b.visit(o.pages + "/templates/new")
	b.fill("name", "Promemoria visita", "official", "promemoria_visita|it")
	b.tap("[name=kind][value=media]")
	b.tap("[name=do][value=choose]")
	b.waitFor(`document.querySelector("[name='official.body[1].text']")`)
	b.fill("media", o.files+"/insegna.jpg", "text", "Gentile {{nome}}, ti aspettiamo {{data_visita:giorno}}.", "official.body[0].text", "{{nome}}", "official.body[1].text", "{{data_visita:giorno}}",
		"official.buttons[0].text", "mappa")
	b.waitFor(`document.querySelector("#preview .bubble-media")`)
	b.looks("7-template")
	b.tap(".editor-save .btn-primary")
	b.waitFor(`location.pathname.endsWith("/templates") && document.querySelector(".tile") && document.querySelector(".approved-counts")`)
	b.looks("8-templates")
}

// edit makes the sequence in the editor, and returns its id. The editor must warn if a step needs a template.
func (o *officialStory) edit() string {
	b := o.b
	b.visit(o.pages + "/sequences/new")
	b.fill("name", "Prima visita")
	b.tap(".editor-main details summary")
	b.fill("id_sessione", o.session[strings.LastIndex(o.session, "/")+1:])
	kinds := [][]string{
		{"text", "text", "Ciao {{nome}}, grazie di aver scritto."},
		{"media", "media", o.files + "/insegna.jpg", "text", "Ecco l'ingresso"},
		{"media", "media", o.files + "/moduli.pdf", "media_name", "Da compilare.pdf", "text", ""},
		{"location", "latitude", "45.07031", "longitude", "7.68657", "text", "Studio Bianchi\nVia Po 1, Torino"},
		{"template", "template", "Promemoria visita"},
	}
	for i, k := range kinds {
		at := fmt.Sprintf("steps[%d].", i)
		if i > 0 {
			b.tap("[name=do][value=add]")
			b.waitFor(fmt.Sprintf(`document.querySelectorAll(".step").length === %d && document.activeElement?.name === %q`, i+1, at+"text"))
		}
		b.tap(fmt.Sprintf(`[name="%skind"][value=%s]`, at, k[0]))
		b.fill(at+"timing.offset.direction", "at", at+"timing.anchor", "start")
		for j := 1; j+1 < len(k); j += 2 {
			b.fill(at+k[j], k[j+1])
		}
	}
	b.fill("fields.nome", "Lucia", "fields.data_visita", "2027-11-30T15:30")
	b.waitFor(`document.querySelectorAll("#timeline .bubble").length === 5 && document.querySelectorAll("#timeline .bubble")[4].innerText.includes("Gentile Lucia, ti aspettiamo martedì 30 novembre")`)
	b.reads("24 ore")
	b.looks("9-editor")
	b.tap(".editor-save .btn-primary")
	b.waitFor(`/\/sequences\/\d+$/.test(location.pathname) && document.readyState === "complete"`)
	b.looks("10-sequence")
	path := evaluate[string](b, "location.pathname")
	return path[strings.LastIndex(path, "/")+1:]
}

// send starts the sequence through the contract's API, for a person who has just written. Then Meta reports the
// messages' statuses.
func (o *officialStory) send(sequence string) {
	t, phone := o.t, "+393331234567"
	o.deliver(o.peer.Wrote(o.number.ID, phone, time.Now()))
	var started struct{ ID []string }
	must(t, "POST", o.s.base+"/api/start/"+sequence, o.key, map[string]string{"phone": phone, "nome": "Ada", "data_visita": "30/11/2027 15:30"}).into(t, &started)
	eventually(t, 30*time.Second, "all five are with Meta", func() bool { return len(o.peer.Taken()) == 5 })
	taken := o.peer.Taken()
	o.inMetasForm(taken)
	for _, id := range started.ID {
		o.becomes(id, `"stato":"COMPLETED"`, `"dettaglio_risposta":"wamid`)
	}
	for _, status := range []string{"sent", "delivered", "read"} {
		for i, m := range taken {
			o.deliver(o.peer.Status(m, status, time.Now()))
			details := o.details(started.ID[i])
			if delivered := strings.Contains(details, `"consegnato":"`); delivered != (status != "sent") {
				t.Errorf("after %s: %s", status, details)
			}
			if read := strings.Contains(details, `"letto":"`); read != (status == "read") {
				t.Errorf("after %s: %s", status, details)
			}
		}
	}
	o.checkHistories(started.ID)
}

// checkHistories checks the history of each message on the message's page.
func (o *officialStory) checkHistories(ids []string) {
	b := o.b
	b.visit(o.pages + "/messages")
	b.waitFor(`document.querySelectorAll("#message-list tbody tr").length === 5`)
	b.looks("11-messages")
	for i, id := range ids {
		b.visit(o.pages + "/messages/" + id)
		b.waitFor(`document.querySelector(".story")`)
		story := evaluate[[]string](b, `[...document.querySelectorAll(".story-what")].map(e => e.innerText)`)
		want := []string{"Richiesta ricevuta: sequenza «Prima visita»", "Da inviare subito", "Tentativo di invio", "La rete l’ha accettato", "Partito dalla rete", "Consegnato al telefono", "Letto"}
		if !slices.Equal(story, want) {
			o.t.Errorf("the story of message %d is %q, want %q", i+1, story, want)
		}
		b.looks(fmt.Sprintf("12-message-%d", i+1))
	}
}

// inMetasForm checks the form of the messages that Meta accepted.
func (o *officialStory) inMetasForm(taken []graphtest.Taken) {
	o.t.Helper()
	var kinds []string
	for _, m := range taken {
		kinds = append(kinds, m.Message.Type)
		if m.Message.To != "+393331234567" || m.Number != o.number.ID {
			o.t.Errorf("to %s from %s", m.Message.To, m.Number)
		}
	}
	if want := []string{"text", "image", "document", "location", "template"}; !slices.Equal(kinds, want) {
		o.t.Fatalf("Meta took %v, want %v", kinds, want)
	}
	text, image, document, place, template := taken[0].Message, taken[1].Message.Image, taken[2].Message.Document, taken[3].Message.Location, taken[4].Message.Template
	if text.Text.Body != "Ciao Ada, grazie di aver scritto." {
		o.t.Errorf("text: %q", text.Text.Body)
	}
	if f := o.peer.File(image.ID); image.Caption != "Ecco l'ingresso" || f.Type != "image/jpeg" {
		o.t.Errorf("image: %+v of %s", image, f.Type)
	}
	if f := o.peer.File(document.ID); document.Filename != "Da compilare.pdf" || f.Type != "application/pdf" {
		o.t.Errorf("document: %+v of %s", document, f.Type)
	}
	if place.Latitude != "45.07031" || place.Longitude != "7.68657" || place.Name != "Studio Bianchi" || place.Address != "Via Po 1, Torino" {
		o.t.Errorf("place: %+v", place)
	}
	components, _ := json.Marshal(template.Components)
	for _, want := range []string{`"parameter_name":"nome","text":"Ada"`, `"parameter_name":"giorno","text":"martedì 30 novembre"`, `"image":{"id":"` + image.ID + `"}`, `"sub_type":"url","index":"0","parameters":[{"type":"text","text":"mappa"}]`} {
		if !strings.Contains(string(components), want) {
			o.t.Errorf("template %s: %s has no %s", template.Name, components, want)
		}
	}
	if uploads := o.peer.Uploads(); uploads != 2 {
		o.t.Errorf("%d uploads, want 2: the image once for both messages", uploads)
	}
}

func (o *officialStory) details(id string) string {
	o.t.Helper()
	return string(must(o.t, "GET", o.s.base+"/api/messages/details?message_ids[]="+id, o.key, nil).body)
}

func (o *officialStory) becomes(id string, parts ...string) {
	o.t.Helper()
	eventually(o.t, 20*time.Second, fmt.Sprintf("message %s has %v", id, parts), func() bool {
		got := o.details(id)
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(got, part) })
	})
}

// secrets checks that the log contains no secret.
func (o *officialStory) secrets() {
	o.t.Helper()
	log := tail(o.s.log, 1<<24)
	for _, secret := range []string{o.number.Token, o.number.Secret, o.number.Verify, "EAAwrong", "appsecret_proof=", "393331234567", "grazie di aver scritto"} {
		if strings.Contains(log, secret) {
			o.t.Errorf("the log holds %q", secret)
		}
	}
}
