package main

import (
	"slices"
	"strings"
	"testing"
)

const run = `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Output":"-test.shuffle 17\n"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:1: PUNTUALE_TEST_POSTGRES is not set\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p","Elapsed":0.1}
`

func TestSkippedTestsAreCounted(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := newSummary(&out)
	s.read(strings.NewReader(run))
	if code := s.end(false, false); code != 0 {
		t.Errorf("exit code %d on a developer's machine", code)
	}
	want := "ok  \tp\t0.1s\n\n1 tests passed, 0 failed, 1 skipped.\nLEFT OUT: 1 tests need PostgreSQL, and none could be had here (see scripts/with-postgres).\n"
	if out.String() != want {
		t.Errorf("printed:\n%s\nwant:\n%s", out.String(), want)
	}
	if s.end(false, true) == 0 {
		t.Error("exit code 0 in CI although a test was left out")
	}
}

func TestFailuresAreShown(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := newSummary(&out)
	s.read(strings.NewReader(strings.NewReplacer(`"pass"`, `"fail"`).Replace(run) + "not JSON\n"))
	if code := s.end(true, false); code != 1 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"-test.shuffle 17", "chatter", "not JSON", "1 failed", "FAILED p TestA\n    a_test.go:1: chatter\n\n0 tests passed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing from:\n%s", want, out.String())
		}
	}
}

// TestPanicsAreShown: a panic ends the process, so the running tests do not report their end.
func TestPanicsAreShown(t *testing.T) {
	t.Parallel()
	const run = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"panic: oh\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"main.go:1\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p","Elapsed":0.1}
`
	var out strings.Builder
	s := newSummary(&out)
	s.read(strings.NewReader(run))
	s.end(true, false)
	want := "panic: oh\nmain.go:1\nFAIL\tp\t0.1s\nFAILED p TestB\npanic: oh\n\n0 tests passed, 0 failed, 0 skipped.\n"
	if out.String() != want {
		t.Errorf("printed:\n%s\nwant:\n%s", out.String(), want)
	}
}

// TestRacesAreShown: go test assigns the lines of a race's report to any test that runs at that time, even to one that
// passes.
func TestRacesAreShown(t *testing.T) {
	t.Parallel()
	const run = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"WARNING: DATA RACE\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"Read at 0x1 by goroutine 7:\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestB","Output":"--- FAIL: TestB (0.00s)\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"fail","Package":"p","Elapsed":0.1}
`
	var out strings.Builder
	s := newSummary(&out)
	s.read(strings.NewReader(run))
	s.end(true, false)
	if !strings.Contains(out.String(), "p: WARNING: DATA RACE\np: Read at 0x1 by goroutine 7:\n") {
		t.Errorf("printed:\n%s", out.String())
	}
}

// TestNothingIsSkippedInCI: in CI a skipped test is a failure, for any reason.
func TestNothingIsSkippedInCI(t *testing.T) {
	t.Parallel()
	s := newSummary(&strings.Builder{})
	s.read(strings.NewReader(strings.ReplaceAll(run, "PUNTUALE_TEST_POSTGRES", "PROC")))
	if s.end(false, false) != 0 || s.end(false, true) == 0 {
		t.Error("a skipped test is a failure on a developer's machine, or none in CI")
	}
}

// TestRaceDetectorLeavesOutPackages: the race detector leaves out SQLite. The caller's arguments come last, so they can
// overrule the default ones.
func TestRaceDetectorLeavesOutPackages(t *testing.T) {
	t.Parallel()
	got := arguments([]string{"-race", "./..."})
	if !slices.Contains(got, "-gcflags=modernc.org/sqlite/lib=-race=false") || !slices.Equal(got[len(got)-2:], []string{"-race", "./..."}) {
		t.Errorf("go test gets %q", got)
	}
	if got := arguments([]string{"./..."}); !slices.Equal(got, []string{"./..."}) {
		t.Errorf("without -race go test gets %q", got)
	}
}
