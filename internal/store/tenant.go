package store

import (
	"context"

	"puntuale"
	"puntuale/internal/store/account"
	"puntuale/internal/store/automation"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/event"
	"puntuale/internal/store/person"
)

// tenant is the handle of one client. Every statement of its methods names the client's id.
type tenant struct {
	person.ContactStore
	event.ClientEvents
	automation.RuleStore
	s    *Store
	id   puntuale.ClientID
	free bool // the calls are not counted
}

// Tenant returns the handle of a client. It reaches this client's data and no other data. Tenant does not ask the
// database.
func (s *Store) Tenant(id puntuale.ClientID) puntuale.Tenant {
	t := tenant{s: s, id: id}
	t.ContactStore, t.ClientEvents, t.RuleStore = s.Persons.ForClient(id, t.calls()), s.Events.OfClient(id), s.Rules.Of(id)
	return t
}

// Uncounted returns the same handle as Tenant, but its calls are not counted.
func (s *Store) Uncounted(id puntuale.ClientID) puntuale.Tenant {
	t := tenant{s: s, id: id, free: true}
	t.ContactStore, t.ClientEvents, t.RuleStore = s.Persons.ForClient(id, t.calls()), s.Events.OfClient(id), s.Rules.Of(id)
	return t
}

// calls returns how many calls one call of a method counts: 1, or 0 for [Store.Uncounted].
func (t tenant) calls() int64 {
	if t.free {
		return 0
	}
	return 1
}

// partnerTenant is the handle of one partner. It is in this package because deleting a client also changes messages
// and sessions.
type partnerTenant struct {
	account.Partner
	event.Account
	s  *Store
	id puntuale.PartnerID
}

// Partner returns the handle of a partner. It reaches the data of this partner and its clients, and no other data.
func (s *Store) Partner(id puntuale.PartnerID) puntuale.PartnerTenant {
	return partnerTenant{s.Accounts.Partner(id), s.OfPartner(id), s, id}
}

// write runs a transaction for the client.
func (t tenant) write(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	return t.s.Write(ctx, int64(t.id), do)
}

// writeDated is write for transactions that close messages. Readers list such rows in the order of their moments.
func (t tenant) writeDated(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	return t.s.WriteDated(ctx, int64(t.id), do)
}

// once runs a transaction for the client, under the caller's idempotency key o. o may be nil.
func (t tenant) once(ctx context.Context, o *puntuale.Idempotency, do func(ctx context.Context, a engine.Querier) (any, error)) error {
	return t.s.Once(ctx, int64(t.id), o, do)
}

// lists returns a Querier that reads lists under the client's list slot.
func (t tenant) lists() engine.Querier { return t.s.Lists(int64(t.id)) }

func (t tenant) KeptAnswer(ctx context.Context, o puntuale.Idempotency) ([]byte, error) {
	answer, err := engine.FindAnswer(ctx, t.s.CallReads, int64(t.id), &o)
	return answer, engine.PublicError(err)
}

func (t tenant) Erase(ctx context.Context, e puntuale.Erasure) (puntuale.ErasureResult, error) {
	return t.s.Retention.Erase(ctx, t.id, t.calls(), e)
}

// checkQuota locks the client's row and checks the quota. Call it last, because the client's row is last in the order
// of locks.
func (t tenant) checkQuota(ctx context.Context, a engine.Querier, q puntuale.Quota) error {
	var n int64
	found, err := engine.QueryOne(ctx, a, `select id from client where id = $1 and deleted_at = 0 for update`, []any{t.id}, &n)
	if err := engine.ThereOr(found, err, puntuale.NoClient); err != nil {
		return err
	}
	return account.CheckQuota(ctx, a, t.id, q)
}
