//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// feedCalendar is a calendar as the API shows it.
type feedCalendar struct {
	ID         string
	Read       string `json:"last_read_at"`
	Error      *string
	Understood int
}

// visitOf makes a sequence for bookings: a welcome now, a reminder, and words about a move and a cancellation.
func visitOf(t *testing.T, base, key string) string {
	t.Helper()
	var made struct{ ID string }
	must(t, "POST", base+"/api/sequences", key, map[string]any{"name": "Visita", "booking": map[string]any{"date": "quando"}, "steps": []any{
		bookedStep("{{nome}} benvenuto", "start", 0), bookedStep("{{nome}} promemoria {{quando}}", "quando", 1),
		bookedStep("{{nome}} spostato {{quando}}", "booking.moved", 0), bookedStep("{{nome}} annullato", "booking.cancelled", 0)}}).into(t, &made)
	return made.ID
}

// readAgain lets a calendar be read, and waits until a reading that began after this call is over.
func readAgain(t *testing.T, s *server, key, id string) (c feedCalendar) {
	t.Helper()
	began := time.Now()
	eventually(t, time.Minute, "the calendar is read", func() bool {
		if _, err := call("POST", s.base+"/api/calendars/"+id+"/fetch", key, nil); err != nil {
			return false
		}
		a, err := call("GET", s.base+"/api/calendars/"+id, key, nil)
		if err != nil || a.status != http.StatusOK {
			return false
		}
		c = feedCalendar{}
		a.into(t, &c)
		read, err := time.Parse(time.RFC3339, c.Read)
		return err == nil && read.After(began)
	})
	return c
}

// movingFeed is a calendar that moves some of its appointments each time that it is read.
type movingFeed struct {
	mu     sync.Mutex
	at     []time.Time
	still  bool
	asked  chan struct{}
	random *rand.Rand
}

func (f *movingFeed) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.still {
		for range len(f.at) / 3 {
			f.at[f.random.IntN(len(f.at))] = time.Now().Add(time.Duration(24+f.random.IntN(1000)) * time.Hour).UTC().Truncate(time.Minute)
		}
	}
	w.Header().Set("Content-Type", "text/calendar")
	_, _ = fmt.Fprint(w, "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//\r\n")
	for i, at := range f.at {
		_, _ = fmt.Fprintf(w, "BEGIN:VEVENT\r\nUID:e%d@x\r\nDTSTART:%s\r\nSUMMARY:Persona%d 333 123 %04d\r\nEND:VEVENT\r\n", i, at.Format("20060102T150405Z"), i, 4000+i)
	}
	_, _ = fmt.Fprint(w, "END:VCALENDAR\r\n")
	select {
	case f.asked <- struct{}{}:
	default: // the latest request was not awaited
	}
}

// TestCalendarsKilled kills the server with SIGKILL while it reads a calendar that moves its appointments with each
// reading: 3 times, or 40 times with PUNTUALE_LONG=1. At the end each booking is as the calendar says. Nobody was welcomed
// twice, and nothing was cancelled.
func TestCalendarsKilled(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		f := &movingFeed{at: make([]time.Time, 150), asked: make(chan struct{}, 1), random: rand.New(rand.NewPCG(1, 2))}
		for i := range f.at {
			f.at[i] = time.Now().Add(time.Duration(48+i) * time.Hour).UTC().Truncate(time.Minute)
		}
		peer := httptest.NewServer(f)
		defer peer.Close()
		s := serve(t, database, "--lease", "2s", "--calendar-allow", "127.0.0.0/8")
		who := createTenant(t, s.base, createPartner(t, database), "full", step("x", 0, ""))
		var made feedCalendar
		must(t, "POST", s.base+"/api/calendars", who.key, map[string]any{"name": "Agenda", "url": peer.URL + "/a.ics", "sequence": visitOf(t, s.base, who.key)}).into(t, &made)
		<-f.asked
		readAgain(t, s, who.key, made.ID)
		insist(t, "POST", s.base+"/api/calendars/"+made.ID+"/start", who.key, nil)
		for range pick(3, 40) {
			select {
			case <-f.asked: // of an earlier reading
			default:
			}
			eventually(t, time.Minute, "the server asks for the calendar", func() bool {
				_, _ = call("POST", s.base+"/api/calendars/"+made.ID+"/fetch", who.key, nil)
				select {
				case <-f.asked:
					return true
				default:
					return false
				}
			})
			<-time.After(time.Duration(rand.IntN(400)) * time.Millisecond) // somewhere in the reading, or among the changes that follow
			s.kill()
			s.start()
		}
		f.mu.Lock()
		f.still = true
		f.mu.Unlock()
		if c := readAgain(t, s, who.key, made.ID); c.Understood != len(f.at) || c.Error != nil {
			t.Fatalf("the calendar: %+v", c)
		}
		readAgain(t, s, who.key, made.ID)
		for i, at := range f.at {
			var b struct {
				Status, Date string
				Messages     []struct{ Step, Stato string }
				History      []struct{ What []string }
			}
			must(t, "GET", s.base+"/api/bookings/"+fmt.Sprintf("e%d@x", i), who.key, nil).into(t, &b)
			date, err := time.Parse(time.RFC3339, b.Date)
			if err != nil || b.Status != "open" || !date.Equal(at) {
				t.Errorf("e%d: %s at %s, the calendar says %s", i, b.Status, b.Date, at)
			}
			pending := map[string]int{}
			for _, m := range b.Messages {
				if m.Stato == "PENDING" {
					pending[m.Step]++
				}
			}
			if pending["1"] != 1 {
				t.Errorf("e%d: %d reminders wait", i, pending["1"])
			}
			for _, h := range b.History {
				if strings.Contains(strings.Join(h.What, " "), "cancelled") {
					t.Errorf("e%d was cancelled", i)
				}
			}
		}
		welcomes := map[string]int{}
		for _, m := range ledger(t, s.base, who.key) {
			if strings.Contains(m.Text, "benvenuto") {
				welcomes[m.Text]++
			}
			if strings.Contains(m.Text, "annullato") {
				t.Errorf("sent: %s", m.Text)
			}
		}
		for text, n := range welcomes {
			if n > 1 {
				t.Errorf("%q was sent %d times", text, n)
			}
		}
		t.Logf("%d welcomes", len(welcomes))
	})
}

// TestRadicale follows a calendar of a real server: an appointment with a phone number is entered, moved and deleted.
func TestRadicale(t *testing.T) {
	beside(t)
	if _, err := exec.LookPath("radicale"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("in CI, the test must run with radicale")
		}
		t.Skip("radicale is not installed; scripts/with-programs installs it")
	}
	folder, addr := t.TempDir(), freeAddr(t)
	config := filepath.Join(folder, "config")
	for name, text := range map[string]string{
		"users":  "anna:segreta\n",
		"config": "[server]\nhosts = " + addr + "\n[auth]\ntype = htpasswd\nhtpasswd_filename = " + folder + "/users\nhtpasswd_encryption = plain\n[storage]\nfilesystem_folder = " + folder + "/data\n[rights]\ntype = owner_only\n[logging]\nlevel = warning\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := exec.Command("radicale", "--config", config)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	}()
	dav := func(method, path, body string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("anna", "segreta")
		r.Header.Set("Content-Type", "text/calendar")
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0
		}
		_ = a.Body.Close()
		return a.StatusCode
	}
	eventually(t, time.Minute, "radicale answers", func() bool { return dav("MKCALENDAR", "/anna/studio/", "") == http.StatusCreated })
	at := time.Now().Add(72 * time.Hour).UTC().Truncate(time.Hour)
	enter := func(at time.Time) {
		t.Helper()
		event := "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//\r\nBEGIN:VEVENT\r\nUID:ada@studio\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:" + at.Format("20060102T150405Z") +
			"\r\nDURATION:PT30M\r\nSUMMARY:Ada Rossi\r\nDESCRIPTION:tel. 333 123 4567\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
		if status := dav("PUT", "/anna/studio/ada.ics", event); status != http.StatusCreated && status != http.StatusNoContent {
			t.Fatalf("radicale: %d", status)
		}
	}
	enter(at)
	database := filepath.Join(t.TempDir(), "puntuale.db")
	s := serve(t, database, "--calendar-allow", "127.0.0.0/8")
	who := createTenant(t, s.base, createPartner(t, database), "full", step("x", 0, ""))
	began := time.Now()
	var made feedCalendar
	must(t, "POST", s.base+"/api/calendars", who.key, map[string]any{"name": "Studio", "url": "http://anna:segreta@" + addr + "/anna/studio/", "sequence": visitOf(t, s.base, who.key)}).into(t, &made)
	if c := readAgain(t, s, who.key, made.ID); c.Understood != 1 || c.Error != nil {
		t.Fatalf("the first reading: %+v", c)
	}
	must(t, "POST", s.base+"/api/calendars/"+made.ID+"/start", who.key, nil)
	type booking struct {
		Status, Date, Phone string
		Messages            []struct{ Stato string }
	}
	look := func() (b booking) {
		if a, err := call("GET", s.base+"/api/bookings/ada@studio", who.key, nil); err == nil && a.status == http.StatusOK {
			a.into(t, &b)
		}
		return b
	}
	eventually(t, time.Minute, "the booking", func() bool { return look().Phone == "+393331234567" && len(look().Messages) == 2 })
	t.Logf("from the address to the first planned reminder: %v", time.Since(began))
	enter(at.Add(48 * time.Hour))
	readAgain(t, s, who.key, made.ID)
	eventually(t, time.Minute, "the moved booking", func() bool {
		date, err := time.Parse(time.RFC3339, look().Date)
		return err == nil && date.Equal(at.Add(48*time.Hour))
	})
	other := "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//\r\nBEGIN:VEVENT\r\nUID:riunione@studio\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:" + at.Format("20060102T150405Z") + "\r\nSUMMARY:Riunione\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	if status := dav("PUT", "/anna/studio/riunione.ics", other); status != http.StatusCreated { // an empty calendar would be suspicious
		t.Fatalf("radicale: %d", status)
	}
	if status := dav("DELETE", "/anna/studio/ada.ics", ""); status >= 300 {
		t.Fatalf("radicale: %d", status)
	}
	readAgain(t, s, who.key, made.ID)
	if b := look(); b.Status != "open" {
		t.Errorf("after one reading without it: %s", b.Status)
	}
	readAgain(t, s, who.key, made.ID)
	if b := look(); b.Status != "cancelled" {
		t.Errorf("after two readings without it: %s", b.Status)
	}
}
