//go:build !nosocket

package socket

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types/events"

	"puntuale"
)

const (
	loginTakes = 45 * time.Second // from the dial until the network accepts the login
	ownedAgain = 500 * time.Millisecond
	keepAlives = 2 // after this number of unanswered keepalives the connection counts as dead, even if TCP reports no error
)

// login connects at the given time. It counts as one of the logins under way until it succeeds or fails.
func (n *number) login(ctx context.Context, epoch int, at time.Time) {
	clock := n.c.cfg.Clock
	if clock.Sleep(ctx, at.Sub(clock.Now())) != nil {
		return
	}
	n.apply(epoch, func(m *linkMachine) { m.begun() })
	leave, err := n.c.enter(ctx)
	if err != nil {
		return
	}
	defer leave()
	for !n.c.cfg.Owned() { // another node might own the number by now, and two connections of one number would end each other
		if clock.Sleep(ctx, ownedAgain) != nil {
			return
		}
	}
	var settled <-chan struct{}
	if err := puntuale.Recovered(func() (err error) {
		settled, err = n.dial(ctx, epoch)
		return err
	}); err != nil {
		n.failed(epoch, err)
		return
	}
	timeout, stop := clock.After(loginTakes)
	defer stop()
	select {
	case <-settled:
	case <-ctx.Done():
	case <-timeout:
		n.apply(epoch, func(m *linkMachine) { m.lost(puntuale.Because(reasonSilent), clock.Now()) })
	}
}

// errNoDevice says that the number has no keys any more.
var errNoDevice = errors.New("the number has no keys")

// dial connects the number's client. The network's answer comes later, as events. dial returns the channel settled,
// which is closed once the login succeeded or failed.
func (n *number) dial(ctx context.Context, epoch int) (settled <-chan struct{}, err error) {
	devices, err := n.c.devices(ctx)
	if err != nil {
		return nil, err
	}
	if err := n.c.versions.check(ctx, devices); err != nil {
		return nil, err
	}
	device, err := devices.find(ctx, n.id)
	if err == nil && device == nil {
		err = errNoDevice
	}
	if err != nil {
		return nil, err
	}
	cli := n.newClient(device, func(cli *whatsmeow.Client, event any) bool { return n.receive(epoch, cli, event) })
	n.mu.Lock()
	if n.closed || n.epoch != epoch {
		n.mu.Unlock()
		return nil, context.Canceled
	}
	n.cli = cli
	settled = n.settled
	n.mu.Unlock()
	err = cli.ConnectContext(n.ctx)
	if ctx.Err() != nil {
		cli.Disconnect()
	}
	return settled, err
}

// failed records that a login failed before the network answered.
func (n *number) failed(epoch int, err error) {
	now := n.c.cfg.Clock.Now()
	n.apply(epoch, func(m *linkMachine) {
		switch {
		case errors.Is(err, errNoDevice):
			m.unlinked(puntuale.Because(reasonKeysGone))
		case errors.Is(err, errOutdated):
			m.outdated()
		default:
			n.log.Info("a number could not be connected", "error", err)
			m.lost(puntuale.Because(reasonOutOfReach), now)
		}
	})
}

// newClient makes a client for one connection. Each connection needs a new client, because a client remembers data of
// its connection.
func (n *number) newClient(device *store.Device, hear func(*whatsmeow.Client, any) bool) *whatsmeow.Client {
	cli := whatsmeow.NewClient(device, quiet{n.log})
	cli.EnableAutoReconnect, cli.InitialAutoReconnect, cli.DisableLoginAutoReconnect = false, false, true
	cli.AutoTrustIdentity, cli.ManualHistorySyncDownload = true, true
	cli.UseRetryMessageStore = true
	cli.SynchronousAck, cli.EnableDecryptedEventBuffer = true, true // the network stores an event until the event is on disk here
	cli.BackgroundEventCtx = n.ctx
	http := n.c.httpOf(n.client)
	cli.SetPreLoginHTTPClient(http)
	cli.SetWebsocketHTTPClient(http)
	cli.SetMediaHTTPClient(http)
	var announced atomic.Pointer[store.WAVersionContainer]
	cli.GetClientPayload = func() *waWa6.ClientPayload {
		payload, version := announce(device)
		announced.Store(&version)
		return payload
	}
	cli.AddEventHandlerWithSuccessStatus(func(event any) bool {
		if _, refused := event.(*events.ClientOutdated); refused && announced.Load() != nil {
			n.c.versions.refuse(n.c, *announced.Load())
		}
		return hear(cli, event)
	})
	return cli
}

// receive handles an event of a connection. It may wait for the disk, but never for the network. It returns false if
// the network must repeat the event.
func (n *number) receive(epoch int, cli *whatsmeow.Client, event any) bool {
	now := n.c.cfg.Clock.Now()
	switch e := event.(type) {
	case *events.Receipt:
		return n.receipt(e)
	case *events.Message:
		return n.wrote(cli, e)
	case *events.NotifyAccountReachoutTimelock:
		n.timelocked(e)
	case *events.KeepAliveTimeout:
		if e.ErrorCount >= keepAlives {
			n.apply(epoch, func(m *linkMachine) { m.lost(puntuale.Because(reasonNoAnswer), now) })
		}
	default:
		n.apply(epoch, func(m *linkMachine) { moved(m, cli, event, now) })
	}
	return true
}

// moved applies an event to the link state.
func moved(m *linkMachine, cli *whatsmeow.Client, event any, now time.Time) {
	switch e := event.(type) {
	case *events.Connected:
		m.online("+"+cli.Store.GetJID().User, now)
	case *events.Disconnected:
		m.lost(puntuale.Because(reasonDropped), now)
	case *events.ClientOutdated:
		m.outdated()
	case *events.StreamReplaced:
		m.replaced()
	case *events.LoggedOut:
		m.loggedOut(puntuale.Because(whyLoggedOut(e)))
	case *events.TemporaryBan:
		m.banned(e.Expire, puntuale.Because(whyBanned(e.Code)), now)
	case *events.ConnectFailure:
		m.refused(puntuale.Because(reasonLoginRefused, e.Reason.NumberString()), now)
	case *events.StreamError:
		m.lost(puntuale.Because(reasonClosed, clip(e.Code, 20)), now)
	case *events.ManualLoginReconnect: // after a number was linked, the network asks for a new login
		m.connecting(now)
	}
}

func whyLoggedOut(e *events.LoggedOut) puntuale.ReasonCode {
	switch e.Reason {
	case events.ConnectFailureMainDeviceGone:
		return reasonPhoneGone
	case events.ConnectFailureUnknownLogout:
		return reasonNumberBlocked
	}
	return reasonPhoneUnlinked
}

func whyBanned(code events.TempBanReason) puntuale.ReasonCode {
	switch code {
	case events.TempBanSentToTooManyPeople:
		return reasonBanStrangers
	case events.TempBanBlockedByUsers:
		return reasonBanBlocked
	case events.TempBanCreatedTooManyGroups:
		return reasonBanGroups
	case events.TempBanSentTooManySameMessage:
		return reasonBanSame
	case events.TempBanBroadcastList:
		return reasonBanBroadcast
	}
	return reasonBanTerms
}

// Reconnect starts the connection of a linked number immediately.
func (c *Connector) Reconnect(ctx context.Context, session puntuale.SessionID) error {
	n := c.number(session)
	if n == nil {
		return errNotOpen
	}
	select {
	case <-n.looked: // until look ends, the number's state does not show whether the number is linked
	case <-ctx.Done():
		return ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := c.cfg.Clock.Now()
	if err := n.state.mayReconnect(now); err != nil {
		return err
	}
	if n.state.link.State == puntuale.LinkOnline || n.state.link.Condition == puntuale.Connecting {
		return nil
	}
	n.change(func(m *linkMachine) {
		m.failures = 0
		m.connecting(now)
	})
	return nil
}
