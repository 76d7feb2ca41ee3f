package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale/internal/clock"
)

// office is a server with one campaign. For each kind of call, the server has a list of answers, and each call gets the
// next one. When only one answer is left, every further call gets this answer. The ledger contains all calls except the
// calls that read the campaign.
type office struct {
	t         *testing.T
	mu        sync.Mutex
	says      map[string][]string
	interrupt func()
	ledger    []string
}

// Special answers, which are not JSON but say what goes wrong.
const (
	lost   = "lost"  // the connection ends
	never  = "never" // the server does not answer, and the test interrupts the command
	portal = "<html>a portal</html>"
)

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	call := r.Method + strings.TrimPrefix(r.URL.Path, "/api/campaigns")
	o.mu.Lock()
	answers := o.says[call]
	if len(answers) == 0 {
		o.t.Errorf("%s was not expected", call)
		answers = []string{"{}"}
	}
	if len(answers) > 1 {
		o.says[call] = answers[1:]
	}
	if call != "GET/7" {
		o.ledger = append(o.ledger, strings.TrimSpace(call+" "+string(body)))
	}
	o.mu.Unlock()
	answer := answers[0]
	switch {
	case answer == lost:
		panic(http.ErrAbortHandler)
	case answer == never:
		o.interrupt()
		<-r.Context().Done()
		return
	case strings.Contains(answer, `"code"`):
		w.WriteHeader(http.StatusConflict)
	}
	fmt.Fprint(w, answer)
}

const (
	aDraft   = `{"id":"7","state":"draft"}`
	aReady   = `{"id":"7","state":"ready","counts":{"recipients":1,"waiting":1}}`
	runs     = `{"id":"7","state":"running","started_at":"2026-11-23T10:00:00Z","counts":{"recipients":1,"fed":1,"pending":1}}`
	isPaused = `{"id":"7","state":"paused","started_at":"2026-11-23T10:00:00Z","counts":{"recipients":1,"fed":1,"pending":1}}`
	isDone   = `{"id":"7","state":"done","started_at":"2026-11-23T10:00:00Z","counts":{"recipients":1,"fed":1,"completed":1}}`
	aCheck   = `{"digest":"abc","valid":1,"recipients":1,"messages":1,"credits_left":"9"}`
)

// campaigns runs the command against an office. The argument says replaces some of the office's usual answers.
func campaigns(t *testing.T, says map[string][]string, args ...string) (code int, out, errs string, o *office) {
	t.Helper()
	o = &office{t: t, says: map[string][]string{
		"POST": {aDraft}, "GET/7": {aDraft, isDone}, "PUT/7/recipients": {`{"recipients":1}`}, "POST/7/check": {aCheck}, "POST/7/start": {runs},
	}}
	for call, answers := range says {
		o.says[call] = answers
	}
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	term := newConsole(t, map[string]string{"PUNTUALE_API_KEY": "ck_x"})
	term.clock = &hasty{Clock: clock.System()}
	term.file(t, "a.csv", "phone\n3331234567\n")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	o.interrupt = interrupt
	if args == nil {
		args = []string{"--file", "a.csv", "--text", "ciao", "--yes"}
	}
	code = term.run(ctx, append([]string{"campaign", "--server", server.URL}, args...))
	return code, term.out.String(), strings.ReplaceAll(term.errs.String(), server.URL, "URL"), o
}

// hasty is a clock whose waits end immediately.
type hasty struct {
	clock.Clock
	mu    sync.Mutex
	slept time.Duration
}

func (h *hasty) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Clock.Now().Add(h.slept)
}

func (h *hasty) Sleep(ctx context.Context, d time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slept += d
	return ctx.Err()
}

// TestCampaignInterrupted: an interrupted command prints the campaign's state, and the commands that continue or stop
// it.
func TestCampaignInterrupted(t *testing.T) {
	t.Parallel()
	const look = "puntuale campaign --id 7 --server URL\n"
	verb := func(name string) string { return "puntuale campaign --id 7 --" + name + " --server URL" }
	for name, c := range map[string]struct {
		says map[string][]string
		args []string
		want []string
	}{
		"made":             {map[string][]string{"POST": {never}}, nil, []string{"interrupted; nothing was started"}},
		"uploading":        {map[string][]string{"PUT/7/recipients": {never}, "GET/7": {aDraft}}, nil, []string{"campaign 7 was not started", look, verb("cancel")}},
		"checking":         {map[string][]string{"POST/7/check": {never}, "GET/7": {aDraft}}, nil, []string{"campaign 7 was not started", look}},
		"starting":         {map[string][]string{"POST/7/start": {never}, "GET/7": {aDraft, aReady}}, nil, []string{"was told to start, and perhaps does", look, verb("cancel")}},
		"started":          {map[string][]string{"POST/7/start": {never}, "GET/7": {aDraft, runs}}, nil, []string{"is running, and goes on without", look, verb("pause")}},
		"watching":         {map[string][]string{"GET/7": {aDraft, runs, never, runs}}, nil, []string{"is running, and goes on without", look, verb("pause")}},
		"watching a pause": {map[string][]string{"GET/7": {never, isPaused}}, []string{"--id", "7"}, []string{"campaign 7 is paused", look, verb("resume")}},
		"pausing":          {map[string][]string{"POST/7/pause": {never}, "GET/7": {runs}}, []string{"--id", "7", "--pause"}, []string{"is running, and perhaps --pause", look, verb("pause")}},
		"looking":          {map[string][]string{"GET/7": {never, portal}}, []string{"--id", "7"}, []string{"the server does not say how it is", look}},
		"pausing unheard":  {map[string][]string{"POST/7/pause": {never}, "GET/7": {portal}}, []string{"--id", "7", "--pause"}, []string{"perhaps got --pause", look, verb("pause")}},
		"ended meanwhile":  {map[string][]string{"GET/7": {never, isDone}}, []string{"--id", "7"}, []string{"campaign 7 is done", look}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, errs, _ := campaigns(t, c.says, c.args...)
			for _, want := range append(c.want, "interrupted; ") {
				if code != exitFailed || !strings.Contains(errs, want) {
					t.Errorf("exit code %d, no %q in:\n%s", code, want, errs)
				}
			}
		})
	}
}

// TestCampaignChangedMeanwhile: if the campaign changed after the check, the command shows the change. It starts the
// campaign only in the form that it showed last.
func TestCampaignChangedMeanwhile(t *testing.T) {
	t.Parallel()
	code, out, errs, o := campaigns(t, map[string][]string{"POST/7/start": {
		`{"code":"conflict","errors":[{"location":"body.digest","value":{"digest":"def","valid":1,"recipients":1,"messages":2,"credits_left":"9"}}]}`, runs,
	}})
	if code != exitDone || !strings.Contains(out, "Something was changed") || !strings.Contains(out, "Campaign 7 is done") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	if starts := o.ledger[3:]; len(starts) != 2 || starts[0] != `POST/7/start {"digest":"abc"}` || starts[1] != `POST/7/start {"digest":"def"}` {
		t.Errorf("calls: %q", o.ledger)
	}
}

// TestCampaignStartUncertain: if the command cannot know whether the campaign started, it says this, and how to find
// out.
func TestCampaignStartUncertain(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		portal: "perhaps does: the server did not confirm it",
		`{"code":"conflict","detail":"the campaign is being edited"}`: "is being edited\n  campaign 7 was not started",
	} {
		code, _, errs, _ := campaigns(t, map[string][]string{"POST/7/start": {answer}, "GET/7": {aDraft, aReady}})
		if code != exitFailed || !strings.Contains(errs, want) || !strings.Contains(errs, "puntuale campaign --id 7 --server URL\n") {
			t.Errorf("exit code %d, %s", code, errs)
		}
	}
}

// TestCampaignServerAway: the command waits while the server does not answer. The server is away during a long check,
// during the start, and while the command watches the campaign.
func TestCampaignServerAway(t *testing.T) {
	t.Parallel()
	code, out, errs, o := campaigns(t, map[string][]string{
		"POST/7/check": {`{"done":1,"recipients":4}`, lost, `{"done":2,"recipients":4}`, aCheck},
		"POST/7/start": {lost, runs}, "GET/7": {aDraft, runs, lost, lost, isDone},
	})
	if code != exitDone || !strings.Contains(out, "Campaign 7 is done: 1 message in all, 1 completed") || strings.Contains(out, "\x1b") {
		t.Errorf("exit code %d, %s", code, out)
	}
	if strings.Count(errs, "No answer from URL") != 3 || strings.Count(errs, "answers again") != 3 {
		t.Errorf("told: %s", errs)
	}
	if starts := o.ledger[6:]; len(starts) != 2 || starts[0] != starts[1] {
		t.Errorf("calls: %q", o.ledger)
	}
}

// TestCampaignLongCheck: during a long check, the command shows how many rows the server has checked. The counts
// include only checked rows.
func TestCampaignLongCheck(t *testing.T) {
	t.Parallel()
	checks := append(slices.Repeat([]string{`{"done":1,"recipients":1}`}, 20), aCheck)
	code, out, errs, _ := campaigns(t, map[string][]string{"PUT/7/recipients": {`{"recipients":4}`}, "POST/7/check": checks})
	if code != exitDone || !strings.Contains(out, "checking  25 %, 1 of 4 recipients") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
}

// TestCampaignFiles: the command uploads the whole list from a pipe. The file for refused rows may replace only a
// regular file.
func TestCampaignFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has neither /dev/fd nor socket files that a program meets as one; CI runs on Linux")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	_, _ = io.WriteString(w, "phone\n3331234567\n")
	_ = w.Close()
	code, _, errs, o := campaigns(t, nil, "--file", name, "--text", "ciao", "--yes")
	if code != exitDone || o.ledger[1] != "PUT/7/recipients phone\n3331234567" {
		t.Errorf("exit code %d, %s; calls %q", code, errs, o.ledger)
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	code, _, errs, _ = campaigns(t, map[string][]string{"GET/7": {aReady}}, "--id", "7", "--yes", "--refused", socket)
	if code != exitFailed || !strings.Contains(errs, "no file that could be replaced") || !strings.Contains(errs, "campaign 7 was not started") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// TestCampaignAgain checks the flags of the command line that is printed for the next step. The line has the flag for
// the key. It has the flag for the server only if the server is not the default one.
func TestCampaignAgain(t *testing.T) {
	t.Parallel()
	c := &campaignCommand{Server: defaultServer, KeyFile: "my key's"}
	if got := c.serverFlags(); !slices.Equal(got, []string{"--key-file", "my key's"}) {
		t.Errorf("%q", got)
	}
	c = &campaignCommand{Server: "http://x", KeyStdin: true}
	if got := c.serverFlags(); !slices.Equal(got, []string{"--server", "http://x", "--key-stdin"}) {
		t.Errorf("%q", got)
	}
}
