package account

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/notice"
)

const userColumns = `l.id, l.partner_id, l.client_id, l.email, l.name, l.password, l.role, l.language, l.stamp, l.second, l.second_last,
 l.recovery, l.created_at, l.seen_at, case when l.password <> '' then 1 else 0 end,
 coalesce((select i.expires_at from invitation i where i.login_id = l.id), 0)`

func userFields(u *puntuale.User) []any {
	return []any{&u.ID, &u.Partner, &u.Client, &u.Email, &u.Name, &u.Password, &u.Role, &u.Language, &u.Stamp, &u.Second.Secret, &u.Second.Last,
		engine.ScanJSON(&u.Second.Recovery), engine.ScanTime(&u.Created), engine.ScanTime(&u.Seen), engine.ScanBool(&u.Joined), engine.ScanTime(&u.Invited)}
}

func scanUser(rows engine.Row, u *puntuale.User) error { return rows.Scan(userFields(u)...) }

// ofClient checks that a client belongs to the partner. Client 0 means the partner itself.
func (p Partner) ofClient(ctx context.Context, client puntuale.ClientID) error {
	if client == 0 {
		return nil
	}
	_, err := p.Client(ctx, client)
	return err
}

// Users lists users, sorted by id.
func (p Partner) Users(ctx context.Context, client puntuale.ClientID) ([]puntuale.User, error) {
	if err := p.ofClient(ctx, client); err != nil {
		return nil, err
	}
	users, err := engine.QueryAll(ctx, p.s.CallReads, `select `+userColumns+` from login l where l.partner_id = $1 and l.client_id = $2 order by l.id`,
		[]any{p.id, client}, scanUser)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list users: %w", err))
	}
	return users, nil
}

func (p Partner) User(ctx context.Context, client puntuale.ClientID, id puntuale.UserID) (puntuale.User, error) {
	if err := p.ofClient(ctx, client); err != nil {
		return puntuale.User{}, err
	}
	u, found, err := p.user(ctx, p.s.CallReads, client, id)
	return u, engine.FoundOr(found, err, puntuale.NoUser)
}

func (p Partner) user(ctx context.Context, a engine.Querier, client puntuale.ClientID, id puntuale.UserID) (u puntuale.User, found bool, err error) {
	found, err = engine.QueryOne(ctx, a, `select `+userColumns+` from login l where l.partner_id = $1 and l.client_id = $2 and l.id = $3`,
		[]any{p.id, client, id}, userFields(&u)...)
	return u, found, err
}

// lockUsers locks the users of the client, or of the partner if client is 0, against other changes. It also prevents
// the deletion of the client.
func (p Partner) lockUsers(ctx context.Context, a engine.Querier, client puntuale.ClientID) error {
	if client != 0 {
		return p.LockClient(ctx, a, client)
	}
	var n int64
	found, err := engine.QueryOne(ctx, a, `select id from partner where id = $1 for update`, []any{p.id}, &n)
	return engine.ThereOr(found, err, puntuale.NoPartner)
}

// CreateUser creates a user, with an invitation if i is not nil. Codes: conflict (another user of the partner or
// its clients has the e-mail; or the partner has MaxUsers), quota_reached.
func (p Partner) CreateUser(ctx context.Context, u puntuale.User, i *puntuale.Invitation) (id puntuale.UserID, err error) {
	err = p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if err := p.lockUsers(ctx, a, u.Client); err != nil {
			return err
		}
		if err := p.checkUserQuota(ctx, a, u.Client); err != nil {
			return err
		}
		var err error
		if id, err = insertUser(ctx, a, p.id, u); err != nil || i == nil {
			return err
		}
		return storeInvitation(ctx, a, p.id, id, *i)
	})
	return id, err
}

// Codes of the faults that functions in this file return.
const (
	faultUserLastOwner puntuale.ReasonCode = "user.last_owner"
	faultUserTooMany   puntuale.ReasonCode = "user.too_many"
)

// checkUserQuota returns an error if the owner has as many users as allowed. The limit is the client's quota, or
// [puntuale.MaxUsers] for the partner itself.
func (p Partner) checkUserQuota(ctx context.Context, a engine.Querier, client puntuale.ClientID) error {
	if client != 0 {
		return CheckQuota(ctx, a, client, puntuale.QuotaUsers)
	}
	var n int64
	if _, err := engine.QueryOne(ctx, a, `select count(*) from login where partner_id = $1 and client_id = 0`, []any{p.id}, &n); err != nil {
		return fmt.Errorf("count users: %w", err)
	}
	if n >= puntuale.MaxUsers {
		return puntuale.Conflict(faultUserTooMany, strconv.Itoa(puntuale.MaxUsers))
	}
	return nil
}

func insertUser(ctx context.Context, a engine.Querier, p puntuale.PartnerID, u puntuale.User) (puntuale.UserID, error) {
	id, err := engine.NextNumber(ctx, a, "login")
	if err != nil {
		return 0, err
	}
	if _, err = a.Exec(ctx, `insert into login (id, partner_id, client_id, email, password, created_at, name, role, language)
 values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, id, p, u.Client, u.Email, u.Password, engine.Micros(u.Created), u.Name, int64(u.Role), u.Language); err != nil {
		if engine.Repeated(err) {
			return 0, puntuale.Conflict(puntuale.FaultUserEmailTaken)
		}
		return 0, fmt.Errorf("insert a login: %w", err)
	}
	return puntuale.UserID(id), nil
}

// UpdateUser makes the changes of the patch. A new password ends the user's invitation. The function allow may be
// nil. If it is not nil, UpdateUser calls it with the stored user while the row is locked. If allow returns an
// error, UpdateUser changes nothing and returns this error. Codes: conflict (no owner would be left).
func (p Partner) UpdateUser(ctx context.Context, client puntuale.ClientID, id puntuale.UserID, patch puntuale.UserPatch, allow func(puntuale.User) error) (u puntuale.User, err error) {
	err = p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if err := p.lockUsers(ctx, a, client); err != nil {
			return err
		}
		var found bool
		u, found, err = p.user(ctx, a, client, id)
		if err := engine.ThereOr(found, err, puntuale.NoUser); err != nil {
			return err
		}
		if allow != nil {
			if err := allow(u); err != nil {
				return err
			}
		}
		if patch.Role.Set && patch.Role.To != puntuale.Owner {
			if err := p.anotherOwner(ctx, a, u); err != nil {
				return err
			}
		}
		changeUser(&u, patch)
		if patch.Password.Set {
			if err := endInvitation(ctx, a, id); err != nil {
				return err
			}
			u.Joined, u.Invited = u.Password != "", time.Time{}
		}
		if patch.NewPlace.Set {
			if err := notice.Add(ctx, a, puntuale.Notice{Partner: p.id, Client: client, User: id, Kind: puntuale.NoticeSignIn,
				Detail: puntuale.NoticeDetail{Address: patch.NewPlace.To}, At: u.Seen}); err != nil {
				return err
			}
		}
		return storeUser(ctx, a, u)
	})
	if err != nil {
		return puntuale.User{}, err
	}
	return u, nil
}

func changeUser(u *puntuale.User, p puntuale.UserPatch) {
	p.Name.Apply(&u.Name)
	p.Role.Apply(&u.Role)
	p.Language.Apply(&u.Language)
	p.Password.Apply(&u.Password)
	p.Second.Apply(&u.Second)
	p.Seen.Apply(&u.Seen)
	if p.EndVisits {
		u.Stamp++
	}
}

func storeUser(ctx context.Context, a engine.Querier, u puntuale.User) error {
	if u.Second.Recovery == nil {
		u.Second.Recovery = []string{}
	}
	recovery, err := engine.ToJSON(u.Second.Recovery)
	if err != nil {
		return err
	}
	secret := u.Second.Secret
	if secret == nil {
		secret = []byte{}
	}
	if _, err := a.Exec(ctx, `update login set name = $2, role = $3, language = $4, password = $5, stamp = $6, second = $7, second_last = $8,
 recovery = $9, seen_at = $10 where id = $1`, u.ID, u.Name, int64(u.Role), u.Language, u.Password, u.Stamp, secret, u.Second.Last,
		recovery, engine.Micros(u.Seen)); err != nil {
		return fmt.Errorf("update a user: %w", err)
	}
	return nil
}

// anotherOwner returns an error if the user u is the only one with the role owner. If u has ever signed in, owners who
// were invited and never signed in do not count.
func (p Partner) anotherOwner(ctx context.Context, a engine.Querier, u puntuale.User) error {
	if u.Role != puntuale.Owner {
		return nil
	}
	var n int64
	if _, err := engine.QueryOne(ctx, a, `select count(*) from login where partner_id = $1 and client_id = $2 and role = $3 and id <> $4
 and (password <> '' or $5 = 0)`, []any{p.id, u.Client, int64(puntuale.Owner), u.ID, engine.Bit(u.Joined)}, &n); err != nil {
		return fmt.Errorf("count owners: %w", err)
	}
	if n == 0 {
		return puntuale.Conflict(faultUserLastOwner)
	}
	return nil
}

// DeleteUser deletes a user. Codes: conflict (no owner would be left).
func (p Partner) DeleteUser(ctx context.Context, client puntuale.ClientID, id puntuale.UserID) error {
	return p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if err := p.lockUsers(ctx, a, client); err != nil {
			return err
		}
		u, found, err := p.user(ctx, a, client, id)
		if err := engine.ThereOr(found, err, puntuale.NoUser); err != nil {
			return err
		}
		if err := p.anotherOwner(ctx, a, u); err != nil {
			return err
		}
		if err := endInvitation(ctx, a, id); err != nil {
			return err
		}
		for _, kind := range []puntuale.MailKind{puntuale.MailReset, puntuale.MailNotices} {
			if err := dropMails(ctx, a, id, kind); err != nil {
				return err
			}
		}
		if err := notice.UserDeleted(ctx, a, u); err != nil {
			return err
		}
		_, err = a.Exec(ctx, `delete from login where id = $1`, id)
		return err
	})
}
