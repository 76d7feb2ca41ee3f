package event

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// Limits of one transaction that numbers facts. On SQLite, all other tasks wait for this transaction. On PostgreSQL,
// only other numberers wait.
const (
	numberedFacts   = 1000 // how many facts one transaction numbers; the last row may contain a few more
	numberedClients = 50   // largest number of clients in one transaction
)

// WaitingClients finds the clients after $1 that have facts, sorted by id. It reads one row of each client.
const WaitingClients = `
with recursive waiting(id) as (
 select min(f.client_id) from outbox_fact f where f.client_id > $1
 union all select (select min(f.client_id) from outbox_fact f where f.client_id > waiting.id) from waiting where waiting.id is not null)
select id from waiting where id is not null limit $2`

// On SQLite only one transaction writes at a time, so there is only one numberer. It reads the facts of all clients in
// the order of the facts' ids. So the table of facts needs no index. The facts that one transaction reads are one range
// of ids.
const (
	FirstClients = `select distinct x.client_id from (select f.client_id, f.id from outbox_fact f where f.id > $1 order by f.id limit $2) x`
	FirstFacts   = `select f.client_id, f.id, f.type, f.subject, f.more, f.detail, f.at from outbox_fact f where f.id > $1 order by f.id limit $2`
)

// FactsOf reads the first facts of a client after the id $2.
const FactsOf = `select f.client_id, f.id, f.type, f.subject, f.more, f.detail, f.at from outbox_fact f
where f.client_id = $1 and f.id > $2 order by f.client_id, f.id limit $3`

// firstRows is how many rows of facts a transaction reads first. A row may contain several facts. So a transaction that
// still needs facts reads twice as many rows each time.
const firstRows = 16

// NumberEvents numbers waiting facts in one transaction. On PostgreSQL it goes from client to client, and begins after
// the client that was served last. So a client with many facts does not delay others.
func (s *Events) NumberEvents(ctx context.Context, now time.Time) (int, error) {
	clients, err := s.waiting(ctx)
	if err != nil || len(clients) == 0 {
		return 0, err
	}
	n := &numberTask{s: s, clients: clients, now: s.db.ClockAt(now)}
	if err := s.db.EventWriter.Do(ctx, engine.Single(s.number, n.run), false); err != nil {
		return 0, fmt.Errorf("number events: %w", err)
	}
	s.resumeAfter.Store(int64(n.last))
	return len(n.facts), nil
}

// waiting returns clients that have facts. On PostgreSQL it begins after the client that was served last. On SQLite it
// returns the clients of the oldest facts.
func (s *Events) waiting(ctx context.Context) ([]puntuale.ClientID, error) {
	if !s.db.Dialect.Postgres {
		all, err := engine.QueryAll(ctx, s.db.DispatchReads, FirstClients, []any{0, numberedFacts}, engine.ScanOne[puntuale.ClientID])
		if err != nil {
			return nil, engine.PublicError(fmt.Errorf("look for facts: %w", err))
		}
		return all, nil
	}
	read := func(after int64, limit int) ([]puntuale.ClientID, error) {
		all, err := engine.QueryAll(ctx, s.db.DispatchReads, WaitingClients, []any{after, limit}, engine.ScanOne[puntuale.ClientID])
		if err != nil {
			return nil, engine.PublicError(fmt.Errorf("look for facts: %w", err))
		}
		return all, nil
	}
	last := s.resumeAfter.Load()
	all, err := read(last, numberedClients)
	if err != nil || last == 0 || len(all) == numberedClients {
		return all, err
	}
	s.resumeAfter.Store(0)
	more, err := read(0, numberedClients-len(all))
	more = slices.DeleteFunc(more, func(c puntuale.ClientID) bool { return slices.Contains(all, c) })
	return append(all, more...), err
}

// numberTask is the work of one transaction that numbers facts.
type numberTask struct {
	s       *Events
	clients []puntuale.ClientID // the clients whose facts the task numbers; on PostgreSQL in this order
	now     func() time.Time

	a engine.Querier
	// Both maps contain a last number for each client. seqs grows with each numbered fact, and before does not change
	// after the lock.
	seqs, before map[puntuale.ClientID]int64
	facts        []fact
	rows         []factRow
	last         puntuale.ClientID // only on PostgreSQL: the last client whose facts were read
	taken        int64             // only on SQLite: id of the last fact that was read and may be deleted
}

// fact is a fact with the number that its event gets.
type fact struct {
	client      puntuale.ClientID
	id, seq     int64 // id is the id of the fact's row
	kind        puntuale.EventType
	subject, at int64
	detail      string
	session     puntuale.SessionID // set only if a webhook wants the events of one session
}

func (n *numberTask) run(ctx context.Context, a engine.Querier) error {
	n.a, n.facts, n.rows, n.last, n.taken = a, nil, nil, 0, 0
	if err := n.lock(ctx); err != nil {
		return err
	}
	if err := n.read(ctx); err != nil || len(n.facts) == 0 && n.taken == 0 {
		return err
	}
	if err := n.deleteFacts(ctx); err != nil || len(n.facts) == 0 {
		return err
	}
	if err := n.store(ctx); err != nil {
		return err
	}
	return n.fanOut(ctx)
}

// lock locks the clients' streams. It leaves out clients whose stream another numberer has locked.
func (n *numberTask) lock(ctx context.Context) error {
	n.seqs, n.before = map[puntuale.ClientID]int64{}, map[puntuale.ClientID]int64{}
	sorted := slices.Sorted(slices.Values(n.clients))
	err := n.a.Query(ctx, `select e.client_id, e.last_seq from $u(c bigint) join event_stream e on e.client_id = u.c order by e.client_id for update of e skip locked`,
		[]any{clientColumn(sorted)}, func(r engine.Row) error {
			var c puntuale.ClientID
			var last int64
			err := r.Scan(&c, &last)
			n.seqs[c], n.before[c] = last, last
			return err
		})
	if err != nil {
		return fmt.Errorf("lock streams of events: %w", err)
	}
	return nil
}

func clientColumn(clients []puntuale.ClientID) engine.Columns {
	return engine.Columns{engine.Column(clients, func(c *puntuale.ClientID) int64 { return int64(*c) })}
}

// read reads and numbers facts until the transaction has about numberedFacts of them.
func (n *numberTask) read(ctx context.Context) error {
	if !n.s.db.Dialect.Postgres {
		return n.readFirst(ctx)
	}
	for _, c := range n.clients {
		if len(n.facts) >= numberedFacts {
			return nil
		}
		n.last = c
		if _, locked := n.seqs[c]; !locked {
			continue
		}
		if err := n.readRows(ctx, FactsOf, []any{c}, n.number); err != nil {
			return err
		}
	}
	return nil
}

// readFirst reads and numbers the facts with the smallest ids. It stops at the first fact whose client does not
// belong to the task.
func (n *numberTask) readFirst(ctx context.Context) error {
	known := true
	return n.readRows(ctx, FirstFacts, nil, func(f fact, more string) error {
		if known = known && slices.Contains(n.clients, f.client); !known {
			return nil
		}
		n.taken = f.id
		if _, found := n.seqs[f.client]; !found { // the client was deleted and has no stream any more, so its facts get no numbers
			return nil
		}
		return n.number(f, more)
	})
}

// readRows reads rows in the order of their ids until the transaction has enough facts. The parameters of the statement
// are args, then the last id that was read and a limit.
func (n *numberTask) readRows(ctx context.Context, text string, args []any, take func(f fact, more string) error) error {
	after := int64(0)
	for limit := firstRows; ; limit *= 2 {
		read := 0
		if err := n.a.Query(ctx, text, slices.Concat(args, []any{after, limit}), func(r engine.Row) error {
			var f fact
			var more string
			if err := r.Scan(&f.client, &f.id, &f.kind, &f.subject, &more, &f.detail, &f.at); err != nil {
				return err
			}
			read++
			after = f.id
			if len(n.facts) >= numberedFacts {
				return nil
			}
			return take(f, more)
		}); err != nil {
			return fmt.Errorf("read facts: %w", err)
		}
		if read < limit || len(n.facts) >= numberedFacts {
			return nil
		}
	}
}

// number numbers the facts of one row.
func (n *numberTask) number(f fact, more string) error {
	subjects, err := outbox.MoreSubjects(more)
	if err != nil {
		return err
	}
	n.rows = append(n.rows, factRow{f.client, f.id})
	last := n.seqs[f.client] + 1
	f.seq = last
	n.facts = append(n.facts, f)
	for _, id := range subjects {
		last++
		f.subject, f.seq = id, last
		n.facts = append(n.facts, f)
	}
	n.seqs[f.client] = last
	return nil
}

// factRow is the primary key of a row of facts.
type factRow struct {
	client puntuale.ClientID
	id     int64
}

// deleteFacts deletes the rows that were read.
func (n *numberTask) deleteFacts(ctx context.Context) error {
	text, args := `delete from outbox_fact where (client_id, id) in (select u.c, u.i from $u(c bigint, i bigint))`,
		[]any{engine.Columns{engine.Column(n.rows, func(r *factRow) int64 { return int64(r.client) }), engine.Column(n.rows, func(r *factRow) int64 { return r.id })}}
	if !n.s.db.Dialect.Postgres {
		text, args = `delete from outbox_fact where id <= $1`, []any{n.taken}
	}
	if err := n.a.Queue(ctx, text, args, nil); err != nil {
		return fmt.Errorf("delete facts: %w", err)
	}
	return nil
}

// store writes the events for the numbered facts.
func (n *numberTask) store(ctx context.Context) error {
	type F = *fact
	clients := engine.Column(n.facts, func(f F) int64 { return int64(f.client) })
	if err := n.a.Queue(ctx, `insert into outbox_event (client_id, seq, type, subject, detail, at)
 select u.c, u.n, u.t, u.s, u.d, u.a from $u(c bigint, n bigint, t smallint, s bigint, d text, a bigint)`, []any{engine.Columns{
		clients, engine.Column(n.facts, func(f F) int64 { return f.seq }), engine.Column(n.facts, func(f F) int64 { return int64(f.kind) }),
		engine.Column(n.facts, func(f F) int64 { return f.subject }), engine.Column(n.facts, func(f F) string { return f.detail }),
		engine.Column(n.facts, func(f F) int64 { return f.at }),
	}}, nil); err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	served := n.served()
	if err := n.a.Queue(ctx, `update event_stream set last_seq = u.n from $u(c bigint, n bigint) where event_stream.client_id = u.c`,
		[]any{append(clientColumn(served), engine.Column(served, func(c *puntuale.ClientID) int64 { return n.seqs[*c] }))}, nil); err != nil {
		return fmt.Errorf("store the last numbers: %w", err)
	}
	return nil
}

// served returns the clients of the numbered facts, sorted.
func (n *numberTask) served() []puntuale.ClientID {
	all := engine.Column(n.facts, func(f *fact) puntuale.ClientID { return f.client })
	slices.Sort(all)
	return slices.Compact(all)
}
