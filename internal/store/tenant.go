package store

import (
	"context"
	"fmt"

	"puntuale"
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

// tenantWriter is the writer of a client's calls, always the same of this node.
func (s *Store) tenantWriter(id puntuale.ClientID) *writer {
	return s.tenants[uint64(id)%uint64(len(s.tenants))]
}

// write runs a transaction for the client.
func (t tenant) write(ctx context.Context, do func(ctx context.Context, a asker) error) error {
	return t.s.tenantWriter(t.id).perform(ctx, single(t.s.kinds.write, do).of(int64(t.id)), false)
}

// writeDated is write for what closes messages.
func (t tenant) writeDated(ctx context.Context, do func(ctx context.Context, a asker) error) error {
	return t.s.tenantWriter(t.id).perform(ctx, dated(t.s.kinds.write, do).of(int64(t.id)), false)
}

// once runs a transaction for the client, under a key of the caller if o is not nil.
func (t tenant) once(ctx context.Context, o *puntuale.Once, do func(ctx context.Context, a asker) (any, error)) error {
	return t.s.once(ctx, t.s.tenantWriter(t.id), int64(t.id), o, do)
}

// write runs a transaction for the partner.
func (p partnerTenant) write(ctx context.Context, do func(ctx context.Context, a asker) error) error {
	return p.s.tenants[0].perform(ctx, single(p.s.kinds.write, do).of(p.owner()), false)
}

// once runs a transaction for the partner, under a key of the caller if o is not nil.
func (p partnerTenant) once(ctx context.Context, o *puntuale.Once, do func(ctx context.Context, a asker) (any, error)) error {
	return p.s.once(ctx, p.s.tenants[0], p.owner(), o, do)
}

// changed notes that what a start of the client's is planned from is another one now. It comes last in a transaction:
// the lock of the client's row is the last one that any takes.
func changed(ctx context.Context, a asker, client puntuale.ClientID) error {
	if _, err := a.exec(ctx, `update client set revision = revision + 1 where id = $1`, client); err != nil {
		return fmt.Errorf("raise a client's revision: %w", err)
	}
	return nil
}

// foundOr makes the one answer for what is missing and for what belongs to another tenant, outside a transaction.
func foundOr(found bool, err error, noun string) error { return outward(thereOr(found, err, noun)) }

// thereOr is foundOr inside a transaction, which may have to run again.
func thereOr(found bool, err error, noun string) error {
	switch {
	case err != nil:
		return fmt.Errorf("read a %s: %w", noun, err)
	case !found:
		return puntuale.NotFound(noun)
	}
	return nil
}
