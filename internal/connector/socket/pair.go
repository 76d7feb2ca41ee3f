//go:build !nosocket

package socket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types/events"

	"puntuale"
)

// How long codes are valid. WhatsApp gives six codes together, and closes the connection after the last code expired.
const (
	firstCode  = time.Minute
	otherCodes = 20 * time.Second
	typedCode  = 160 * time.Second
	relogin    = 10 * time.Second // how long to wait until the network asks for the first login; then the login begins anyway
)

// pairingName is the name that a phone shows when it asks whether to link this device. The network accepts only names
// that it knows.
const pairingName = "Chrome (Linux)"

// Pair begins to link a session, and returns without waiting. Config.Report gets each code.
func (c *Connector) Pair(_ context.Context, session puntuale.SessionID, method puntuale.PairMethod, phone string) error {
	n := c.number(session)
	if n == nil {
		return errNotOpen
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errNotOpen
	}
	n.begin(func(ctx context.Context, epoch int) {
		p := &pairing{number: n, epoch: epoch, method: method, phone: phone, codes: make(chan []string, 1), secrets: make(chan events.RotateADVSecret, 8), ended: make(chan puntuale.Reason, 1), linked: make(chan bool, 2)}
		if err := puntuale.Recovered(func() error { p.run(ctx); return nil }); err != nil {
			p.fail(ctx, err)
		}
	})
	return nil
}

// pairing is one try to link a number.
type pairing struct {
	*number
	epoch  int
	method puntuale.PairMethod
	phone  string

	codes   chan []string               // codes that the network gave
	secrets chan events.RotateADVSecret // new secrets, which replace the secrets in the codes
	ended   chan puntuale.Reason        // why the pairing failed
	linked  chan bool                   // sent when the number is linked; true: the network asks for the first login
}

// Reasons why a number could not be linked.
const (
	reasonCodeUnused     puntuale.ReasonCode = "socket.code_unused"
	reasonTryAgain       puntuale.ReasonCode = "socket.pairing_out_of_reach"
	reasonOutdated       puntuale.ReasonCode = "socket.outdated"
	reasonTooManyTries   puntuale.ReasonCode = "socket.too_many_tries"
	reasonNumberRefused  puntuale.ReasonCode = "socket.number_refused"
	reasonPairAgain      puntuale.ReasonCode = "socket.pair_again"
	reasonNoMoreDevices  puntuale.ReasonCode = "socket.no_more_devices"
	reasonPasskey        puntuale.ReasonCode = "socket.passkey"
	reasonPairingClosed  puntuale.ReasonCode = "socket.pairing_closed"
	reasonPairingRefused puntuale.ReasonCode = "socket.pairing_refused" // {1}: WhatsApp's code
)

// run shows one code after another, until a phone uses a code or no code is left.
func (p *pairing) run(ctx context.Context) {
	cli, err := p.dial(ctx)
	if err != nil {
		p.fail(ctx, err)
		return
	}
	var shown []string
	var expiresAt time.Time // when the code that is shown expires
	var next <-chan time.Time
	var rotated []events.RotateADVSecret
	for {
		select {
		case <-ctx.Done():
			return
		case reason := <-p.ended:
			p.apply(p.epoch, func(m *linkMachine) { m.unlinked(reason) })
			return
		case requested := <-p.linked:
			p.login(ctx, requested)
			return
		case codes := <-p.codes:
			if p.method == puntuale.PairCode {
				if shown, err = p.ask(ctx, cli); err != nil {
					p.fail(ctx, err)
					return
				}
			} else {
				shown = codes
			}
		case secret := <-p.secrets:
			rotated = append(rotated, secret)
			if renew(shown, rotated); len(shown) > 0 {
				p.report(shown[0], expiresAt)
			}
			continue
		case <-next:
			shown = shown[1:]
		}
		if len(shown) == 0 {
			p.apply(p.epoch, func(m *linkMachine) { m.unlinked(puntuale.Because(reasonCodeUnused)) })
			return
		}
		renew(shown, rotated)
		life := p.life(len(shown))
		expiresAt = p.c.cfg.Clock.Now().Add(life)
		var stop func()
		next, stop = p.c.cfg.Clock.After(life)
		defer stop() // at most six codes are shown, so at most six calls are deferred
		p.report(shown[0], expiresAt)
	}
}

// renew puts the new secrets into the codes, because a phone refuses codes with old secrets.
func renew(codes []string, rotated []events.RotateADVSecret) {
	for _, secret := range rotated {
		for i := range codes {
			codes[i] = strings.Replace(codes[i], secret.OldSecret, secret.NewSecret, 1)
		}
	}
}

// dial connects as a device that is not linked yet.
func (p *pairing) dial(ctx context.Context) (*whatsmeow.Client, error) {
	leave, err := p.c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	devices, err := p.c.devices(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.c.versions.check(ctx, devices); err != nil {
		return nil, err
	}
	if err := devices.forget(ctx, p.id); err != nil { // remove the keys of an earlier link
		return nil, err
	}
	cli := p.newClient(devices.fresh(p.id), p.hear)
	p.mu.Lock()
	if p.closed || p.number.epoch != p.epoch {
		p.mu.Unlock()
		return nil, context.Canceled
	}
	p.cli = cli
	p.mu.Unlock()
	if err := cli.ConnectContext(p.ctx); err != nil {
		return nil, err
	}
	return cli, nil
}

// fail reports why a pairing could not begin.
func (p *pairing) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	reason := reasonTryAgain
	switch {
	case errors.Is(err, errOutdated):
		reason = reasonOutdated
	case errors.Is(err, whatsmeow.ErrIQRateOverLimit):
		reason = reasonTooManyTries
	case errors.Is(err, whatsmeow.ErrIQBadRequest), errors.Is(err, whatsmeow.ErrPhoneNumberTooShort), errors.Is(err, whatsmeow.ErrIQNotFound):
		reason = reasonNumberRefused
	}
	p.log.Info("a number could not be linked", "error", clip(err.Error(), 300))
	p.apply(p.epoch, func(m *linkMachine) { m.unlinked(puntuale.Because(reason)) })
}

// ask requests from the network the code that a person types into the phone.
func (p *pairing) ask(ctx context.Context, cli *whatsmeow.Client) ([]string, error) {
	code, err := cli.PairPhone(ctx, p.phone, true, whatsmeow.PairClientChrome, pairingName)
	if err != nil {
		return nil, fmt.Errorf("ask for a pairing code: %w", err)
	}
	return []string{code}, nil
}

// life returns how long a code is valid. left is the number of codes that are left, including this code.
func (p *pairing) life(left int) time.Duration {
	switch {
	case p.method == puntuale.PairCode:
		return typedCode
	case left == 6:
		return firstCode
	}
	return otherCodes
}

func (p *pairing) report(code string, expiresAt time.Time) {
	p.apply(p.epoch, func(m *linkMachine) { m.pairing(puntuale.PairingCode{Method: p.method, Text: code}, expiresAt) })
}

// login begins the number's first login, once the network asks for it or the wait ends.
func (p *pairing) login(ctx context.Context, requested bool) {
	clock := p.c.cfg.Clock
	timeout, stop := clock.After(relogin)
	defer stop()
	for !requested {
		select {
		case requested = <-p.linked:
		case <-timeout:
			requested = true
		case <-ctx.Done():
			return
		}
	}
	p.coldContacts.free()
	p.apply(p.epoch, func(m *linkMachine) {
		m.failures, m.quarantines = 0, 0
		m.connecting(clock.Now())
	})
}

// hear handles the network's events while the number is being linked. It never blocks.
func (p *pairing) hear(_ *whatsmeow.Client, event any) bool {
	switch e := event.(type) {
	case *events.QR:
		offer(p.codes, e.Codes)
	case *events.RotateADVSecret:
		offer(p.secrets, *e)
	case *events.PairSuccess:
		offer(p.linked, false)
	case *events.ManualLoginReconnect:
		offer(p.linked, true)
	case *events.PairError:
		p.log.Info("a number could not be linked", "error", clip(e.Error.Error(), 300))
		offer(p.ended, puntuale.Because(reasonPairAgain))
	case *events.QRScannedWithoutMultidevice:
		offer(p.ended, puntuale.Because(reasonNoMoreDevices))
	case *events.PairPasskeyRequest, *events.PairPasskeyConfirmation:
		p.apply(p.epoch, func(m *linkMachine) { m.passkey() })
	case *events.PairPasskeyError:
		offer(p.ended, puntuale.Because(reasonPasskey))
	case *events.Disconnected:
		offer(p.ended, puntuale.Because(reasonPairingClosed))
	case *events.ConnectFailure:
		offer(p.ended, puntuale.Because(reasonPairingRefused, e.Reason.NumberString()))
	case *events.ClientOutdated:
		offer(p.ended, puntuale.Because(reasonOutdated))
	}
	return true
}

// offer sends a value to a channel. If the channel is full, offer drops the value.
func offer[T any](to chan<- T, value T) {
	select {
	case to <- value:
	default:
	}
}
