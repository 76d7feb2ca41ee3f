// Package graphtest simulates Meta's Cloud API for tests. Its server on loopback accepts only correct requests, and has
// a ledger of the accepted messages. Tests can make the server refuse a message with any code, or delay an answer. They
// can also make it accept a message and break the connection. The server posts to webhooks. Tests can make it post a
// body more than once, out of order, late or with a forged signature.
package graphtest

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Number is a number of a business, with its keys.
type Number struct {
	ID      string
	Token   string
	Secret  string // the app's secret
	Verify  string
	Display string
	Tier    string
	Account string // the id of the business
	Quality string // "": GREEN
	Name    string // the state of the display name; "": APPROVED
	App     string // the id of the app
}

// Keys returns the number's keys as the body of an API request.
func (n Number) Keys() string {
	return fmt.Sprintf(`{"phone_number_id":%q,"access_token":%q,"app_secret":%q,"verify_token":%q,"business_account_id":%q}`, n.ID, n.Token, n.Secret, n.Verify, n.Account)
}

// NewNumber returns a number with keys of its own.
func NewNumber(id string) Number {
	return Number{ID: id, Token: "EAAtoken" + id, Secret: "secret" + id, Verify: "verify" + id, Display: "+39 02 1234-" + id, Tier: "TIER_UNLIMITED", Account: "55" + id, App: "66" + id}
}

// Taken is a message that the peer accepted.
type Taken struct {
	WAMID   string  `json:"wamid"`
	Number  string  `json:"number"`
	Path    string  `json:"path,omitempty"` // marketing_messages; "": messages
	Message Message `json:"message"`
}

// Reply is the answer to a message. Each of the fields Refuse, Drop and Break says what the peer does if it is true.
type Reply struct {
	Subcode int    // Meta's subcode; 0: none
	Title   string // what Meta tells people; "": nothing
	Text    string
	Code    int    // Meta's code; 0: the message is accepted, unless Body is set
	Refuse  bool   // refuse the message even if Code is 0
	Details string // the details of the refusal
	Header  map[string]string
	Status  int    // the HTTP status; 0: the usual status for the code
	Body    string // the answer's body; "": a body in Meta's form
	Drop    bool   // accept the message, and break the connection without an answer
	Break   bool   // break the connection, and do not accept the message
	Wait    <-chan struct{}
}

// File is an uploaded file.
type File struct {
	Type string
	Name string
	Data []byte
}

// Peer is the simulated server.
type Peer struct {
	URL     string
	Version string
	t       testing.TB
	server  *httptest.Server
	client  *http.Client

	mu      sync.Mutex
	numbers map[string]Number
	taken   []Taken
	files   map[string]File
	uploads int
	answer  func(Message) Reply
	look    func() Reply // returns the answer to a request for a number's data
	faults  []string
	journal *os.File
	asked   int // how many messages were posted, including refused ones

	templates map[string][]ListedTemplate // the key is the business's id
	list      func() Reply                // returns the answer to a request for a business's data
	listed    int
	page      int
	managed   managed
	names     map[string]Name
	attached  map[string]attached // the key is the file's id
	ways      map[string]*Ways    // the key is the business's id
	looked    int                 // how often a number's data was requested
	canSend   map[string]string   // the key is the id of a number or a business; without an entry: AVAILABLE
	unpaid    map[string]bool     // the key is the business's id
}

// New starts a peer. If a request had a fault, the test fails when it ends.
func New(t testing.TB, numbers ...Number) *Peer {
	t.Helper()
	p := &Peer{t: t, Version: "v27.0", numbers: map[string]Number{}, files: map[string]File{}, templates: map[string][]ListedTemplate{}, names: map[string]Name{}, attached: map[string]attached{}, unpaid: map[string]bool{}, canSend: map[string]string{}, client: &http.Client{Timeout: 30 * time.Second},
		managed: managed{created: map[string][]time.Time{}, edited: map[string][]time.Time{}, deleted: map[string]bool{}, uploads: map[string]*upload{}, handles: map[string]bool{}}}
	for _, n := range numbers {
		p.numbers[n.ID] = n
	}
	p.server = httptest.NewServer(p)
	p.URL = p.server.URL
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
		p.client.CloseIdleConnections()
		for _, fault := range p.Faults() {
			t.Errorf("graph peer: %s", fault)
		}
	})
	return p
}

// Journal also writes the ledger to a file. Each message is written before its answer is sent.
func (p *Peer) Journal(name string) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = f.Close() })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.journal = f
}

// Answer sets the function that returns the answers to messages. With nil, the peer accepts all messages.
func (p *Peer) Answer(decide func(Message) Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = decide
}

// Look sets the function that answers requests for a number's data. With nil, the peer returns the data.
func (p *Peer) Look(decide func() Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look = decide
}

// Set changes a number, or adds one.
func (p *Peer) Set(n Number) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.numbers[n.ID] = n
}

// Taken returns the ledger of accepted messages, oldest first.
func (p *Peer) Taken() []Taken {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Taken{}, p.taken...)
}

// Asked returns how many messages were posted, including refused ones.
func (p *Peer) Asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// Uploads returns how many files were uploaded.
func (p *Peer) Uploads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.uploads
}

// File returns an uploaded file by its id.
func (p *Peer) File(id string) File {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.files[id]
}

// Faults returns the faults of all requests so far, and empties the list.
func (p *Peer) Faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	faults := p.faults
	p.faults = nil
	return faults
}

func (p *Peer) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

func (p *Peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, files) {
		p.serve(w, r)
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) < 2 || parts[0] != p.Version {
		p.fault("path %s", r.URL.Path)
		refuse(w, 404, 2500, "Unknown path components")
		return
	}
	for _, gone := range []string{"pretty", "debug", "date_format", "ids"} { // since v26; errors or without effect for all versions
		if r.URL.Query().Has(gone) {
			p.fault("parameter %s", gone)
		}
	}
	if p.manage(w, r, parts) {
		return
	}
	if len(parts) == 3 && (parts[2] == "message_templates" || parts[2] == "phone_numbers") {
		p.business(w, r, parts[1], parts[2])
		return
	}
	if len(parts) == 2 && r.Method == http.MethodPost {
		p.changeBusiness(w, r, parts[1])
		return
	}
	if len(parts) == 2 && (p.find(w, r, parts[1]) || p.showBusiness(w, r, parts[1])) {
		return
	}
	p.mu.Lock()
	number, known := p.numbers[parts[1]]
	p.mu.Unlock()
	switch {
	case !known:
		writeError(w, 400, 100, 33, "Unsupported get request. Object does not exist", "")
		return
	case r.Header.Get("Authorization") != "Bearer "+number.Token:
		refuse(w, 401, 190, "Error validating access token")
		return
	case r.URL.Query().Get("appsecret_proof") != hmacOf(number.Secret, number.Token):
		writeError(w, 400, 100, 0, "Invalid appsecret_proof provided in the API argument", "")
		return
	}
	switch route := r.Method + " " + strings.Join(parts[2:], "/"); route {
	case "GET ":
		p.show(w, r, number)
	case "POST messages":
		p.take(w, r, number, "")
	case "POST marketing_messages":
		p.take(w, r, number, "marketing_messages")
	case "POST media":
		p.upload(w, r)
	default:
		p.fault("route %s", route)
		refuse(w, 404, 2500, "Unknown path components")
	}
}

func (p *Peer) show(w http.ResponseWriter, r *http.Request, n Number) {
	p.mu.Lock()
	p.looked++
	look := p.look
	p.mu.Unlock()
	if look != nil {
		if reply := look(); reply.Code != 0 || reply.Body != "" || reply.Break {
			reply.write(w)
			return
		}
	}
	answer := map[string]any{"id": n.ID}
	for _, field := range strings.Split(r.URL.Query().Get("fields"), ",") {
		switch field {
		case "id":
		case "display_phone_number":
			answer[field] = n.Display
		case "whatsapp_business_manager_messaging_limit":
			if n.Tier == "" {
				writeError(w, 400, 100, 0, "(#100) Tried accessing nonexisting field", "")
				return
			}
			answer[field] = n.Tier
		case "quality_rating":
			answer[field] = cmp.Or(n.Quality, "GREEN")
		case "name_status":
			answer[field] = cmp.Or(n.Name, "APPROVED")
		case "health_status":
			answer[field] = p.health(n.ID, n.Account)
		default:
			p.fault("field %s", field)
		}
	}
	writeJSON(w, 200, answer)
}

func (p *Peer) take(w http.ResponseWriter, r *http.Request, n Number, path string) {
	if r.ContentLength <= 0 || r.Header.Get("Content-Type") != "application/json" {
		p.fault("a message of length %d and type %s", r.ContentLength, r.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender broke the connection
	}
	m, err := readMessage(body)
	if err != nil {
		p.fault("message %s: %v", body, err)
		refuse(w, 400, 100, err.Error())
		return
	}
	p.mu.Lock()
	p.asked++
	decide := p.answer
	p.mu.Unlock()
	reply := p.refuseWay(n, m, path)
	if decide != nil && reply.Code == 0 {
		reply = decide(m)
	}
	if reply.Wait != nil {
		select {
		case <-reply.Wait:
		case <-r.Context().Done():
		}
	}
	if reply.Break || reply.Code != 0 || reply.Refuse || reply.Body != "" && !reply.Drop {
		reply.write(w)
		return
	}
	taken := p.enter(n, m, path)
	if reply.Drop {
		panic(http.ErrAbortHandler)
	}
	writeJSON(w, 200, map[string]any{
		"messaging_product": "whatsapp",
		"contacts":          []any{p.contact(m.Recipient())},
		"messages":          []any{map[string]any{"id": taken.WAMID}},
	})
}

// enter adds a message to the ledger.
func (p *Peer) enter(n Number, m Message, path string) Taken {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := Taken{fmt.Sprintf("wamid.%s.%d", n.ID, len(p.taken)+1), n.ID, path, m}
	p.taken = append(p.taken, taken)
	if p.journal != nil {
		line, _ := json.Marshal(taken)
		if _, err := p.journal.Write(append(line, '\n')); err != nil {
			p.faults = append(p.faults, err.Error())
		}
	}
	return taken
}

func (p *Peer) upload(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength <= 0 {
		p.fault("an upload without a length")
	}
	if err := r.ParseMultipartForm(128 << 20); err != nil {
		p.fault("an upload: %v", err)
		refuse(w, 400, 100, "not multipart")
		return
	}
	file, header, err := r.FormFile("file")
	if err != nil || r.FormValue("messaging_product") != "whatsapp" || r.FormValue("type") == "" || r.FormValue("type") != header.Header.Get("Content-Type") {
		p.fault("an upload with %v and file %v", r.MultipartForm.Value, err)
		refuse(w, 400, 100, "fields")
		return
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.uploads++
	id := fmt.Sprintf("%d", 900000+p.uploads)
	p.files[id] = File{r.FormValue("type"), header.Filename, data}
	p.mu.Unlock()
	writeJSON(w, 200, map[string]any{"id": id})
}

func (r Reply) write(w http.ResponseWriter) {
	if r.Break {
		panic(http.ErrAbortHandler)
	}
	for name, value := range r.Header {
		w.Header().Set(name, value)
	}
	status := r.Status
	if status == 0 {
		status = 400
	}
	if r.Body != "" {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, r.Body)
		return
	}
	if r.Title != "" || r.Subcode != 0 {
		writeJSON(w, status, map[string]any{"error": map[string]any{
			"message": "Invalid parameter", "type": "OAuthException", "code": r.Code, "error_subcode": r.Subcode, "error_user_title": r.Title, "error_user_msg": r.Text, "fbtrace_id": "Atrace",
		}})
		return
	}
	writeError(w, status, r.Code, 0, fmt.Sprintf("(#%d) refused", r.Code), r.Details)
}

func refuse(w http.ResponseWriter, status, code int, message string) {
	writeError(w, status, code, 0, message, "")
}

func writeError(w http.ResponseWriter, status, code, subcode int, message, details string) {
	e := map[string]any{"message": message, "type": "OAuthException", "code": code, "fbtrace_id": "Atrace"}
	if subcode != 0 {
		e["error_subcode"] = subcode
	}
	if details != "" {
		e["error_data"] = map[string]any{"messaging_product": "whatsapp", "details": details}
	}
	writeJSON(w, status, map[string]any{"error": e})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func hmacOf(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}
