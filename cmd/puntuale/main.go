// Command puntuale schedules sequences of chat messages, sends each message when it is due, and records its outcome.
//
// Only this package names a concrete store, concrete connectors and the configuration. This package passes them to all
// other packages. "puntuale demo" starts a working local system without any setup. "puntuale serve" starts a real
// server. "puntuale config" prints every setting with its effective value.
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
	_ "time/tzdata" // so that time zones do not depend on the machine

	"github.com/alecthomas/kong"
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
	context.AfterFunc(ctx, stop) // after the first signal, a second signal kills the process immediately
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// isTerminal reports whether f is a terminal whose user wants colours.
func isTerminal(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isatty.IsTerminal(f.Fd())
}

// program is the command line, together with everything that it uses from the machine. Tests replace these parts.
type program struct {
	stdin           io.Reader
	stdout, stderr  io.Writer
	color, logColor bool // whether stdout and stderr are terminals with colours
	lookupEnv       func(string) (string, bool)
	dir             string // the folder for relative paths; "": the working folder
	clock           clock.Clock
	files           media.Config      // how the server fetches files; zero in releases, but tests add their own hosts
	whatsApp        *http.Client      // how the connector reaches WhatsApp; nil: through the proxy in the environment
	push            http.RoundTripper // how the server reaches push services; nil: only at public addresses

	settings []*kong.Flag      // the settings of the command
	source   map[string]string // where each setting came from, by name; "": the default
}

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // the command failed
	exitUsage  = 2 // the command line or the configuration has faults
)

// run parses the arguments, and runs the command until it ends or ctx ends. It returns the exit code.
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
