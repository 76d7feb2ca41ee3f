//go:build promtool

package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/connector/socket/whatsapptest"
	"puntuale/internal/mail/mailtest"
	"puntuale/internal/objectstore/s3test"
	"puntuale/internal/store/storetest"
)

// alertCause is what makes an alert fire.
type alertCause struct {
	cause   string
	also    []string // alerts that the same cause must fire
	minutes int
	begin   func(s *scene) (each func(minute int)) // starts the servers; each is called before each scrape, from the minute 0
}

// alertCauses has a real cause for each alert. The third minute is the first one in which something is wrong.
var alertCauses = map[string]alertCause{
	"PuntualeDown":         {"the process is killed", nil, 8, causeDown},
	"PuntualeNotReady":     {"the connections to PostgreSQL end, and nobody answers there", nil, 20, causeNotReady},
	"PuntualeNobodySends":  {"the only server has the role api", nil, 6, causeNobodySends},
	"PuntualeBacklogOld":   {"thirty messages are due, and the number's pace is one a minute", nil, 16, causeBacklogOld},
	"PuntualeLate":         {"fifteen messages are due in each minute, and the number's pace is twenty a minute", nil, 28, causeLate},
	"PuntualeRefused":      {"the network refuses six messages in each minute", nil, 28, causeRefused},
	"PuntualeUncertain":    {"the network's answers are lost", nil, 28, causeUncertain},
	"PuntualeNumberLost":   {"the phone ends the link of its number", nil, 22, causeNumberLost},
	"PuntualeTaskFails":    {"the archive's folder is removed", nil, 50, causeTaskFails},
	"PuntualeDiskLow":      {"a file fills the disk of the archive", nil, 12, causeDiskLow},
	"PuntualeBackupOld":    {"for 27 hours, the storage has accepted no backup", []string{"PuntualeBackupFails", "PuntualeNotRehearsed"}, 22, causeBackupOld},
	"PuntualeBackupFails":  {"the storage of a new server accepts no backup", nil, 22, causeBackupFails},
	"PuntualeNotRehearsed": {"for 27 hours, the storage has accepted backups, and given none back", []string{"PuntualeBackupFails"}, 22, causeNotRehearsed},
	"PuntualeOverload":     {"a program makes 500 calls at once, in each second, and the server works on eight", nil, 14, causeOverload},
	"PuntualeErrors":       {"the table of templates is away", nil, 24, causeErrors},
	"PuntualeEventsWait":   {"one event's receiver answers 500", nil, 100, causeEventsWait},
	"PuntualeMailFails":    {"one person asks for a new password, and the mail server is away", nil, 100, causeMailFails},
	"PuntualeQuarantined":  {"the database's timeline is another one, as after a failover", nil, 12, causeQuarantined},
	"PuntualeUnknownCodes": {"Meta refuses a message with a code that nobody knows", nil, 6, causeUnknownCodes},
}

// TestPromtoolCauses starts real servers, causes each alert, and scrapes /metrics meanwhile. promtool evaluates the rules
// on what was scraped: in the end exactly this alert must fire, and no other may fire at any minute. [scrape] says how the
// time passes.
func TestPromtoolCauses(t *testing.T) {
	_, alerts := expressions(t)
	for name := range alerts {
		cause, ok := alertCauses[name]
		if !ok {
			t.Errorf("nothing causes %s", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			each := cause.begin(s)
			s.judge(cause.minutes, each, append(cause.also, name)...)
		})
	}
	if len(alertCauses) != len(alerts) {
		t.Errorf("%d causes of %d alerts", len(alertCauses), len(alerts))
	}
}

// TestPromtoolQuietHour: a server sends what is due, delivers its events and e-mails, and makes its backups. No alert may
// fire in any minute of an hour: neither with the built program, each of whose seconds is a minute, nor with a clock whose
// hour is an hour of the server.
func TestPromtoolQuietHour(t *testing.T) {
	for name, speed := range map[string]int{"the built program": 1, "a fast clock": fast} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			post := mailtest.New(t, mailtest.Options{NoTLS: true, Open: true})
			s.mailServer(post.Addr())
			hook := newHookReceiver(t, http.StatusOK)
			n := s.serve(speed, 0, "--sandbox", "--backup-to", "backups", "--webhook-allow", "127.0.0.0/8")
			s.client(n)
			s.webhook(n, hook.URL)
			s.forgot(n)
			n.logged.waitFor(t, `"job":"(rehearsal)","result"`)
			s.judge(66, func(minute int) {
				if minute%3 == 0 {
					s.send(n, 2, "")
				}
			})
			figures := scraped(n.figures)
			for _, want := range []string{`puntuale_outcomes_total{connector="sandbox",outcome="sent"} 44`, `puntuale_mails_total{result="taken"} 1`, `puntuale_backup_failing{work="rehearsal"} 0`} {
				if !strings.Contains(figures, "\n"+want+"\n") {
					t.Errorf("the hour was not what it should be: no %s", want)
				}
			}
			if strings.Contains(figures, "\n"+`puntuale_event_attempts_total{result="delivered"} 0`+"\n") {
				t.Error("no event was delivered")
			}
		})
	}
}

func newScene(t *testing.T) *scene {
	t.Helper()
	if os.Getenv("PUNTUALE_TEST_PROMTOOL") == "" {
		t.Fatal("PUNTUALE_TEST_PROMTOOL is not set; run with scripts/with-promtool")
	}
	s := &scene{t: t, env: map[string]string{}}
	s.term = newConsole(t, s.env)
	return s
}

// client creates a partner, and a client, whose key the scene then uses.
func (s *scene) client(n *node) {
	s.t.Helper()
	code, out, errs := s.term.runs("", "partner", "create", "--data", "data", "--name", "A", "--email", "rossi@example.com", "--password", "una frase lunga 42", "--json")
	if code != exitDone {
		s.t.Fatal(errs)
	}
	var body string
	eventually(s.t, "the client is created, also by a server that soon refuses calls", func() bool {
		var status int
		status, body = call(s.t, "POST", n.base+"/api/client/create", field(s.t, out, "api_key"), `{"name": "Studio", "email": "a@b", "password": "x", "phone": "+390212345678"}`)
		return status == http.StatusOK
	})
	s.key = field(s.t, body, "api_key")
	s.must(n, "POST", "/api/sequences", `{"name": "s", "steps": [{"text": "ciao", "timing": {"anchor": "start", "offset": {"amount": 0}}}]}`)
}

func (s *scene) must(n *node, method, path, body string) string {
	s.t.Helper()
	status, answer := call(s.t, method, n.base+path, s.key, body)
	if status != http.StatusOK {
		s.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return answer
}

// send starts the sequence for so many new people. Their numbers end in the given digits.
func (s *scene) send(n *node, people int, ending string) {
	s.t.Helper()
	for range people {
		s.phone++
		s.must(n, "POST", "/api/start/1", fmt.Sprintf(`{"phone": "+39333%0*d%s"}`, 7-len(ending), s.phone, ending))
	}
}

// pace slows the client's session down.
func (s *scene) pace(n *node, perMinute int) {
	s.t.Helper()
	id := s.must(n, "GET", "/api/sessions", "")
	_, id, _ = strings.Cut(id, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	s.must(n, "PUT", "/api/sessions/"+id, fmt.Sprintf(`{"pace": {"per_minute": %d}}`, perMinute))
}

func (s *scene) webhook(n *node, address string) {
	s.t.Helper()
	s.must(n, "POST", "/api/webhooks", fmt.Sprintf(`{"url": %q, "types": ["message.sent"]}`, address))
}

func (s *scene) mailServer(addr string) {
	s.env["PUNTUALE_SMTP"], s.env["PUNTUALE_MAIL_FROM"], s.env["PUNTUALE_PUBLIC_URL"] = "smtp://"+addr, "no-reply@example.com", "https://wa.example.com"
}

// forgot asks for an e-mail with which the partner's user may choose a new password.
func (s *scene) forgot(n *node) {
	s.t.Helper()
	response, err := http.PostForm(n.base+"/forgot", url.Values{"email": {"rossi@example.com"}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		s.t.Fatalf("%d %s", response.StatusCode, body)
	}
}

// hookReceiver answers events with a status.
func newHookReceiver(t *testing.T, status int) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server
}

// from returns a function that calls do once, in the third minute.
func from(do func()) func(int) {
	return func(minute int) {
		if minute == 3 {
			do()
		}
	}
}

func causeDown(s *scene) func(int) {
	n := s.serve(1, 0, "--sandbox")
	return from(n.kill)
}

// relay passes connections on to PostgreSQL, until it is cut.
type relay struct {
	net.Listener
	mu   sync.Mutex
	open []net.Conn
}

func newRelay(t *testing.T, network, address string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l}
	t.Cleanup(r.cut)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial(network, address)
			if err != nil {
				in.Close()
				continue
			}
			r.mu.Lock()
			r.open = append(r.open, in, out)
			r.mu.Unlock()
			go func() { _, _ = io.Copy(out, in); out.Close() }()
			go func() { _, _ = io.Copy(in, out); in.Close() }()
		}
	}()
	return r
}

func (r *relay) cut() {
	r.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.open {
		c.Close()
	}
}

// postgres gives the scene's servers a database of PostgreSQL.
func (s *scene) postgres() (db *sql.DB, way *relay) {
	s.t.Helper()
	d := storetest.Postgres(s.t)
	address, err := url.Parse(d.Config.Database)
	if err != nil {
		s.t.Fatal(err)
	}
	host, port := address.Query().Get("host"), address.Query().Get("port")
	if host == "" {
		host, port = address.Hostname(), address.Port()
		way = newRelay(s.t, "tcp", net.JoinHostPort(host, port))
	} else {
		way = newRelay(s.t, "unix", filepath.Join(host, ".s.PGSQL."+port))
	}
	address.Host, address.RawQuery = way.Addr().String(), "sslmode=disable"
	s.env["PUNTUALE_DATABASE"], s.env["PUNTUALE_KEY"] = address.String(), strings.Repeat("k", 32)
	return d.SQL, way
}

func causeNotReady(s *scene) func(int) {
	_, way := s.postgres()
	s.serve(1, 0, "--sandbox")
	return from(way.cut)
}

func causeNobodySends(s *scene) func(int) {
	s.serve(1, 0, "--sandbox", "--roles", "api,web")
	return nil
}

func causeBacklogOld(s *scene) func(int) {
	n := s.serve(fast, 0, "--sandbox")
	s.client(n)
	s.pace(n, 1)
	return from(func() { s.send(n, 30, "") })
}

func causeLate(s *scene) func(int) {
	n := s.serve(fast, 0, "--sandbox")
	s.client(n)
	s.pace(n, 20)
	return func(minute int) {
		if minute >= 3 {
			s.send(n, 15, "")
		}
	}
}

func causeRefused(s *scene) func(int) {
	n := s.serve(fast, 0, "--sandbox")
	s.client(n)
	return func(minute int) {
		s.send(n, 6, map[bool]string{true: "9901"}[minute >= 3])
	}
}

func causeUncertain(s *scene) func(int) {
	n := s.serve(fast, 0, "--sandbox")
	s.client(n)
	return func(minute int) {
		s.send(n, 3, map[bool]string{true: "9904"}[minute >= 3])
	}
}

func causeNumberLost(s *scene) func(int) {
	network := whatsapptest.New(s.t)
	s.term.whatsApp = network.HTTPClient()
	n := s.serveHere()
	r := newSocketRig(s.t, network, s.term, []string{"--data", "data"}, &n.running)
	r.pair()
	r.is("online")
	return from(func() {
		r.shop.Kick(whatsapptest.Removed)
		r.is("logged_out")
	})
}

func causeTaskFails(s *scene) func(int) {
	archive := filepath.Join(s.term.dir, "archive")
	s.serve(fast, 0, "--sandbox", "--archive", archive)
	return from(func() {
		if err := os.RemoveAll(archive); err != nil {
			s.t.Fatal(err)
		}
	})
}

func causeDiskLow(s *scene) func(int) {
	disk := filepath.Join(s.term.dir, "archive")
	if err := os.Mkdir(disk, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk).CombinedOutput(); err != nil {
		if os.Getenv("CI") != "true" {
			s.t.Skipf("a small disk cannot be had here: %v %s", err, out)
		}
		s.t.Fatalf("a small disk: %v %s", err, out)
	}
	s.t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", disk).CombinedOutput(); err != nil {
			s.t.Errorf("umount: %v %s", err, out)
		}
	})
	s.serve(fast, 0, "--sandbox", "--archive", disk)
	return from(func() {
		if err := os.WriteFile(filepath.Join(disk, "fill"), make([]byte, 15<<20), 0o600); err != nil {
			s.t.Fatal(err)
		}
	})
}

// bucket lets the scene's servers store backups in S3.
func (s *scene) bucket() *s3test.Server {
	s.t.Helper()
	storage := s3test.New(s.t)
	for name, value := range map[string]string{
		"BACKUP_TO": "s3://bucket/studio", "S3_ENDPOINT": storage.URL, "S3_ACCESS_KEY": s3test.AccessKey, "S3_SECRET_KEY": "segreta",
	} {
		s.env["PUNTUALE_"+name] = value
	}
	return storage
}

// yesterday lets a server make and rehearse a backup. The scene's servers start 27 hours later. The database notes the
// ends of the jobs with its own clock, which cannot be set back, so these times are set back there.
func (s *scene) yesterday() {
	s.t.Helper()
	n := s.serve(fast, -27*time.Hour, "--sandbox")
	n.logged.waitFor(s.t, `"job":"(rehearsal)","result"`)
	s.leave(n)
	if _, err := s.sqlite().ExecContext(s.t.Context(), "update backup_work set done_at = done_at - 27 * 3600 * 1000000"); err != nil {
		s.t.Fatal(err)
	}
}

// sqlite returns the servers' database.
func (s *scene) sqlite() *sql.DB {
	s.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(s.term.dir, "data", "puntuale.db"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { db.Close() })
	return db
}

func causeBackupOld(s *scene) func(int) {
	storage := s.bucket()
	s.yesterday()
	storage.Refuse(func(string, string) bool { return true })
	s.serve(fast, 0, "--sandbox")
	return nil
}

func causeBackupFails(s *scene) func(int) {
	s.bucket().Refuse(func(method, _ string) bool { return method == "POST" || method == "PUT" })
	s.serve(fast, 0, "--sandbox")
	return nil
}

func causeNotRehearsed(s *scene) func(int) {
	storage := s.bucket()
	s.yesterday()
	storage.Refuse(func(method, key string) bool { return method == "GET" && strings.HasSuffix(key, ".zip") })
	s.serve(fast, 0, "--sandbox")
	return nil
}

func causeOverload(s *scene) func(int) {
	n := s.serve(1, 0, "--sandbox", "--calls", "8", "--patience", "100ms")
	s.client(n)
	return func(minute int) {
		if minute < 3 {
			return
		}
		var calls sync.WaitGroup
		for i := range 500 {
			calls.Go(func() {
				call(s.t, "POST", n.base+"/api/start/1", s.key, fmt.Sprintf(`{"phone": "+39333%07d"}`, 1000*minute+i))
			})
		}
		calls.Wait()
	}
}

func causeErrors(s *scene) func(int) {
	n := s.serve(1, 0, "--sandbox")
	s.client(n)
	db := s.sqlite()
	return func(minute int) {
		if minute == 3 {
			if _, err := db.Exec("alter table template rename to template_away"); err != nil {
				s.t.Fatal(err)
			}
		}
		for range 20 {
			if status, body := call(s.t, "GET", n.base+"/api/templates", s.key, ""); minute >= 3 && status != 500 {
				s.t.Fatalf("%d %s", status, body)
			}
		}
	}
}

func causeEventsWait(s *scene) func(int) {
	n := s.serve(fast, 0, "--sandbox", "--webhook-allow", "127.0.0.0/8")
	s.client(n)
	s.webhook(n, newHookReceiver(s.t, http.StatusInternalServerError).URL)
	return from(func() { s.send(n, 1, "") })
}

func causeMailFails(s *scene) func(int) {
	away := mailtest.New(s.t, mailtest.Options{NoTLS: true, Open: true})
	s.mailServer(away.Addr())
	away.Recipients(mailtest.Refuse(451))
	n := s.serve(fast, 0, "--sandbox")
	s.client(n)
	return from(func() { s.forgot(n) })
}

// causeQuarantined makes the database look like one whose standby took over: its timeline is not the one on which the
// server joined, and the last heartbeat is lost.
func causeQuarantined(s *scene) func(int) {
	db, _ := s.postgres()
	n := s.serve(1, 0, "--sandbox", "--lease", "3s")
	s.client(n)
	s.pace(n, 1)
	s.send(n, 5, "")
	return from(func() {
		for _, statement := range []string{"update cluster set timeline = timeline - 1, synchronous = 0", "update node set timeline = timeline - 1, lease_until = 0"} {
			if _, err := db.ExecContext(context.Background(), statement); err != nil {
				s.t.Fatal(err)
			}
		}
	})
}

func causeUnknownCodes(s *scene) func(int) {
	peer := graphtest.New(s.t, graphtest.NewNumber("101"))
	n := s.serve(1, 0, "--official-api-url", peer.URL)
	r := newOfficial(s.t, peer, s.term, []string{"--data", "data"}, &n.running)
	r.connect(graphtest.NewNumber("101"))
	r.deliver(peer.Wrote("101", "+393331234567", time.Now()))
	return from(func() {
		peer.Answer(func(graphtest.Message) graphtest.Reply { return graphtest.Reply{Code: 987654} })
		r.ids("/api/messages", `{"phone": "+393331234567", "text": "ciao", "id_sessione": "`+r.session+`"}`)
		eventually(s.t, "Meta was asked", func() bool { return peer.Asked() > 0 })
	})
}
