package main

import (
	"context"
	"errors"
	"fmt"

	"puntuale"
	"puntuale/internal/store"
)

// partnerPasswordCommand sets a new password for a partner's user who is locked out. It also works beside a running
// server. Users of clients get a new password in their partner's dashboard.
type partnerPasswordCommand struct {
	baseSettings `embed:""`

	Email    string             `local:"" required:"" placeholder:"EMAIL" help:"The user's login."`
	Password string             `local:"" default:"-" placeholder:"PASSWORD" help:"The new password; - reads a line of standard input, which keeps it out of the list of processes."`
	Partner  puntuale.PartnerID `local:"" placeholder:"NUMBER" help:"Whose user it is, where several partners have one with this e-mail."`
	NoSecond bool               `local:"" help:"Asks for no second factor any more: they lost their phone and the recovery codes."`
}

func (c *partnerPasswordCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so no user", fresh)
	}
	password, err := p.secret(c.Password, "The new password: ")
	if err != nil {
		return fmt.Errorf("read the password: %w", err)
	}
	return p.withStore(ctx, &c.baseSettings, func(opened *store.Store) error {
		users, err := opened.UsersByEmail(ctx, c.Email, c.Partner, 100)
		if err != nil {
			return fmt.Errorf("look for the user: %w", forPeople(err))
		}
		var found []puntuale.User
		for _, u := range users {
			if u.Client == 0 {
				found = append(found, u)
			}
		}
		switch {
		case len(found) == 0:
			return fmt.Errorf("no partner has a user %s", c.Email)
		case len(found) > 1:
			return errors.New("several partners have a user with this e-mail; --partner says which")
		}
		if err := p.accounts(opened).ResetUser(ctx, found[0], password, c.NoSecond); err != nil {
			return fmt.Errorf("set the password: %w", forPeople(err))
		}
		_, err = fmt.Fprintf(p.stdout, "%s has the new password. Everything that they had open has ended.\n", found[0].Email)
		return err
	})
}
