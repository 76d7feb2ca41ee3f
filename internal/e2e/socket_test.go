//go:build e2e && !nosocket

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale/internal/connector/socket/whatsapptest"
)

const (
	shopNumber = "393330000001"
	annaNumber = "393330000002"
	bertNumber = "393330000003"
)

// shop is the built server with one linked number. Its WhatsApp is a simulation on loopback, behind a proxy.
type shop struct {
	*server
	net     *whatsapptest.Network
	proxy   *whatsapptest.Proxy
	account *whatsapptest.Account
	who     tenant
	session string   // the session's id
	codes   []string // the linking codes that the server showed
}

// newShop starts the server and links a number through its API.
func newShop(t *testing.T, database string, more ...string) *shop {
	t.Helper()
	net := whatsapptest.New(t)
	s := &shop{server: prepare(t, database, more...), net: net, proxy: net.Proxy(), account: net.Account(shopNumber)}
	s.program = filepath.Join(t.TempDir(), "puntuale")
	if err := whatsapptest.PatchRoot(binary, s.program); err != nil {
		t.Fatal(err)
	}
	s.env = s.proxy.Env()
	s.start()
	s.who = createTenant(t, s.base, createPartner(t, database), "full", step("ciao", 0, "seconds"))
	var made struct{ ID string }
	must(t, "POST", s.base+"/api/sessions", s.who.key, map[string]any{
		"name": "banco", "connection_type": "Socket", "sandbox": false,
		"pace": map[string]int{"per_minute": 0, "per_day": 0, "cold_per_minute": 0, "cold_per_day": 0, "jitter": 0},
	}).into(t, &made)
	s.session = made.ID
	s.pair()
	return s
}

func (s *shop) at(path string) string { return s.base + "/api/sessions/" + s.session + path }

// pair links the number by QR code.
func (s *shop) pair() {
	s.t.Helper()
	var shown struct{ QR string }
	must(s.t, "POST", s.at("/pair"), s.who.key, map[string]string{"method": "qr"}).into(s.t, &shown)
	s.codes = append(s.codes, shown.QR)
	if err := s.account.ScanQR(s.t.Context(), shown.QR); err != nil {
		s.t.Fatal(err)
	}
	s.awaitState("online")
	if a := must(s.t, "GET", s.at(""), s.who.key, nil); strings.Contains(string(a.body), "wa.me") {
		s.t.Errorf("the code is still shown: %s", a.body)
	}
}

// pairByCode links the number by a code that a person types into the phone.
func (s *shop) pairByCode() {
	s.t.Helper()
	var shown struct {
		Code string `json:"pairing_code"`
		QR   string
	}
	must(s.t, "POST", s.at("/pair"), s.who.key, map[string]string{"method": "code", "phone": "+" + shopNumber}).into(s.t, &shown)
	if len(shown.Code) != 9 || shown.QR != "" {
		s.t.Fatalf("shown: %+v", shown)
	}
	s.codes = append(s.codes, shown.Code)
	if err := s.account.EnterCode(s.t.Context(), shown.Code); err != nil {
		s.t.Fatal(err)
	}
	s.awaitState("online")
	if a := must(s.t, "GET", s.at(""), s.who.key, nil); strings.Contains(string(a.body), shown.Code) {
		s.t.Errorf("the code is still shown: %s", a.body)
	}
}

type linkState struct {
	State, Hint, Until string
	Limited            string `json:"limited_until"`
}

// awaitState waits until the session is in a state.
func (s *shop) awaitState(state string) (v linkState) {
	s.t.Helper()
	eventually(s.t, 30*time.Second, "the session is "+state, func() bool {
		v = linkState{}
		must(s.t, "GET", s.at(""), s.who.key, nil).into(s.t, &v)
		return v.State == state
	})
	if v.Hint == "" {
		s.t.Errorf("%s has no hint", state)
	}
	return v
}

// write sends a text and returns its id.
func (s *shop) write(number, text string) string {
	s.t.Helper()
	var made struct{ ID []string }
	must(s.t, "POST", s.base+"/api/messages", s.who.key, map[string]any{"phone": "+" + number, "text": text, "id_sessione": s.session}).into(s.t, &made)
	return made.ID[0]
}

// details returns the API's answer for a message.
func (s *shop) details(id string) string {
	s.t.Helper()
	return string(must(s.t, "GET", s.base+"/api/messages/details?message_ids[]="+id, s.who.key, nil).body)
}

// becomes waits until a message's details contain all parts.
func (s *shop) becomes(id string, within time.Duration, parts ...string) {
	s.t.Helper()
	var got string
	eventually(s.t, within, fmt.Sprintf("message %s has %v", id, parts), func() bool {
		got = s.details(id)
		for _, part := range parts {
			if !strings.Contains(got, part) {
				return false
			}
		}
		return true
	})
}

// noLogin skips the oldest logins. The argument since is the number of these logins. noLogin fails the test if there
// were later logins, or if a login comes within the given time.
func (s *shop) noLogin(since int, within time.Duration) {
	s.t.Helper()
	for deadline := time.Now().Add(within); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		if refused, taken := s.logins(since); refused+taken != 0 {
			s.t.Fatalf("%d logins by itself", refused+taken)
		}
	}
}

// logins skips the oldest logins. The argument since is the number of these logins. logins counts the later logins. It
// returns how many of them the network refused, and how many the network accepted.
func (s *shop) logins(since int) (refused, taken int) {
	for _, l := range s.net.Logins()[since:] {
		if l.Failure != 0 {
			refused++
		} else {
			taken++
		}
	}
	return refused, taken
}

const completed = `"stato":"COMPLETED"`

// TestSocket tests all phases of a linked number with the built binary. A phone reads the number's messages, and
// receipts come back. Neither SIGKILL nor any fault of the network loses or doubles a message.
func TestSocket(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		s := newShop(t, database)
		anna, bert := s.net.Phone(annaNumber), s.net.Phone(bertNumber)
		t.Run("receipts", func(t *testing.T) { s.receipts(t, anna) })
		t.Run("killed while an ack is pending", func(t *testing.T) { s.killed(t, anna) })
		t.Run("receiver offline", func(t *testing.T) { s.offline(t, anna) })
		t.Run("asked again after a restart", func(t *testing.T) { s.askedAgain(t, anna) })
		t.Run("groups and LIDs", func(t *testing.T) { s.groups(t, anna, bert) })
		t.Run("463", func(t *testing.T) { s.limited(t, anna, bert) })
		t.Run("replaced", func(t *testing.T) { s.replaced(t, anna) })
		t.Run("banned", func(t *testing.T) { s.banned(t, anna) })
		t.Run("405", func(t *testing.T) { s.outdated(t, anna) })
		t.Run("logged out", func(t *testing.T) { s.loggedOut(t, anna) })
		s.secrets(t)
		if !strings.HasPrefix(database, "postgres") {
			copies := t.TempDir()
			t.Run("restored from a copy", func(t *testing.T) { s.copied(t, anna, copies) })
		}
		t.Run("restored from a backup", func(t *testing.T) { s.restored(t, anna) })
		if hosts := s.proxy.Tunnels(); len(hosts) == 0 || hosts[whatsapptest.Host] == 0 {
			t.Errorf("the proxy was passed by: %v", hosts)
		}
	})
}

func (s *shop) receipts(t *testing.T, anna *whatsapptest.Phone) {
	s.t = t
	id := s.write(annaNumber, "ciao Anna")
	m := anna.Await(t, whatsapptest.Text("ciao Anna"))
	s.becomes(id, 10*time.Second, completed, m.ID, `"consegnato":"`)
	if err := anna.MarkRead(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	s.becomes(id, 10*time.Second, `"letto":"`)
	nobody := s.write("393339999999", "a nessuno")
	s.becomes(nobody, 10*time.Second, `"stato":"FAILED"`)
	if sent := s.net.Messages(shopNumber); len(sent) != 1 {
		t.Errorf("%d messages were sent, want 1", len(sent))
	}
}

func (s *shop) killed(t *testing.T, anna *whatsapptest.Phone) {
	s.t = t
	hold := make(chan struct{})
	remove := s.net.Inject(whatsapptest.Fault{From: shopNumber, AckHold: hold})
	id := s.write(annaNumber, "una volta sola")
	m := anna.Await(t, whatsapptest.Text("una volta sola"))
	s.kill()
	remove()
	close(hold)
	began := time.Now()
	s.start()
	s.awaitState("online")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the number came back after %v", took)
	}
	s.becomes(id, 30*time.Second, completed, m.ID)
	t.Logf("settled %v after the start", time.Since(began).Round(10*time.Millisecond))
	shown := 0
	for _, one := range s.net.Ledger().All() {
		if one.Text == "una volta sola" {
			shown++
			if one.ID != m.ID {
				t.Errorf("another id: %s, not %s", one.ID, m.ID)
			}
		}
	}
	if shown != 1 {
		t.Errorf("it is shown %d times", shown)
	}
}

func (s *shop) offline(t *testing.T, anna *whatsapptest.Phone) {
	s.t = t
	anna.SwitchOff()
	id := s.write(annaNumber, "a telefono spento")
	s.becomes(id, 10*time.Second, completed)
	if strings.Contains(s.details(id), "consegnato") {
		t.Error("it was delivered to a phone that is off")
	}
	if err := anna.SwitchOn(t.Context()); err != nil {
		t.Fatal(err)
	}
	anna.Await(t, whatsapptest.Text("a telefono spento"))
	s.becomes(id, 10*time.Second, `"consegnato":"`)
}

func (s *shop) askedAgain(t *testing.T, anna *whatsapptest.Phone) {
	s.t = t
	s.net.Inject(whatsapptest.Fault{From: shopNumber, To: annaNumber, Corrupt: true, Times: 1})
	anna.SwitchOff()
	id := s.write(annaNumber, "illeggibile")
	s.becomes(id, 10*time.Second, completed)
	s.kill()
	if err := anna.SwitchOn(t.Context()); err != nil { // the phone cannot read the message, and requests it again
		t.Fatal(err)
	}
	s.start()
	anna.Await(t, whatsapptest.Text("illeggibile"))
	s.becomes(id, 20*time.Second, `"consegnato":"`)
}

func (s *shop) limited(t *testing.T, anna, bert *whatsapptest.Phone) {
	s.t = t
	end := time.Now().Add(8 * time.Second).Truncate(time.Second)
	s.account.Timelock(whatsapptest.Timelock{Until: end})
	cold := s.write(bertNumber, "a un estraneo")
	warm := s.write(annaNumber, "a chi si conosce")
	anna.Await(t, whatsapptest.Text("a chi si conosce"))
	s.becomes(warm, 5*time.Second, completed)
	if v := s.awaitState("online"); v.Limited == "" {
		t.Errorf("the limit is not shown: %+v", v)
	}
	if !strings.Contains(s.details(cold), `"stato":"PENDING"`) {
		t.Errorf("the stranger's: %s", s.details(cold))
	}
	tries := 0
	for _, m := range s.net.Messages(shopNumber) {
		if m.Chat == bertNumber {
			tries++
		}
	}
	if tries > 1 {
		t.Errorf("%d tries before the end", tries)
	}
	s.becomes(cold, time.Until(end)+10*time.Second, completed)
	bert.Await(t, whatsapptest.Text("a un estraneo"))
	if v := s.awaitState("online"); v.Limited != "" {
		t.Errorf("the limit is still shown: %+v", v)
	}
}

func (s *shop) replaced(t *testing.T, anna *whatsapptest.Phone) {
	s.t = t
	s.account.Kick(whatsapptest.Replaced)
	s.awaitState("replaced")
	id := s.write(annaNumber, "mentre un altro è collegato")
	before := len(s.net.Logins())
	s.kill()
	s.start() // the number does not log in after a restart
	s.awaitState("replaced")
	s.noLogin(before, 3*time.Second)
	must(t, "POST", s.at("/reconnect"), s.who.key, nil)
	s.becomes(id, 15*time.Second, completed)
	anna.Await(t, whatsapptest.Text("mentre un altro è collegato"))
}

func (s *shop) banned(t *testing.T, anna *whatsapptest.Phone) {
	s.t = t
	before := len(s.net.Logins())
	s.account.Ban(101, 6*time.Second)
	v := s.awaitState("banned")
	deadline, err := time.Parse(time.RFC3339Nano, v.Until)
	if err != nil || time.Until(deadline) < time.Second || time.Until(deadline) > 8*time.Second {
		t.Errorf("until %q (%v)", v.Until, err)
	}
	if a, err := call("POST", s.at("/reconnect"), s.who.key, nil); err != nil || a.status != http.StatusConflict {
		t.Errorf("reconnecting while banned: %d %v", a.status, err)
	}
	id := s.write(annaNumber, "dopo la sospensione")
	s.becomes(id, 20*time.Second, completed)
	if refused, _ := s.logins(before); refused != 1 {
		t.Errorf("%d refused logins", refused)
	}
	anna.Await(t, whatsapptest.Text("dopo la sospensione"))
}

func (s *shop) outdated(t *testing.T, anna *whatsapptest.Phone) {
	s.t = t
	before, reads, tunnels := len(s.net.Logins()), s.net.VersionReads(), s.proxy.Tunnels()[whatsapptest.Host]
	const later = 1999999999
	s.net.RequireVersion(later)
	id := s.write(annaNumber, "con la versione nuova")
	s.becomes(id, 20*time.Second, completed)
	logins := s.net.Logins()[before:]
	if len(logins) != 2 || logins[0].Failure != 405 || logins[1].Failure != 0 || logins[1].Version != later || logins[1].At.Sub(logins[0].At) > 10*time.Second {
		t.Errorf("logins: %+v", logins)
	}
	// There were two logins. Between them, the server read the page with WhatsApp's present version. All requests went
	// through the proxy, because there is no other way to the network.
	if n := s.net.VersionReads() - reads; n != 1 {
		t.Errorf("the page with the version was read %d times", n)
	}
	if n := s.proxy.Tunnels()[whatsapptest.Host] - tunnels; n < 3 {
		t.Errorf("%d tunnels", n)
	}
	anna.Await(t, whatsapptest.Text("con la versione nuova"))
}

func (s *shop) loggedOut(t *testing.T, anna *whatsapptest.Phone) {
	s.t = t
	s.account.Kick(whatsapptest.Removed)
	s.awaitState("logged_out")
	id := s.write(annaNumber, "con altre chiavi")
	before := len(s.net.Logins())
	s.kill()
	s.start()
	s.awaitState("logged_out")
	s.noLogin(before, 2*time.Second)
	s.pairByCode()
	s.becomes(id, 15*time.Second, completed)
	anna.Await(t, whatsapptest.Text("con altre chiavi"))
}

// owns reports whether the number is online at this server.
func owns(s *server) bool {
	a, err := call("GET", s.base+"/metrics", "", nil)
	return err == nil && strings.Contains(string(a.body), `puntuale_numbers{state="online",type="Socket"} 1`)
}

// TestSocketMoves kills the server that owns a linked number, and then the next owner. Each time another server becomes
// the owner. No connection replaces another one, and the phone shows each message once.
func TestSocketMoves(t *testing.T) {
	s := newShop(t, postgres(t), "--lease", "2s")
	second := prepare(t, s.database, "--lease", "2s")
	second.program, second.env = s.program, s.env
	second.start()
	anna := s.net.Phone(annaNumber)
	for i := range 3 {
		owner, other := s.server, second
		eventually(t, 20*time.Second, "one server has the number", func() bool { return owns(s.server) != owns(second) })
		if owns(second) {
			owner, other = second, s.server
		}
		text := fmt.Sprintf("dal server %d", i)
		base := s.base
		s.base = other.base // any server can answer calls
		id := s.write(annaNumber, text)
		s.becomes(id, 10*time.Second, completed)
		anna.Await(t, whatsapptest.Text(text))
		owner.kill()
		began := time.Now()
		eventually(t, 20*time.Second, "the other server has it", func() bool { return owns(other) })
		t.Logf("moved within %v", time.Since(began).Round(10*time.Millisecond))
		text += ", spostato"
		s.becomes(s.write(annaNumber, text), 10*time.Second, completed)
		anna.Await(t, whatsapptest.Text(text))
		s.awaitState("online")
		s.base = base
		owner.start()
	}
	seen := map[string]int{}
	for _, m := range s.net.Ledger().All() {
		seen[m.Text]++
	}
	if len(seen) != 6 {
		t.Errorf("seen: %v", seen)
	}
	for text, n := range seen {
		if n != 1 {
			t.Errorf("%q was seen %d times", text, n)
		}
	}
}

// data returns the folder for everything that the server stores outside the database.
func (s *shop) data() string { return s.args[slices.Index(s.args, "--data")+1] }

// setDatabase sets a different folder and database for the next start of the server.
func (s *shop) setDatabase(data, database string) {
	s.args[slices.Index(s.args, "--data")+1] = data
	s.args[slices.Index(s.args, "--database")+1] = databaseFlag(database)
	s.database = database
}

// shows sends a text, and waits until the phone shows the text.
func (s *shop) shows(anna *whatsapptest.Phone, text string) {
	s.t.Helper()
	id := s.write(annaNumber, text)
	anna.Await(s.t, whatsapptest.Text(text))
	s.becomes(id, 10*time.Second, completed)
}

// copied starts another server with a copy of the folders from before the last messages. The number is still linked in
// the copy, and phones show messages from this server.
func (s *shop) copied(t *testing.T, anna *whatsapptest.Phone, to string) {
	s.t = t
	since := time.Now()
	s.kill()
	for _, folder := range []string{filepath.Dir(s.database), s.data()} {
		if err := os.CopyFS(to, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
	}
	s.start()
	s.awaitState("online")
	s.shows(anna, "dopo la copia")
	s.shows(anna, "ancora dopo la copia")
	s.kill()
	s.setDatabase(to, filepath.Join(to, filepath.Base(s.database)))
	command(t, "restored", "--since", since.UTC().Format(time.RFC3339), "--data", to, "--database", databaseFlag(s.database))
	s.start()
	s.awaitState("online")
	s.shows(anna, "da una copia")
}

// restored restores a backup from before the last messages, on both databases. The number is still linked in the
// restored installation.
func (s *shop) restored(t *testing.T, anna *whatsapptest.Phone) {
	s.t = t
	file := filepath.Join(t.TempDir(), "backup.zip")
	command(t, "backup", "--to", file, "--data", s.data(), "--database", databaseFlag(s.database))
	s.shows(anna, "dopo il backup")
	s.shows(anna, "ancora dopo il backup")
	s.kill()
	devices := len(s.account.Devices())
	for kind, database := range map[string]string{"SQLite": filepath.Join(t.TempDir(), "puntuale.db"), "PostgreSQL": postgres(t)} {
		data := t.TempDir()
		command(t, "restore", "--from", file, "--data", data, "--database", databaseFlag(database))
		s.setDatabase(data, database)
		s.env = s.proxy.Env()
		if key := filepath.Join(data, "puntuale.key"); kind == "PostgreSQL" && there(key) {
			s.env = append(s.env, "PUNTUALE_KEY_FILE="+key)
		}
		s.start()
		s.awaitState("online")
		s.shows(anna, "da un backup, su "+kind)
		s.kill()
	}
	if n := len(s.account.Devices()); n != devices {
		t.Errorf("%d devices, and %d before: it was linked anew", n, devices)
	}
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// secrets checks that the log contains no secret.
func (s *shop) secrets(t *testing.T) {
	log, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range append(s.codes, "wa.me/", shopNumber, annaNumber, "una volta sola") {
		if strings.Contains(string(log), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}
