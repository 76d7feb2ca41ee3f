package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/auth"
)

// memoryStore implements [puntuale.Operator]. Its tenants read from memory. A call costs as much as with a database,
// but without the cost of the store.
type memoryStore struct {
	puntuale.Operator // implements the methods that a start does not call
	keys              map[puntuale.KeyHash]puntuale.Principal
	tenants           map[puntuale.ClientID]puntuale.Tenant
}

// inMemory copies the data that start calls read.
func inMemory(ctx context.Context, f *fixture) (puntuale.Operator, func(), error) {
	m := memoryStore{keys: map[puntuale.KeyHash]puntuale.Principal{}, tenants: map[puntuale.ClientID]puntuale.Tenant{}}
	ids := &atomic.Int64{}
	for _, c := range f.clients {
		hash, _, _ := auth.ParseKey(c.key)
		principal, err := f.store.Principal(ctx, hash, time.Now())
		if err != nil {
			return nil, nil, err
		}
		t := memoryTenant{ids: ids}
		if t.sequence, t.session, err = f.store.Tenant(c.id).StartInfo(ctx, c.sequence); err != nil {
			return nil, nil, err
		}
		m.keys[hash], m.tenants[c.id] = principal, t
	}
	return m, func() {}, nil
}

func (m memoryStore) Principal(_ context.Context, hash puntuale.KeyHash, _ time.Time) (puntuale.Principal, error) {
	p, ok := m.keys[hash]
	if !ok {
		return p, &puntuale.Error{Code: puntuale.CodeUnauthorized, Reason: puntuale.Quoted("unknown")}
	}
	return p, nil
}

func (memoryStore) UseKey(context.Context, puntuale.KeyID, time.Time) error { return nil }

func (m memoryStore) Tenant(id puntuale.ClientID) puntuale.Tenant { return m.tenants[id] }

type memoryTenant struct {
	puntuale.Tenant
	sequence puntuale.Sequence
	session  puntuale.Session
	ids      *atomic.Int64
}

func (t memoryTenant) StartInfo(context.Context, puntuale.SequenceID) (puntuale.Sequence, puntuale.Session, error) {
	return t.sequence, t.session, nil
}

func (t memoryTenant) Start(_ context.Context, s puntuale.StartRun) (puntuale.StartedRun, error) {
	n := int64(len(s.Messages))
	last := t.ids.Add(n)
	started := puntuale.StartedRun{IDs: make([]puntuale.MessageID, n), Usage: puntuale.Usage{Cap: puntuale.UncountedCap, Used: last}}
	for i := range started.IDs {
		started.IDs[i] = puntuale.MessageID(last - n + int64(i) + 1)
	}
	return started, nil
}

// single is the store without group commit: each start has its own transaction.
type single struct {
	puntuale.Operator
	db  *sql.DB
	f   *fixture
	ids *atomic.Int64
}

func oneByOne(_ context.Context, f *fixture) (puntuale.Operator, func(), error) {
	db, err := plain(f.engine, f.address)
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(64)
	db.SetMaxIdleConns(64)
	if f.engine == sqlite {
		db.SetMaxOpenConns(1) // there is one writer
	}
	return single{Operator: f.store, db: db, f: f, ids: &atomic.Int64{}}, func() { db.Close() }, nil
}

func (s single) Tenant(id puntuale.ClientID) puntuale.Tenant {
	return singleTenant{s.Operator.Tenant(id), s, id}
}

type singleTenant struct {
	puntuale.Tenant
	s  single
	id puntuale.ClientID
}

func (t singleTenant) Start(ctx context.Context, r puntuale.StartRun) (started puntuale.StartedRun, err error) {
	tx, err := t.s.db.BeginTx(ctx, nil)
	if err != nil {
		return started, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	started.Usage.Cap = puntuale.UncountedCap
	if err = tx.QueryRowContext(ctx, `insert into api_usage as g (client_id, day, asked, prev, used) values ($1, $2, 1, 0, 1)
 on conflict (client_id, day) do update set prev = g.used, used = g.used + 1 returning used`, t.id, r.Day.Int()).Scan(&started.Usage.Used); err != nil {
		return started, fmt.Errorf("count: %w", err)
	}
	first := t.s.ids.Add(int64(len(r.Messages))) + 1
	if _, err = tx.ExecContext(ctx, `insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request, client_name, sequence_name, content)
 values ($1, $2, $3, $4, $5, 2, $6, '', $7, $8, $9, $10, $11, $12)`, t.id, first, r.Run.Sequence, r.Run.Session, r.Run.Phone, len(r.Messages),
		r.Run.Zone, r.Now.UnixMicro(), r.Run.Request, r.Run.ClientName, r.Run.SequenceName, "[]"); err != nil {
		return started, fmt.Errorf("insert a run: %w", err)
	}
	for i, m := range r.Messages {
		id := first + int64(i)
		if _, err = tx.ExecContext(ctx, `insert into message (`+columns+`) values ($1, $2, $3, $4, 0, $5, $5, $6, $7, 2, $8)`,
			t.id, id, r.Run.Session, first, m.Due.UnixMicro(), m.ValidUntil.UnixMicro(), i, r.Run.Phone); err != nil {
			return started, fmt.Errorf("insert a message: %w", err)
		}
		started.IDs = append(started.IDs, puntuale.MessageID(id))
	}
	return started, tx.Commit()
}
