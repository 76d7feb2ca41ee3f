package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/store"
)

// unknownGroup contains the commands that decide about unknown messages, which may have left before a restore. Clients
// can also decide about their own messages.
type unknownGroup struct {
	List    unknownListCommand    `cmd:"" help:"List the clients with messages that may have left before a restore; with --client these messages."`
	Resend  unknownResendCommand  `cmd:"" help:"Send them again, now. They may arrive twice."`
	Close   unknownCloseCommand   `cmd:"" help:"Close them without sending them: they are FAILED with an uncertain outcome."`
	Release unknownReleaseCommand `cmd:"" help:"After a restore with --hold: let messages leave again."`
}

// unknownListCommand lists clients, or one client's messages.
type unknownListCommand struct {
	baseSettings `embed:""`

	Client puntuale.ClientID `local:"" placeholder:"ID" help:"List this client's messages."`
}

func (c *unknownListCommand) Run(ctx context.Context, p *program) error {
	return p.withClients(ctx, &c.baseSettings, func(opened *store.Store, _ *control.Control, all []puntuale.RestoredClient) error {
		w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		if c.Client != 0 {
			fmt.Fprintln(w, "MESSAGE\tTO\tDUE\tSTATE\tSESSION")
			if err := eachUnknown(ctx, opened.Tenant(c.Client), func(m *puntuale.MessageDetail) {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\n", m.ID, m.Phone, m.Due.UTC().Format(time.RFC3339), m.State, m.Session)
			}); err != nil {
				return err
			}
			return w.Flush()
		}
		fmt.Fprintln(w, "CLIENT\tNAME\tUNKNOWN\tCOPY OF\tRESTORED\tHELD")
		for _, k := range all {
			held := "no"
			if !k.Held.IsZero() {
				held = "yes"
			}
			fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\t%s\n", k.Client, k.Name, k.Unknown, momentText(k.Since), momentText(k.At), held)
		}
		return w.Flush()
	})
}

func momentText(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}

// eachUnknown reads the list of a client's unknown messages page by page.
func eachUnknown(ctx context.Context, tenant puntuale.Tenant, report func(*puntuale.MessageDetail)) error {
	page := puntuale.Page{Limit: puntuale.MaxRequestIDs}
	for {
		found, next, err := tenant.UnknownMessages(ctx, page)
		if err != nil {
			return forPeople(err)
		}
		for i := range found {
			report(&found[i])
		}
		if next == "" {
			return nil
		}
		page.Cursor = next
	}
}

// someClients are the clients for which an operator decides.
type someClients struct {
	baseSettings `embed:""`

	Client puntuale.ClientID `local:"" placeholder:"ID" help:"Only this client's."`
	All    bool              `local:"" help:"Those of every client."`
}

func (c *someClients) check() []fault {
	faults := c.baseSettings.check()
	if (c.Client == 0) != c.All {
		faults = append(faults, fault{"", "say whose: --client or --all"})
	}
	return faults
}

// each calls the function do for each client that must decide about messages after a restore.
func (c *someClients) each(ctx context.Context, p *program, do func(client *control.Client, k *puntuale.RestoredClient) error) error {
	return p.withClients(ctx, &c.baseSettings, func(_ *store.Store, operator *control.Control, all []puntuale.RestoredClient) error {
		n := 0
		for i := range all {
			k := &all[i]
			if !c.All && k.Client != c.Client {
				continue
			}
			n++
			client, err := operator.ClientOf(ctx, k)
			if err == nil {
				err = do(client, k)
			}
			if err != nil {
				return fmt.Errorf("client %d: %w", k.Client, forPeople(err))
			}
		}
		if n == 0 {
			return errors.New("a restore left nothing to decide there")
		}
		return nil
	})
}

type unknownResendCommand struct {
	someClients `embed:""`
}

func (c *unknownResendCommand) Run(ctx context.Context, p *program) error {
	return c.each(ctx, p, func(client *control.Client, k *puntuale.RestoredClient) error {
		ids, err := client.ResendUnknown(ctx, control.UnknownCall{All: true})
		fmt.Fprintf(p.stdout, "Client %d, %s: %d messages are sent again.\n", k.Client, k.Name, len(ids))
		return err
	})
}

type unknownCloseCommand struct {
	someClients `embed:""`
}

func (c *unknownCloseCommand) Run(ctx context.Context, p *program) error {
	return c.each(ctx, p, func(client *control.Client, k *puntuale.RestoredClient) error {
		n, err := client.CloseUnknown(ctx, control.UnknownCall{All: true})
		fmt.Fprintf(p.stdout, "Client %d, %s: %d messages are closed.\n", k.Client, k.Name, n)
		return err
	})
}

type unknownReleaseCommand struct {
	someClients `embed:""`
}

func (c *unknownReleaseCommand) Run(ctx context.Context, p *program) error {
	return c.each(ctx, p, func(client *control.Client, k *puntuale.RestoredClient) error {
		if k.Held.IsZero() {
			return nil
		}
		fmt.Fprintf(p.stdout, "Client %d, %s: its messages leave again.\n", k.Client, k.Name)
		return client.ReleaseHeld(ctx)
	})
}

// withClients opens the store for a command. Then it calls the function verb with the clients that must decide about
// messages after a restore.
func (p *program) withClients(ctx context.Context, s *baseSettings, verb func(*store.Store, *control.Control, []puntuale.RestoredClient) error) error {
	if fresh := newFile(s, p.path(s.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s", fresh)
	}
	return p.withStore(ctx, s, func(opened *store.Store) error {
		all, err := opened.RestoredClients(ctx)
		if err != nil {
			return forPeople(err)
		}
		return verb(opened, control.New(control.Config{Tenants: opened, Devices: opened, Maintenance: opened, Clock: p.clock}), all)
	})
}
