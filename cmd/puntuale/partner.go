package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control/account"
	"puntuale/internal/control/webhook"
	"puntuale/internal/logging"
	"puntuale/internal/store"
)

// partnerCreateCommand creates a partner. It also works beside a running server.
type partnerCreateCommand struct {
	baseSettings   `embed:""`
	publicSettings `embed:""`

	Addr     string `local:"env" placeholder:"HOST:PORT" default:"127.0.0.1:8080" help:"Where the server listens, for the address that is printed without public-url."`
	Name     string `local:"" required:"" placeholder:"NAME" help:"The partner's name."`
	Email    string `local:"" required:"" placeholder:"EMAIL" help:"Its login."`
	Password string `local:"" required:"" placeholder:"PASSWORD" help:"Its password; - reads a line of standard input, which keeps it out of the list of processes."`
	Another  bool   `local:"" help:"Create it although another partner has the same login."`
	JSON     bool   `local:"" name:"json" help:"Print {\"id\", \"api_key\"}."`
}

// createdPartner has the values that --json prints.
type createdPartner struct {
	ID  puntuale.PartnerID `json:"id"`
	Key string             `json:"api_key"`
}

func (c *partnerCreateCommand) check() []fault {
	return append(c.baseSettings.check(), c.publicSettings.check()...)
}

func (c *partnerCreateCommand) Run(ctx context.Context, p *program) error {
	password, err := p.secret(c.Password, "")
	if err != nil {
		return fmt.Errorf("read the password: %w", err)
	}
	fresh := newFile(&c.baseSettings, p.path(c.Data))
	return p.withStore(ctx, &c.baseSettings, func(opened *store.Store) error {
		if fresh != "" {
			fmt.Fprintf(p.stderr, "puntuale: there was no database; made a new one: %s\n", fresh)
		}
		if err := c.refuseSecond(ctx, opened); err != nil {
			return err
		}
		id, key, err := p.accounts(opened).CreatePartner(ctx, account.NewPartner{Name: c.Name, Email: c.Email, Password: password})
		if err != nil {
			return fmt.Errorf("create the partner: %w", forPeople(err))
		}
		if c.JSON {
			return printJSON(p.stdout, createdPartner{id, key})
		}
		_, err = fmt.Fprintf(p.stdout, "Partner %d, %s.\n\n  %s\n\nThis is its key. It is valid at once and is not shown again.\n\nPeople sign in as %s at %s.\n", id, c.Name, key, c.Email, c.login())
		return err
	})
}

// login returns the address where people sign in. Without one that the internet reaches, it is that of a server with the
// same settings on this machine.
func (c *partnerCreateCommand) login() string {
	if c.PublicURL != "" {
		return strings.TrimSuffix(c.PublicURL, "/") + "/login"
	}
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return "the server's address, /login"
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/login"
}

// refuseSecond refuses a second partner, because an operator may repeat the command by mistake. The operator might then
// create clients under one partner, and keep only the key of the other partner. An operator who wants a second partner
// must set a flag.
func (c *partnerCreateCommand) refuseSecond(ctx context.Context, opened *store.Store) error {
	if c.Another {
		return nil
	}
	existing, err := opened.PartnersByLogin(ctx, c.Email)
	if err != nil {
		return fmt.Errorf("look for partners with this login: %w", forPeople(err))
	}
	if len(existing) == 0 {
		return nil
	}
	first := existing[0]
	return fmt.Errorf("a partner with the login %s exists already: number %d, %s, of %s. Nothing was created; --another creates a second one with the same login",
		c.Email, first.ID, first.Name, first.Created.Format(time.DateOnly))
}

// keyRotateCommand replaces a key by a new one. It reads the key only from standard input, because every user of the
// machine can see a command line. With an id it needs no key, because its text may be lost.
type keyRotateCommand struct {
	baseSettings `embed:""`

	ID    int64         `local:"" name:"id" placeholder:"NUMBER" help:"The number of the key, if its text is lost; the lists of keys in the API and in the dashboards have it. Nothing is read from standard input."`
	Grace time.Duration `local:"" default:"24h" placeholder:"DURATION" help:"How long the old key stays valid; 0s ends it at once."`
	JSON  bool          `local:"" name:"json" help:"Print {\"api_key\"}."`
}

// maxGrace bounds the time in which a replaced key, which somebody may have stolen, is still valid.
const maxGrace = 90 * 24 * time.Hour

func (c *keyRotateCommand) check() []fault {
	faults := c.baseSettings.check()
	if c.Grace < 0 || c.Grace > maxGrace {
		faults = append(faults, fault{"grace", fmt.Sprintf("must be from 0s to %s (it is %v)", durationText(maxGrace), c.Grace)})
	}
	return faults
}

func (c *keyRotateCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so no key to replace", fresh)
	}
	var old string
	if c.ID == 0 {
		var err error
		if old, err = p.secret("-", "The key to replace: "); err != nil {
			return fmt.Errorf("read the key from standard input: %w", err)
		}
	}
	return p.withStore(ctx, &c.baseSettings, func(opened *store.Store) error {
		key, err := c.rotate(ctx, p, opened, old)
		if err != nil {
			return fmt.Errorf("rotate the key: %w", forPeople(err))
		}
		if c.JSON {
			return printJSON(p.stdout, map[string]any{"api_key": key})
		}
		validity := "The old key is no longer valid."
		if c.Grace > 0 {
			validity = "The old key stays valid for " + durationText(c.Grace) + "."
		}
		_, err = fmt.Fprintf(p.stdout, "  %s\n\nThis is the new key. It is valid at once and is not shown again. %s\n", key, validity)
		return err
	})
}

func (c *keyRotateCommand) rotate(ctx context.Context, p *program, opened *store.Store, old string) (string, error) {
	if c.ID == 0 {
		return p.accounts(opened).RotateKey(ctx, old, c.Grace)
	}
	hash, side, err := opened.StoredKey(ctx, puntuale.KeyID(c.ID))
	if err != nil {
		return "", err
	}
	return p.accounts(opened).RotateStoredKey(ctx, hash, side, c.Grace)
}

// keyWebhookCommand replaces the secret of a webhook. Servers may run meanwhile.
type keyWebhookCommand struct {
	baseSettings `embed:""`
	keySettings  `embed:""`

	ID   int64 `local:"" name:"id" required:"" placeholder:"NUMBER" help:"The number of the webhook; the lists of webhooks in the API and in the dashboards have it."`
	JSON bool  `local:"" name:"json" help:"Print {\"secret\", \"old_valid_until\"}."`
}

func (c *keyWebhookCommand) Run(ctx context.Context, p *program) error {
	return p.withVault(ctx, &c.baseSettings, &c.keySettings, func(opened *store.Store, vault *auth.Vault) error {
		partner, client, err := opened.WebhookOwner(ctx, puntuale.WebhookID(c.ID))
		if err != nil {
			return fmt.Errorf("look for the webhook: %w", forPeople(err))
		}
		owner := webhook.New(webhook.Config{Tenants: opened, Vault: vault, Clock: p.clock}).OfOperator(partner, client)
		issued, until, err := owner.Rotate(ctx, strconv.FormatInt(c.ID, 10))
		if err != nil {
			return fmt.Errorf("replace the secret: %w", forPeople(err))
		}
		if c.JSON {
			return printJSON(p.stdout, map[string]any{"secret": issued.Secret, "old_valid_until": until.Format(time.RFC3339)})
		}
		_, err = fmt.Fprintf(p.stdout, "  %s\n\nThis is the new secret of webhook %d, to %s. It is not shown again. Until %s, events are signed with both secrets.\n",
			issued.Secret, c.ID, issued.URL, until.Format("2006-01-02 15:04 MST"))
		return err
	})
}

// withStore opens the store for one command of an operator. It does not join the fleet, so it works beside a running
// server.
func (p *program) withStore(ctx context.Context, s *baseSettings, verb func(*store.Store) error) error {
	s.Data = p.path(s.Data)
	logger := logging.New(p.stderr, p.logColor, s.LogLevel)
	opened, err := store.Open(ctx, storeConfig(s, p.clock, nil, logger, false))
	if err != nil {
		return opening(err, s)
	}
	err = verb(opened)
	return errors.Join(err, opened.Close())
}

// accounts returns the Accounts for commands of an operator.
func (p *program) accounts(s *store.Store) *account.Accounts {
	return account.New(account.Config{Tenants: s, Partners: s, Clock: p.clock})
}

// secret returns the given text. If the text is "-", it returns a line of standard input, and asks for it on a terminal.
func (p *program) secret(given, question string) (string, error) {
	if given != "-" {
		return given, nil
	}
	if atTerminal(p.stdin) {
		fmt.Fprint(p.stderr, question)
	}
	line, err := bufio.NewReader(p.stdin).ReadString('\n')
	if err != nil && (!errors.Is(err, io.EOF) || line == "") {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

func printJSON(w io.Writer, body any) error { return json.NewEncoder(w).Encode(body) }
