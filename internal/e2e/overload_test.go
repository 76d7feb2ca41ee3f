//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestOverload floods a server with one client's calls, many more than the server can handle. Meanwhile another client
// makes a few calls, and messages become due. The server refuses most of the flood early, and says when to try again.
// The other client's calls are answered, stops reach their messages, due messages leave, and memory stays bounded.
// After the flood, the server works as before. Exactly the accepted calls are stored and counted.
func TestOverload(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database, "--calls=32")
		partner := createPartner(t, database)
		hours := []any{step("{{n}}", 1, "hours"), step("{{n}}", 2, "hours"), step("{{n}}", 3, "hours")}
		noisy, modest := createTenant(t, s.base, partner, "full", hours...), createTenant(t, s.base, partner, "full", hours...)
		var steps []any
		for second := range 8 {
			steps = append(steps, step("{{n}}", second+2, "seconds"))
		}
		due := createTenant(t, s.base, partner, "full", steps...)
		calm := lateness(t, s.base)
		const runs = 20
		for n := range runs {
			must(t, "POST", s.base+"/api/start/"+due.sequence, due.key, map[string]any{"phone": fmt.Sprintf("+39347%07d", n), "n": n})
		}

		noise := newFlood(t, s.base, "348", 50_000, 600, noisy)
		quiet := newFlood(t, s.base, "349", 20, 20, modest)
		began := time.Now()
		stops := 0
		for ; time.Since(began) < 8*time.Second; stops++ {
			stopUnderFlood(t, s.base, noisy, stops)
			for _, path := range []string{"/healthz", "/readyz"} {
				if a, err := call("GET", s.base+path, "", nil); err != nil || a.status != http.StatusOK {
					t.Errorf("%s: %d, %v", path, a.status, err)
				}
			}
		}
		noise.end()
		quiet.end()
		normal(t, s.base, noisy)
		t.Logf("%v\n%v\n%d stops\nlateness %v\nmost memory %d MB", noise, quiet, stops, lateness(t, s.base).minus(calm), peak(t, s))

		for _, f := range []*flood{noise, quiet} {
			if len(f.wrong) > 0 || len(f.broken) > 0 {
				t.Errorf("%s: %d answers were wrong and %d calls were not answered: %v %v", f.prefix, len(f.wrong), len(f.broken),
					f.wrong[:min(3, len(f.wrong))], f.broken[:min(3, len(f.broken))])
			}
		}
		if 10*len(noise.refused) < len(noise.accepted) || noise.statuses["429"] == 0 {
			t.Error("the flood was no flood")
		}
		if worst := quantile(noise.accepted, 0.99); worst > 4*time.Second {
			t.Errorf("of the flood's accepted calls one in a hundred took more than %v", worst)
		}
		if 10*len(quiet.refused) > len(quiet.accepted) || len(quiet.accepted) == 0 {
			t.Errorf("the other client: %d accepted, %d refused", len(quiet.accepted), len(quiet.refused))
		}
		if quantile(quiet.accepted, 0.5) > quantile(noise.accepted, 0.99) {
			t.Error("the other client had to wait as long as those who flood")
		}
		if highest := peak(t, s); highest > 400 {
			t.Errorf("%d MB", highest)
		}
		arrivedOnce(t, s.base, due, runs*len(steps))
		stored(t, database, noise, noisy, stops+stops+1, 3*(stops+1), 3*stops)
		stored(t, database, quiet, modest, 0, 0, 0)
	})
}

// stopUnderFlood repeats a start until it is accepted. Then it stops the run. The stop must not be refused.
func stopUnderFlood(t *testing.T, base string, who tenant, n int) {
	t.Helper()
	phone := fmt.Sprintf("+39340%07d", n)
	eventually(t, 60*time.Second, "a start is accepted", func() bool {
		a, err := call("POST", base+"/api/start/"+who.sequence, who.key, map[string]any{"phone": phone, "n": n}, "Idempotency-Key", phone)
		return err == nil && a.status == http.StatusOK
	})
	var stopped struct {
		ID []string `json:"id"`
	}
	must(t, "POST", base+"/api/stop/"+who.sequence, who.key, map[string]any{"phone": phone}).into(t, &stopped)
	if len(stopped.ID) != 3 {
		t.Errorf("a stop reached %v", stopped.ID)
	}
}

// normal waits until a call is answered as fast as before the flood.
func normal(t *testing.T, base string, who tenant) {
	t.Helper()
	ended := time.Now()
	eventually(t, 5*time.Second, "a call is accepted after the flood", func() bool {
		a, err := call("POST", base+"/api/start/"+who.sequence, who.key, map[string]any{"phone": "+393400000000", "n": "after"}, "Idempotency-Key", "after")
		return err == nil && a.status == http.StatusOK
	})
	t.Logf("accepted %v after the flood's end", time.Since(ended))
}

// arrivedOnce checks in the simulated network's ledger that each due message arrived once.
func arrivedOnce(t *testing.T, base string, who tenant, messages int) {
	t.Helper()
	eventually(t, 20*time.Second, "all that is due arrives", func() bool { return len(ledger(t, base, who.key)) >= messages })
	if all := ledger(t, base, who.key); len(all) != messages {
		t.Errorf("%d messages arrived, %d were due", len(all), messages)
	}
}

// stored compares a flood's record with the rows: the database has exactly the accepted calls, and counts them. The
// last three arguments count what was done outside the flood: the calls, the messages of these calls, and the stopped
// messages among them.
func stored(t *testing.T, database string, f *flood, who tenant, calls, messages, stopped int) {
	t.Helper()
	db := open(t, database)
	number := func(query string) (n int) {
		if err := db.QueryRow(query, who.id).Scan(&n); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return n
	}
	book := slices.Clone(f.book[who.key])
	slices.Sort(book)
	if distinct := len(slices.Compact(book)); distinct != 3*len(f.accepted) {
		t.Errorf("%s: %d calls were answered with %d ids", f.prefix, len(f.accepted), distinct)
	}
	if n := number("select count(*) from message where client_id = $1"); n != len(book)+messages {
		t.Errorf("%s: %d messages are stored, %d were accepted", f.prefix, n, len(book)+messages)
	}
	if n := number("select count(*) from message where client_id = $1 and state = 3"); n != stopped {
		t.Errorf("%s: %d messages are cancelled, %d were stopped", f.prefix, n, stopped)
	}
	if n := number("select sum(used) from api_usage where client_id = $1"); n != len(f.accepted)+calls {
		t.Errorf("%s: %d calls are counted, %d were answered", f.prefix, n, len(f.accepted)+calls)
	}
}

// buckets is the histogram of the lateness that the server reports.
type buckets struct {
	upTo, count []float64
}

func lateness(t *testing.T, base string) (b buckets) {
	t.Helper()
	a, err := call("GET", base+"/metrics", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(a.body)) {
		rest, ok := strings.CutPrefix(line, `puntuale_lateness_seconds_bucket{le="`)
		if !ok {
			continue
		}
		bound, n, _ := strings.Cut(strings.TrimSpace(rest), `"} `)
		upTo, _ := strconv.ParseFloat(bound, 64) // "+Inf" is infinite
		count, err := strconv.ParseFloat(n, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		b.upTo, b.count = append(b.upTo, upTo), append(b.count, count)
	}
	return b
}

func (b buckets) minus(o buckets) buckets {
	d := buckets{upTo: b.upTo, count: slices.Clone(b.count)}
	for i := range o.count {
		d.count[i] -= o.count[i]
	}
	return d
}

func (b buckets) String() string {
	all := b.count[len(b.count)-1]
	text := fmt.Sprintf("of %v messages", all)
	for _, q := range []float64{0.5, 0.9, 0.99, 1} {
		i := slices.IndexFunc(b.count, func(n float64) bool { return n >= q*all })
		text += fmt.Sprintf(", p%v up to %v s", 100*q, b.upTo[i])
	}
	return text
}

// peak returns the most memory, in MB, that the server's process has used.
func peak(t *testing.T, s *server) int {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Skip("no /proc here")
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if rest, ok := strings.CutPrefix(in.Text(), "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n / 1024
		}
	}
	t.Fatal("the kernel does not tell")
	return 0
}
