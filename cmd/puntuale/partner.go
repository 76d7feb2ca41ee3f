package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/store"
)

// partnerCreateCommand creates a partner, also beside a running server.
type partnerCreateCommand struct {
	baseSettings `embed:""`

	Name     string `local:"" required:"" placeholder:"NAME" help:"The partner's name."`
	Email    string `local:"" required:"" placeholder:"EMAIL" help:"Its login."`
	Password string `local:"" required:"" placeholder:"PASSWORD" help:"Its password; - reads a line of standard input, which keeps it out of the list of processes."`
	JSON     bool   `local:"" name:"json" help:"Print {\"id\", \"api_key\"}."`
}

func (c *partnerCreateCommand) Run(ctx context.Context, p *program) error {
	password, err := p.secret(c.Password)
	if err != nil {
		return fmt.Errorf("read the password: %w", err)
	}
	return p.withControl(ctx, &c.baseSettings, func(operator *control.Control) error {
		id, key, err := operator.CreatePartner(ctx, control.NewPartner{Name: c.Name, Email: c.Email, Password: password})
		if err != nil {
			return fmt.Errorf("create the partner: %w", forPeople(err))
		}
		if c.JSON {
			return printJSON(p.stdout, map[string]any{"id": int64(id), "api_key": key})
		}
		_, err = fmt.Fprintf(p.stdout, "Partner %d, %s.\n\n  %s\n\nThis is its key. It is valid at once and is not shown again.\n", id, c.Name, key)
		return err
	})
}

// keyRotateCommand replaces a key by a new one.
type keyRotateCommand struct {
	baseSettings `embed:""`

	Key   string        `local:"" arg:"" optional:"" placeholder:"KEY" help:"The key to replace. Without it, or as -, a line of standard input."`
	Grace time.Duration `local:"" default:"24h" placeholder:"DURATION" help:"How long the old key stays valid; 0s ends it at once."`
	JSON  bool          `local:"" name:"json" help:"Print {\"api_key\"}."`
}

func (c *keyRotateCommand) Run(ctx context.Context, p *program) error {
	old, err := p.secret(cmp.Or(c.Key, "-"))
	if err != nil {
		return fmt.Errorf("read the key: %w", err)
	}
	return p.withControl(ctx, &c.baseSettings, func(operator *control.Control) error {
		key, err := operator.RotateKey(ctx, old, c.Grace)
		if err != nil {
			return fmt.Errorf("rotate the key: %w", forPeople(err))
		}
		if c.JSON {
			return printJSON(p.stdout, map[string]any{"api_key": key})
		}
		until := "The old key is no longer valid."
		if c.Grace > 0 {
			until = "The old key stays valid for " + durationText(c.Grace) + "."
		}
		_, err = fmt.Fprintf(p.stdout, "  %s\n\nThis is the new key. It is valid at once and is not shown again. %s\n", key, until)
		return err
	})
}

// withControl opens the store for one verb of an operator. It takes no part in dispatching, so that it works beside a
// running server.
func (p *program) withControl(ctx context.Context, s *baseSettings, verb func(*control.Control) error) error {
	s.Data = p.path(s.Data)
	logger := newLogger(p.stderr, p.logColor, s.LogLevel)
	opened, err := store.Open(ctx, storeConfig(s, p.clock, nil, logger, false))
	if err != nil {
		return err
	}
	err = verb(control.New(control.Config{Operator: opened, Clock: p.clock}))
	return errors.Join(err, opened.Close())
}

// secret returns what was given, or with "-" a line of standard input.
func (p *program) secret(given string) (string, error) {
	if given != "-" {
		return given, nil
	}
	line, err := bufio.NewReader(p.stdin).ReadString('\n')
	if err != nil && (!errors.Is(err, io.EOF) || line == "") {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// forPeople says what was refused without codes, and names faults as flags.
func forPeople(err error) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || e.Code == puntuale.CodeInternal || e.Code == puntuale.CodeUnavailable {
		return err
	}
	if len(e.Faults) == 0 {
		return errors.New(e.Message)
	}
	var texts []string
	for _, f := range e.Faults {
		texts = append(texts, "--"+f.Location+" "+f.Message)
	}
	return errors.New(strings.Join(texts, "; "))
}

func printJSON(w io.Writer, body any) error { return json.NewEncoder(w).Encode(body) }
