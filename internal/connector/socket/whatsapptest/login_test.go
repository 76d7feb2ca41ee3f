//go:build !nosocket

package whatsapptest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"puntuale/internal/connector/socket/whatsapptest"
)

// TestLoginFails shows how a client reacts to each refusal of a login.
func TestLoginFails(t *testing.T) {
	t.Parallel()
	for reason, check := range map[int]func(c *client){
		401: func(c *client) {
			await(c, 0, func(e *events.LoggedOut) bool { return e.OnConnect && e.Reason == events.ConnectFailureLoggedOut })
		},
		403: func(c *client) {
			await(c, 0, func(e *events.LoggedOut) bool { return e.Reason == events.ConnectFailureMainDeviceGone })
		},
		405: func(c *client) { await[*events.ClientOutdated](c, 0, nil) },
		406: func(c *client) {
			await(c, 0, func(e *events.LoggedOut) bool { return e.Reason == events.ConnectFailureUnknownLogout })
		},
		409: func(c *client) {
			await(c, 0, func(e *events.ConnectFailure) bool { return e.Reason == events.ConnectFailureBadUserAgent })
		},
		503: func(c *client) { await[*events.Disconnected](c, 0, nil) },
	} {
		t.Run(events.ConnectFailureReason(reason).NumberString(), func(t *testing.T) {
			t.Parallel()
			net := whatsapptest.New(t)
			shop := net.Account("393330000001")
			c := linked(t, net, shop)
			c.Disconnect()
			shop.FailLogins(reason, 1)
			c.EnableAutoReconnect = false
			if err := c.Connect(); err != nil {
				t.Fatal(err)
			}
			check(c)
			logins := net.Logins()
			if last := logins[len(logins)-1]; last.Failure != reason || last.Number != shop.Number() || last.Version == 0 {
				t.Errorf("the last login is %+v", last)
			}
		})
	}
}

// TestBan bans an account for some time.
func TestBan(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	shop := net.Account("393330000001")
	c := linked(t, net, shop)
	shop.Ban(101, time.Hour)
	ban := await[*events.TemporaryBan](c, 0, nil) // the client learns of the ban when it reconnects
	if ban.Code != events.TempBanSentToTooManyPeople || ban.Expire < 59*time.Minute || ban.Expire > 61*time.Minute {
		t.Errorf("%+v", ban)
	}
	c.Disconnect()
	shop.AllowLogins()
	before := c.events()
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	await[*events.Connected](c, before, nil)
}

// TestVersion refuses old clients, and shows them the required version.
func TestVersion(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	c := linked(t, net, net.Account("393330000001"))
	net.RequireVersion(1099999999)
	await[*events.ClientOutdated](c, 0, nil)
	guest := newClient(t, net)
	if err := guest.Connect(); err != nil {
		t.Fatal(err)
	}
	await[*events.ClientOutdated](guest, 0, nil)
	net.FailVersionPage(502)
	if latest, err := whatsmeow.GetLatestVersion(t.Context(), net.HTTPClient()); err == nil {
		t.Errorf("the latest version is %v", latest)
	}
	net.FailVersionPage(0)
	latest, err := whatsmeow.GetLatestVersion(t.Context(), net.HTTPClient())
	if err != nil || (*latest)[2] != 1099999999 {
		t.Errorf("the latest version is %v: %v", latest, err)
	}
	if n := net.VersionReads(); n != 2 {
		t.Errorf("the page was read %d times", n)
	}
	net.RequireVersion(0)
	c.Disconnect()
	before := c.events()
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	await[*events.Connected](c, before, nil)
}

// TestReplaced logs in two clients with the same keys.
func TestReplaced(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	first := linked(t, net, net.Account("393330000001"))
	second := openClient(t, net, whatsmeow.NewClient(first.Store, nil))
	if err := second.Connect(); err != nil {
		t.Fatal(err)
	}
	await[*events.Connected](second, 0, nil)
	await[*events.StreamReplaced](first, 0, nil)
	logins := net.Logins()
	if last := logins[len(logins)-1]; !last.Replaced || logins[1].Replaced || net.PeakArriving() != 1 {
		t.Errorf("logins %+v, %d at a time", logins, net.PeakArriving())
	}
}

// TestKicks shows how a client reacts to each stream error.
func TestKicks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kick  whatsapptest.Kick
		check func(c *client, before int)
	}{
		"replaced":    {whatsapptest.Replaced, func(c *client, before int) { await[*events.StreamReplaced](c, before, nil) }},
		"unavailable": {whatsapptest.Unavailable, func(c *client, before int) { await[*events.Connected](c, before, nil) }},
		"restart":     {whatsapptest.Restart, func(c *client, before int) { await[*events.Connected](c, before, nil) }},
		"bad request": {whatsapptest.BadRequest, func(c *client, before int) {
			await(c, before, func(e *events.StreamError) bool { return e.Code == "400" })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			net := whatsapptest.New(t)
			shop := net.Account("393330000001")
			c := linked(t, net, shop)
			before := c.events()
			shop.Kick(test.kick)
			test.check(c, before)
		})
	}
}

// TestCut breaks a connection. A message that was sent meanwhile arrives after the client connected again.
func TestCut(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	shop, anna := net.Account("393330000001"), net.Phone("393330000002")
	c := linked(t, net, shop)
	before := c.events()
	net.Refuse(true)
	shop.Cut()
	await[*events.Disconnected](c, before, nil)
	id, err := anna.Send(t.Context(), shop.Number(), "ci siete?")
	if err != nil {
		t.Fatal(err)
	}
	net.Refuse(false)
	await(c, before, func(m *events.Message) bool { return m.Info.ID == id })
	await(c, before, func(e *events.OfflineSyncCompleted) bool { return e.Count > 0 })
}

// TestDeaf shows how a client reacts when the network no longer answers.
func TestDeaf(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	shop, anna := net.Account("393330000001"), net.Account("393330000002")
	c := linked(t, net, shop)
	c.sendText(anna.JID(), "uno") // before the first message the client queries Anna's devices; the next message needs no query
	shop.Deafen()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.SendMessage(ctx, anna.JID(), &waE2E.Message{Conversation: proto.String("due")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("sent: %v", err)
	}
	if n := len(net.Messages(shop.Number())); n != 1 {
		t.Errorf("%d messages", n)
	}
	before := c.events()
	shop.Cut()
	await[*events.Connected](c, before, nil)
	c.sendText(anna.JID(), "due")
}
