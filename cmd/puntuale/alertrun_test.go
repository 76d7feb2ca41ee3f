//go:build promtool

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"puntuale/internal/clock"
)

// fastClock is a clock that runs speed times as fast as the machine's. At the machine's time from it shows the time at.
type fastClock struct {
	from, at time.Time
	speed    int
}

func (c fastClock) shows(machine time.Time) time.Time {
	return c.at.Add(machine.Sub(c.from) * time.Duration(c.speed)).UTC().Truncate(time.Microsecond)
}

func (c fastClock) Now() time.Time { return c.shows(time.Now()) }

func (c fastClock) After(d time.Duration) (<-chan time.Time, func()) {
	return clock.System().After(d / time.Duration(c.speed))
}

func (c fastClock) Sleep(ctx context.Context, d time.Duration) error {
	return clock.System().Sleep(ctx, d/time.Duration(c.speed))
}

// clockEnv is set in a process that is the program with a fast clock: its times from and at, and its speed.
const clockEnv = "PUNTUALE_TEST_CLOCK"

// TestMain makes this test program the program itself, with a fast clock, if clockEnv is set.
func TestMain(m *testing.M) {
	text := os.Getenv(clockEnv)
	if text == "" {
		code := m.Run()
		if builtFolder != "" {
			_ = os.RemoveAll(builtFolder)
		}
		os.Exit(code)
	}
	var from, at int64
	var c fastClock
	if _, err := fmt.Sscanf(text, "%d %d %d", &from, &at, &c.speed); err != nil {
		fmt.Fprintln(os.Stderr, clockEnv, err)
		os.Exit(exitUsage)
	}
	c.from, c.at = time.UnixMicro(from), time.UnixMicro(at)
	p := &program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookupEnv: os.LookupEnv, clock: c, files: filesAsBuilt()}
	os.Exit(p.run(context.Background(), os.Args[1:]))
}

// builtFolder is the folder of the built program; "": it was not built.
var builtFolder string

// built returns the path of the program, which is built once.
var built = sync.OnceValues(func() (_ string, err error) {
	if builtFolder, err = os.MkdirTemp("", "puntuale-alerts-"); err != nil {
		return "", err
	}
	name := filepath.Join(builtFolder, "puntuale")
	if out, err := exec.Command("go", "build", "-o", name, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return name, nil
})

// node is a server whose figures are scraped.
type node struct {
	running
	base, figures string
	clock         fastClock // its speed is 1 for the built program
	cmd           *exec.Cmd // nil: the server runs in this process
}

// A scrape stands for a minute. It takes place each second: the clock of a fast server has then advanced by a minute.
// For a server with the machine's clock, each second is stretched to a minute: ages are multiplied.
const (
	fast   = 60
	scrape = time.Minute / fast
)

func (n *node) stretch() float64 { return float64(fast / n.clock.speed) }

// serve starts a server as a process of its own, and waits until it serves. Its clock begins at the present time plus
// later. With the speed 1 it is the built program.
func (s *scene) serve(speed int, later time.Duration, args ...string) *node {
	t := s.t
	t.Helper()
	now := time.Now()
	n := &node{clock: fastClock{now, now.Add(later), speed}}
	n.console, n.logged = s.term, &printed{}
	name, err := built()
	if speed > 1 {
		name, err = os.Executable()
	}
	if err != nil {
		t.Fatal(err)
	}
	n.cmd = exec.Command(name, append([]string{"serve", "--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--data", "data", "--stop-within", "1s"}, args...)...)
	n.cmd.Dir, n.cmd.Stdout, n.cmd.Stderr = s.term.dir, n.logged, n.logged
	n.cmd.Env = append(os.Environ(), "PUNTUALE_PATIENCE=30s")
	for name, value := range s.env {
		n.cmd.Env = append(n.cmd.Env, name+"="+value)
	}
	if !slices.Contains(args, "--lease") { // on a busy machine, a lease of seconds could end: a second of it may be a minute here
		n.cmd.Args = append(n.cmd.Args, "--lease", "10m")
	}
	if speed > 1 {
		n.cmd.Env = append(n.cmd.Env, fmt.Sprintf("%s=%d %d %d", clockEnv, now.UnixMicro(), now.Add(later).UnixMicro(), speed))
	}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.kill()
		if t.Failed() {
			text := n.logged.String()
			t.Logf("the end of a server's log:\n%s", text[max(0, len(text)-3000):])
		}
	})
	n.find(t)
	s.nodes = append(s.nodes, n)
	return n
}

// serveHere starts a server in this process, because its network is in this process, too.
func (s *scene) serveHere(args ...string) *node {
	s.t.Helper()
	now := time.Now()
	n := &node{running: *start(s.t, s.term, append([]string{"serve", "--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--data", "data", "--lease", "10m"}, args...)...), clock: fastClock{now, now, 1}}
	n.find(s.t)
	s.nodes = append(s.nodes, n)
	return n
}

func (n *node) find(t *testing.T) {
	t.Helper()
	n.base = n.logged.waitFor(t, `"url":"(http://[^"]+)"`)
	n.figures = "http://" + n.logged.waitFor(t, `"serving figures","addr":"([^"]+)"`) + "/metrics"
}

func (n *node) kill() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
}

// leave ends the server in an orderly way. Its figures are not scraped.
func (s *scene) leave(n *node) {
	s.t.Helper()
	if n.clock.speed > 1 { // the program with a fast clock ends at once; what it accepted is on the disk
		n.kill()
	} else if err := errors.Join(n.cmd.Process.Signal(syscall.SIGTERM), n.cmd.Wait()); err != nil {
		s.t.Fatal(err)
	}
	s.nodes = slices.DeleteFunc(s.nodes, func(other *node) bool { return other == n })
}

// scene is a run of servers that are scraped.
type scene struct {
	t     *testing.T
	term  *console
	env   map[string]string // settings of the servers
	nodes []*node
	key   string // of the client
	phone int    // the number of the last person

	series map[string][]string // values by series, one for each scrape
	order  []string
}

// figure is a line of /metrics.
var figure = regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? (\S+)$`)

// usedFigures has the names of the figures in the alerts.
func usedFigures(t *testing.T) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	_, alerts := expressions(t)
	for _, expr := range alerts {
		for _, name := range metricName.FindAllString(expr, -1) {
			used[name] = true
		}
	}
	return used
}

// begun is where the time of the series begins, so that times before the first scrape are not negative.
const begun = 48 * time.Hour

// look scrapes all servers once, as the scrape number i. A figure that a scrape lacks ends, as in Prometheus.
func (s *scene) look(i int, used map[string]bool, first []time.Time) {
	for k, n := range s.nodes {
		at := fmt.Sprintf(`job="puntuale", instance="%c"`, 'a'+k)
		text, up := scraped(n.figures), "1"
		if text == "" {
			up = "0"
		}
		s.add(i, `up{`+at+`}`, up)
		for _, m := range figure.FindAllStringSubmatch(text, -1) {
			if !used[m[1]] || n.cmd == nil && m[1] == "process_start_time_seconds" { // of a server in this process, this would be the test's start
				continue
			}
			value, err := strconv.ParseFloat(m[3], 64)
			if err != nil {
				s.t.Fatalf("%s: %v", m[0], err)
			}
			switch {
			case m[1] == "process_start_time_seconds":
				value = begun.Seconds() + n.clock.shows(time.UnixMicro(int64(value*1e6))).Sub(first[k]).Seconds()*n.stretch()
			case strings.HasSuffix(m[1], "_timestamp_seconds") && value > 0:
				value = begun.Seconds() + time.UnixMicro(int64(value*1e6)).Sub(first[k]).Seconds()*n.stretch()
			case strings.HasSuffix(m[1], "_oldest_seconds"):
				value *= n.stretch()
			}
			labels := at
			if m[2] != "" {
				labels += ", " + m[2]
			}
			s.add(i, m[1]+"{"+labels+"}", strconv.FormatFloat(value, 'f', -1, 64))
		}
	}
	for _, name := range s.order {
		if len(s.series[name]) <= i {
			s.series[name] = append(s.series[name], "stale")
		}
	}
}

func (s *scene) add(i int, name, value string) {
	if _, known := s.series[name]; !known {
		s.order = append(s.order, name)
		for range i {
			s.series[name] = append(s.series[name], "_")
		}
	}
	s.series[name] = append(s.series[name], value)
}

func scraped(url string) string {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// judge scrapes the servers for so many minutes, and lets promtool evaluate the rules at each. Before each scrape it calls
// each with its number. Exactly the given alerts must fire in the last minute, and no other in any minute.
func (s *scene) judge(minutes int, each func(minute int), want ...string) {
	t := s.t
	t.Helper()
	used := usedFigures(t)
	s.series = map[string][]string{}
	var first []time.Time
	for _, n := range s.nodes {
		first = append(first, n.clock.Now())
	}
	ticks := time.NewTicker(scrape)
	defer ticks.Stop()
	for i := range minutes {
		if each != nil {
			each(i)
		}
		s.look(i, used, first)
		<-ticks.C
	}
	rules, err := filepath.Abs(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "rule_files: [%q]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n", rules)
	for _, name := range s.order {
		fmt.Fprintf(&text, "      - {series: '%s', values: '_x%d %s'}\n", name, int(begun/time.Minute), strings.Join(s.series[name], " "))
	}
	text.WriteString("    promql_expr_test:\n")
	for i := range minutes {
		fmt.Fprintf(&text, "      - {expr: 'ALERTS{alertstate=\"firing\", alertname!~\"%s\"}', eval_time: %dm, exp_samples: []}\n", strings.Join(want, "|"), int(begun/time.Minute)+i)
	}
	fmt.Fprintf(&text, "      - expr: 'group by (alertname) (ALERTS{alertstate=\"firing\"})'\n        eval_time: %dm\n        exp_samples:\n", int(begun/time.Minute)+minutes-1)
	for _, name := range want {
		fmt.Fprintf(&text, "          - {labels: '{alertname=\"%s\"}', value: 1}\n", name)
	}
	if len(want) == 0 {
		text.WriteString("          []\n")
	}
	file := filepath.Join(t.TempDir(), "run.yml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), os.Getenv("PUNTUALE_TEST_PROMTOOL"), "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%.6000s", err, out)
	}
}
