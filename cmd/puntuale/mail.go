package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"puntuale/internal/mail"
	"puntuale/internal/metrics"
)

// mailSettings say how the server sends e-mails.
type mailSettings struct {
	SMTP     string `name:"smtp" placeholder:"ADDRESS" secret:"" help:"The mail server for e-mails to people, such as smtps://user:password@mail.example.com:465. With smtp:// the server demands STARTTLS, except from a mail server on this machine. Needs mail-from and public-url. Without it the server sends no e-mail, and people cannot reset a password by themselves. Use PUNTUALE_SMTP: every user of the machine can read a command line."`
	MailFrom string `placeholder:"E-MAIL" help:"The sender of e-mails, such as no-reply@example.com. The name beside it is the partner's."`

	MailOperator string `placeholder:"E-MAIL" help:"Who is told once a day, in English, while the last good backup or its trial is older than 26 hours. Needs smtp and backup-to."`
}

// check returns the faults of the settings. The argument public is the service's public address.
func (s *mailSettings) check(public string) (faults []fault) {
	if s.SMTP == "" {
		if s.MailFrom != "" {
			faults = append(faults, fault{"mail-from", "needs smtp"})
		}
		if s.MailOperator != "" {
			faults = append(faults, fault{"mail-operator", "needs smtp"})
		}
		return faults
	}
	if _, err := mail.ParseServer(s.SMTP); err != nil {
		faults = append(faults, fault{"smtp", err.Error()})
	}
	if public == "" { // links in e-mails need the public address, because a request could name any host
		faults = append(faults, fault{"smtp", "needs public-url, to which the links in e-mails lead"})
	}
	if f := mail.CheckAddress(s.MailFrom); f != "" {
		faults = append(faults, fault{"mail-from", f})
	}
	if s.MailOperator != "" {
		if f := mail.CheckAddress(s.MailOperator); f != "" {
			faults = append(faults, fault{"mail-operator", f})
		}
	}
	return faults
}

// tellOperator sends the operator an e-mail about backups.
func (s *server) tellOperator(ctx context.Context, cfg *serverConfig, text string) error {
	name := cmp.Or(strings.TrimPrefix(cfg.PublicURL, "https://"), databaseName(&cfg.baseSettings))
	return s.mailer.Tell(ctx, cfg.MailOperator, "Puntuale: backups of "+name+" are too old", text+`

Installation: `+name+`
Backups go to: `+cfg.BackupTo+`

"puntuale doctor" and the log of the servers with the role dispatch say more.
This e-mail comes once a day until a backup is made and restored on trial.
`)
}

// sendMails returns a task that queues e-mails about new notices, sends all e-mails that are due, and measures how long
// the others have waited.
func (s *server) sendMails(m *metrics.Meter) func(context.Context) error {
	return func(ctx context.Context) error {
		sent := errors.Join(s.accounts.QueueNotices(ctx), s.mailer.Round(ctx))
		queued, err := s.store.OldestMail(ctx)
		switch {
		case err != nil:
		case queued.IsZero():
			m.MailWaits(0)
		default:
			m.MailWaits(s.clock.Now().Sub(queued))
		}
		return errors.Join(sent, err)
	}
}

// openMailer makes the sender of e-mails. It makes none if the settings name no mail server.
func (s *server) openMailer(cfg *serverConfig, m *metrics.Meter) error {
	if cfg.SMTP == "" {
		return nil
	}
	out, err := mail.ParseServer(cfg.SMTP)
	if err != nil {
		return fmt.Errorf("smtp %w", err)
	}
	s.mailer, err = mail.New(mail.Config{
		Store: s.store, Letter: s.accounts.Letter, Server: out, From: cfg.MailFrom, Memory: s.payer(), Observe: m.Mailed, Clock: cfg.Clock, Logger: cfg.Logger,
	})
	return err
}
