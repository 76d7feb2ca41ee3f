package control_test

import (
	"context"
	"fmt"
	"math"
	"net/netip"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
)

// partnerLimits are the limits of a partner's calls.
var partnerLimits = []limit{
	{"CreateClient", "invalid body.name body.email body.email body.phone body.account_type", func(ctx context.Context, w *limited) error {
		_, err := w.partner.CreateClient(ctx, account.NewClient{Name: long, Email: long, Password: "x", Phone: nul, Type: nul}, control.Once[account.CreatedClient]{})
		return err
	}},
	{"CreatePlan", "invalid body.name body.profile body.refill_period", func(ctx context.Context, w *limited) error {
		_, err := w.partner.CreatePlan(ctx, account.PlanDraft{Name: long, Values: puntuale.PlanValues{Profile: setTo(nul), Refill: setTo(nul)}}, control.Once[puntuale.ClientPlan]{})
		return err
	}},
	{"ChangeClient", "invalid body.name body.phone body.profile body.refill_period body.active_features body.daily_api_cap body.credits body.refill_to body.credits_add body.credits_add body.quotas.users body.region body.holidays body.timezone body.expiration_date",
		func(ctx context.Context, w *limited) error {
			huge := int64(math.MaxInt64)
			_, err := w.partner.ChangeClient(ctx, w.id, account.ClientChange{Name: setTo(long), Phone: setTo(nul), Profile: setTo(nul), Refill: setTo(nul), RefillTo: setTo(int64(-1)),
				Zone: setTo("posixrules"), Region: setTo("QQQ"), Expires: setTo("9999999-01-01"), Closed: setTo(many), Features: setTo(many),
				Cap: setTo(&huge), Credits: setTo(&huge), CreditsAdd: setTo(huge), Quotas: map[puntuale.Quota]*int64{puntuale.QuotaUsers: &huge}})
			return err
		}},
	{"Partner.CreateKey", "invalid body.name", func(ctx context.Context, w *limited) error {
		_, err := w.partner.CreateKey(ctx, w.id, long, control.Once[account.IssuedKey]{})
		return err
	}},
	{"Partner.RotateKey", "invalid body.grace", func(ctx context.Context, w *limited) error {
		keys, err := w.partner.Keys(ctx, w.id)
		if err != nil {
			return err
		}
		huge := int64(math.MaxInt64)
		_, err = w.partner.RotateKey(ctx, w.id, keys[0].ID.String(), &huge, control.Once[account.IssuedKey]{})
		return err
	}},
	{"CreateOwnKey", "invalid body.name", func(ctx context.Context, w *limited) error {
		_, err := w.partner.CreateOwnKey(ctx, long)
		return err
	}},
	{"HasUser", "", func(ctx context.Context, w *limited) error {
		_, err := w.partner.HasUser(ctx, nul+long)
		return err
	}},
	{"Expirations", "invalid body.client_ids", func(ctx context.Context, w *limited) error {
		_, err := w.partner.Expirations(ctx, "body.client_ids", many)
		return err
	}},
	{"FindClients", "invalid query.limit query.cursor query.state query.q", func(ctx context.Context, w *limited) error {
		_, _, err := w.partner.FindClients(ctx, account.ClientSearch{Text: long, State: nul, Page: wide})
		return sorted(err, "query.limit", "query.cursor")
	}},
	{"CountClients", "invalid query.state query.q", func(ctx context.Context, w *limited) error {
		_, _, err := w.partner.CountClients(ctx, account.ClientSearch{Text: long, State: nul})
		return err
	}},
	{"Clients", saysWide, func(ctx context.Context, w *limited) error { _, _, err := w.partner.Clients(ctx, wide); return err }},
	{"Partner.Audit", saysWide, func(ctx context.Context, w *limited) error { _, _, err := w.partner.Audit(ctx, wide); return err }},
	{"Partner.Totals", "", func(ctx context.Context, w *limited) error {
		days, err := w.partner.Totals(ctx, "", math.MaxInt, math.MaxInt)
		if len(days) > 801 {
			return fmt.Errorf("%d days", len(days))
		}
		return err
	}},
	{"SetBrand", "invalid body.name body.colour body.host body.logo", func(ctx context.Context, w *limited) error {
		return w.partner.SetBrand(ctx, account.BrandChange{Name: long, Colour: long, Host: long, Logo: []byte(long)})
	}},
}

// peopleLimits are the limits of calls by people and operators.
var peopleLimits = []limit{
	{"Team.Invite", "invalid body.email body.name body.language body.role", func(ctx context.Context, w *limited) error {
		_, _, err := w.accounts.TeamOf(w.client).Invite(ctx, account.NewUser{Email: "a@" + long, Name: nul, Language: nul, Role: nul})
		return err
	}},
	{"Team.Change", "invalid body.name body.role", func(ctx context.Context, w *limited) error {
		_, err := w.accounts.TeamOf(w.client).Change(ctx, w.person.User().ID.String(), account.UserChange{Name: setTo(long), Role: setTo(nul)})
		return err
	}},
	{"Join", "unauthorized", func(ctx context.Context, w *limited) error {
		_, err := w.accounts.Join(ctx, nul+long, long)
		return err
	}},
	{"Rename", "invalid body.name", func(ctx context.Context, w *limited) error { return w.person.Rename(ctx, long) }},
	{"Speak", "invalid body.language", func(ctx context.Context, w *limited) error { return w.person.Speak(ctx, nul) }},
	{"ChangePassword", "invalid body.password", func(ctx context.Context, w *limited) error {
		_, err := w.person.ChangePassword(ctx, limitedPassword, long)
		return err
	}},
	{"SignIn", "unauthorized", func(ctx context.Context, w *limited) error {
		_, err := w.accounts.SignIn(ctx, account.SignIn{Email: nul + long, Password: long, Address: netip.MustParseAddr("192.0.2.1")})
		return err
	}},
	{"PartnerAt", "not_found", func(ctx context.Context, w *limited) error {
		_, err := w.accounts.PartnerAt(ctx, "", nul+long)
		return err
	}},
	{"PartnerAt", "not_found", func(ctx context.Context, w *limited) error {
		_, err := w.accounts.PartnerAt(ctx, nul+long, "")
		return err
	}},
	{"CreatePartner", "invalid name email password", func(ctx context.Context, w *limited) error {
		_, _, err := w.accounts.CreatePartner(ctx, account.NewPartner{Name: long, Email: "a@" + long})
		return err
	}},
	{"Control.RotateStoredKey", "invalid grace", func(ctx context.Context, w *limited) error {
		_, err := w.accounts.RotateStoredKey(ctx, puntuale.KeyHash{}, puntuale.PartnerSide, math.MaxInt64)
		return err
	}},
	{"ResetUser", "invalid password", func(ctx context.Context, w *limited) error {
		return w.accounts.ResetUser(ctx, w.person.User(), long, false)
	}},
}
