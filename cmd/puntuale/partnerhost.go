package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"puntuale"
	"puntuale/internal/control/account"
	"puntuale/internal/store"
)

// partnerHostCommand confirms a partner's host name, or ends the confirmation. Usually DNS proves a host name, and the
// command is not necessary. The command also works beside a running server.
type partnerHostCommand struct {
	baseSettings   `embed:""`
	publicSettings `embed:""`

	Partner  puntuale.PartnerID `local:"" placeholder:"NUMBER" help:"Whose host name it is. Without it all names that partners ask for are listed."`
	Confirm  string             `local:"" placeholder:"NAME" help:"Confirms this name, which the partner asks for: its pages are served there at once."`
	Withdraw bool               `local:"" help:"Ends the confirmation: the name is free for another partner."`
}

func (c *partnerHostCommand) check() []fault {
	faults := append(c.baseSettings.check(), c.publicSettings.check()...)
	switch {
	case c.Partner == 0 && (c.Confirm != "" || c.Withdraw):
		faults = append(faults, fault{"partner", "says whose host name it is, and is needed"})
	case c.Partner != 0 && (c.Confirm != "") == c.Withdraw:
		faults = append(faults, fault{"partner", "goes with either --confirm or --withdraw"})
	}
	return faults
}

func (c *partnerHostCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so no partner", fresh)
	}
	return p.withStore(ctx, &c.baseSettings, func(opened *store.Store) error {
		operator := account.New(account.Config{Tenants: opened, Partners: opened, Clock: p.clock, Public: c.PublicURL})
		switch {
		case c.Withdraw:
			if err := operator.WithdrawHost(ctx, c.Partner); err != nil {
				return fmt.Errorf("withdraw the host name: %w", forPeople(err))
			}
			fmt.Fprintf(p.stdout, "Partner %d has no confirmed host name any more.\n", c.Partner)
			return nil
		case c.Confirm != "":
			if err := operator.ConfirmHost(ctx, c.Partner, c.Confirm); err != nil {
				return fmt.Errorf("confirm the host name: %w", forPeople(err))
			}
			fmt.Fprintf(p.stdout, "%s is the host name of partner %d.\n", c.Confirm, c.Partner)
			return nil
		}
		hosts, err := opened.Hosts(ctx)
		if err != nil {
			return fmt.Errorf("list host names: %w", forPeople(err))
		}
		return listHosts(p.stdout, hosts)
	})
}

func listHosts(w io.Writer, hosts []puntuale.Host) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tPARTNER\t\tSTATE")
	for _, h := range hosts {
		state := "not confirmed"
		if h.Brand.Confirmed {
			state = "confirmed"
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", h.Brand.Host, h.Partner.ID, h.Partner.Name, state)
	}
	return table.Flush()
}
