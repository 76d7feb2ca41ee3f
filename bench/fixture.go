package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/store"
	"puntuale/internal/store/engine"
)

// customers is how many clients each fixture has.
const customers = 200

// fixture is a database of the product with clients and an open store.
type fixture struct {
	benchDatabase
	store   *store.Store
	clients []client
	today   puntuale.Date

	node         puntuale.NodeID // the node that claims; 0: none
	firstPending int             // id of the first message that waits for a later day
}

// benchDatabase says where a database is.
type benchDatabase struct {
	engine  string
	address string // the address of PostgreSQL, or the name of the SQLite file
	name    string // the name of PostgreSQL's database
	folder  string // folder for the data outside the database
	drop    func()
}

// client is one customer, with a default session, a sequence of three steps and a key.
type client struct {
	id       puntuale.ClientID
	session  puntuale.SessionID
	sequence puntuale.SequenceID
	key      string
}

// newDatabase makes a copy of the database in the argument from. If from is nil, the new database is empty.
func (b *bench) newDatabase(ctx context.Context, engine string, from *benchDatabase) (benchDatabase, error) {
	folder, err := os.MkdirTemp(b.folder, "data-")
	if err != nil {
		return benchDatabase{}, err
	}
	p := benchDatabase{engine: engine, folder: folder, address: filepath.Join(folder, "puntuale.db"), drop: func() { os.RemoveAll(folder) }}
	if engine == sqlite {
		if from != nil {
			err = copyFile(p.address, from.address)
		}
		return p, err
	}
	template := ""
	if from != nil {
		template = from.name
	}
	name, address, drop, err := b.freshPostgres(ctx, template)
	if err != nil {
		p.drop()
		return benchDatabase{}, err
	}
	p.name, p.address = name, address
	p.drop = func() { drop(); os.RemoveAll(folder) }
	return p, nil
}

// fixture makes a new database and opens a store on it. The database has pending messages for later days, and a quarter
// as many messages that were sent long ago. The caller closes the fixture.
func (b *bench) fixture(ctx context.Context, engine string, pending int) (*fixture, error) {
	s, err := b.stocked(ctx, engine, pending)
	if err != nil {
		return nil, err
	}
	p, err := b.newDatabase(ctx, engine, &s.benchDatabase)
	if err != nil {
		return nil, err
	}
	f := &fixture{benchDatabase: p, clients: s.clients, today: puntuale.DateOf(time.Now()), firstPending: firstPending(pending)}
	if f.store, err = f.open(ctx); err != nil {
		p.drop()
		return nil, err
	}
	b.calm(engine)
	return f, nil
}

// open opens one more store on the fixture's database.
func (p *benchDatabase) open(ctx context.Context) (*store.Store, error) {
	database := p.address
	if p.engine == sqlite {
		database = "sqlite:" + p.address
	}
	return store.Open(ctx, engine.Config{Database: database, Clock: clock.System(), Meter: puntuale.NoMeter{}, Logger: quiet()})
}

func (f *fixture) close() {
	if f.store != nil {
		_ = f.store.Close() // an error does not matter, because the database is dropped
	}
	f.drop()
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// populate makes the clients.
func populate(ctx context.Context, s *store.Store) (clients []client, err error) {
	now := time.Now()
	_, partnerKey, err := auth.NewKey(puntuale.PartnerSide, "bench", now)
	if err != nil {
		return nil, err
	}
	partner, err := s.CreatePartner(ctx, puntuale.Partner{Name: "Bench", Slug: "bench", Created: now}, puntuale.Login{Email: "b@example.com"}, partnerKey)
	if err != nil {
		return nil, err
	}
	for i := range customers {
		plain, key, err := auth.NewKey(puntuale.ClientSide, "bench", now)
		if err != nil {
			return nil, err
		}
		created, err := s.Partner(partner).CreateClient(ctx, puntuale.NewClient{
			Client: account(i, now), Login: puntuale.Login{Email: fmt.Sprintf("c%d@example.com", i)}, Key: key,
			Session: puntuale.Session{Name: "Principale", Type: puntuale.Socket, Sandbox: true, Default: true, Created: now},
		}, nil)
		if err != nil {
			return nil, err
		}
		sequence, err := s.Tenant(created.Client).CreateSequence(ctx, sequenceOf3(now), nil)
		if err != nil {
			return nil, err
		}
		clients = append(clients, client{created.Client, created.Session, sequence, plain})
	}
	return clients, nil
}

func account(i int, now time.Time) puntuale.Client {
	c := puntuale.NewAccount(puntuale.AccountFull, puntuale.DateOf(now))
	c.Name, c.Email, c.Phone, c.Created = "Bench", fmt.Sprintf("c%d@example.com", i), "+390212345678", now
	return c
}

// sequenceOf3 returns the sequence that every start of the bench uses.
func sequenceOf3(now time.Time) puntuale.Sequence {
	day := puntuale.Offset{Amount: 1, Unit: puntuale.Days, Direction: puntuale.After}
	week := puntuale.Offset{Amount: 1, Unit: puntuale.Weeks, Direction: puntuale.After}
	return puntuale.Sequence{Name: "Promemoria", Created: now, Updated: now, Steps: []puntuale.Step{
		{Text: "Gentile {{nome}}, la sua richiesta è stata ricevuta.", Timing: puntuale.Timing{Offset: day}},
		{Text: "Gentile {{nome}}, le ricordiamo l'appuntamento di domani.", Timing: puntuale.Timing{Offset: week}},
		{Text: "Gentile {{nome}}, grazie della visita.", Timing: puntuale.Timing{Offset: week}},
	}}
}

// startRun returns a start of n messages that are all due at the time due. No other start has the same recipient. The
// start has the form in which control passes it to a store.
func (f *fixture) startRun(i, n int, due, now time.Time) (puntuale.ClientID, puntuale.StartRun) {
	c := f.clients[i%len(f.clients)]
	run := puntuale.StartRun{Day: f.today, Now: now, Run: puntuale.Run{
		Client: c.id, Sequence: c.sequence, Session: c.session,
		Phone: fmt.Sprintf("+39348%07d", i), Origin: puntuale.OriginSequence, Zone: "Europe/Rome", Received: now,
		Request: []byte(sampleRequest), ClientName: "Bench", SequenceName: "Promemoria",
	}}
	for step := range n {
		run.Messages = append(run.Messages, puntuale.PlannedMessage{
			Step: step, Content: puntuale.Content{Text: sampleText}, Due: due, DueMax: due, ValidUntil: due.Add(24 * time.Hour),
		})
	}
	return c.id, run
}

// Every call has this body, and every message has this text.
const (
	sampleRequest = `{"phone":"+393471234567","nome":"Maria"}`
	sampleText    = "Gentile Maria, le ricordiamo l'appuntamento di domani alle 15:30."
)

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
