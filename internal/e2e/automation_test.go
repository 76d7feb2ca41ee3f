//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// automated is a client with rules, on a server of the test.
type automated struct {
	t         *testing.T
	base, key string
	sequence  string
}

func newAutomated(t *testing.T, s *server, steps ...any) *automated {
	t.Helper()
	who := createTenant(t, s.base, createPartner(t, s.database), "full", steps...)
	must(t, "PATCH", s.base+"/api/settings", who.key, map[string]any{"keep_replies": "all"})
	return &automated{t, s.base, who.key, who.sequence}
}

// rule creates a rule from the JSON body. It returns the rule's id, and the path of the rule's hook, or "".
func (a *automated) rule(body string) (id, path string) {
	a.t.Helper()
	var made struct{ ID, Path string }
	must(a.t, "POST", a.base+"/api/automations", a.key, json.RawMessage(body)).into(a.t, &made)
	return made.ID, made.Path
}

// answers makes a person write to the default session, through the sandbox.
func (a *automated) answers(phone, text string) {
	a.t.Helper()
	must(a.t, "POST", a.base+"/api/sandbox/replies", a.key, map[string]any{"phone": phone, "text": text})
}

// gets waits until a person got a message with the text. It returns how long that took.
func (a *automated) gets(phone, text string) time.Duration {
	a.t.Helper()
	begun := time.Now()
	eventually(a.t, 15*time.Second, phone+" gets "+text, func() bool { return slices.Contains(a.got(phone), text) })
	return time.Since(begun)
}

// got returns the texts that a person got, in order.
func (a *automated) got(phone string) (texts []string) {
	a.t.Helper()
	for _, m := range ledger(a.t, a.base, a.key) {
		if m.Phone == phone {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

type firing struct {
	Phone, Code string
	Acted       bool
	Messages    []string
}

func (a *automated) log(rule string) []firing {
	a.t.Helper()
	var log struct{ Firings []firing }
	must(a.t, "GET", a.base+"/api/automations/"+rule+"/firings", a.key, nil).into(a.t, &log)
	return log.Firings
}

// origins counts a person's messages by their origin.
func (a *automated) origins(phone string) map[string]int {
	a.t.Helper()
	var list struct {
		Messages []struct {
			Origin string `json:"tipologia"`
			Name   string `json:"nome_invio"`
		}
	}
	must(a.t, "GET", a.base+"/api/messages?phone="+url.QueryEscape(phone), a.key, nil).into(a.t, &list)
	found := map[string]int{}
	for _, m := range list.Messages {
		found[m.Origin+" "+m.Name]++
	}
	return found
}

// TestAutomationTriggers has one rule for each trigger, and checks that each rule acts.
func TestAutomationTriggers(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database)
		a := newAutomated(t, s, step("Primo", 0, ""), step("Più tardi", 30, "days"))
		info, _ := a.rule(`{"name":"Info","trigger":{"kind":"reply","words":["info"]},"actions":[{"kind":"send","text":"Ecco le informazioni"}]}`)
		a.rule(`{"name":"Grazie","trigger":{"kind":"reply_to","sequence":"` + a.sequence + `"},"actions":[{"kind":"stop","sequence":"all"},{"kind":"send","text":"Grazie della risposta"},{"kind":"tag","add":["ha risposto"]}]}`)
		_, path := a.rule(`{"name":"Modulo","trigger":{"kind":"hook","map":{"phone":"tel"}},"actions":[{"kind":"start","sequence":"` + a.sequence + `"}]}`)

		a.answers("+393331240001", "Info!")
		if took := a.gets("+393331240001", "Ecco le informazioni"); took > 2*time.Second {
			t.Errorf("the answer took %v", took)
		}
		if got := a.origins("+393331240001"); got["AUTOMATION Info"] != 1 {
			t.Errorf("its origin: %v", got)
		}
		if log := a.log(info); len(log) != 1 || !log[0].Acted || log[0].Phone != "+393331240001" || len(log[0].Messages) != 1 {
			t.Errorf("the log: %+v", log)
		}

		a.hook(path, "application/json", []byte(`{"tel":"333 124 0002"}`), "", http.StatusOK, `{"accepted":true}`)
		a.gets("+393331240002", "Primo")
		a.answers("+393331240002", "va bene")
		a.gets("+393331240002", "Grazie della risposta")
		eventually(t, 5*time.Second, "no message waits after the stop", func() bool { return states(a, "+393331240002")["PENDING"] == 0 }) // the answer itself has arrived, but its outcome may not be stored yet
		if got := string(must(t, "GET", a.base+"/api/contacts?tag="+url.QueryEscape("ha risposto"), a.key, nil).body); !strings.Contains(got, "+393331240002") {
			t.Errorf("tagged: %s", got)
		}

		a.rule(`{"name":"Inviato","trigger":{"kind":"outcome","sequence":"` + a.sequence + `","is":"COMPLETED"},"conditions":{"cooldown_hours":24},"actions":[{"kind":"send","text":"Il primo è partito"}]}`)
		a.hook(path, "application/json", []byte(`{"tel":"333 124 0003"}`), "", http.StatusOK, `{"accepted":true}`)
		a.gets("+393331240003", "Primo")
		a.gets("+393331240003", "Il primo è partito")

		var wishes struct{ ID string }
		must(t, "POST", a.base+"/api/sequences", a.key, map[string]any{"name": "Auguri", "steps": []any{map[string]any{"text": "Auguri",
			"timing": map[string]any{"anchor": "nascita", "offset": map[string]any{"amount": 0, "unit": "days", "direction": "after"}, "at": "09:00"}}}}).into(t, &wishes)
		tomorrow := time.Now().AddDate(-30, 0, 1).Format("2006-01-02")
		must(t, "POST", a.base+"/api/contacts", a.key, map[string]any{"phone": "+393331240004", "fields": map[string]any{"nascita": tomorrow}})
		a.rule(`{"name":"Auguri","trigger":{"kind":"date","field":"nascita","repeat":"yearly"},"actions":[{"kind":"start","sequence":"` + wishes.ID + `"}]}`)
		eventually(t, 30*time.Second, "the birthday is planned", func() bool { return states(a, "+393331240004")["PENDING"] == 1 })
	})
}

// states counts a person's messages by their states.
func states(a *automated, phone string) map[string]int {
	a.t.Helper()
	var list struct {
		Messages []struct {
			State string `json:"stato"`
		}
	}
	must(a.t, "GET", a.base+"/api/messages?phone="+url.QueryEscape(phone), a.key, nil).into(a.t, &list)
	found := map[string]int{}
	for _, m := range list.Messages {
		found[m.State]++
	}
	return found
}

// hook posts a body to a hook. It checks the answer's status and the beginning of the answer.
func (a *automated) hook(path, kind string, body []byte, key string, status int, begins string) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.base+path, bytes.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := web.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	_, _ = text.ReadFrom(answer.Body)
	if answer.StatusCode != status || !strings.HasPrefix(text.String(), begins) {
		a.t.Errorf("the hook answered %d %s, want %d %s", answer.StatusCode, text.String(), status, begins)
	}
}

// TestAutomationsAnswerEachOther: each of two installations has a rule that answers every reply. The test passes the
// messages of each installation to the other one. The answers end without any action of a person.
func TestAutomationsAnswerEachOther(t *testing.T) {
	const phone = "+393331250001"
	left := newAutomated(t, serve(t, t.TempDir()+"/puntuale.db"), step("x", 0, ""))
	right := newAutomated(t, serve(t, t.TempDir()+"/puntuale.db"), step("x", 0, ""))
	answer := func(text string) string {
		return `{"name":"Risponde","trigger":{"kind":"reply"},"actions":[{"kind":"send","text":"` + text + `"}]}`
	}
	ruleLeft, _ := left.rule(answer("sinistra"))
	ruleRight, _ := right.rule(answer("destra"))
	left.answers(phone, "ciao")
	told := map[*automated]int{}
	quiet := 0
	for quiet < 20 { // this loop passes each installation's messages to the other one as replies
		moved := false
		for from, to := range map[*automated]*automated{left: right, right: left} {
			if all := from.got(phone); len(all) > told[from] {
				told[from]++
				to.answers(phone, all[told[from]-1])
				moved = true
			}
		}
		quiet++
		if moved {
			quiet = 0
		}
		time.Sleep(100 * time.Millisecond)
	}
	for a, rule := range map[*automated]string{left: ruleLeft, right: ruleRight} {
		n := len(a.got(phone))
		stopped := slices.ContainsFunc(a.log(rule), func(f firing) bool {
			return !f.Acted && (f.Code == "automation.depth" || f.Code == "automation.most")
		})
		if n == 0 || n > 5 {
			t.Errorf("one sent %d messages", n)
		}
		t.Logf("%d messages, log %+v", n, a.log(rule))
		if a == left && !stopped {
			t.Errorf("its log does not say why it stopped: %+v", a.log(rule))
		}
	}
}

var recipeHeading = regexp.MustCompile(`(?m)^## (.*)$`)

// recipes returns the rules in docs/automations.md, by the heading above each rule.
func recipes(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/automations.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	parts := recipeHeading.FindAllStringSubmatchIndex(string(page), -1)
	for i, at := range parts {
		end := len(page)
		if i+1 < len(parts) {
			end = parts[i+1][0]
		}
		text := string(page[at[1]:end])
		if _, after, ok := strings.Cut(text, "```json\n{\"name\""); ok {
			body, _, _ := strings.Cut(after, "```")
			found[string(page[at[2]:at[3]])] = `{"name"` + body
		}
	}
	return found
}

// TestAutomationRecipes posts the requests of other programs to the rules of docs/automations.md, and checks which
// sequences start. A repeated request starts nothing.
func TestAutomationRecipes(t *testing.T) {
	s := serve(t, t.TempDir()+"/puntuale.db")
	a := newAutomated(t, s, step("x", 0, ""))
	var visit struct{ ID string }
	must(t, "POST", s.base+"/api/sequences", a.key, map[string]any{"name": "Visita", "booking": map[string]any{"date": "appuntamento"}, "steps": []any{
		map[string]any{"text": "Ciao {{nome}}, ci vediamo il {{appuntamento:data}}",
			"timing": map[string]any{"anchor": "appuntamento", "offset": map[string]any{"amount": 1, "unit": "days", "direction": "before"}}}}}).into(t, &visit)
	rules := recipes(t)
	const calCom = "Programs for appointments"
	for _, c := range []struct{ name, file, phone, text, key string }{
		{calCom, "calcom.json", "+393331230001", "", ""},
		{"Google Forms", "googleforms.json", "+393331230002", "Ciao Bruno Verdi, ti abbiamo iscritto a: Nuoto, Pilates.", "2_ABaOnue"},
		{"WooCommerce", "woocommerce.json", "+393331230003", "Grazie Carla! L’ordine 727 di 34.35 € è in lavorazione.", ""},
		{"Typeform", "typeform.json", "+393331230004", "Ciao Dario, grazie delle risposte! (autunno)", ""},
	} {
		id, path := a.rule(strings.Replace(rules[c.name], `"sequence": "12"`, `"sequence": "`+visit.ID+`"`, 1))
		if c.name == "WooCommerce" { // WooCommerce sends this when a webhook is saved
			ping, err := os.ReadFile(filepath.Join("testdata", "hook", "woocommerce-ping.txt"))
			if err != nil {
				t.Fatal(err)
			}
			a.hook(path, "application/x-www-form-urlencoded", ping, "", http.StatusOK, `{"accepted":false,"errors":[`)
		}
		body, err := os.ReadFile(filepath.Join("testdata", "hook", c.file))
		if err != nil {
			t.Fatal(err)
		}
		// The date 2035-05-25 is too far ahead, because sequences accept dates within five years.
		soon := time.Now().AddDate(0, 1, 0).Format("2006-01-02")
		body = bytes.ReplaceAll(body, []byte("2035-05-25"), []byte(soon))
		a.hook(path, "application/json", body, c.key, http.StatusOK, `{"accepted":true}`)
		a.hook(path, "application/json", body, c.key, http.StatusOK, `{"accepted":true,"repeated":true}`)
		if c.text != "" {
			a.gets(c.phone, c.text)
			if n := len(a.got(c.phone)); n != 1 {
				t.Errorf("%s: %d messages", c.name, n)
			}
		}
		eventually(t, 10*time.Second, c.name+" acts", func() bool {
			return slices.ContainsFunc(a.log(id), func(f firing) bool { return f.Acted && f.Phone == c.phone })
		})
		if c.name == calCom { // the moved appointment has another uid
			moved := bytes.ReplaceAll(body, []byte("T09:30:00Z"), []byte("T11:30:00Z"))
			moved = bytes.ReplaceAll(moved, []byte("BOOKING_CREATED"), []byte("BOOKING_RESCHEDULED"))
			moved = bytes.ReplaceAll(moved, []byte(`"createdAt": "2026-11-20T09:30:00.538Z"`), []byte(`"createdAt": "2026-11-20T09:31:00.538Z"`))
			moved = bytes.ReplaceAll(moved, []byte(`"uid": "bFJ`), []byte(`"uid": "other", "rescheduleUid": "bFJ`))
			a.hook(path, "application/json", moved, c.key, http.StatusOK, `{"accepted":true}`)
			eventually(t, 10*time.Second, "the reminder follows", func() bool {
				got := states(a, c.phone)
				return got["PENDING"] == 1 && got["CANCELLED"] == 1
			})
		}
		a.hook(strings.TrimSuffix(path, path[len(path)-4:])+"0000", "application/json", body, "", http.StatusNotFound, `{"title":"Not Found"`)
	}
	limited := 0
	_, path := a.rule(`{"name":"Veloce","trigger":{"kind":"hook","map":{"phone":"tel"}},"actions":[{"kind":"tag","add":["veloce"]}]}`)
	for i := range 15 {
		answer, err := web.Post(s.base+path, "application/json", strings.NewReader(fmt.Sprintf(`{"tel":"+3933312600%02d"}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get("Retry-After") != "" {
			limited++
		}
	}
	if limited == 0 || limited > 5 {
		t.Errorf("of 15 calls at once, %d were refused", limited)
	}
}
