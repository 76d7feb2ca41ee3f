//go:build e2e

package e2e

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// mass is a client that sends campaigns through servers that are killed.
type mass struct {
	t      *testing.T
	s      *server
	key    string
	random *rand.Rand
	sent   int // how many campaigns were sent so far

	singles int // how many single messages were sent so far
}

type campaignState struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Counts struct {
		Recipients, Refused, Waiting, Fed, Pending, Completed, Failed int
	} `json:"counts"`
}

// patient is an HTTP client whose timeout is longer than the server's wait for a check.
var patient = &http.Client{Timeout: 30 * time.Second}

func newMass(t *testing.T, s *server) *mass {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	key := createTenant(t, s.base, createPartner(t, s.database), "full", step("ciao", 0, "")).key
	return &mass{t: t, s: s, key: key, random: rand.New(rand.NewPCG(seed, 1))}
}

// phone returns the number of the i-th recipient of the present campaign. No number has an ending that the simulated
// network treats specially.
func (m *mass) phone(i int) string { return fmt.Sprintf("+3932%d%03d%04d", m.sent%10, i/9000, i%9000) }

// wait waits for a random time of at most maxWait.
func (m *mass) wait(maxWait time.Duration) {
	time.Sleep(time.Duration(m.random.Int64N(int64(maxWait)))) // the time of a kill must be random
}

// again kills the server and starts it again.
func (m *mass) again() {
	m.s.kill()
	m.s.start()
}

func (m *mass) state(id string) (c campaignState) {
	m.t.Helper()
	must(m.t, "GET", m.s.base+"/api/campaigns/"+id, m.key, nil).into(m.t, &c)
	if n := c.Counts; n.Recipients != n.Refused+n.Waiting+n.Fed {
		m.t.Errorf("the counts do not add up: %+v", n)
	}
	return c
}

// upload replaces the campaign's list. If cut is true, the server is killed in the middle of the upload.
func (m *mass) upload(id string, recipients int, cut bool) {
	m.t.Helper()
	body, w := io.Pipe()
	request, err := http.NewRequest("PUT", m.s.base+"/api/campaigns/"+id+"/recipients?api_key="+m.key, body)
	if err != nil {
		m.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "text/csv")
	go func() {
		_, _ = io.WriteString(w, "Telefono;Nome\n")
		for i := range recipients {
			if cut && i == recipients/2 {
				m.s.kill()
			}
			_, _ = fmt.Fprintf(w, "%s;Anna %d\n", m.phone(i), i)
		}
		_ = w.Close()
	}()
	response, err := http.DefaultClient.Do(request)
	if cut {
		_ = body.Close()
		if err == nil {
			_ = response.Body.Close()
		}
		m.s.start()
		return
	}
	if err != nil {
		m.t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		m.t.Fatalf("the upload: %d %s", response.StatusCode, answer)
	}
}

// check returns the digest of the campaign's check. It repeats the call until the check has ended.
func (m *mass) check(id string) (digest string) {
	m.t.Helper()
	eventually(m.t, time.Minute, "the check ends", func() bool {
		var k struct {
			Digest *string `json:"digest"`
			Valid  int     `json:"valid"`
		}
		a, err := callWith(patient, "POST", m.s.base+"/api/campaigns/"+id+"/check", m.key, nil)
		if err != nil || a.status != http.StatusOK {
			m.t.Fatalf("the check: %v, %d %s", err, a.status, a.body)
		}
		a.into(m.t, &k)
		if k.Digest != nil {
			digest = *k.Digest
		}
		return digest != ""
	})
	return digest
}

// draft makes a campaign with a complete list. If kills is true, it kills the server during the upload.
func (m *mass) draft(recipients int, kills bool) (id string) {
	m.t.Helper()
	m.sent++
	var made campaignState
	must(m.t, "POST", m.s.base+"/api/campaigns", m.key, map[string]any{"name": "Auguri", "content": map[string]any{"text": "Ciao {{nome}}"}}).into(m.t, &made)
	if kills {
		m.upload(made.ID, recipients, true)
		if n := m.state(made.ID).Counts.Recipients; n != 0 {
			m.t.Errorf("a list that was cut off has %d recipients", n)
		}
	}
	m.upload(made.ID, recipients, false)
	if n := m.state(made.ID).Counts.Recipients; n != recipients {
		m.t.Errorf("the list has %d recipients, want %d", n, recipients)
	}
	return made.ID
}

func (m *mass) verb(id, verb string) {
	m.t.Helper()
	must(m.t, "POST", m.s.base+"/api/campaigns/"+id+"/"+verb, m.key, nil)
}

func (m *mass) start(id, digest string) {
	m.t.Helper()
	must(m.t, "POST", m.s.base+"/api/campaigns/"+id+"/start", m.key, map[string]any{"digest": digest})
}

// done waits for the campaign's end, and compares its counts with the simulated network's ledger. The ledger must have
// each recipient exactly once.
func (m *mass) done(id string, recipients int, within time.Duration) {
	m.t.Helper()
	var last campaignState
	eventually(m.t, within, "everybody got a message", func() bool {
		last = m.state(id)
		return last.State == "done" || last.Counts.Completed == recipients
	})
	if n := last.Counts; n.Completed != recipients || n.Fed != recipients {
		m.t.Errorf("at the end: %+v", last)
	}
	times := map[string]int{}
	for _, r := range ledger(m.t, m.s.base, m.key) {
		times[r.Phone]++
	}
	missing, twice := 0, 0
	for i := range recipients {
		switch n := times[m.phone(i)]; {
		case n == 0:
			missing++
		case n > 1:
			twice++
		}
	}
	if missing+twice > 0 {
		m.t.Errorf("of %d recipients %d got nothing, and %d more than one message", recipients, missing, twice)
	}
}

// TestCampaignKilled kills the server during a campaign's upload, check, feeding, two pauses and two resumptions. Each
// recipient gets exactly one message. After the answer to a pause, only messages that were in flight before it leave.
func TestCampaignKilled(t *testing.T) {
	beside(t)
	recipients, latency, rounds := 7000, "1s", 1 // up to 1,000 messages of a session are in flight at the same time
	if long {
		recipients, latency, rounds = 100_000, "200ms", 10
	}
	databases(t, func(t *testing.T, database string) {
		m := newMass(t, serve(t, database, "--lease", "1s", "--sandbox-latency", latency))
		for range rounds {
			id := m.draft(recipients, true)
			go func() { _, _ = call("POST", m.s.base+"/api/campaigns/"+id+"/check", m.key, nil) }()
			m.wait(200 * time.Millisecond)
			m.again()
			m.start(id, m.check(id))
			m.wait(time.Second)
			m.again()
			m.leaving(id)
			p := m.pause(id)
			p.settle()
			p.still()
			m.verb(id, "resume")
			m.again()
			m.leaving(id)
			m.wait(time.Second)
			p = m.pause(id)
			p.kill()
			p.still()
			m.verb(id, "resume")
			m.again()
			m.done(id, recipients, 5*time.Minute)
		}
	})
}

// leaving waits until messages leave to recipients after the canary. The canary has 20 recipients.
func (m *mass) leaving(id string) {
	m.t.Helper()
	var before campaignState
	eventually(m.t, time.Minute, "more than the first recipients are fed", func() bool { before = m.state(id); return before.Counts.Fed > 20 })
	eventually(m.t, time.Minute, "messages leave", func() bool { return m.state(id).Counts.Completed > before.Counts.Completed })
}

// TestCampaignTakenOver kills one of two servers while it feeds a campaign. The other server continues, and no
// recipient gets two messages.
func TestCampaignTakenOver(t *testing.T) {
	beside(t)
	recipients := 3000
	if long {
		recipients = 100_000
	}
	database := postgres(t)
	first := serve(t, database, "--lease", "1s")
	m := newMass(t, first)
	second := serve(t, database, "--lease", "1s")
	id := m.draft(recipients, false)
	m.start(id, m.check(id))
	for range 2 {
		m.wait(time.Second)
		m.s.kill()
		m.s, second = second, m.s
		eventually(t, 30*time.Second, "the other server feeds", func() bool { c := m.state(id); return c.Counts.Waiting == 0 || c.Counts.Fed > 0 })
		second.start()
	}
	m.done(id, recipients, 2*time.Minute)
}

// TestCampaignYields sends single messages while a campaign runs as fast as it can. Some of the single messages use the
// campaign's session, and some belong to another client. All single messages leave within two seconds of their calls,
// long before the campaign ends.
func TestCampaignYields(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database)
		m := newMass(t, s)
		other := createTenant(t, s.base, createPartner(t, database, "--another", "--email", "altra@example.com"), "full", step("ciao", 0, "")).key
		const recipients, singles = 40_000, 40
		id := m.draft(recipients, false)
		m.start(id, m.check(id))
		eventually(t, 30*time.Second, "the campaign is under way", func() bool { return m.state(id).Counts.Completed > 100 })
		of := map[string][]string{m.key: nil, other: nil}
		for i := range singles {
			for key := range of {
				var made struct{ ID []string }
				must(t, "POST", s.base+"/api/messages", key, map[string]any{"phone": fmt.Sprintf("+39340000%04d", i), "text": "subito"}).into(t, &made)
				of[key] = append(of[key], made.ID...)
			}
		}
		waiting := m.state(id).Counts
		for key, ids := range of {
			eventually(t, 20*time.Second, "the single messages left", func() bool {
				for _, d := range details(t, s.base, key, ids) {
					if d.Left == nil {
						return false
					}
				}
				return true
			})
			var late []time.Duration
			for _, d := range details(t, s.base, key, ids) {
				accepted, err := time.Parse(time.RFC3339Nano, d.Accepted)
				if err != nil {
					t.Fatal(err)
				}
				left, err := time.Parse(time.RFC3339Nano, *d.Left)
				if err != nil {
					t.Fatal(err)
				}
				late = append(late, left.Sub(accepted))
			}
			slices.Sort(late)
			t.Logf("of the campaign's client: %v; half left within %v, the last within %v; of the campaign %d messages had left, %d had not",
				key == m.key, late[len(late)/2], late[len(late)-1], waiting.Completed, recipients-waiting.Completed)
			if late[len(late)-1] > 2*time.Second {
				t.Errorf("a single message left %v after its call", late[len(late)-1])
			}
		}
		if waiting.Completed == recipients {
			t.Error("the campaign was over before the single messages were sent, so this shows nothing")
		}
		m.done(id, recipients, time.Minute)
	})
}

// TestCampaignFiles uploads files that cannot become a list. The server refuses them and stores nothing.
func TestCampaignFiles(t *testing.T) {
	beside(t)
	s := serve(t, t.TempDir()+"/puntuale.db")
	m := newMass(t, s)
	id := m.draft(10, false)
	for name, file := range map[string]struct {
		kind string
		body io.Reader
		want int
		says string
	}{
		"too long":         {"text/csv", io.MultiReader(strings.NewReader("phone,nome\n"), io.LimitReader(repeated("+393331234567,"+strings.Repeat("x", 2000)+"\n"), 200<<20)), 413, "100 MiB"},
		"NULs":             {"text/csv", strings.NewReader("phone,nome\r\n+393331234567,An\x00na\r+393331234568,B\n"), 422, "NUL"},
		"an open quote":    {"text/csv", io.MultiReader(strings.NewReader("phone,nome\n+39333,\""), io.LimitReader(repeated("abc, "), 1<<20)), 422, "quotation mark"},
		"no header":        {"text/csv", strings.NewReader(""), 422, "header"},
		"no phone":         {"text/csv", strings.NewReader("a,b\nx,y\n"), 422, "phone"},
		"a picture":        {"image/png", strings.NewReader("\x89PNG"), 422, "neither"},
		"not a whole XLSX": {"", strings.NewReader("PK\x03\x04 and then nothing"), 422, "damaged"},
		"a cut XLSX":       {"", cutWorkbook(t), 422, "from line 501 on"},
		"a phone on top":   {"text/csv", strings.NewReader("333 1234567,Anna\n333 1234568,Bea\n"), 422, "phone number"},
	} {
		request, err := http.NewRequest("PUT", s.base+"/api/campaigns/"+id+"/recipients?api_key="+m.key, file.body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", file.kind)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			if name == "too long" {
				continue // the server answered, and closed the connection before the whole file was sent
			}
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != file.want || !strings.Contains(string(answer), file.says) {
			t.Errorf("%s: %d %s", name, response.StatusCode, answer)
		}
	}
	if n := m.state(id).Counts.Recipients; n != 10 {
		t.Errorf("the list has %d recipients now", n)
	}
}

// cutWorkbook returns a complete zip archive with a sheet that ends in the middle of line 501.
func cutWorkbook(t *testing.T) io.Reader {
	t.Helper()
	sheet := `<worksheet><sheetData><row r="1"><c t="str"><v>phone</v></c></row>`
	for n := range 500 {
		sheet += fmt.Sprintf(`<row r="%d"><c><v>39333%07d</v></c></row>`, n+2, n)
	}
	return workbook(t, sheet[:len(sheet)-20])
}

// workbook returns an XLSX file with one sheet.
func workbook(t *testing.T, sheet string) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for name, content := range map[string]string{
		"_rels/.rels":                `<Relationships><Relationship Id="a" Type="x/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
		"xl/workbook.xml":            `<workbook xmlns:r="x"><sheets><sheet name="Lista" r:id="a"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="a" Type="x/worksheet" Target="sheet.xml"/></Relationships>`,
		"xl/sheet.xml":               sheet,
	} {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// repeated returns a reader that repeats the text without end.
func repeated(text string) io.Reader { return &repeater{text: text} }

type repeater struct {
	text string
	at   int
}

func (r *repeater) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[r.at]
		r.at = (r.at + 1) % len(r.text)
	}
	return len(p), nil
}
