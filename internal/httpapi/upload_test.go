package httpapi_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale/internal/control/account"
	"puntuale/internal/httpapi"
	"puntuale/internal/httpkit/admission"
)

// openUpload begins an upload that ends only when finish is called. begun is closed when the server begins to read the
// body.
func (s *service) openUpload(key, id string) (begun chan struct{}, finish func() (status int)) {
	s.t.Helper()
	begun = make(chan struct{})
	body, sender := io.Pipe()
	answered := make(chan int, 1)
	go func() {
		r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPut, "/api/campaigns/"+id+"/recipients", body)
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "text/csv")
		r.ContentLength = -1
		answered <- s.send(r).status
		_ = body.Close() // the server does not read a refused upload, so the sender must be unblocked
	}()
	go func() {
		if _, err := io.WriteString(sender, "telefono;nome\n"); err == nil { // the write succeeds only after the server has read this line
			close(begun)
		}
	}()
	return begun, sync.OnceValue(func() int {
		_, _ = io.WriteString(sender, "+393339876543;Anna\n")
		_ = sender.Close()
		return <-answered
	})
}

// TestUploadsAtTheSameTime: a server reads at most four lists of one client at the same time. For the clients of one
// partner it reads at most eight, and then still some for the next partner. It refuses further uploads before it reads
// their files. The refusal contains a time for the next try. It stores nothing of a refused upload.
func TestUploadsAtTheSameTime(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		clients := []string{s.newClient("first@x", "full"), s.newClient("second@x", "full"), s.newClient("third@x", "full")}
		for n := range 2 {
			_, partner, err := s.accounts.CreatePartner(t.Context(), account.NewPartner{Name: fmt.Sprint("P", n), Email: fmt.Sprintf("p%d@x", n), Password: "una frase lunga 42"})
			if err != nil {
				t.Fatal(err)
			}
			s.partner = partner
			clients = append(clients, s.newClient(fmt.Sprintf("c%d@x", n), "full"))
		}
		draft := func(key string) string {
			var made struct{ ID string }
			s.must(&made, "POST", "/api/campaigns", key, `{"name":"x","content":{"text":"Ciao {{nome}}"}}`)
			return made.ID
		}
		const file = "telefono;nome\n+393339876543;Anna\n"
		refused := func(key string) {
			t.Helper()
			id := draft(key)
			r := s.upload(key, id, "", "text/csv", file)
			if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
				t.Errorf("%d, Retry-After %q: %s", r.status, r.header.Get("Retry-After"), r.body)
			}
			if c := s.campaign(key, id); c.Counts["recipients"] != 0 {
				t.Errorf("a refused upload left %v", c.Counts)
			}
		}
		var finish []func() int
		for i, most := range []int{4, 4, 0, 4, 2} { // three clients of one partner, and clients of two others
			key := clients[i]
			for range most {
				begun, end := s.openUpload(key, draft(key))
				finish = append(finish, end)
				<-begun
			}
			refused(key)
		}
		for _, end := range finish {
			if status := end(); status != http.StatusOK {
				t.Errorf("an upload that was read while others came: %d", status)
			}
		}
		for _, key := range clients {
			if r := s.upload(key, draft(key), "", "text/csv", file); r.status != http.StatusOK {
				t.Errorf("after all ended: %d %s", r.status, r.body)
			}
		}
	})
}

// TestManyFaultyRows: the answer about a list with many faulty rows has 100 faults. The last of them says how many more
// there are.
func TestManyFaultyRows(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	key := s.newClient("a@x", "full")
	var made struct{ ID string }
	s.must(&made, "POST", "/api/campaigns", key, `{"name":"x","content":{"text":"Ciao"}}`)
	got := s.upload(key, made.ID, "", "text/csv", "telefono\n"+strings.Repeat("3331234567,too,many\n", 150))
	if n := len(got.locations()); got.status != http.StatusUnprocessableEntity || n != 100 || !strings.Contains(got.body, "has 51 more faults") {
		t.Errorf("%d, %d faults: %.300s", got.status, n, got.body)
	}
	got = s.call("POST", "/api/campaigns/"+made.ID+"/recipients", key, `{"recipients":[{"nome":"\u0000"}`+strings.Repeat(`,{"nome":"\u0000"}`, 149)+`]}`)
	if n := len(got.locations()); got.status != http.StatusUnprocessableEntity || n != 100 || !strings.Contains(got.body, "has 51 more faults") {
		t.Errorf("rows of a call: %d, %d faults: %.300s", got.status, n, got.body)
	}
}

// TestRefusedRowsThatBreakOff: if the server cannot read all rows, the caller can see that the file is not complete.
func TestRefusedRowsThatBreakOff(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		key := s.newClient("a@x", "full")
		var made struct{ ID string }
		s.must(&made, "POST", "/api/campaigns", key, `{"name":"x","content":{"text":"Ciao"}}`)
		const rows = 2500
		if r := s.upload(key, made.ID, "", "text/csv", "telefono\n"+strings.Repeat("nessuno\n", rows)); r.status != http.StatusOK {
			t.Fatal(r)
		}
		s.checkCampaign(key, made.ID)
		gate := admission.NewGate(admission.GateConfig{Seats: 1, LongestWait: 100 * time.Millisecond, Now: time.Now})
		h, err := httpapi.New(httpapi.Config{Control: s.control, Accounts: s.accounts, Now: time.Now, Logger: slog.New(slog.DiscardHandler), Admit: admission.Limits{Gate: gate}})
		if err != nil {
			t.Fatal(err)
		}
		for _, full := range []bool{false, true} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if full {
					w = &onceWritten{ResponseWriter: w, do: func() {
						if _, _, err := gate.Enter(t.Context(), admission.CallerKey{}, admission.PriorityWrite); err != nil { // this call never returns its seat
							t.Error(err)
						}
					}}
				}
				h.ServeHTTP(w, r)
			}))
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/campaigns/"+made.ID+"/refused", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+key)
			r.Header.Set("Accept-Encoding", "identity") // a compressed answer would fit into one packet
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			server.Close()
			if lines := strings.Count(string(text), "\n"); full && (!errors.Is(err, io.ErrUnexpectedEOF) || lines < 2 || lines > rows) || !full && (err != nil || lines != rows+1) {
				t.Errorf("cut off %t: %d lines, %v", full, lines, err)
			}
		}
	})
}

// onceWritten calls a function before the first bytes of an answer.
type onceWritten struct {
	http.ResponseWriter
	do func()
}

func (w *onceWritten) Write(p []byte) (int, error) {
	if w.do != nil {
		w.do()
		w.do = nil
	}
	return w.ResponseWriter.Write(p) //nolint:wrapcheck // the type replaces the wrapped writer
}

func (w *onceWritten) Unwrap() http.ResponseWriter { return w.ResponseWriter }
