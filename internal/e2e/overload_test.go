//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTool(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		rate, _ := strconv.Atoi(os.Getenv("RATE"))
		conns, _ := strconv.Atoi(os.Getenv("CONNS"))
		s := serve(t, database, strings.Fields(os.Getenv("ARGS"))...)
		partner := createPartner(t, database)
		far := []any{step("{{n}}", 1, "hours"), step("{{n}}", 2, "hours"), step("{{n}}", 3, "hours")}
		var all []tenant
		for range 20 {
			all = append(all, createTenant(t, s.base, partner, "full", far...))
		}
		var steps []any
		for i := range 20 {
			steps = append(steps, step("{{n}}", i+2, "seconds"))
		}
		due := createTenant(t, s.base, partner, "full", steps...)
		begun := time.Now()
		for n := range 100 {
			must(t, "POST", s.base+"/api/start/"+due.sequence, due.key, map[string]any{"phone": fmt.Sprintf("+39347%07d", n), "n": n})
			time.Sleep(time.Until(begun.Add(time.Duration(n) * 10 * time.Millisecond)))
		}
		time.Sleep(4 * time.Second)
		calm := lateness(t, s.base)
		t.Logf("calm: %v; rss %d MB", calm, rss(t, s))
		f := newFlood(t, s.base, "348", rate, conns, all...)
		quiet := newFlood(t, s.base, "349", 50, 50, due)
		time.Sleep(8 * time.Second)
		t.Logf("rss %d MB", rss(t, s))
		f.end()
		quiet.end()
		time.Sleep(time.Second)
		t.Logf("flooded: %v", lateness(t, s.base).minus(calm))
		t.Log(f)
		t.Log(quiet)
		t.Log(f.wrong, quiet.wrong)
		t.Log(metrics(t, s.base, "nothing"))
	})
}

type histogram struct {
	le    []float64
	count []float64
}

func lateness(t *testing.T, base string) (h histogram) {
	for _, line := range metricLines(t, base) {
		if rest, ok := strings.CutPrefix(line, `puntuale_lateness_seconds_bucket{le="`); ok {
			le, n, _ := strings.Cut(rest, `"} `)
			f, err := strconv.ParseFloat(le, 64)
			if err != nil {
				f = 1e9
			}
			c, _ := strconv.ParseFloat(n, 64)
			h.le, h.count = append(h.le, f), append(h.count, c)
		}
	}
	return h
}

func (h histogram) minus(o histogram) histogram {
	d := histogram{le: h.le}
	for i := range h.count {
		d.count = append(d.count, h.count[i]-o.count[i])
	}
	return d
}

func (h histogram) String() string {
	all := h.count[len(h.count)-1]
	text := fmt.Sprintf("%v messages", all)
	for _, q := range []float64{.5, .9, .99, 1} {
		for i := range h.count {
			if h.count[i] >= q*all {
				text += fmt.Sprintf(", p%v <= %v", 100*q, h.le[i])
				break
			}
		}
	}
	return text
}

func metricLines(t *testing.T, base string) []string {
	a, err := call("GET", base+"/metrics", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(a.body), "\n")
}

func metrics(t *testing.T, base string, names ...string) string {
	var out []string
	for _, l := range metricLines(t, base) {
		for _, n := range names {
			if strings.Contains(l, n) && !strings.HasPrefix(l, "#") && !strings.Contains(l, "_bucket") {
				out = append(out, l)
			}
		}
	}
	return strings.Join(out, "\n")
}

func rss(t *testing.T, s *server) int {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if rest, ok := strings.CutPrefix(in.Text(), "VmHWM:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n / 1024
		}
	}
	return 0
}
