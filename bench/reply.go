package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	replyRate    = 1000 // how many replies come in a second, each in a separate request
	replySenders = 32
	replyNumbers = 10 // how many clients have a number
)

// The functions below return the names of figures about inbound messages.
func callsBesideReplies(quantile, engine string) string {
	return onEngine(fmt.Sprintf("start calls, %d a second, while %s replies a second come, %s", callRate, count(replyRate), quantile), engine)
}

func tookReply(quantile, engine string) string {
	return onEngine("a reply's delivery, until it is on disk, "+quantile, engine)
}

func repliesTaken(engine string) string { return onEngine("replies taken a second", engine) }

func idleBeforeReplies(quantile, engine string) string {
	return onEngine(fmt.Sprintf("start calls, %d a second, before any reply comes, %s", callRate, quantile), engine)
}

// replyTargets returns the targets for inbound messages.
func replyTargets() (all []target) {
	for _, engine := range []string{postgres, sqlite} {
		all = append(all,
			target{figure: repliesTaken(engine), lowest: 0.97 * replyRate},
			target{figure: callsBesideReplies("p99", engine), divisor: idleBeforeReplies("p99", engine), highest: 2})
	}
	return all
}

// replies measures start calls to a running server while people write to Official numbers.
func (b *bench) replies(ctx context.Context) (failed error) {
	for _, engine := range b.engines() {
		failed = errors.Join(failed, b.withCampaigner(ctx, engine, b.replying))
	}
	return failed
}

func (b *bench) replying(ctx context.Context, c *campaigner) error {
	numbers := make([]*number, replyNumbers)
	for i := range numbers {
		var err error
		if numbers[i], err = c.number(ctx, i); err != nil {
			return err
		}
	}
	p := &people{campaigner: c, numbers: numbers}
	// This warms up connections, query plans and statements. It also sends messages to people, so that they can reply.
	if _, err := c.callsDuring(ctx, func() error { return p.write(ctx, b.idle/4, nil) }); err != nil {
		return err
	}
	idle, err := c.callsDuring(ctx, func() error { return pass(ctx, b.idle) })
	if err != nil {
		return err
	}
	if err := idle.note(&b.sheet, func(quantile string) string { return idleBeforeReplies(quantile, c.engine) }, 1); err != nil {
		return err
	}
	var took delays
	first, begun := p.wrote, time.Now()
	name, w, used := repliesTaken(c.engine), b.watch(c.engine), c.server.cpu()
	beside, err := c.callsDuring(ctx, func() error { return p.write(ctx, b.idle, &took) })
	if err != nil {
		return err
	}
	n := p.wrote - first
	b.sheet.note(name, perSecond, float64(n)/time.Since(begun).Seconds())
	b.sheet.note(name+": CPU of the server, with its start calls", microCPU, (c.server.cpu()-used).Seconds()*1e6/float64(n))
	if e := w.stop(name, n); e.served {
		b.sheet.note(name+itsEffort, microCPU, e.database)
	}
	if err := took.note(&b.sheet, func(quantile string) string { return tookReply(quantile, c.engine) }, n); err != nil {
		return err
	}
	kept, err := c.count(ctx, "select count(*) from reply")
	if err == nil && kept != p.wrote {
		err = fmt.Errorf("%d replies are kept of %d", kept, p.wrote)
	}
	return errors.Join(err, beside.note(&b.sheet, func(quantile string) string { return callsBesideReplies(quantile, c.engine) }, 1))
}

// number is an Official number of a client. The server stores all replies to this client.
type number struct {
	client
	id, secret, webhook string
}

func (c *campaigner) number(ctx context.Context, i int) (*number, error) {
	n := &number{client: c.clients[i], id: fmt.Sprint(100 + i), secret: fmt.Sprintf("secret-%d", i)}
	copied := *c
	copied.client = n.client
	var made struct {
		Webhook string `json:"webhook_path"`
	}
	err := copied.call(ctx, http.MethodPost, "/api/sessions", map[string]any{
		"name": "ufficiale", "connection_type": "Official", "sandbox": false, "official": map[string]string{
			"phone_number_id": n.id, "access_token": "EAAtoken" + n.id, "app_secret": n.secret, "verify_token": "verify" + n.id, "business_account_id": "55" + n.id,
		}}, &made)
	if err == nil {
		err = copied.call(ctx, http.MethodPatch, "/api/settings", map[string]any{"keep_replies": "all"}, nil)
	}
	n.webhook = made.Webhook
	return n, err
}

// people simulates persons who write to the clients' numbers.
type people struct {
	*campaigner
	numbers []*number
	text    func(i int) string // returns the text of the i-th message; nil: one message in a hundred is an opt-out
	wrote   int
}

// write delivers replies at a steady rate for the time d. The argument took collects how long each delivery waited for
// its answer; nil: this is not measured.
func (p *people) write(ctx context.Context, d time.Duration, took *delays) error {
	return p.writeAt(ctx, d, replyRate, took)
}

// writeAt does the same as write, at a rate of replies a second.
func (p *people) writeAt(ctx context.Context, d time.Duration, rate int, took *delays) error {
	open := make([]*caller, replySenders)
	for i := range open {
		conn, err := dial(p.server.address)
		if err != nil {
			return err
		}
		defer conn.Close()
		open[i] = conn
	}
	from, first := time.Now(), p.wrote
	n := int(d.Seconds() * float64(rate))
	var done atomic.Int64
	_, err := each(n, replySenders, func(worker, i int) error {
		due := from.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		to := p.numbers[(first+i)%len(p.numbers)]
		if err := open[worker].deliver(to, inbound(to, first+i, p.says(first+i))); err != nil {
			return err
		}
		if took != nil {
			took.add(time.Since(due))
		}
		done.Add(1)
		return ctx.Err()
	})
	p.wrote += int(done.Load())
	return err
}

func (p *people) says(i int) string {
	switch {
	case p.text != nil:
		return p.text(i)
	case i%100 == 7:
		return "Basta!"
	}
	return "Grazie, a domani!"
}

// inbound returns the webhook body with one inbound message. Half of the persons have already got a message from a
// client.
func inbound(to *number, i int, text string) []byte {
	phone := fmt.Sprintf("39347%07d", i)
	if i%2 == 1 {
		phone = fmt.Sprintf("39348%07d", i)
	}
	return fmt.Appendf(nil, `{"object":"whatsapp_business_account","entry":[{"id":"55%[1]s","changes":[{"field":"messages","value":{"messaging_product":"whatsapp",`+
		`"metadata":{"display_phone_number":"390212345","phone_number_id":"%[1]s"},"contacts":[{"profile":{"name":"Maria"},"wa_id":"%[2]s"}],`+
		`"messages":[{"from":"%[2]s","id":"wamid.in.%[3]d","timestamp":"%[4]d","type":"text","text":{"body":%[5]q}}]}}]}]}`, to.id, phone, i, time.Now().Unix(), text)
}

// deliver posts a webhook request as Meta does, and reads the answer.
func (c *caller) deliver(to *number, body []byte) error {
	mac := hmac.New(sha256.New, []byte(to.secret))
	mac.Write(body)
	return c.send(to.webhook, "X-Hub-Signature-256: sha256="+hex.EncodeToString(mac.Sum(nil))+"\r\n", body)
}
