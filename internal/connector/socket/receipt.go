//go:build !nosocket

package socket

import (
	"context"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"puntuale"
)

// takeWait limits how long storing an event may take. If storing fails, the event is not acknowledged, and the network
// repeats it at the next login.
const takeWait = 10 * time.Second

// countsAsNew is the age below which an event counts as new. A new event can seem this old, because the network rounds
// times to seconds.
const countsAsNew = 2 * time.Second

// receipt stores the receipts of messages. It finds each message by its id, not by the recipient: the network may name
// the recipient by number or by LID.
func (n *number) receipt(e *events.Receipt) bool {
	var kind puntuale.ReceiptKind
	switch e.Type {
	case types.ReceiptTypeDelivered, types.ReceiptTypeInactive: // inactive: delivered to a device in the background
		kind = puntuale.ReceiptDelivered
	case types.ReceiptTypeRead, types.ReceiptTypePlayed:
		kind = puntuale.ReceiptRead
	default:
		return true
	}
	at := n.moment(e.Timestamp)
	var reported puntuale.InboundBatch
	for _, id := range e.MessageIDs {
		if m, own := n.c.ids.message(id); own {
			reported.Receipts = append(reported.Receipts, puntuale.DeliveryReceipt{
				MessageRef: puntuale.MessageRef{Client: n.client, ID: m}, Session: n.id, Kind: kind, At: at, Detail: puntuale.Quoted(id),
			})
		}
	}
	return n.take(reported)
}

// moment returns when an event happened. The network rounds times to seconds, so an event may seem to happen before its
// cause. Therefore moment returns the present time for a time less than countsAsNew ago.
func (n *number) moment(reported time.Time) time.Time {
	now := n.c.cfg.Clock.Now()
	if reported.Unix() <= 0 || reported.After(now) || now.Sub(reported) < countsAsNew {
		return now
	}
	return reported.UTC()
}

// take stores what the network reported. It returns false if storing failed.
func (n *number) take(reported puntuale.InboundBatch) bool {
	if len(reported.Receipts) == 0 && len(reported.Messages) == 0 && len(reported.Aliases) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(n.ctx, takeWait)
	defer cancel()
	if err := n.c.cfg.Take(ctx, n.id, reported); err != nil {
		if n.ctx.Err() == nil {
			n.log.Warn("what the network told could not be kept", "error", err)
		}
		return false
	}
	n.c.aliases.Note(reported.Aliases, n.c.cfg.Clock.Now())
	return true
}

// aliases returns the LID as a name of the person with the number, unless it was stored a short time ago. So stop, blacklist
// and consent hold for both.
func (n *number) aliases(phone, lid types.JID) []puntuale.Alias {
	x := puntuale.Alias{Client: n.client, Session: n.id, Name: lid.ToNonAD().String(), Phone: "+" + phone.User}
	if phone.IsEmpty() || lid.IsEmpty() || n.c.aliases.Known(x, n.c.cfg.Clock.Now()) {
		return nil
	}
	return []puntuale.Alias{x}
}

// If a person wrote before the number ever wrote to that person, longPast is stored as the time since which the number
// knows the person. The time is so long ago that such a person does not count in any day's pace of cold contacts.
var longPast = time.UnixMicro(1).UTC()

// bothOf returns a person's number and LID. Each of them is empty if it is not known.
func (n *number) bothOf(ctx context.Context, cli *whatsmeow.Client, one, other types.JID) (phone, lid types.JID) {
	for _, jid := range []types.JID{one, other} {
		switch jid.Server {
		case types.DefaultUserServer:
			phone = jid
		case types.HiddenUserServer:
			lid = jid
		}
	}
	if phone.IsEmpty() && !lid.IsEmpty() {
		if found, err := cli.Store.LIDs.GetPNForLID(ctx, lid); err == nil {
			phone = found.ToNonAD()
		}
	}
	return phone, lid
}
