package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"time"

	"puntuale/internal/client"
	"puntuale/internal/devicecommand"
	"puntuale/internal/localfile"
	"puntuale/internal/logging"
)

// deviceGroup contains the commands for a program that sends as a device; see docs/device.md.
type deviceGroup struct {
	Link deviceLinkCommand `cmd:"" help:"Link this machine as a device, with the code that a session shows."`
	Due  deviceDueCommand  `cmd:"" help:"Print what the device could take now, one message a line as JSON. Nothing is taken."`
	Run  deviceRunCommand  `cmd:"" help:"Take messages and hand each to a command, until SIGTERM."`
}

// deviceSettings say which server a command calls, and with which token.
type deviceSettings struct {
	Server    string `local:"" placeholder:"URL" default:"http://127.0.0.1:8080" help:"The address of a running server."`
	TokenFile string `local:"" placeholder:"FILE" default:"puntuale-device.token" help:"Where link keeps the device's token, which its owner alone may read."`
}

func (c *deviceSettings) check() []fault { return checkServer(c.Server) }

// checkServer returns what is wrong with the address of a running server.
func checkServer(address string) []fault {
	if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return []fault{{"server", fmt.Sprintf("%q is not an address such as https://messages.example.com", address)}}
	}
	return nil
}

// client reads the token, and returns a client that calls the server with it.
func (c *deviceSettings) client(p *program) (*client.Client, error) {
	name := p.path(c.TokenFile)
	token, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s: link the device first, with puntuale device link", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the token: %w", err)
	}
	if localfile.OthersMayRead(name) {
		fmt.Fprintf(p.stderr, "Others than its owner may read %s; take that away with chmod 600.\n", name)
	}
	return client.NewDevice(c.Server, string(bytes.TrimSpace(token)), p.clock), nil
}

// deviceLinkCommand links a device.
type deviceLinkCommand struct {
	deviceSettings `embed:""`

	Code    string `local:"" required:"" placeholder:"CODE" help:"The one-time code that the session shows."`
	Name    string `local:"" required:"" placeholder:"NAME" help:"What people read in the list of devices."`
	Dedupes bool   `local:"" help:"Promise that one message is sent once, however often it is taken. The journal beside the token keeps the promise: do not remove it."`
}

func (c *deviceLinkCommand) Run(ctx context.Context, p *program) error {
	file, err := localfile.Create(p.path(c.TokenFile), false) // the file must exist before the code is used up
	if err != nil {
		return err
	}
	token, err := client.New(c.Server, "", p.clock).LinkDevice(ctx, client.DeviceOrder{Code: c.Code, Name: c.Name, Dedupes: c.Dedupes})
	if err != nil {
		return errors.Join(fmt.Errorf("link the device: %w", err), file.Remove())
	}
	if _, err := fmt.Fprintln(file, token); err != nil {
		return errors.Join(fmt.Errorf("keep the token: %w", err), file.Remove())
	}
	if err := file.Finish(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "linked; the token is in %s\n", file.Target())
	return err
}

// deviceDueCommand prints the messages that the device could take.
type deviceDueCommand struct {
	deviceSettings `embed:""`
}

func (c *deviceDueCommand) Run(ctx context.Context, p *program) error {
	asker, err := c.client(p)
	if err != nil {
		return err
	}
	due, err := asker.DueMessages(ctx)
	for _, m := range due.Messages {
		if _, err := fmt.Fprintf(p.stdout, "%s\n", m); err != nil {
			return err
		}
	}
	return err
}

// deviceRunCommand sends due messages.
type deviceRunCommand struct {
	deviceSettings `embed:""`

	Command  string        `local:"" required:"" placeholder:"COMMAND" help:"Run by the shell for each message, which it reads from standard input as JSON. Exit code 0: sent; 65: refused; 75: not sent, to be taken again; any other: unknown."`
	Timeout  time.Duration `local:"" placeholder:"DURATION" default:"1m" help:"How long the command may take for one message. Then it is killed, and the outcome is unknown."`
	Max      int           `local:"" placeholder:"NUMBER" default:"10" help:"Messages taken at once, 1 to 100; the command gets one after the other."`
	Lease    time.Duration `local:"" placeholder:"DURATION" default:"2m" help:"How long messages are held without a sign of life, 10s to 1h."`
	LogLevel slog.Level    `local:"" placeholder:"LEVEL" default:"info" help:"The lowest level that the program logs: debug, info, warn or error."`
}

func (c *deviceRunCommand) check() []fault {
	faults := c.deviceSettings.check()
	if c.Max < 1 || c.Max > 100 {
		faults = append(faults, fault{"max", "must be 1 to 100"})
	}
	if c.Lease < 10*time.Second || c.Lease > time.Hour {
		faults = append(faults, fault{"lease", "must be 10s to 1h"})
	}
	if c.Timeout <= 0 {
		faults = append(faults, fault{"timeout", "must be longer than 0s"})
	}
	return faults
}

func (c *deviceRunCommand) Run(ctx context.Context, p *program) (err error) {
	asker, err := c.client(p)
	if err != nil {
		return err
	}
	name := p.path(c.TokenFile)
	free, err := localfile.Lock(name)
	if errors.Is(err, localfile.ErrLocked) {
		return fmt.Errorf("another puntuale device run uses %s", name)
	}
	if err != nil {
		return fmt.Errorf("lock the token: %w", err)
	}
	defer free()
	journal, err := devicecommand.OpenJournal(name+".journal", p.clock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	return devicecommand.Run(ctx, devicecommand.Config{
		Client: asker, Journal: journal, Do: devicecommand.Command(c.Command, c.Timeout, p.stderr),
		Most: c.Max, Lease: c.Lease, Clock: p.clock, Logger: logging.New(p.stderr, p.logColor, c.LogLevel),
	})
}
