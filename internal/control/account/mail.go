package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control/request"
)

// How many requests for a new password are accepted without a wait: for one account, and from one IP address.
const (
	resetsOfAccount = 3
	resetsOfAddress = 20
)

// resetRequest is the sealed part of [puntuale.MailResetAsked] and [puntuale.MailReset].
type resetRequest struct {
	Email    string `json:"email,omitempty"`
	Language string `json:"language"` // the language of the page where the user asked for the link
}

// sealedLink is the sealed part of [puntuale.MailInvitation].
type sealedLink struct {
	Secret   string `json:"secret"` // the secret in the link
	Language string `json:"language"`
}

// Mails reports whether the service sends e-mails.
func (c *Accounts) Mails() bool { return c.mails != nil }

// ResetRequest is a request for a link to set a new password.
type ResetRequest struct {
	Partner  puntuale.PartnerID // the partner of the page where the user asked; 0: unknown
	Email    string
	Language string // the page's language; used if the user chose no language
	Address  netip.Addr
}

// AskReset queues a request for e-mails, in which each user with this address gets a link to set a new password. It
// does the same work for every address, because only the sender of e-mails looks for users. Therefore, a caller cannot
// find out whether a user exists. Codes: invalid; not_found if the service sends no e-mail; rate_limited.
func (c *Accounts) AskReset(ctx context.Context, r ResetRequest) error {
	if !c.Mails() {
		return puntuale.NotFound(puntuale.NoPage)
	}
	email := strings.TrimSpace(r.Email)
	var f request.Faults
	f.Required("body.email", email, maxEmail)
	if email != "" && (!hasAt(email) || !isStorable(email)) {
		f.Add("body.email", puntuale.FaultNotEmail, r.Email)
	}
	if err := f.Err(); err != nil {
		return err
	}
	account := strings.ToLower(email) + "/" + idText(r.Partner)
	if err := c.try(ctx, puntuale.SignInAttempt{Mark: c.mark("reset account", account), Free: resetsOfAccount},
		puntuale.SignInAttempt{Mark: c.mark("reset address", auth.Network(r.Address)), Free: resetsOfAddress}); err != nil {
		return err
	}
	reset := puntuale.Mail{Partner: r.Partner, Kind: puntuale.MailResetAsked, Queued: c.clock.Now()}
	reset.Sealed = c.sealMail(puntuale.SealedReset, resetRequest{email, r.Language})
	if err := c.mails.QueueMails(ctx, []puntuale.Mail{reset}, 0); err != nil {
		return fmt.Errorf("queue a request for a password: %w", err)
	}
	return nil
}

func (c *Accounts) sealMail(purpose string, content any) []byte {
	plain, err := json.Marshal(content)
	if err != nil {
		panic("write what an e-mail needs: " + err.Error()) // these types contain only texts, which can always be encoded
	}
	return c.vault.Seal(purpose, purpose, plain)
}

func (c *Accounts) openMail(purpose string, sealed []byte, content any) error {
	plain, err := c.vault.Open(purpose, purpose, sealed)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, content)
}

// errNoLetter means that the e-mail need not be sent any more.
var errNoLetter = errors.New("nothing is to be sent")

// Letter returns the content of a queued e-mail. needed is false if there is nothing to send, because the user was
// deleted or the link is no longer valid. A request for a new password is not an e-mail itself. For such a request,
// Letter queues one e-mail for each user with the address, and returns false.
func (c *Accounts) Letter(ctx context.Context, m puntuale.Mail) (letter puntuale.Letter, needed bool, err error) {
	switch m.Kind {
	case puntuale.MailResetAsked:
		err = c.queueResets(ctx, m)
	case puntuale.MailReset:
		letter, err = c.resetLetter(ctx, m)
	case puntuale.MailInvitation:
		letter, err = c.invitationLetter(ctx, m)
	case puntuale.MailNotices:
		letter, err = c.noticeLetter(ctx, m)
	default:
		err = fmt.Errorf("an e-mail of kind %d: a newer version queued it", m.Kind)
	}
	if errors.Is(err, errNoLetter) {
		return letter, false, nil
	}
	return letter, err == nil, err
}

// queueResets queues an e-mail for each user with the address, and removes the request from the queue.
func (c *Accounts) queueResets(ctx context.Context, m puntuale.Mail) error {
	var reset resetRequest
	if c.openMail(puntuale.SealedReset, m.Sealed, &reset) != nil {
		return errNoLetter // the installation's key changed, so the request cannot be decrypted; the person may ask again
	}
	users, err := c.signIns.UsersByEmail(ctx, reset.Email, m.Partner, maxChecks)
	if err != nil {
		return fmt.Errorf("look for users: %w", err)
	}
	var all []puntuale.Mail
	for _, u := range users {
		all = append(all, puntuale.Mail{
			Partner: u.Partner, User: u.ID, Kind: puntuale.MailReset, Queued: m.Queued,
			Sealed: c.sealMail(puntuale.SealedReset, resetRequest{Language: reset.Language}),
		})
	}
	if err := c.mails.QueueMails(ctx, all, m.ID); err != nil {
		return fmt.Errorf("queue links for new passwords: %w", err)
	}
	return errNoLetter
}

// resetLetter creates a new link for each attempt to send the e-mail. Therefore, the link's time of validity begins
// when the e-mail is sent, and no link is stored.
func (c *Accounts) resetLetter(ctx context.Context, m puntuale.Mail) (puntuale.Letter, error) {
	var reset resetRequest
	if c.openMail(puntuale.SealedReset, m.Sealed, &reset) != nil {
		return puntuale.Letter{}, errNoLetter
	}
	letter, _, err := c.letterTo(ctx, m, reset.Language)
	if err != nil {
		return letter, err
	}
	secret, err := c.Ticket(ctx, puntuale.UnfinishedReset, m.User)
	if err != nil {
		return letter, err
	}
	letter.Until = c.clock.Now().Add(puntuale.UnfinishedReset.Lifetime())
	letter.Link = c.site(letter.Host) + "/reset?" + url.Values{"t": {secret}}.Encode()
	return letter, nil
}

func (c *Accounts) invitationLetter(ctx context.Context, m puntuale.Mail) (puntuale.Letter, error) {
	var waiting sealedLink
	if c.openMail(puntuale.SealedInvitation, m.Sealed, &waiting) != nil {
		return puntuale.Letter{}, errNoLetter
	}
	letter, _, err := c.letterTo(ctx, m, waiting.Language)
	if err != nil {
		return letter, err
	}
	user, err := c.signIns.Invited(ctx, ticketHash(waiting.Secret), c.clock.Now())
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound, err == nil && user != m.User:
		return letter, errNoLetter
	case err != nil:
		return letter, fmt.Errorf("look for an invitation: %w", err)
	}
	letter.Until = m.Queued.Add(puntuale.UnfinishedInvitation.Lifetime())
	letter.Link = c.site(letter.Host) + "/invitation?" + url.Values{"t": {waiting.Secret}}.Encode()
	return letter, nil
}

// letterTo begins a letter to the user. The letter is in the user's language, or in the given language if the user
// chose none.
func (c *Accounts) letterTo(ctx context.Context, m puntuale.Mail, language string) (puntuale.Letter, puntuale.User, error) {
	u, host, err := c.signIns.UserByID(ctx, m.User)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return puntuale.Letter{}, u, errNoLetter
	case err != nil:
		return puntuale.Letter{}, u, fmt.Errorf("read a user: %w", err)
	}
	if u.Language != "" {
		language = u.Language
	}
	return puntuale.Letter{Kind: m.Kind, To: u.Email, Language: language, Host: host}, u, nil
}

// site returns the address of a partner's pages: the partner's confirmed host name, or else the service's own address.
// The address never comes from a request, because a caller can write any host into a request.
func (c *Accounts) site(h puntuale.Host) string {
	if h.Brand.Confirmed {
		return "https://" + h.Brand.Host
	}
	return c.public
}

// Resetting returns the user of a link for a new password. Codes: unauthorized, with [ErrOver].
func (c *Accounts) Resetting(ctx context.Context, secret string) (*Person, error) {
	return c.Holder(ctx, puntuale.UnfinishedReset, secret)
}

// Reset sets the user's password. It consumes the link, and makes the user's other links for a new password invalid. It
// ends all visits and pending steps of the user. It does not sign the user in, and does not change the second factor.
// Codes: unauthorized, with [ErrOver]; invalid.
func (c *Accounts) Reset(ctx context.Context, secret, password string) (*Person, error) {
	p, err := c.Resetting(ctx, secret)
	if err != nil {
		return nil, err
	}
	var f request.Faults
	checkPassword(&f, "body.password", password, p.user.Email, p.user.Name, p.host.Partner.Name)
	if err := f.Err(); err != nil {
		return nil, err
	}
	hash, err := auth.HashPassword(ctx, p.asker(), password)
	if err != nil {
		return nil, err
	}
	read := p.user.Stamp // the stamp when the link was found valid; if several callers use the link at the same time, only one succeeds
	err = p.change(ctx, puntuale.UserPatch{Password: puntuale.ChangeTo(hash), EndVisits: true}, func(u puntuale.User) error {
		if u.Stamp != read {
			return stepOver(faultSigninTooLate)
		}
		return nil
	})
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return nil, stepOver(faultSigninTooLate)
	case err != nil:
		return nil, err
	}
	return p, nil
}
