//go:build !nosocket

package socket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"golang.org/x/time/rate"

	"puntuale"
)

// Before a message leaves, the connector asks the network whether the person has WhatsApp, because messages to numbers
// without WhatsApp look like spam. The network also limits such queries. So the connector stores the answers, asks
// about several people in one query, and asks rarely.
const (
	existsKept   = 7 * 24 * time.Hour
	missingKept  = 6 * time.Hour
	groupKept    = time.Hour
	maxInQuery   = 50 // the most people in one query
	asksBurst    = 50
	asksEvery    = time.Second
	askAgain     = 5 * time.Minute // how long to wait after the network refused a query because there were too many
	maxAnswers   = 50_000
	askTakes     = 20 * time.Second
	inviteLength = 22
)

// Reasons why a recipient cannot be written to, or must be checked first.
const (
	reasonInvalidRecipient puntuale.ReasonCode = "socket.invalid_recipient"
	reasonAddress          puntuale.ReasonCode = "socket.address"
	reasonNoWhatsApp       puntuale.ReasonCode = "socket.no_whatsapp"
	reasonNotRegistered    puntuale.ReasonCode = "socket.not_registered"
	reasonCheckWaits       puntuale.ReasonCode = "socket.check_waits"
	reasonChecksLimited    puntuale.ReasonCode = "socket.checks_limited"
	reasonCheckInterrupted puntuale.ReasonCode = "socket.check_interrupted"
	reasonTimeUp           puntuale.ReasonCode = "socket.time_up"
	reasonCheckFailed      puntuale.ReasonCode = "socket.check_failed"
	reasonInviteRevoked    puntuale.ReasonCode = "socket.invitation_revoked"
	reasonInviteInvalid    puntuale.ReasonCode = "socket.invitation_invalid"
	reasonGroupWaits       puntuale.ReasonCode = "socket.group_check_waits"
	reasonGroupFailed      puntuale.ReasonCode = "socket.group_check_failed"
	reasonNotLinked        puntuale.ReasonCode = "socket.not_linked"
)

// overLimit is the network's error text for too many queries.
const overLimit = "429 rate-overlimit"

// personDirectory stores which people have WhatsApp. It contains the answers to one number's queries. It is safe for
// concurrent use.
type personDirectory struct {
	n     *number
	limit *rate.Limiter

	mu      sync.Mutex
	answers map[string]answer
	waiting map[string][]chan error // callers that wait for an answer; the key is the person
	asking  bool
	quiet   time.Time // no query is sent before this time
}

type answer struct {
	exists     bool
	jid        types.JID // the network's address of the person, or the group of an invitation code
	validUntil time.Time
}

func newPeople(n *number) *personDirectory {
	return &personDirectory{
		n: n, limit: rate.NewLimiter(rate.Every(asksEvery), asksBurst), answers: map[string]answer{}, waiting: map[string][]chan error{},
	}
}

// find returns the network's address of a recipient. If the recipient is a person, find checks that the person has
// WhatsApp.
func (p *personDirectory) find(ctx context.Context, cli *whatsmeow.Client, to string) (types.JID, error) {
	switch {
	case strings.HasPrefix(to, "+"):
		return p.findPhone(ctx, cli, to)
	case strings.Contains(to, "@"):
		jid, err := types.ParseJID(to)
		if err != nil || jid.User == "" {
			return jid, final(reasonInvalidRecipient, puntuale.Because(reasonAddress))
		}
		return jid, nil
	case len(to) == inviteLength:
		return p.findGroup(ctx, cli, to)
	}
	return types.JID{}, final(reasonInvalidRecipient, puntuale.Because(reasonAddress))
}

func (p *personDirectory) validAnswer(person string) (answer, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.answers[person]
	return a, ok && p.n.c.cfg.Clock.Now().Before(a.validUntil)
}

func (p *personDirectory) keep(person string, a answer, d time.Duration) {
	a.validUntil = p.n.c.cfg.Clock.Now().Add(d)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.answers) >= maxAnswers {
		clear(p.answers)
	}
	p.answers[person] = a
}

func (p *personDirectory) findPhone(ctx context.Context, cli *whatsmeow.Client, phone string) (types.JID, error) {
	jid := types.NewJID(strings.TrimPrefix(phone, "+"), types.DefaultUserServer)
	a, ok := p.validAnswer(phone)
	if !ok {
		// If the person's LID is stored, the person has WhatsApp, because LIDs come only from the network.
		if lid, err := cli.Store.LIDs.GetLIDForPN(ctx, jid); err == nil && !lid.IsEmpty() {
			p.keep(phone, answer{exists: true, jid: jid}, existsKept)
			p.n.take(puntuale.InboundBatch{Aliases: p.n.aliases(jid, lid)}) // after a failure, the next message of the person reports the name again
			return jid, nil
		}
		if err := p.wait(ctx, phone); err != nil {
			return jid, err
		}
		a, _ = p.validAnswer(phone)
	}
	if !a.exists {
		return jid, final(reasonNoWhatsApp, puntuale.Because(reasonNotRegistered))
	}
	return a.jid, nil
}

// wait waits for the network's answer whether a person has WhatsApp. It returns an error immediately if no query may be
// sent now.
func (p *personDirectory) wait(ctx context.Context, phone string) error {
	if left := p.quietFor(); left > 0 {
		return checksWait(left)
	}
	done := make(chan error, 1)
	p.mu.Lock()
	p.waiting[phone] = append(p.waiting[phone], done)
	if !p.asking {
		p.asking = true
		p.n.wg.Go(p.ask)
	}
	p.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(reasonCheckInterrupted), Detail: puntuale.Because(reasonTimeUp), Err: ctx.Err()}
	}
}

// ask sends queries as long as a caller waits for an answer.
func (p *personDirectory) ask() {
	for {
		err := p.limit.Wait(p.n.ctx)
		p.mu.Lock()
		if len(p.waiting) == 0 {
			p.asking = false
			p.mu.Unlock()
			return
		}
		batch := map[string][]chan error{}
		for phone, person := range p.waiting {
			if batch[phone] = person; len(batch) == maxInQuery {
				break
			}
		}
		for phone := range batch {
			delete(p.waiting, phone)
		}
		p.mu.Unlock()
		if left := p.quietFor(); err == nil && left > 0 {
			err = checksWait(left)
		}
		if err == nil {
			err = puntuale.Recovered(func() error { return p.query(batch) })
		}
		for _, person := range batch {
			for _, done := range person {
				done <- err
			}
		}
	}
}

// query asks the network about some people, and stores the answers.
func (p *personDirectory) query(batch map[string][]chan error) error {
	cli := p.n.connected()
	if cli == nil {
		return offline()
	}
	phones := make([]string, 0, len(batch))
	for phone := range batch {
		phones = append(phones, phone)
	}
	ctx, cancel := context.WithTimeout(p.n.ctx, askTakes)
	defer cancel()
	found, err := cli.IsOnWhatsApp(ctx, phones)
	if errors.Is(err, whatsmeow.ErrIQRateOverLimit) {
		p.beQuiet()
		return &puntuale.SendError{Kind: puntuale.Deferred, Reason: puntuale.Because(reasonCheckWaits), Detail: puntuale.Quoted(overLimit), After: askAgain, Err: err}
	}
	if err != nil {
		return &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(reasonCheckFailed), Detail: puntuale.Quoted(clip(err.Error(), 200)), Err: err}
	}
	people := map[string]types.IsOnWhatsAppResponse{}
	for _, one := range found {
		person := strings.TrimPrefix(one.Query, "+")
		if person == "" {
			person = one.PhoneNumber.User
		}
		if one.IsIn {
			people["+"+person] = one
		}
	}
	var reported puntuale.InboundBatch
	for _, phone := range phones {
		one, exists := people[phone]
		if !exists {
			p.keep(phone, answer{}, missingKept)
			continue
		}
		// The network may know the person by a number with other digits, or only by a LID. Only this address reaches the
		// person.
		a := answer{exists: true, jid: one.PhoneNumber.ToNonAD()}
		if a.jid.IsEmpty() {
			a.jid = one.JID.ToNonAD()
		}
		p.keep(phone, a, existsKept)
		names := []string{nameOf(one.PhoneNumber.ToNonAD(), types.EmptyJID)}
		if one.JID.Server == types.HiddenUserServer {
			names = append(names, one.JID.ToNonAD().String())
		}
		for _, name := range names {
			if name != "" && name != phone {
				reported.Aliases = append(reported.Aliases, puntuale.Alias{Client: p.n.client, Session: p.n.id, Name: name, Phone: phone})
			}
		}
	}
	p.n.take(reported) // after a failure, the next query reports the names again
	return nil
}

// checksWait is the answer while no query may be sent.
func checksWait(left time.Duration) *puntuale.SendError {
	return &puntuale.SendError{Kind: puntuale.Deferred, Reason: puntuale.Because(reasonCheckWaits), Detail: puntuale.Because(reasonChecksLimited), After: left}
}

// beQuiet stops all queries for askAgain, because the network answered that there were too many.
func (p *personDirectory) beQuiet() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quiet = p.n.c.cfg.Clock.Now().Add(askAgain)
}

// quietFor returns how long no query may be sent. If it is 0 or less, a query may be sent now.
func (p *personDirectory) quietFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.quiet.Sub(p.n.c.cfg.Clock.Now())
}

// findGroup returns the group of an invitation code.
func (p *personDirectory) findGroup(ctx context.Context, cli *whatsmeow.Client, code string) (types.JID, error) {
	if a, ok := p.validAnswer(code); ok {
		return a.jid, nil
	}
	if left := p.quietFor(); left > 0 {
		return types.JID{}, &puntuale.SendError{Kind: puntuale.Deferred, Reason: puntuale.Because(reasonGroupWaits), Detail: puntuale.Because(reasonChecksLimited), After: left}
	}
	group, err := cli.GetGroupInfoFromLink(ctx, code)
	switch {
	case errors.Is(err, whatsmeow.ErrInviteLinkRevoked):
		return types.JID{}, final(reasonInviteRevoked, puntuale.Quoted("410"))
	case errors.Is(err, whatsmeow.ErrInviteLinkInvalid), errors.Is(err, whatsmeow.ErrIQNotFound), errors.Is(err, whatsmeow.ErrIQBadRequest):
		return types.JID{}, final(reasonInviteInvalid, puntuale.Quoted("406"))
	case errors.Is(err, whatsmeow.ErrIQRateOverLimit):
		p.beQuiet()
		return types.JID{}, &puntuale.SendError{Kind: puntuale.Deferred, Reason: puntuale.Because(reasonGroupWaits), Detail: puntuale.Quoted(overLimit), After: askAgain, Err: err}
	case err != nil:
		return types.JID{}, &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(reasonGroupFailed), Detail: puntuale.Quoted(clip(err.Error(), 200)), Err: err}
	}
	p.keep(code, answer{exists: true, jid: group.JID}, groupKept)
	return group.JID, nil
}

func final(code puntuale.ReasonCode, detail puntuale.Reason) *puntuale.SendError {
	return &puntuale.SendError{Kind: puntuale.Final, Reason: puntuale.Because(code), Detail: detail}
}

func offline() *puntuale.SendError {
	return &puntuale.SendError{Kind: puntuale.SessionDown, Reason: puntuale.Because(puntuale.ReasonNotLinked), Detail: puntuale.Because(reasonNotLinked)}
}

// clip shortens a text from the network, because such a text may have any length.
func clip(text string, limit int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}

// errPayload says that Send got a payload that Prepare did not make.
var errPayload = fmt.Errorf("the message was not prepared")
