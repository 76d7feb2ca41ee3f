// Command puntuale schedules sequences of chat messages, sends each at its moment and records its outcome.
//
// It is the only place that names a concrete store, a concrete connector and the configuration; it hands to all other packages what they
// need. "puntuale demo" gives a working local system with nothing to set up, "puntuale serve" the real one, "puntuale config" every setting
// with its effective value.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	_ "time/tzdata" // zones must not depend on what the machine has installed

	"github.com/mattn/go-isatty"

	"puntuale/internal/clock"
	"puntuale/internal/media"
)

func main() {
	p := &program{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		color:     isTerminal(os.Stdout),
		logColor:  isTerminal(os.Stderr),
		lookupEnv: os.LookupEnv,
		clock:     clock.System(),
		files:     filesAsBuilt(),
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // from the first signal on, a second one has its usual effect: the end, at once
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// isTerminal reports whether people read f, and want colour.
func isTerminal(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isatty.IsTerminal(f.Fd())
}

// program is the command line with everything that it uses of the machine, so that a test can replace it.
type program struct {
	stdin           io.Reader
	stdout, stderr  io.Writer
	color, logColor bool // stdout, stderr are terminals
	lookupEnv       func(string) (string, bool)
	dir             string // what relative paths are relative to; "": the working folder
	clock           clock.Clock
	files           media.Config      // zero in what is shipped; tests let their own hosts be reached
	whatsApp        *http.Client      // the way to WhatsApp; nil: as the environment says
	push            http.RoundTripper // the way to push services; nil: to public addresses only

	faults []fault           // found while the settings were read
	source map[string]string // where each setting came from, by name
}

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // it could not be done
	exitUsage  = 2 // the command line or the configuration is wrong
)

// run parses the arguments, runs the command they name until it is done or ctx ends, and returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	chosen, err := p.parse(args)
	if err == nil && chosen != nil {
		err = chosen.Run(ctx, p)
	}
	var faults faultsError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &faults):
		fmt.Fprint(p.stderr, faults.Error())
		return exitUsage
	default:
		fmt.Fprintf(p.stderr, "puntuale: %s\n", strings.ReplaceAll(terminalText(err), "puntuale: ", ""))
		return exitFailed
	}
}

// path makes a relative path relative to the program's folder.
func (p *program) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.dir, name)
}
