package store

import (
	"context"
	"errors"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

// tenant is a client's handle: every statement of its methods carries the client's id.
type tenant struct {
	s    *Store
	id   puntuale.ClientID
	free bool // its calls are not counted
}

// partnerTenant is a partner's handle.
type partnerTenant struct {
	s  *Store
	id puntuale.PartnerID
}

// Tenant returns the handle that reaches what belongs to the client, and nothing else. It asks nothing of the database.
func (s *Store) Tenant(id puntuale.ClientID) puntuale.Tenant { return tenant{s: s, id: id} }

// Uncounted is Tenant without counting calls.
func (s *Store) Uncounted(id puntuale.ClientID) puntuale.Tenant {
	return tenant{s: s, id: id, free: true}
}

// calls is what one call counts as.
func (t tenant) calls() int64 {
	if t.free {
		return 0
	}
	return 1
}

// Partner returns the handle that reaches the partner's clients, and nothing else.
func (s *Store) Partner(id puntuale.PartnerID) puntuale.PartnerTenant { return partnerTenant{s, id} }

// write runs a transaction for the client.
func (t tenant) write(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	return t.s.Write(ctx, int64(t.id), do)
}

// writeDated is write for what closes messages.
func (t tenant) writeDated(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	return t.s.WriteDated(ctx, int64(t.id), do)
}

// once runs a transaction for the client, under a key of the caller if o is not nil.
func (t tenant) once(ctx context.Context, o *puntuale.Idempotency, do func(ctx context.Context, a engine.Querier) (any, error)) error {
	return t.s.Once(ctx, int64(t.id), o, do)
}

// write runs a transaction for the partner.
func (p partnerTenant) write(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	return p.s.Write(ctx, p.owner(), do)
}

// once runs a transaction for the partner, under a key of the caller if o is not nil.
func (p partnerTenant) once(ctx context.Context, o *puntuale.Idempotency, do func(ctx context.Context, a engine.Querier) (any, error)) error {
	return p.s.Once(ctx, p.owner(), o, do)
}

// changed notes that what a start of the client's is planned from is another one now. It comes last in a transaction:
// the lock of the client's row is the last one that any takes.
func changed(ctx context.Context, a engine.Querier, client puntuale.ClientID) error {
	if _, err := a.Exec(ctx, `update client set revision = revision + 1 where id = $1`, client); err != nil {
		return fmt.Errorf("raise a client's revision: %w", err)
	}
	return nil
}

// clientLists is the pool for lists, as one client may use it.
type clientLists struct{ tenant }

func (t tenant) lists() clientLists { return clientLists{t} }

func (l clientLists) Query(ctx context.Context, text string, args []any, scan func(rows engine.Row) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.s.ListReads.Within)
	defer cancel()
	done, err := l.s.ListSlots.Take(ctx, int64(l.id))
	if err != nil {
		return err
	}
	defer done()
	return l.s.ListReads.Query(ctx, text, args, scan)
}

func (l clientLists) Queue(ctx context.Context, text string, args []any, scan func(r engine.Row) error) error {
	return l.Query(ctx, text, args, scan)
}

func (clientLists) Exec(context.Context, string, ...any) (int64, error) {
	return 0, errors.New("lists do not write")
}

func (t tenant) Kept(ctx context.Context, o puntuale.Idempotency) ([]byte, error) {
	answer, err := engine.FindAnswer(ctx, t.s.CallReads, int64(t.id), &o)
	return answer, engine.PublicError(err)
}

func (p partnerTenant) Kept(ctx context.Context, o puntuale.Idempotency) ([]byte, error) {
	answer, err := engine.FindAnswer(ctx, p.s.CallReads, p.owner(), &o)
	return answer, engine.PublicError(err)
}

// owner keeps a partner's idempotency keys apart from those of clients.
func (p partnerTenant) owner() int64 { return -int64(p.id) }

func (t tenant) Erase(ctx context.Context, e puntuale.Erasure) (puntuale.Erased, error) {
	return t.s.Retention.Erase(ctx, t.id, t.calls(), e)
}
