package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"puntuale/internal/demo"
	"puntuale/internal/localfile"
	"puntuale/internal/logging"
)

// demoCommand runs a server with new data. It starts one run whose first messages leave within seconds, and prints a
// curl line to paste. After that the server keeps running. The demo reads neither the environment nor a configuration
// file, so that it can never open real data.
type demoCommand struct {
	Addr     string     `local:"env" placeholder:"HOST:PORT" default:"127.0.0.1:8080" help:"Where the API listens. When the default is taken, a free port is found."`
	Data     string     `local:"" placeholder:"FOLDER" default:"puntuale-demo" help:"The demo's own folder, made anew each time."`
	LogLevel slog.Level `local:"" placeholder:"LEVEL" default:"warn" help:"The lowest level that the program logs: debug, info, warn or error."`
}

const (
	demoAddr = "127.0.0.1:8080" // the default of the flag --addr
	demoMark = ".puntuale-demo" // marks a folder as one that a demo made and may remove
)

func (c *demoCommand) check() []fault {
	if f := checkAddr(c.Addr); f != "" {
		return []fault{{"addr", f}}
	}
	return nil
}

func (c *demoCommand) Run(ctx context.Context, p *program) error {
	folder := p.path(c.Data)
	release, err := freshFolder(folder)
	if err != nil {
		return err
	}
	defer release()
	screen := demo.NewScreen(p.stdout, p.color, demo.Zone(), p.clock.Now)
	s, err := openServer(ctx, serverConfig{
		serveSettings: serveSettings{
			baseSettings: baseSettings{Data: folder}, Addr: c.Addr, Roles: allRoles, networkSettings: networkSettings{Sandbox: true}, Migrate: true,
			StopWithin: 10 * time.Second, Lease: 6 * time.Second, UncertainAfter: 24 * time.Hour, AccessLog: 1,
		},
		Clock: p.clock, Logger: logging.New(p.stderr, p.logColor, c.LogLevel),
		Observe: screen.Message,
		Listen:  c.listen,
	})
	if err != nil {
		return err
	}
	err = c.prepareAccounts(ctx, p, s, screen)
	if err == nil {
		err = s.Wait(ctx)
	}
	screen.Line("")
	return errors.Join(err, s.Close())
}

// prepareAccounts prepares the demo's accounts through the API, as an integrator would. Then it prints what a new user
// needs.
func (c *demoCommand) prepareAccounts(ctx context.Context, p *program, s *server, screen *demo.Screen) error {
	d := demo.New(s.URL(), p.clock.Now())
	err := d.Prepare(ctx, s.accounts)
	if err == nil {
		wanted := ""
		if c.Addr == demoAddr {
			wanted = demoAddr
		}
		screen.Intro(d, p.path(c.Data), wanted)
		err = d.Start(ctx)
	}
	if err == nil {
		screen.Start(d)
	} else if ctx.Err() == nil { // if ctx has ended, the user stopped the demo, which is no failure
		return fmt.Errorf("prepare the demo: %w", err)
	}
	return nil
}

// listen listens at the address of the settings. If the default address is in use, it uses a free port instead.
func (c *demoCommand) listen(ctx context.Context, addr string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", addr)
	if addr == demoAddr && errors.Is(err, syscall.EADDRINUSE) {
		l, err = config.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", addr, err)
	}
	return l, nil
}

// freshFolder makes a new folder for the demo. If the folder exists, it must be empty, or an earlier demo must have
// made it. No demo may use it now.
func freshFolder(folder string) (release func(), err error) {
	mark := filepath.Join(folder, demoMark)
	_, err = os.Lstat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("look at the demo's folder: %w", err)
	default:
		if err := removeOldDemo(folder, mark); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the demo's folder: %w", err)
	}
	const words = "Made by \"puntuale demo\", which removes this folder with all it holds at its next start.\n"
	if err := os.WriteFile(mark, []byte(words), 0o600); err != nil {
		return nil, fmt.Errorf("mark the demo's folder: %w", err)
	}
	release, err = localfile.Lock(mark)
	if err != nil {
		return nil, fmt.Errorf("hold the demo's folder: %w", err)
	}
	return release, nil
}

// removeOldDemo removes the folder of an earlier demo. It does nothing to an empty folder. It returns an error if a demo
// uses the folder, or if no demo made the folder and the folder is not empty.
func removeOldDemo(folder, mark string) error {
	if _, err := os.Lstat(mark); errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(folder)
		if err == nil && len(entries) == 0 {
			return nil
		}
		return fmt.Errorf("%s was not made by a demo (there is no %s in it), so it stays as it is; choose another folder with --data", folder, demoMark)
	}
	release, err := localfile.Lock(mark)
	if errors.Is(err, localfile.ErrLocked) {
		return fmt.Errorf("a demo is running in %s; give this one a folder of its own with --data", folder)
	}
	if err != nil {
		return fmt.Errorf("hold the demo's folder: %w", err)
	}
	defer release()
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("remove the last demo's folder: %w", err)
	}
	return nil
}
