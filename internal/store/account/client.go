package account

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/result"
	"puntuale/internal/store/statement"
)

func scanClient(rows engine.Row, c *puntuale.Client) error { return rows.Scan(ClientFields(c)...) }

// Client reads a client. Codes: not_found.
func (p Partner) Client(ctx context.Context, id puntuale.ClientID) (puntuale.Client, error) {
	c, found, err := p.editable(ctx, p.s.CallReads, id)
	return c, engine.FoundOr(found, err, puntuale.NoClient)
}

// editable reads a client with its settings and quotas.
func (p Partner) editable(ctx context.Context, a engine.Querier, id puntuale.ClientID) (c puntuale.Client, found bool, err error) {
	if c, found, err = p.ClientIn(ctx, a, id); err != nil || !found {
		return c, found, err
	}
	if c.Settings, err = ReadSettings(ctx, a, id); err != nil {
		return c, found, err
	}
	all, err := p.quotas(ctx, a, []puntuale.ClientID{id})
	c.Quotas = all[id]
	return c, found, err
}

func (p Partner) ClientIn(ctx context.Context, a engine.Querier, id puntuale.ClientID) (c puntuale.Client, found bool, err error) {
	found, err = engine.QueryOne(ctx, a, `select `+ClientColumns+` from client c where c.partner_id = $1 and c.id = $2 and c.deleted_at = 0`,
		[]any{p.id, id}, ClientFields(&c)...)
	return c, found, err
}

// ClientOf reads a client, whichever partner it belongs to.
func (s *Accounts) ClientOf(ctx context.Context, id puntuale.ClientID) (c puntuale.Client, err error) {
	found, err := engine.QueryOne(ctx, s.CallReads, `select `+ClientColumns+` from client c where c.id = $1 and c.deleted_at = 0`, []any{id}, ClientFields(&c)...)
	return c, engine.FoundOr(found, err, puntuale.NoClient)
}

// lockedClient locks the client's row and then reads the client. So the client cannot change until this transaction
// commits.
func (p Partner) lockedClient(ctx context.Context, a engine.Querier, id puntuale.ClientID) (puntuale.Client, bool, error) {
	if err := p.LockClient(ctx, a, id); err != nil {
		if puntuale.CodeOf(err) == puntuale.CodeNotFound {
			return puntuale.Client{}, false, nil
		}
		return puntuale.Client{}, false, err
	}
	return p.ClientIn(ctx, a, id)
}

// Clients lists clients, sorted by id. Codes: invalid (the cursor).
func (p Partner) Clients(ctx context.Context, page puntuale.Page) ([]puntuale.Client, string, error) {
	last, limit, err := engine.ReadCursor(page, "client")
	if err != nil {
		return nil, "", err
	}
	all, err := engine.QueryAll(ctx, p.s.CallReads, `select `+ClientColumns+` from client c
 where c.partner_id = $1 and c.id > $2 and c.deleted_at = 0 order by c.id limit $3`, []any{p.id, last, limit + 1}, scanClient)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list clients: %w", err))
	}
	all, next := engine.CutPage(all, limit, "client", func(c *puntuale.Client) int64 { return int64(c.ID) })
	return all, next, nil
}

// ClientsByID reads clients. It leaves out unknown ids.
func (p Partner) ClientsByID(ctx context.Context, ids []puntuale.ClientID) (map[puntuale.ClientID]puntuale.Client, error) {
	found := make(map[puntuale.ClientID]puntuale.Client, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	all, err := engine.QueryAll(ctx, p.s.CallReads, `select `+ClientColumns+` from $u(i bigint) cross join client c
 where c.id = u.i and c.partner_id = $1 and c.deleted_at = 0`,
		[]any{p.id, engine.Columns{engine.Column(ids, func(id *puntuale.ClientID) int64 { return int64(*id) })}}, scanClient)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read clients: %w", err))
	}
	for _, c := range all {
		found[c.ID] = c
	}
	return found, nil
}

// UpdateClient changes a client. Codes: not_found, invalid (the credits), precondition_failed.
func (p Partner) UpdateClient(ctx context.Context, id puntuale.ClientID, patch puntuale.ClientPatch, now time.Time) (puntuale.Client, error) {
	var c puntuale.Client
	err := p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		unlocked, found, err := p.ClientIn(ctx, a, id)
		if err := engine.ThereOr(found, err, puntuale.NoClient); err != nil {
			return err
		}
		moves := patch.Zone.Set && patch.Zone.To != unlocked.Zone // most forms send the zone that the client has
		if moves {
			if err := result.Lock(ctx, a); err != nil {
				return err
			}
		}
		if patch.Budget.Set {
			if err := statement.ChangeBudget(ctx, a, id, unlocked.Zone, patch.Budget.To, patch.Currency, now); err != nil {
				return err
			}
		}
		if err := p.LockClient(ctx, a, id); err != nil {
			return err
		}
		old, found, err := p.editable(ctx, a, id)
		if err := engine.ThereOr(found, err, puntuale.NoClient); err != nil {
			return err
		}
		if err := puntuale.CheckVersion(old.Version(), patch.Known); err != nil {
			return err
		}
		if c, err = patched(old, patch); err != nil {
			return err
		}
		c.Revision++
		if err := storeQuotas(ctx, a, id, patch.Quotas); err != nil {
			return err
		}
		if patch.Settings != (puntuale.SettingsPatch{}) {
			if err := StoreSettings(ctx, a, id, patch.Settings); err != nil {
				return err
			}
		}
		if err := storeClient(ctx, a, old, c, now); err != nil {
			return err
		}
		if c.Zone != old.Zone {
			if !moves {
				return fmt.Errorf("a client's zone changed meanwhile: %w", engine.ErrAgain)
			}
			if err := result.RecountBookings(ctx, a, id, now); err != nil {
				return err
			}
		}
		if c.Settings, err = ReadSettings(ctx, a, id); err != nil {
			return err
		}
		all, err := p.quotas(ctx, a, []puntuale.ClientID{id})
		c.Quotas = all[id]
		return err
	})
	if err != nil {
		return puntuale.Client{}, err
	}
	return c, nil
}

// Codes of the faults that functions in this file return.
const (
	faultClientCreditsUnlimited puntuale.ReasonCode = "client.credits_unlimited"
	faultClientTakesTooMany     puntuale.ReasonCode = "client.takes_too_many"
	faultClientWithCredits      puntuale.ReasonCode = "client.with_credits"
	faultBelowZero              puntuale.ReasonCode = "fault.below_zero"
	faultTooLarge               puntuale.ReasonCode = "fault.too_large"
)

// patched returns the client with the changes of the patch.
func patched(c puntuale.Client, p puntuale.ClientPatch) (puntuale.Client, error) {
	c = p.Changed(c)
	if p.Credits.Set && c.Credits != nil && *c.Credits < 0 {
		return c, puntuale.Invalid(puntuale.Fault{Location: "body.credits", Code: faultBelowZero, Value: *c.Credits})
	}
	if !p.CreditsAdd.Set {
		return c, nil
	}
	n := p.CreditsAdd.To
	refused := func(code puntuale.ReasonCode, args ...string) error {
		return puntuale.Invalid(puntuale.Because(code, args...).At("body.credits_add", n))
	}
	switch {
	case p.Credits.Set:
		return c, refused(faultClientWithCredits)
	case c.Credits == nil:
		return c, refused(faultClientCreditsUnlimited)
	case *c.Credits+n < 0 && n < 0:
		return c, refused(faultClientTakesTooMany, strconv.FormatInt(*c.Credits, 10))
	case *c.Credits+n < 0:
		return c, refused(faultTooLarge)
	}
	c.Credits = new(*c.Credits + n)
	return c, nil
}

// storeClient writes a client whose row is locked. If credits become unlimited, the balance in the credit ledger
// becomes 0. If credits become limited, the ledger starts from 0.
func storeClient(ctx context.Context, a engine.Querier, old, c puntuale.Client, now time.Time) error {
	if c.Features == nil {
		c.Features = []string{}
	}
	features, err := engine.ToJSON(c.Features)
	if err != nil {
		return err
	}
	closed, err := engine.ToJSON(c.Closed)
	if err != nil {
		return err
	}
	if _, err := a.Exec(ctx, `update client set name = $2, phone = $3, profile = $4, refill = $5, refill_to = $6, refill_at = $7,
 credits = $8, cap = $9, expires_on = $10, expires_at = $11, zone = $12, region = $13, closed = $14, suspended = $15, features = $16,
 revision = $17, plan_id = $18, plan_since = $19 where id = $1`, c.ID, c.Name, c.Phone, c.Profile, c.Refill, c.RefillTo, engine.Micros(c.RefillAt), optional(c.Credits), optional(c.Cap),
		dayNumber(c.Expires), engine.Micros(c.ExpiresAt), c.Zone, c.Region, closed, engine.Bit(c.Suspended), features, c.Revision, c.Plan, dayNumber(c.PlanSince)); err != nil {
		return fmt.Errorf("update a client: %w", err)
	}
	if err := queue.TellSetCredits(ctx, a, now, c.ID, old.Credits, c.Credits); err != nil {
		return err
	}
	return queue.Enter(ctx, a, "set", now, []puntuale.ClientID{c.ID}, []int64{creditsOf(c) - creditsOf(old)})
}

// creditsOf returns the client's balance in the credit ledger. For unlimited credits the balance is 0, because the
// ledger does not contain them.
func creditsOf(c puntuale.Client) int64 {
	if c.Credits == nil {
		return 0
	}
	return *c.Credits
}

// Changed raises the client revision. Call it in each transaction that changes data which the planning of starts uses.
// Call it last, because the client's row is last in the order of locks.
func Changed(ctx context.Context, a engine.Querier, client puntuale.ClientID) error {
	if _, err := a.Exec(ctx, `update client set revision = revision + 1 where id = $1`, client); err != nil {
		return fmt.Errorf("raise a client's revision: %w", err)
	}
	return nil
}
