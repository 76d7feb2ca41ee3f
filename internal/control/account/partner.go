package account

import (
	"context"
	"fmt"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"slices"
	"strconv"

	"puntuale"
)

// Partner is a partner, reached by its own key or by one of its users.
type Partner struct {
	accounts *Accounts
	id       puntuale.PartnerID
	tenant   puntuale.PartnerTenant
	plain    string // the API key; answers that contain new keys are sealed under it
}

// Partner returns the partner that owns the key. Codes: forbidden for other keys.
func (c *Accounts) Partner(caller *control.Caller) (*Partner, error) {
	id, key, err := caller.Partner()
	if err != nil {
		return nil, err
	}
	return c.partner(id, key), nil
}

func (c *Accounts) partner(id puntuale.PartnerID, plain string) *Partner {
	return &Partner{c, id, c.tenants.Partner(id), plain}
}

// ID returns the partner's identifier.
func (p *Partner) ID() puntuale.PartnerID { return p.id }

// Clients lists the partner's clients, ordered by id. Codes: invalid.
func (p *Partner) Clients(ctx context.Context, page request.Page) ([]puntuale.Client, string, error) {
	rows, next, err := request.List(page, func(asked puntuale.Page) ([]puntuale.Client, string, error) {
		return p.tenant.Clients(ctx, asked)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list clients: %w", err)
	}
	return rows, next, nil
}

// HasUser reports whether the e-mail belongs to a user of the partner or of one of its clients.
func (p *Partner) HasUser(ctx context.Context, email string) (bool, error) {
	if !isStorable(email) {
		return false, nil
	}
	users, err := p.accounts.signIns.UsersByEmail(ctx, email, p.id, maxChecks)
	if err != nil {
		return false, fmt.Errorf("look for a user: %w", err)
	}
	return slices.ContainsFunc(users, func(u puntuale.User) bool { return u.Email == email }), nil
}

// Account returns one of the partner's clients. Codes: not_found.
func (p *Partner) Account(ctx context.Context, id string) (puntuale.Client, error) {
	wanted, err := clientID(id)
	if err != nil {
		return puntuale.Client{}, err
	}
	account, err := p.tenant.Client(ctx, wanted)
	if err != nil {
		return puntuale.Client{}, fmt.Errorf("read client %d: %w", wanted, err)
	}
	return account, nil
}

// ClientOfSession returns the partner's client that has the session, for calls with the partner's key that act in this
// client's place. They do not count in the client's usage. Codes: not_found.
func (p *Partner) ClientOfSession(ctx context.Context, session string) (*control.Client, error) {
	id, err := puntuale.ParseID[puntuale.SessionID](session)
	if err != nil {
		return nil, puntuale.NotFound(puntuale.NoSession)
	}
	client, err := p.tenant.ClientOfSession(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("find the client of session %d: %w", id, err)
	}
	account, err := p.tenant.Client(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("read client %d: %w", client, err)
	}
	return p.accounts.control.ClientFor(account, puntuale.Actor{Who: puntuale.ActorKey}), nil
}

// Quotas returns the limits that the partner set for clients. A client that is not in the result has the default
// limits.
func (p *Partner) Quotas(ctx context.Context, clients ...puntuale.Client) (map[puntuale.ClientID]puntuale.Quotas, error) {
	ids := make([]puntuale.ClientID, len(clients))
	for i := range clients {
		ids[i] = clients[i].ID
	}
	all, err := p.tenant.Quotas(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read quotas: %w", err)
	}
	return all, nil
}

// Codes of the faults that this file reports.
const (
	faultPartnerNotAClient    puntuale.ReasonCode = "partner.not_a_client"
	faultPartnerNotAllClients puntuale.ReasonCode = "partner.not_all_clients"
)

// Expirations returns the clients in a list of ids, each client once, in the order of the list. location is the place
// of the list in the request. found contains the faults that the calling package already found in the request. Codes:
// not_found, with each id that is not a client of the partner; invalid.
func (p *Partner) Expirations(ctx context.Context, location string, ids []string, found ...puntuale.Fault) ([]puntuale.Client, error) {
	f := request.Faults(found)
	if !f.Entries(location, len(ids), puntuale.MaxRequestIDs) {
		ids = nil
	}
	wanted := make([]puntuale.ClientID, len(ids))
	for i, text := range ids {
		wanted[i], _ = puntuale.ParseID[puntuale.ClientID](text) // a text that is not an id becomes 0, which finds no client
	}
	byID, err := p.tenant.ClientsByID(ctx, wanted)
	if err != nil {
		return nil, fmt.Errorf("read clients: %w", err)
	}
	missing := &puntuale.Error{Code: puntuale.CodeNotFound, Reason: puntuale.Because(faultPartnerNotAllClients)}
	accounts := make([]puntuale.Client, 0, len(wanted))
	seen := map[puntuale.ClientID]bool{}
	for i, id := range wanted {
		account, ok := byID[id]
		if !ok {
			missing.Faults = append(missing.Faults, puntuale.Fault{Location: request.At(location, i), Code: faultPartnerNotAClient, Value: number(ids[i])})
			continue
		}
		if !seen[id] {
			seen[id] = true
			accounts = append(accounts, account)
		}
	}
	if len(missing.Faults) > 0 {
		return nil, missing
	}
	return accounts, f.Err()
}

// number returns the text as an integer if it is one. It returns any other text unchanged.
func number(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return text
}

// DeleteClient removes a client permanently. It cancels the client's pending messages and revokes its keys. After that,
// another user may have the e-mail of the deleted client's login. Codes: not_found.
func (p *Partner) DeleteClient(ctx context.Context, id string) error {
	wanted, err := clientID(id)
	if err != nil {
		return err
	}
	if err := p.tenant.DeleteClient(ctx, wanted, p.accounts.clock.Now()); err != nil {
		return fmt.Errorf("delete client %d: %w", wanted, err)
	}
	return nil
}

// clientID parses a client's id from a path. A text that is not an id is not_found.
func clientID(text string) (puntuale.ClientID, error) {
	id, err := puntuale.ParseID[puntuale.ClientID](text)
	if err != nil {
		return 0, puntuale.NotFound(puntuale.NoClient)
	}
	return id, nil
}
