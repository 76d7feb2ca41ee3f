package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"puntuale"
	"puntuale/internal/auth"
)

// recoveryCodes is how many recovery codes a user gets. A recovery code replaces a code of the second factor if the
// phone is lost.
const recoveryCodes = 10

func (p *Person) place() string { return "user " + p.user.ID.String() }

// Codes of the faults that this file reports.
const (
	faultSecondExists    puntuale.ReasonCode = "second.exists"
	faultSecondNone      puntuale.ReasonCode = "second.none"
	faultSecondUsed      puntuale.ReasonCode = "second.used"
	faultSecondWrongCode puntuale.ReasonCode = "second.wrong_code"
)

// errCode returns the error for every wrong code.
func errCode() error {
	return puntuale.Invalid(puntuale.Fault{Location: "body.code", Code: faultSecondWrongCode})
}

// NewSecond creates the secret of a second factor. The secret has no effect before [Person.SetSecond].
func (p *Person) NewSecond() (secret []byte, url string, err error) {
	secret, err = auth.NewSecret()
	if err != nil {
		return nil, "", err
	}
	return secret, p.SecondURL(secret), nil
}

// SecondURL encodes a secret as the URL that an authenticator app scans.
func (p *Person) SecondURL(secret []byte) string {
	name := p.host.Brand.Name
	if name == "" {
		name = p.host.Partner.Name
	}
	return auth.SecretURL(secret, name, p.user.Email)
}

// SetSecond turns the second factor on, if a code proves that the person's app has the secret. It returns the recovery
// codes, which are shown only once. Codes: invalid; rate_limited; conflict if the person already has a second factor.
// In this case, call [Person.EndSecond] first.
func (p *Person) SetSecond(ctx context.Context, secret []byte, code string) ([]string, error) {
	if p.user.Second.Enabled() {
		return nil, errSecondIsOn
	}
	mark := p.accounts.mark("second", p.user.ID.String(), strconv.FormatInt(p.user.Stamp, 10))
	if err := p.accounts.try(ctx, puntuale.SignInAttempt{Mark: mark, Free: triesOfCode}); err != nil {
		return nil, err
	}
	step, ok := auth.CheckCode(secret, auth.TidyCode(code), p.accounts.clock.Now(), 0)
	if !ok {
		return nil, errCode()
	}
	codes, hashes := p.newRecovery()
	second := puntuale.SecondFactor{Secret: p.accounts.vault.Seal(puntuale.SealedSecond, p.place(), secret), Last: step, Recovery: hashes}
	if err := p.change(ctx, puntuale.UserPatch{Second: puntuale.ChangeTo(second)}, func(u puntuale.User) error {
		if u.Second.Enabled() { // another request set up a second factor in the meantime
			return errSecondIsOn
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return codes, p.accounts.forget(ctx, mark)
}

var errSecondIsOn = puntuale.Conflict(faultSecondExists)

// EndSecond turns the second factor off. code is a code of the second factor, or a recovery code. Codes: invalid (the
// password or the code is wrong), conflict if there is no second factor, rate_limited.
func (p *Person) EndSecond(ctx context.Context, password, code string) error {
	if err := p.confirmBoth(ctx, password, code); err != nil {
		return err
	}
	return p.change(ctx, puntuale.UserPatch{Second: puntuale.ChangeTo(puntuale.SecondFactor{})}, p.sameSecond())
}

// confirmBoth checks the current password and a code before a change of the second factor. If the password is wrong, it
// does not check the code, and the code can still be used.
func (p *Person) confirmBoth(ctx context.Context, password, code string) error {
	if !p.user.Second.Enabled() {
		return puntuale.Conflict(faultSecondNone)
	}
	if err := p.confirm(ctx, "body.present", password); err != nil {
		return err
	}
	return p.CheckSecond(ctx, code)
}

// RenewRecovery replaces the remaining recovery codes by new ones. code is a code of the second factor, or a recovery
// code. Codes: invalid (the password or the code is wrong), conflict if there is no second factor, rate_limited.
func (p *Person) RenewRecovery(ctx context.Context, password, code string) ([]string, error) {
	if err := p.confirmBoth(ctx, password, code); err != nil {
		return nil, err
	}
	codes, hashes := p.newRecovery()
	second := p.user.Second
	second.Recovery = hashes
	if err := p.change(ctx, puntuale.UserPatch{Second: puntuale.ChangeTo(second)}, p.sameSecond()); err != nil {
		return nil, err
	}
	return codes, nil
}

func (p *Person) newRecovery() (codes, hashes []string) {
	for range recoveryCodes {
		code := auth.NewRecoveryCode()
		codes, hashes = append(codes, code), append(hashes, p.recoveryHash(code))
	}
	return codes, hashes
}

func (p *Person) recoveryHash(code string) string {
	return p.accounts.vault.Mark("recovery code", p.user.ID.String(), auth.TidyCode(code))
}

// CheckSecond checks a code of the second factor, or a recovery code. Each code works once. Codes: invalid, rate_limited.
func (p *Person) CheckSecond(ctx context.Context, code string) error {
	mark := p.accounts.mark("second", p.user.ID.String(), strconv.FormatInt(p.user.Stamp, 10))
	if err := p.accounts.try(ctx, puntuale.SignInAttempt{Mark: mark, Free: triesOfCode}); err != nil {
		return err
	}
	secret, err := p.accounts.vault.Open(puntuale.SealedSecond, p.place(), p.user.Second.Secret)
	if err != nil {
		return fmt.Errorf("open a second factor: %w", err)
	}
	second := p.user.Second
	step, ok := auth.CheckCode(secret, auth.TidyCode(code), p.accounts.clock.Now(), second.Last)
	if ok {
		second.Last = step
	} else if i := slices.Index(second.Recovery, p.recoveryHash(code)); i >= 0 {
		second.Recovery, ok = slices.Delete(slices.Clone(second.Recovery), i, i+1), true
	}
	if !ok {
		return errCode()
	}
	if err := p.change(ctx, puntuale.UserPatch{Second: puntuale.ChangeTo(second)}, p.sameSecond()); err != nil {
		if errors.Is(err, errMeanwhile) {
			return errCode()
		}
		return err
	}
	return p.accounts.forget(ctx, mark)
}

// SignInSecond is [Person.CheckSecond] for a person who signs in. It records a wrong code in the audit log.
func (p *Person) SignInSecond(ctx context.Context, code string, from netip.Addr) error {
	err := p.CheckSecond(ctx, code)
	if puntuale.CodeOf(err) != puntuale.CodeInvalid {
		return err
	}
	mark := p.accounts.mark("second", p.user.ID.String(), strconv.FormatInt(p.user.Stamp, 10))
	if err := p.accounts.fail(ctx, mark, []puntuale.User{p.user}, "code", from); err != nil {
		return err
	}
	return err
}

var errMeanwhile = puntuale.Conflict(faultSecondUsed)

// sameSecond returns a function that refuses a change of the user if another request used or changed the second factor
// in the meantime.
func (p *Person) sameSecond() func(puntuale.User) error {
	read := p.user.Second
	return func(u puntuale.User) error {
		if u.Second.Last != read.Last || !slices.Equal(u.Second.Recovery, read.Recovery) || !slices.Equal(u.Second.Secret, read.Secret) {
			return errMeanwhile
		}
		return nil
	}
}
