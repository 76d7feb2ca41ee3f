package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/store"
)

// fixture is a fresh store with clients, each with its default session, a key and a sequence of three steps.
type fixture struct {
	store   *store.Store
	clients []client
	today   puntuale.Date
	address string // of PostgreSQL; "": SQLite
	file    string // of SQLite
}

type client struct {
	id       puntuale.ClientID
	session  puntuale.SessionID
	sequence puntuale.SequenceID
	tenant   puntuale.Tenant
	key      string
}

// open creates the store on a database ("": SQLite in the folder) and n clients in it.
func open(ctx context.Context, database, folder string, n int) (*fixture, error) {
	s, err := store.Open(ctx, store.Config{Database: database, Data: folder, Clock: clock.System(), Meter: puntuale.NoMeter{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	now := clock.System().Now()
	f := &fixture{store: s, today: puntuale.DateOf(now)}
	_, partnerKey, err := auth.NewKey(puntuale.PartnerSide, "bench", now)
	if err != nil {
		return nil, err
	}
	partner, err := s.CreatePartner(ctx, puntuale.Partner{Name: "Bench", Slug: "bench", Created: now}, puntuale.Login{Email: "b@example.com"}, partnerKey)
	if err != nil {
		return nil, err
	}
	for i := range n {
		c := puntuale.NewAccount(puntuale.AccountFull, f.today)
		c.Name, c.Email, c.Phone, c.Created = "Bench", fmt.Sprintf("c%d@example.com", i), "+390212345678", now
		plain, key, err := auth.NewKey(puntuale.ClientSide, "bench", now)
		if err != nil {
			return nil, err
		}
		created, err := s.Partner(partner).CreateClient(ctx, puntuale.NewClient{Client: c, Login: puntuale.Login{Email: c.Email}, Key: key,
			Session: puntuale.Session{Name: "Principale", Type: puntuale.Socket, Sandbox: true, Default: true, Created: now}}, nil)
		if err != nil {
			return nil, err
		}
		tenant := s.Tenant(created.Client)
		day := puntuale.Offset{Amount: 1, Unit: puntuale.Days, Direction: puntuale.After}
		week := puntuale.Offset{Amount: 1, Unit: puntuale.Weeks, Direction: puntuale.After}
		sequence, err := tenant.CreateSequence(ctx, puntuale.Sequence{Name: "Promemoria", Created: now, Updated: now, Steps: []puntuale.Step{
			{Text: "Gentile {{nome}}, la sua richiesta è stata ricevuta.", Timing: puntuale.Timing{Offset: day}},
			{Text: "Gentile {{nome}}, le ricordiamo l'appuntamento di domani.", Timing: puntuale.Timing{Offset: week}},
			{Text: "Gentile {{nome}}, grazie della visita.", Timing: puntuale.Timing{Offset: week}},
		}}, nil)
		if err != nil {
			return nil, err
		}
		f.clients = append(f.clients, client{created.Client, created.Session, sequence, tenant, plain})
	}
	return f, nil
}

// request is a start of n messages, all due at the moment, for a recipient of its own.
func (f *fixture) request(i, n int, due, now time.Time) (puntuale.Tenant, puntuale.StartRun) {
	c := f.clients[i%len(f.clients)]
	run := puntuale.StartRun{Day: f.today, Now: now, Run: puntuale.Run{Client: c.id, Sequence: c.sequence, Session: c.session,
		Phone: fmt.Sprintf("+39347%07d", i), Origin: puntuale.OriginSequence, Zone: "Europe/Rome", Received: now,
		Request: []byte(`{"phone":"+393471234567","nome":"Maria"}`), ClientName: "Bench", SequenceName: "Promemoria"}}
	for step := range n {
		content := puntuale.Content{Text: "Gentile Maria, le ricordiamo l'appuntamento di domani alle 15:30."}
		run.Messages = append(run.Messages, puntuale.PlannedMessage{Step: step, Content: content, Due: due, DueMax: due, ValidUntil: due.Add(24 * time.Hour)})
	}
	return c.tenant, run
}
