package account

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/event"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/statement"
)

const faultPartnerSlugTaken puntuale.ReasonCode = "partner.slug_taken"

// CreatePartner creates a partner with its login and its key. Codes: conflict (another partner has the slug).
func (s *Accounts) CreatePartner(ctx context.Context, p puntuale.Partner, l puntuale.Login, k puntuale.Key) (puntuale.PartnerID, error) {
	var id int64
	err := s.TenantWriters[0].Do(ctx, engine.Single(s.Writes, func(ctx context.Context, a engine.Querier) (err error) {
		if id, err = engine.NextNumber(ctx, a, "partner"); err != nil {
			return err
		}
		partner := puntuale.PartnerID(id)
		if _, err = a.Exec(ctx, `insert into partner (id, name, slug, created_at) values ($1, $2, $3, $4)`,
			id, p.Name, p.Slug, engine.Micros(p.Created)); err != nil {
			if engine.Repeated(err) {
				return puntuale.Conflict(faultPartnerSlugTaken)
			}
			return fmt.Errorf("insert a partner: %w", err)
		}
		if _, err := insertKey(ctx, a, partner, 0, k); err != nil {
			return err
		}
		_, err = insertLogin(ctx, a, partner, 0, l, p.Created)
		return err
	}), false)
	return puntuale.PartnerID(id), err
}

// insertLogin inserts the first user of a partner or of a client. This user has the role owner.
func insertLogin(ctx context.Context, a engine.Querier, p puntuale.PartnerID, c puntuale.ClientID, l puntuale.Login, created time.Time) (puntuale.UserID, error) {
	return insertUser(ctx, a, p, puntuale.User{Client: c, Email: l.Email, Password: l.Password, Role: puntuale.Owner, Created: created})
}

// CreateClient creates the client, its login, its default session and its key in one transaction. The argument o
// may be nil; its function Answer gets the CreatedIDs. Codes: conflict (another login of this partner has the
// e-mail).
func (p Partner) CreateClient(ctx context.Context, n puntuale.NewClient, o *puntuale.Idempotency) (created puntuale.CreatedIDs, err error) {
	err = p.once(ctx, o, func(ctx context.Context, a engine.Querier) (any, error) {
		var existing int64
		found, err := engine.QueryOne(ctx, a, `select id from partner where id = $1 for share`, []any{p.id}, &existing)
		if err := engine.ThereOr(found, err, puntuale.NoPartner); err != nil {
			return nil, err
		}
		// To prevent deadlocks, each transaction that uses several counters uses them in the order of their names.
		id, err := engine.NextNumber(ctx, a, "client")
		if err != nil {
			return nil, err
		}
		created = puntuale.CreatedIDs{Client: puntuale.ClientID(id)}
		if err := insertClient(ctx, a, p.id, created.Client, n); err != nil {
			return nil, err
		}
		if _, err := insertKey(ctx, a, p.id, created.Client, n.Key); err != nil {
			return nil, err
		}
		login, err := insertLogin(ctx, a, p.id, created.Client, n.Login, n.Client.Created)
		if err != nil {
			return nil, err
		}
		if n.Invitation != nil {
			if err := storeInvitation(ctx, a, p.id, login, *n.Invitation); err != nil {
				return nil, err
			}
		}
		s := n.Session
		s.Default = true
		if created.Session, err = fleet.InsertSession(ctx, a, created.Client, s); err != nil {
			return nil, err
		}
		return created, event.Created(ctx, a, created.Client)
	})
	if err != nil {
		return puntuale.CreatedIDs{}, err
	}
	return created, nil
}

func insertClient(ctx context.Context, a engine.Querier, p puntuale.PartnerID, id puntuale.ClientID, n puntuale.NewClient) error {
	c := n.Client
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
	if _, err := a.Exec(ctx, `insert into client (id, partner_id, name, email, phone, type, profile, refill, refill_to, refill_at,
 credits, cap, expires_on, expires_at, zone, region, closed, suspended, features, created_at, credits_topped, plan_id, plan_since)
 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)`,
		id, p, c.Name, n.Login.Email, c.Phone, c.Type, c.Profile, c.Refill, c.RefillTo, engine.Micros(c.RefillAt), optional(c.Credits),
		optional(c.Cap), dayNumber(c.Expires), engine.Micros(c.ExpiresAt), c.Zone, c.Region, closed, engine.Bit(c.Suspended), features, engine.Micros(c.Created), creditsOf(c), c.Plan, dayNumber(c.PlanSince)); err != nil {
		return fmt.Errorf("insert a client: %w", err)
	}
	if err := StoreSettings(ctx, a, id, puntuale.SettingsPatch{Consent: new(puntuale.ConsentRequired)}); err != nil {
		return err
	}
	quotas := map[puntuale.Quota]*int64{}
	for q, limit := range c.Quotas {
		quotas[q] = &limit
	}
	if err := storeQuotas(ctx, a, id, quotas); err != nil {
		return err
	}
	if c.Budget > 0 {
		if err := statement.ChangeBudget(ctx, a, id, c.Zone, c.Budget, n.Currency, c.Created); err != nil {
			return err
		}
	}
	if c.Credits == nil {
		return nil
	}
	return queue.Enter(ctx, a, "grant", c.Created, []puntuale.ClientID{id}, []int64{*c.Credits})
}

const ClientColumns = `c.id, c.partner_id, c.name, c.email, c.phone, c.type, c.profile, c.refill, c.refill_to, c.refill_at,
 c.credits, c.cap, c.expires_on, c.expires_at, c.zone, c.region, c.closed, c.suspended, c.features, c.created_at, c.revision, c.plan_id, c.plan_since,
 coalesce((select s.type from session s where s.client_id = c.id and s.is_default = 1 and s.deleted_at = 0), '')`

func ClientFields(c *puntuale.Client) []any {
	return []any{&c.ID, &c.Partner, &c.Name, &c.Email, &c.Phone, &c.Type, &c.Profile, &c.Refill, &c.RefillTo, engine.ScanTime(&c.RefillAt),
		&c.Credits, &c.Cap, date{&c.Expires}, engine.ScanTime(&c.ExpiresAt), &c.Zone, &c.Region, engine.ScanJSON(&c.Closed), engine.ScanBool(&c.Suspended),
		engine.ScanJSON(&c.Features), engine.ScanTime(&c.Created), &c.Revision, &c.Plan, date{&c.PlanSince}, &c.Connection}
}

func optional(n *int64) sql.NullInt64 {
	if n == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: *n, Valid: true}
}

// dayNumber returns the stored form of a day: YYYYMMDD, or 0 for the zero date.
func dayNumber(d puntuale.Date) int {
	if d.IsZero() {
		return 0
	}
	return d.Int()
}

// date scans a column that contains a day as YYYYMMDD, or 0 for no day.
type date struct{ into *puntuale.Date }

func (d date) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a day is kept as %T", value)
	}
	*d.into = puntuale.Date{}
	if n != 0 {
		*d.into = puntuale.DateFromInt(int(n))
	}
	return nil
}
