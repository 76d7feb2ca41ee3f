package store

import (
	"context"
	"encoding/json"

	"puntuale"
	"puntuale/internal/store/account"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/automation"
	"puntuale/internal/store/calendar"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/event"
	"puntuale/internal/store/file"
	"puntuale/internal/store/person"
	"puntuale/internal/store/reply"
	"puntuale/internal/store/result"
	"puntuale/internal/store/statement"
)

// tenant gives access to one client's data. Every statement of its methods contains the client's id.
type tenant struct {
	person.ContactStore
	event.ClientEvents
	automation.RuleStore
	reply.ClientReplies
	calendar.ClientCalendars
	file.ClientFiles
	result.Reports
	statement.ClientStatements
	s    *Store
	id   puntuale.ClientID
	free bool // calls through this tenant are not counted in the client's usage
}

// Tenant gives access to this client's data, and to no other data. It does not check in the database whether the client
// exists.
func (s *Store) Tenant(id puntuale.ClientID) puntuale.Tenant {
	return s.tenant(id, false)
}

// Uncounted does the same as Tenant, but its calls are not counted in the client's usage.
func (s *Store) Uncounted(id puntuale.ClientID) puntuale.Tenant {
	return s.tenant(id, true)
}

func (s *Store) tenant(id puntuale.ClientID, free bool) tenant {
	t := tenant{s: s, id: id, free: free, ClientEvents: s.Events.OfClient(id), RuleStore: s.Rules.OfClient(id), ClientReplies: s.Replies.ForClient(id), ClientCalendars: s.Feeds.OfClient(id), ClientFiles: s.Files.OfClient(id), Reports: s.Counter.OfClient(id), ClientStatements: s.Statements.OfClient(id)}
	t.ContactStore = s.Persons.ForClient(id, t.calls())
	return t
}

// names returns all names of the people who have one of the given names.
func (t tenant) names(ctx context.Context, given ...string) ([]string, error) {
	all, err := alias.Names(ctx, t.s.CallReads, t.id, given...)
	return all, engine.PublicError(err)
}

// calls returns what a call adds to the client's usage: 1, or 0 for [Store.Uncounted].
func (t tenant) calls() int64 {
	if t.free {
		return 0
	}
	return 1
}

// partnerTenant gives access to one partner's data. It is in this package because deleting a client also changes
// messages and sessions.
type partnerTenant struct {
	account.Partner
	event.Account
	result.Reports
	statement.PartnerStatements
	s  *Store
	id puntuale.PartnerID
}

// Partner gives access to the data of this partner and of its clients, and to no other data.
func (s *Store) Partner(id puntuale.PartnerID) puntuale.PartnerTenant {
	return partnerTenant{s.Accounts.Partner(id), s.Events.OfPartner(id), s.Counter.OfPartner(id), s.Statements.PricesOf(id), s, id}
}

// write runs a transaction for the client.
func (t tenant) write(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	return t.s.Write(ctx, int64(t.id), do)
}

// writeTimestamped does the same as write, for transactions that close messages. Readers list closed messages in the
// order of done_at. So a row that commits later must have a later done_at.
func (t tenant) writeTimestamped(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	return t.s.WriteTimestamped(ctx, int64(t.id), do)
}

// once runs a transaction for the client. o is the caller's idempotency key, or nil.
func (t tenant) once(ctx context.Context, o *puntuale.Idempotency, do func(ctx context.Context, a engine.Querier) (any, error)) error {
	return t.s.Once(ctx, int64(t.id), o, do)
}

// lists returns a Querier for lists. It takes the client's list slot for each list.
func (t tenant) lists() engine.Querier { return t.s.Lists(int64(t.id)) }

func (t tenant) KeptAnswer(ctx context.Context, o puntuale.Idempotency) ([]byte, error) {
	answer, err := engine.FindAnswer(ctx, t.s.CallReads, int64(t.id), &o)
	return answer, engine.PublicError(err)
}

// Erase removes all names of the person and all texts from the client's rows. Rows, states, times and credits stay.
// Erase cancels the pending messages to all names. Uncertain messages become FAILED. Erase counts one call, and the
// cap never refuses this call. Erase uses several small transactions. If Erase fails, the caller may repeat the
// call, and the repeat finishes the rest. Codes: busy, if a message to the phone is being sent or repeated now;
// then no call is counted, but the rest is done.
func (t tenant) Erase(ctx context.Context, e puntuale.Erasure) (puntuale.ErasureResult, error) {
	return t.s.Retention.Erase(ctx, t.id, t.calls(), e)
}

// PersonalData reads a person's data; see [retention.Retention.PersonalData].
func (t tenant) PersonalData(ctx context.Context, of puntuale.Person, each func(member string, rows []json.RawMessage) error) error {
	return t.s.Retention.PersonalData(ctx, t.id, of, each)
}

// checkQuota locks the client's row and checks the quota. Call it last in a transaction, because the client's row is
// last in the order of locks.
func (t tenant) checkQuota(ctx context.Context, a engine.Querier, q puntuale.Quota) error {
	var n int64
	found, err := engine.QueryOne(ctx, a, `select id from client where id = $1 and deleted_at = 0 for update`, []any{t.id}, &n)
	if err := engine.ThereOr(found, err, puntuale.NoClient); err != nil {
		return err
	}
	return account.CheckQuota(ctx, a, t.id, q)
}
