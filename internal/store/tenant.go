package store

import (
	"context"
	"errors"

	"puntuale"
	"puntuale/internal/store/account"
	"puntuale/internal/store/engine"
)

// tenant is a client's handle: every statement of its methods carries the client's id.
type tenant struct {
	s    *Store
	id   puntuale.ClientID
	free bool // its calls are not counted
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

// partnerTenant is a partner's handle. Deleting a client reaches messages and sessions, so it stays here.
type partnerTenant struct {
	account.Partner
	s  *Store
	id puntuale.PartnerID
}

// Partner returns the handle that reaches the partner's clients, and nothing else.
func (s *Store) Partner(id puntuale.PartnerID) puntuale.PartnerTenant {
	return partnerTenant{s.Accounts.Partner(id), s, id}
}

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

func (t tenant) Erase(ctx context.Context, e puntuale.Erasure) (puntuale.ErasureResult, error) {
	return t.s.Retention.Erase(ctx, t.id, t.calls(), e)
}

// roomFor locks the client's row, the last one that a transaction locks, and asks for room.
func (t tenant) roomFor(ctx context.Context, a engine.Querier, q puntuale.Quota) error {
	var n int64
	found, err := engine.QueryOne(ctx, a, `select id from client where id = $1 and deleted_at = 0 for update`, []any{t.id}, &n)
	if err := engine.ThereOr(found, err, puntuale.NoClient); err != nil {
		return err
	}
	return account.Room(ctx, a, t.id, q)
}
