package graphtest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// managed is what the peer knows about the management of templates.
type managed struct {
	decide  func(call string) Reply // returns the answer to a call that changes a template; the call is "create", "edit", "unpause" or "delete"
	calls   []string                // what was asked for, including what was refused
	created map[string][]time.Time  // of each business
	edited  map[string][]time.Time  // of each approved template, by its id
	deleted map[string]bool         // the names that are locked
	uploads map[string]*upload
	handles map[string]bool
	apps    map[string][]string // the apps that get a business's reports; without an entry: the app of the business
	next    int
	cut     int // after so many bytes the next upload breaks; 0: none does
}

// upload is a resumable upload of a sample.
type upload struct {
	kind   string
	length int
	data   []byte
}

// Manage sets the function that answers calls that change templates. With nil, or an empty reply, the peer does what is
// asked, within Meta's limits.
func (p *Peer) Manage(decide func(call string) Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.managed.decide = decide
}

// Managed returns the calls that changed templates, or were to do so.
func (p *Peer) Managed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.managed.calls)
}

// CutUpload makes the next upload of a sample break after so many bytes.
func (p *Peer) CutUpload(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.managed.cut = bytes
}

// Template returns a template of a business. Its ID is "" if there is none.
func (p *Peer) Template(account, name, language string) ListedTemplate {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.templates[account] {
		if t.Name == name && t.Language == language {
			return t
		}
	}
	return ListedTemplate{}
}

// Review sets a template's status and reason, as Meta's reviewers do.
func (p *Peer) Review(account, name, language, status, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.templates[account] {
		if t := &p.templates[account][i]; t.Name == name && t.Language == language {
			t.Status, t.Rejected = status, reason
		}
	}
}

// SetApps sets the ids of the apps that get a business's reports.
func (p *Peer) SetApps(account string, apps ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.managed.apps == nil {
		p.managed.apps = map[string][]string{}
	}
	p.managed.apps[account] = apps
}

// subscribe answers a call about the apps of a business.
func (p *Peer) subscribe(w http.ResponseWriter, r *http.Request, n *Number) {
	if r.Method == http.MethodPost {
		p.SetApps(n.Account, n.App)
		writeJSON(w, 200, map[string]any{"success": true})
		return
	}
	p.mu.Lock()
	apps, set := p.managed.apps[n.Account]
	p.mu.Unlock()
	if !set {
		apps = []string{n.App}
	}
	data := []any{}
	for _, id := range apps {
		data = append(data, map[string]any{"whatsapp_business_api_data": map[string]any{"id": id, "name": "App " + id, "link": "https://www.facebook.com/games/?app_id=" + id}})
	}
	writeJSON(w, 200, map[string]any{"data": data})
}

// manage answers the calls that change a business's templates. It returns false for all other calls.
func (p *Peer) manage(w http.ResponseWriter, r *http.Request, parts []string) bool {
	switch {
	case len(parts) == 3 && parts[2] == "uploads" && r.Method == http.MethodPost:
		p.beginUpload(w, r, parts[1])
	case len(parts) == 2 && strings.HasPrefix(parts[1], "upload:"):
		p.piece(w, r, parts[1])
	case len(parts) == 3 && parts[2] == "subscribed_apps":
		if number := p.manager(w, r, parts[1]); number != nil {
			p.subscribe(w, r, number)
		}
	case len(parts) == 3 && parts[2] == "message_templates" && r.Method != http.MethodGet:
		if number := p.manager(w, r, parts[1]); number != nil {
			if r.Method == http.MethodPost {
				p.change(w, "create", func() Reply { return p.create(r, parts[1]) })
			} else {
				p.change(w, "delete", func() Reply { return p.remove(r, parts[1]) })
			}
		}
	case len(parts) == 2 || len(parts) == 3 && parts[2] == "unpause":
		account, known := p.ownerOf(parts[1])
		if !known {
			return false
		}
		number := p.manager(w, r, account)
		switch {
		case number == nil:
		case len(parts) == 3:
			p.change(w, "unpause", func() Reply { return p.unpause(account, parts[1]) })
		case r.Method == http.MethodPost:
			p.change(w, "edit", func() Reply { return p.edit(r, account, parts[1]) })
		default:
			p.mu.Lock()
			i := slices.IndexFunc(p.templates[account], func(t ListedTemplate) bool { return t.ID == parts[1] })
			t := p.templates[account][i]
			p.mu.Unlock()
			writeJSON(w, 200, t)
		}
	default:
		return false
	}
	return true
}

func (p *Peer) ownerOf(id string) (account string, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for account, all := range p.templates {
		if slices.ContainsFunc(all, func(t ListedTemplate) bool { return t.ID == id }) && p.numbers[id].ID == "" {
			return account, true
		}
	}
	return "", false
}

// manager returns a number of the business whose token the request has.
func (p *Peer) manager(w http.ResponseWriter, r *http.Request, account string) *Number {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.numbers {
		if n.Account == account && r.Header.Get("Authorization") == "Bearer "+n.Token && r.URL.Query().Get("appsecret_proof") == hmacOf(n.Secret, n.Token) {
			return &n
		}
	}
	writeError(w, 400, 100, 33, "Unsupported request. Object does not exist", "")
	return nil
}

func (p *Peer) change(w http.ResponseWriter, call string, do func() Reply) {
	p.mu.Lock()
	p.managed.calls = append(p.managed.calls, call)
	decide := p.managed.decide
	p.mu.Unlock()
	reply := Reply{}
	if decide != nil {
		reply = decide(call)
	}
	if reply.Wait != nil {
		<-reply.Wait
	}
	if reply.Break || reply.Code != 0 || reply.Body != "" && !reply.Drop {
		reply.write(w)
		return
	}
	done := do()
	if reply.Drop {
		panic(http.ErrAbortHandler)
	}
	if done.Status == 0 && done.Code == 0 {
		done.Status = 200
	}
	done.write(w)
}

// draft is the body of a call that makes or edits a template.
type draft struct {
	Name       string           `json:"name"`
	Language   string           `json:"language"`
	Category   string           `json:"category"`
	Format     string           `json:"parameter_format"`
	Components []map[string]any `json:"components"`
}

func refusal(subcode int, text string) Reply {
	return Reply{Code: 100, Subcode: subcode, Title: "Template non valido", Text: text}
}

func (p *Peer) read(r *http.Request, target any) bool {
	body, err := io.ReadAll(r.Body)
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err != nil || r.Header.Get("Content-Type") != "application/json" || d.Decode(target) != nil {
		p.fault("the body of a template: %s", body)
		return false
	}
	return true
}

func (p *Peer) create(r *http.Request, account string) Reply {
	var d draft
	if !p.read(r, &d) || !regexp.MustCompile(`^[a-z0-9_]{1,512}$`).MatchString(d.Name) || d.Language == "" || d.Category != "UTILITY" && d.Category != "MARKETING" {
		return refusal(0, "not a template")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.managed.created[account] = slices.DeleteFunc(p.managed.created[account], func(at time.Time) bool { return now.Sub(at) > time.Hour })
	switch {
	case slices.ContainsFunc(p.templates[account], func(t ListedTemplate) bool { return t.Name == d.Name && t.Language == d.Language }):
		return refusal(2388024, "Esiste già contenuto in questa lingua.")
	case p.managed.deleted[account+" "+d.Name]:
		return refusal(2388023, "La lingua del template viene eliminata.")
	case len(p.managed.created[account]) >= 100:
		return Reply{Code: 80008, Status: 400}
	}
	if reply := p.checkParts(d); reply.Code != 0 {
		return reply
	}
	p.managed.next++
	p.managed.created[account] = append(p.managed.created[account], now)
	id := strconv.Itoa(880000 + p.managed.next)
	p.templates[account] = append(p.templates[account], ListedTemplate{
		ID: id, Name: d.Name, Language: d.Language, Status: "PENDING", Category: d.Category, Rejected: "NONE", Format: strings.ToUpper(d.Format), Components: d.Components,
	})
	return Reply{Body: fmt.Sprintf(`{"id":%q,"status":"PENDING","category":%q}`, id, d.Category)}
}

func (p *Peer) edit(r *http.Request, account, id string) Reply {
	var d draft
	if !p.read(r, &d) || d.Name != "" || d.Language != "" || d.Format != "" {
		return refusal(0, "not an edit")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.templates[account], func(t ListedTemplate) bool { return t.ID == id })
	t := &p.templates[account][i]
	now := time.Now()
	day := slices.DeleteFunc(slices.Clone(p.managed.edited[id]), func(at time.Time) bool { return now.Sub(at) > 24*time.Hour })
	switch {
	case t.Status != "APPROVED" && t.Status != "REJECTED" && t.Status != "PAUSED":
		return refusal(2388039, "Il template non può essere modificato ora.")
	case t.Status == "APPROVED" && (d.Category != "" || len(day) > 0):
		return refusal(2388039, "Un template approvato si modifica una volta al giorno, e non cambia categoria.")
	}
	d.Name, d.Format = t.Name, strings.ToLower(t.Format)
	if reply := p.checkParts(d); reply.Code != 0 {
		return reply
	}
	if t.Status == "APPROVED" {
		p.managed.edited[id] = append(p.managed.edited[id], now)
	}
	t.Components, t.Status, t.Rejected = d.Components, "PENDING", "NONE"
	if d.Category != "" {
		t.Category = d.Category
	}
	return Reply{Body: `{"success":true}`}
}

func (p *Peer) unpause(account, id string) Reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.templates[account], func(t ListedTemplate) bool { return t.ID == id })
	if t := &p.templates[account][i]; t.Status == "PAUSED" {
		t.Status = "APPROVED"
		return Reply{Body: `{"success":true}`}
	}
	return refusal(2388039, "Il template non è in pausa.")
}

func (p *Peer) remove(r *http.Request, account string) Reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	i := slices.IndexFunc(p.templates[account], func(t ListedTemplate) bool { return t.ID == q.Get("hsm_id") && t.Name == q.Get("name") })
	if i < 0 {
		return refusal(33, "Template not found")
	}
	if p.templates[account][i].Status == "DISABLED" {
		return refusal(2388039, "Un template disattivato non si elimina.")
	}
	p.managed.deleted[account+" "+q.Get("name")] = true
	p.templates[account] = slices.Delete(slices.Clone(p.templates[account]), i, i+1)
	return Reply{Body: `{"success":true}`}
}

var place = regexp.MustCompile(`\{\{([a-z0-9_]+)\}\}`)

// checkParts refuses components with the subcodes that Meta uses. Every placeholder needs its example, in the form of the
// template's format.
func (p *Peer) checkParts(d draft) Reply {
	kinds := map[string]int{}
	for _, c := range d.Components {
		text, _ := c["text"].(string)
		kind, _ := c["type"].(string)
		places := place.FindAllStringSubmatch(text, -1)
		example, _ := c["example"].(map[string]any)
		if kinds[kind]++; kinds[kind] > 1 {
			return refusal(0, "twice "+kind)
		}
		long := func(most int) bool { return utf8.RuneCountInString(text) > most }
		switch kind {
		case "HEADER":
			switch c["format"] {
			case "LOCATION":
			case "TEXT":
				if long(60) || text == "" || len(places) > 1 {
					return refusal(2388047, "Intestazione non valida.")
				}
			default:
				handles, _ := example["header_handle"].([]any)
				if len(handles) != 1 || !p.managed.handles[fmt.Sprint(handles[0])] {
					return refusal(2388047, "Manca il file di esempio.")
				}
			}
		case "BODY":
			bare := strings.TrimSpace(place.ReplaceAllString(text, ""))
			switch {
			case long(1024):
				return refusal(2388040, "Il campo body supera 1024 caratteri.")
			case bare == "" || strings.Contains(bare, "{{"):
				return refusal(2388072, "Corpo non valido.")
			case place.FindStringIndex(text) != nil && (place.FindStringIndex(text)[0] == 0 || strings.HasSuffix(text, "}}")):
				return refusal(2388299, "Le variabili non possono stare all'inizio o alla fine.")
			case len(strings.Fields(bare)) < 2*len(places):
				return refusal(2388293, "Troppe variabili per la lunghezza del testo.")
			}
		case "FOOTER":
			if long(60) || len(places) > 0 || text == "" {
				return refusal(2388073, "Piè di pagina non valido.")
			}
		case "BUTTONS":
			if reply := checkDraftButtons(c); reply.Code != 0 {
				return reply
			}
		default:
			return refusal(0, "component "+kind)
		}
		if len(places) > 0 && !exampled(strings.ToLower(kind), d.Format, places, example) {
			return refusal(0, "Mancano gli esempi delle variabili di "+kind)
		}
	}
	if kinds["BODY"] != 1 {
		return refusal(2388072, "Manca il corpo.")
	}
	return Reply{}
}

// exampled reports whether the example has a value for each place, in Meta's form.
func exampled(part, format string, places [][]string, example map[string]any) bool {
	wanted := map[string]bool{}
	for _, found := range places {
		wanted[found[1]] = true
	}
	if format == "named" {
		given := map[string]bool{}
		all, _ := example[part+"_text_named_params"].([]any)
		for _, one := range all {
			pair, _ := one.(map[string]any)
			if name, _ := pair["param_name"].(string); pair["example"] != "" {
				given[name] = true
			}
		}
		return maps.Equal(given, wanted)
	}
	var values []any
	if part == "body" {
		rows, _ := example["body_text"].([]any)
		if len(rows) == 1 {
			values, _ = rows[0].([]any)
		}
	} else {
		values, _ = example["header_text"].([]any)
	}
	for i := range values {
		if !wanted[strconv.Itoa(i+1)] || values[i] == "" {
			return false
		}
	}
	return len(values) == len(wanted)
}

func checkDraftButtons(c map[string]any) Reply {
	all, _ := c["buttons"].([]any)
	count, last := map[any]int{}, any(nil)
	for _, one := range all {
		b, _ := one.(map[string]any)
		kind := b["type"]
		if kind == "QUICK_REPLY" && count[kind] > 0 && last != kind {
			return refusal(0, "Le risposte rapide devono essere vicine.")
		}
		count[kind]++
		last = kind
		label, _ := b["text"].(string)
		address, _ := b["url"].(string)
		example, _ := b["example"].([]any)
		switch {
		case kind != "COPY_CODE" && (label == "" || utf8.RuneCountInString(label) > 25):
			return refusal(2388040, "Il campo del pulsante supera 25 caratteri.")
		case kind == "URL" && strings.Contains(address, "{{") && (!strings.HasSuffix(address, "{{1}}") || strings.Count(address, "{{") != 1 || len(example) != 1):
			return refusal(0, "L'indirizzo ha una variabile senza esempio.")
		case kind == "COPY_CODE" && b["example"] == nil:
			return refusal(0, "Manca il codice.")
		}
	}
	if len(all) == 0 || len(all) > 10 || count["URL"] > 2 || count["PHONE_NUMBER"] > 1 || count["COPY_CODE"] > 1 {
		return refusal(0, "Troppi pulsanti.")
	}
	return Reply{}
}

func (p *Peer) beginUpload(w http.ResponseWriter, r *http.Request, app string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	length, err := strconv.Atoi(q.Get("file_length"))
	known := false
	for _, n := range p.numbers {
		known = known || n.App == app && r.Header.Get("Authorization") == "Bearer "+n.Token
	}
	if err != nil || length < 1 || !slices.Contains([]string{"application/pdf", "image/jpeg", "image/png", "video/mp4"}, q.Get("file_type")) || !known || q.Get("file_name") == "" {
		writeError(w, 400, 100, 0, "Invalid upload", "")
		return
	}
	p.managed.next++
	id := fmt.Sprintf("upload:sample%d", p.managed.next)
	p.managed.uploads[id] = &upload{kind: q.Get("file_type"), length: length}
	writeJSON(w, 200, map[string]any{"id": id})
}

func (p *Peer) piece(w http.ResponseWriter, r *http.Request, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := false
	for _, n := range p.numbers {
		known = known || r.Header.Get("Authorization") == "OAuth "+n.Token
	}
	u := p.managed.uploads[id]
	if u == nil || !known {
		writeError(w, 400, 100, 33, "Unsupported request. Object does not exist", "")
		return
	}
	if r.Method == http.MethodGet {
		writeJSON(w, 200, map[string]any{"id": id, "file_offset": len(u.data)})
		return
	}
	if r.Header.Get("file_offset") != strconv.Itoa(len(u.data)) { //nolint:canonicalheader // Meta's own name
		p.faults = append(p.faults, "an upload at "+r.Header.Get("file_offset")) //nolint:canonicalheader // Meta's own name
	}
	body, err := io.ReadAll(r.Body)
	if cut := p.managed.cut; cut > 0 {
		p.managed.cut = 0
		u.data = append(u.data, body[:min(cut, len(body))]...)
		panic(http.ErrAbortHandler)
	}
	u.data = append(u.data, body...)
	if err != nil || len(u.data) != u.length {
		writeError(w, 400, 100, 0, "Invalid upload", "")
		return
	}
	handle := "4::" + id
	p.managed.handles[handle] = true
	writeJSON(w, 200, map[string]any{"h": handle})
}
