package sendapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"puntuale"
)

// payload is a prepared message: one request, without its keys.
type payload struct {
	name       string // name of the request
	encoding   form
	parameters map[string]string
}

// Reasons why a message cannot be prepared.
const (
	reasonKindOfRecipient puntuale.ReasonCode = "sendapp.kind_of_recipient"
	reasonOnlyGroups      puntuale.ReasonCode = "sendapp.only_numbers_and_groups"
	reasonNoAddress       puntuale.ReasonCode = "sendapp.no_address" // uploaded files have no address that the internet reaches
)

// Prepare makes the request's parameters. It fetches a file only to check its address, because the gateway fetches the
// file itself.
func (c *Connector) Prepare(ctx context.Context, e puntuale.Envelope) (puntuale.Prepared, error) {
	a := c.account(e.Session)
	if a == nil || !a.online(c.cfg.Clock.Now()) {
		return puntuale.Prepared{}, offline()
	}
	p := payload{name: "send", encoding: inJSON, parameters: map[string]string{"type": "text", "message": written(e.Content)}}
	switch {
	case strings.HasPrefix(e.To, "+"):
		p.parameters["number"] = e.To[1:]
	case strings.HasSuffix(e.To, "@g.us"):
		p.name, p.encoding = "send_group", inForm // send_group accepts no JSON
		p.parameters["group_id"] = e.To
	default:
		return puntuale.Prepared{}, &puntuale.SendError{Kind: puntuale.Final, Reason: puntuale.Because(reasonKindOfRecipient), Detail: puntuale.Because(reasonOnlyGroups)}
	}
	if e.Content.Official != nil {
		return puntuale.Prepared{}, &puntuale.SendError{Kind: puntuale.Final, Reason: puntuale.Because(puntuale.ReasonOnlyOfficial), Detail: puntuale.Quoted("official")}
	}
	if e.Content.MediaURL != "" {
		name, err := c.checkMedia(ctx, e)
		if err != nil {
			return puntuale.Prepared{}, err
		}
		address := e.Content.MediaURL
		if id, named := puntuale.UploadedFile(address); named {
			if address = c.cfg.Address(e.Client, id); !strings.HasPrefix(address, "http") {
				return puntuale.Prepared{}, &puntuale.SendError{Kind: puntuale.Final, Reason: puntuale.Because(puntuale.ReasonNoFiles), Detail: puntuale.Because(reasonNoAddress)}
			}
		}
		p.parameters["type"], p.parameters["media_url"] = "media", address
		if name = cmp.Or(e.Content.MediaName, name); name != "" {
			p.parameters["filename"] = name
		}
	}
	return puntuale.Prepared{Envelope: e, Payload: p}, nil
}

// checkMedia fetches the file once. It applies the rules for every address that comes from a caller, and reads the first byte:
// the gateway would send the message without a file that it does not get. It returns the name of a file that the client
// uploaded.
func (c *Connector) checkMedia(ctx context.Context, e puntuale.Envelope) (name string, err error) {
	if c.cfg.Media == nil {
		return "", &puntuale.SendError{Kind: puntuale.Final, Reason: puntuale.Because(puntuale.ReasonNoFiles), Detail: puntuale.Because(puntuale.ReasonNoFetcher)}
	}
	file, err := c.cfg.Media.Fetch(ctx, puntuale.MediaRequest{Client: e.Client, Run: e.Run, URL: e.Content.MediaURL})
	if err != nil {
		return "", err
	}
	unreadable := file.CheckReadable()
	if err := file.Close(); err != nil && unreadable == nil {
		return "", fmt.Errorf("close a fetched file: %w", err)
	}
	return file.Name, unreadable
}

// Send sends the request to the gateway. After that the message cannot be cancelled. If the message is a repeat, the
// earlier attempt may have arrived. So a refused repeat proves nothing, and the outcome stays uncertain.
func (c *Connector) Send(ctx context.Context, prepared puntuale.Prepared) (puntuale.Acceptance, error) {
	receipt, err := c.send(ctx, prepared)
	return receipt, prepared.Unsure(err)
}

func (c *Connector) send(ctx context.Context, prepared puntuale.Prepared) (puntuale.Acceptance, error) {
	p, ok := prepared.Payload.(payload)
	if !ok {
		return puntuale.Acceptance{}, &puntuale.SendError{Kind: puntuale.Final, Reason: puntuale.Because(puntuale.ReasonUnprepared), Detail: puntuale.Quoted("payload")}
	}
	if err := ctx.Err(); err != nil {
		return puntuale.Acceptance{}, &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(puntuale.ReasonInterrupted), Detail: puntuale.Quoted(err.Error()), Err: err}
	}
	a := c.account(prepared.Session)
	if a == nil {
		return puntuale.Acceptance{}, offline()
	}
	keys, ok := a.access(c.cfg.Clock.Now())
	if !ok {
		return puntuale.Acceptance{}, offline()
	}
	answered, err := c.call(ctx, a, keys, p.name, p.encoding, p.parameters)
	if unsent, ok := errors.AsType[*unsentError](err); ok {
		a.lookNow()
		return puntuale.Acceptance{}, &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(reasonSilent), Detail: puntuale.Because(puntuale.ReasonUnsent, storable(unsent.err.Error(), 300)), Err: err}
	}
	if err == nil {
		err = answered.refusal()
	}
	if err != nil {
		a.refused(err, answered)
		return puntuale.Acceptance{}, err
	}
	id := storable(answered.sentID(), maxNetworkID)
	c.keepID(ctx, a, prepared.Envelope, id)
	c.noteNames(ctx, a, prepared.Envelope, answered.sent())
	return puntuale.Acceptance{Detail: puntuale.Quoted(id)}, nil
}

// maxNetworkID is the largest size of a message id from a gateway, in bytes. WhatsApp's ids have about 30.
const maxNetworkID = 128

// refused changes the session's state as the gateway's answer requires. If the answer does not show what happened to
// the message, refused requests a status check, because all later messages could get the same answer.
func (a *account) refused(err error, answered answer) {
	e := puntuale.AsSendError(err)
	if e == nil {
		a.lookNow()
		return
	}
	switch e.Kind {
	case puntuale.Throttled:
		a.wait(e.After)
		a.set(puntuale.LinkOnline, e.Reason.Code)
	case puntuale.SessionDown:
		a.noteDown(puntuale.LinkUnlinked, e.Reason.Code)
	case puntuale.Final, puntuale.Transient, puntuale.Deferred:
	}
}

// noteTime limits how long storing the network's id may delay an outcome.
const noteTime = 2 * time.Second

// keepID stores the network's id of a message, so that later acks find the message. If storing fails, the message
// counts as sent, but acks cannot confirm it.
func (c *Connector) keepID(ctx context.Context, a *account, e puntuale.Envelope, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	err := c.cfg.Store.KeepNetworkID(ctx, e.Client, puntuale.NetworkID{
		MessageRef: puntuale.MessageRef{Client: e.Client, ID: e.Message}, Session: e.Session, ID: id, Token: e.Token, At: c.cfg.Clock.Now(),
	})
	if err != nil {
		a.log.Warn("the network's id of a message could not be stored", "message_id", int64(e.Message), "error", err)
	}
}

// noteNames stores the names by which the gateway sent the message to the person, if they differ from ours. WhatsApp writes
// the numbers of some countries in another form than we do, and may know the person by a LID.
func (c *Connector) noteNames(ctx context.Context, a *account, e puntuale.Envelope, sent messageKey) {
	now := c.cfg.Clock.Now()
	var fresh []puntuale.Alias
	for _, name := range []string{sent.phone(), sent.hidden()} {
		x := puntuale.Alias{Client: e.Client, Session: e.Session, Name: name, Phone: e.To}
		if name != "" && name != e.To && strings.HasPrefix(e.To, "+") && !c.aliases.Known(x, now) {
			fresh = append(fresh, x)
		}
	}
	if len(fresh) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	if err := c.cfg.Take(ctx, e.Session, puntuale.InboundBatch{Aliases: fresh}); err != nil {
		a.log.Warn("another name of a recipient could not be kept", "error", err) // only a warning, because the next answer contains the name again
		return
	}
	c.aliases.Note(fresh, now)
}

func offline() *puntuale.SendError {
	return &puntuale.SendError{Kind: puntuale.SessionDown, Reason: puntuale.Because(puntuale.ReasonNotLinked), Detail: puntuale.Because(puntuale.ReasonPaused)}
}
