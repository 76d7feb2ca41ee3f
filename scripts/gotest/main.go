// Command gotest runs "go test" with its arguments, and prints the output. It also counts skipped tests, because go
// test does not mention them. A database suite that was skipped unnoticed is worse than a failed one. In CI (CI=true)
// every skipped test is a failure, for any reason.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

func main() {
	os.Exit(test(os.Args[1:]))
}

// test runs go test with the given arguments, and returns the exit status.
func test(given []string) int {
	templates, err := os.MkdirTemp("", "puntuale-templates")
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(templates) }()
	//nolint:gosec,noctx // the arguments are a developer's own, and an interrupt reaches go test by itself
	cmd := exec.Command("go", append([]string{"test", "-json"}, arguments(given)...)...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "PUNTUALE_TEST_TEMPLATES="+templates) // see storetest.Templates
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 1
	}
	s := newSummary(os.Stdout)
	s.read(out)
	failed := cmd.Wait() != nil
	return s.end(failed, os.Getenv("CI") == "true")
}

// unwatched lists the packages that the race detector leaves out. With the detector, each would take up to five times
// as long. SQLite's C code, translated to Go, stores its data outside of Go's memory, where the detector does not look.
// The other packages hash passwords, compute on elliptic curves, match regular expressions, or parse pages for tests.
// Only one goroutine at a time uses their memory.
var unwatched = []string{
	"modernc.org/sqlite/lib", "modernc.org/libc/...", "modernc.org/memory",
	"golang.org/x/crypto/argon2", "golang.org/x/crypto/blake2b", "regexp/...",
	"crypto/ecdh", "crypto/internal/fips140/edwards25519/...", "golang.org/x/net/html",
}

// arguments returns the arguments for go test. With -race, it adds flags that leave out the unwatched packages.
func arguments(given []string) []string {
	if !slices.Contains(given, "-race") {
		return given
	}
	var flags []string
	for _, pkg := range unwatched {
		flags = append(flags, "-gcflags="+pkg+"=-race=false")
	}
	return append(append(flags, "-exec", "env "+settings), given...)
}

// settings is the environment variable for test binaries with the race detector. Without atexit_sleep_ms, each process
// sleeps for a second before it exits, to wait for reports of goroutines that still run. With a history_size of 0, the
// detector finds the same races in less time. If a report says that a stack could not be restored, a larger
// history_size finds the stack.
const settings = "GORACE=atexit_sleep_ms=0:history_size=0"

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action, Package, Test, Output string
}

// summary reads the events of a run and prints them: a line for each package, and everything that a failed test
// printed.
type summary struct {
	w        io.Writer
	output   map[string][]string // the output of tests and packages that have not ended
	passed   int
	failed   int
	why      []string       // short messages of failed tests, shown again at the end, because people often read only the end of a long log
	racing   map[string]int // packages whose report of a data race is being read, with the number of lines that are still to come
	skipped  []string       // names of skipped tests, with the reasons
	postgres int            // how many skipped tests needed PostgreSQL
}

func newSummary(w io.Writer) *summary {
	return &summary{w: w, output: map[string][]string{}, racing: map[string]int{}}
}

func (s *summary) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil:
			fmt.Fprintf(s.w, "%s", line) // the line is a compiler's message
		default:
			s.event(e)
		}
		if err != nil {
			return
		}
	}
}

func (s *summary) event(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(s.w, e.Output)
	case "output":
		s.output[key] = append(s.output[key], e.Output)
		s.race(e)
	case "pass", "skip", "fail":
		said := s.output[key]
		delete(s.output, key)
		if e.Test == "" {
			s.endPackage(e, said)
		} else {
			s.endTest(e, said)
		}
	}
}

// race stores the beginning of each report of a data race. go test may assign the report's lines to a test that passes,
// and the output of such a test is not printed.
func (s *summary) race(e event) {
	if strings.HasPrefix(e.Output, "WARNING: DATA RACE") {
		s.racing[e.Package] = raceLines
	}
	if s.racing[e.Package] > 0 {
		s.racing[e.Package]--
		s.why = append(s.why, e.Package+": "+strings.TrimRight(e.Output, "\n"))
	}
}

// raceLines is how many lines of a report are stored: both accesses, and some of their callers.
const raceLines = 24

func (s *summary) endTest(e event, output []string) {
	switch e.Action {
	case "pass":
		s.passed++
	case "fail":
		s.failed++
		s.why = append(s.why, short(e, output)...)
		for _, line := range output {
			if !strings.HasPrefix(line, "=== ") {
				fmt.Fprint(s.w, line)
			}
		}
	case "skip":
		reason := ""
		for _, line := range output {
			if !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(strings.TrimSpace(line), "--- SKIP") {
				reason = strings.TrimSpace(line)
			}
		}
		if strings.Contains(reason, "POSTGRES") {
			s.postgres++
		}
		s.skipped = append(s.skipped, fmt.Sprintf("%s %s: %s", e.Package, e.Test, reason))
	}
}

// said matches the file and line at the beginning of a test's message.
var said = regexp.MustCompile(`^ +\w+_test\.go:\d+: `)

// short returns the first messages of a failed test.
func short(e event, output []string) []string {
	lines := []string{fmt.Sprintf("FAILED %s %s", e.Package, e.Test)}
	for _, line := range output {
		if len(lines) <= shortLines && said.MatchString(line) {
			line = strings.TrimRight(line, "\n")
			lines = append(lines, line[:min(len(line), shortWidth)])
		}
	}
	return lines
}

const (
	shortLines = 8
	shortWidth = 300
)

// endPackage prints the package's own line. If the package failed, endPackage also prints all output of the package and
// of unfinished tests. The reason is that a panic or an exit ends the whole process.
func (s *summary) endPackage(e event, output []string) {
	if e.Action == "fail" {
		for _, key := range slices.Sorted(maps.Keys(s.output)) {
			if test, ofPackage := strings.CutPrefix(key, e.Package+" "); ofPackage {
				s.cutOff(event{Package: e.Package, Test: test}, s.output[key])
				delete(s.output, key)
			}
		}
	}
	for i, line := range output {
		if e.Action == "fail" || i == len(output)-1 {
			fmt.Fprint(s.w, line)
		}
	}
}

// cutOff prints the output of a test that did not end, if there is any.
func (s *summary) cutOff(e event, output []string) {
	output = slices.DeleteFunc(output, func(line string) bool { return strings.HasPrefix(line, "=== ") })
	if len(output) == 0 {
		return
	}
	s.why = append(s.why, short(e, output)...)
	for _, line := range output {
		fmt.Fprint(s.w, line)
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			s.why = append(s.why, strings.TrimRight(line, "\n"))
		}
	}
}

// end prints the counts and returns the exit code.
func (s *summary) end(failed, ci bool) int {
	other := len(s.skipped) - s.postgres
	for _, line := range s.why {
		fmt.Fprintln(s.w, line)
	}
	fmt.Fprintf(s.w, "\n%d tests passed, %d failed, %d skipped.\n", s.passed, s.failed, len(s.skipped))
	if s.postgres > 0 {
		fmt.Fprintf(s.w, "LEFT OUT: %d tests need PostgreSQL, and none could be had here (see scripts/with-postgres).\n", s.postgres)
	}
	if other > 0 {
		fmt.Fprintf(s.w, "Skipped for other reasons: %d.\n", other)
		for _, name := range s.skipped {
			if !strings.Contains(name, "POSTGRES") {
				fmt.Fprintf(s.w, "  %s\n", name)
			}
		}
	}
	switch {
	case failed:
		return 1
	case ci && len(s.skipped) > 0:
		fmt.Fprintln(s.w, "In CI no test may be left out: this run failed.")
		return 1
	}
	return 0
}
