package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	automationRules  = 100
	birthdaysQuick   = 20_000
	birthdaysFull    = 100_000
	calmReplies      = 10 // replies a second that come to a machine with no other work
	firingLook       = 10 * time.Millisecond
	firingsWithin    = 2 * time.Minute
	birthdaysWithin  = 10 * time.Minute
	replyActsBound   = 2000 // the highest allowed time until a rule acts on a reply, in milliseconds
	birthdaysSeconds = 60
)

// The functions below return the names of figures about automations.
func birthdaysPlanned(n int, engine string) string {
	return onEngine(fmt.Sprintf("%s birthdays of one day planned, beside %d start calls a second", count(n), callRate), engine)
}

func callsBesideBirthdays(quantile, engine string) string {
	return onEngine(fmt.Sprintf("start calls, %d a second, while birthdays are planned, %s", callRate, quantile), engine)
}

func idleBeforeBirthdays(quantile, engine string) string {
	return onEngine(fmt.Sprintf("start calls, %d a second, before any birthday is planned, %s", callRate, quantile), engine)
}

func repliesRuled(engine string) string {
	return onEngine(fmt.Sprintf("replies a second through %d rules", automationRules), engine)
}

func replyActs(rate int, quantile, engine string) string {
	return onEngine(fmt.Sprintf("a reply, until its rule has acted, %s replies a second, %s", count(rate), quantile), engine)
}

// automationTargets returns the targets for automations.
func automationTargets() (all []target) {
	for _, engine := range []string{postgres, sqlite} {
		for _, n := range []int{birthdaysFull, birthdaysQuick} {
			all = append(all, target{figure: birthdaysPlanned(n, engine), highest: birthdaysSeconds})
		}
		all = append(all,
			target{figure: callsBesideBirthdays("p99", engine), divisor: idleBeforeBirthdays("p99", engine), highest: 2},
			target{figure: repliesRuled(engine), lowest: 0.97 * replyRate},
			target{figure: replyActs(calmReplies, "p99", engine), highest: replyActsBound})
	}
	return all
}

// automations measures the rules of a running server.
func (b *bench) automations(ctx context.Context) (failed error) {
	for _, engine := range b.engines() {
		failed = errors.Join(failed, b.withCampaigner(ctx, engine, b.birthdays), b.withCampaigner(ctx, engine, b.ruled))
	}
	return failed
}

// made makes a thing through the API, and returns its id.
func (c *campaigner) made(ctx context.Context, path string, body any) (string, error) {
	var made struct{ ID string }
	err := c.call(ctx, http.MethodPost, path, body, &made)
	return made.ID, err
}

// rule makes a rule of the campaigner's client, and returns the rule's id. The rule starts a sequence.
func (c *campaigner) rule(ctx context.Context, name string, trigger map[string]any, sequence string) (string, error) {
	return c.made(ctx, "/api/automations", map[string]any{
		"name": name, "trigger": trigger, "actions": []any{map[string]string{"kind": "start", "sequence": sequence}}})
}

// birthdays measures how long a rule takes to plan the birthdays of many contacts, all on one day. It also measures
// start calls during that time. The messages leave a day later.
func (b *bench) birthdays(ctx context.Context, c *campaigner) error {
	engine, n := c.engine, birthdaysFull
	if b.quick {
		n = birthdaysQuick
	}
	if err := c.contacts(ctx, n); err != nil {
		return err
	}
	b.calm(engine)
	sequence, err := c.made(ctx, "/api/sequences", map[string]any{"name": "Auguri", "steps": []any{map[string]any{"text": "Tanti auguri, {{nome}}!",
		"timing": map[string]any{"anchor": "nascita", "offset": map[string]any{"amount": 1, "unit": "days", "direction": "after"}, "at": "23:00"}}}})
	if err != nil {
		return err
	}
	if _, err := c.callsDuring(ctx, func() error { return pass(ctx, b.idle/4) }); err != nil { // warms up connections, query plans and statements
		return err
	}
	idle, err := c.callsDuring(ctx, func() error { return pass(ctx, b.idle) })
	if err == nil {
		err = idle.note(&b.sheet, func(quantile string) string { return idleBeforeBirthdays(quantile, engine) }, 1)
	}
	if err != nil {
		return err
	}
	what, w, used, begun := birthdaysPlanned(n, engine), b.watch(engine), c.server.cpu(), time.Now()
	beside, err := c.callsDuring(ctx, func() error {
		id, err := c.rule(ctx, "Auguri", map[string]any{"kind": "date", "field": "nascita", "repeat": "yearly"}, sequence)
		if err != nil {
			return err
		}
		return c.reaches(ctx, "select fired from automation where id = "+id, n, birthdaysWithin)
	})
	if err != nil {
		return err
	}
	b.sheet.note(what, seconds, time.Since(begun).Seconds())
	b.sheet.note(what+": CPU of the server, with its start calls", microCPU, (c.server.cpu()-used).Seconds()*1e6/float64(n))
	if e := w.stop(what, n); e.served {
		b.sheet.note(what+itsEffort, microCPU, e.database)
	}
	planned, err := c.count(ctx, "select count(*) from message where origin = 4")
	if err == nil && planned != n {
		err = fmt.Errorf("%d messages are planned for %d birthdays", planned, n)
	}
	return errors.Join(err, beside.note(&b.sheet, func(quantile string) string { return callsBesideBirthdays(quantile, engine) }, 1))
}

// contacts writes contacts of the client into the database. All have their birthday today.
func (c *campaigner) contacts(ctx context.Context, n int) error {
	zone, err := time.LoadLocation("Europe/Rome") // the client's zone; the day there may differ from this machine's day
	if err != nil {
		return fmt.Errorf("read the client's time zone: %w", err)
	}
	born := "1990-" + time.Now().In(zone).Format("01-02")
	if strings.HasSuffix(born, "02-29") {
		born = "1992-02-29"
	}
	if _, err := c.db.ExecContext(ctx, `with recursive c(x) as (select 1 union all select x + 1 from c where x < $1)
 insert into person (client_id, id, phone, name, fields, created_at, changed_at)
 select $2, x, '+39333' || cast(1000000 + x as text), 'Maria', cast($3 as text), $4, $4 from c`,
		n, int64(c.client.id), `{"nascita":{"kind":"date","value":"`+born+`"}}`, time.Now().UnixMicro()); err != nil {
		return fmt.Errorf("write contacts: %w", err)
	}
	if _, err := c.db.ExecContext(ctx, `insert into person_count (client_id, people) values ($1, $2)`, int64(c.client.id), n); err != nil {
		return fmt.Errorf("count contacts: %w", err)
	}
	return collectStatistics(ctx, c.db, c.engine)
}

// reaches waits until the number that the query returns is at least n.
func (c *campaigner) reaches(ctx context.Context, query string, n int, within time.Duration) error {
	for until := time.Now().Add(within); ; {
		got, err := c.count(ctx, query)
		if err != nil || got >= n {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s: %d of %d after %v", query, got, n, within)
		}
		if err := pass(ctx, feedLook); err != nil {
			return err
		}
	}
}

// ruled measures replies to a client that has as many rules as allowed. Each reply is the trigger word of one rule, and
// this rule starts a sequence.
func (b *bench) ruled(ctx context.Context, c *campaigner) error {
	to, err := c.number(ctx, 0)
	if err != nil {
		return err
	}
	sequence, err := c.made(ctx, "/api/sequences", map[string]any{"name": "Informazioni", "steps": []any{map[string]any{"text": sampleText,
		"timing": map[string]any{"anchor": "start", "offset": map[string]any{"amount": 1, "unit": "days", "direction": "after"}}}}})
	if err != nil {
		return err
	}
	for i := range automationRules {
		if _, err := c.rule(ctx, fmt.Sprint("Parola ", i), map[string]any{"kind": "reply", "words": []string{fmt.Sprint("parola ", i)}}, sequence); err != nil {
			return err
		}
	}
	p := &people{campaigner: c, numbers: []*number{to}, text: func(i int) string { return fmt.Sprint("Parola ", i%automationRules) }}
	if err := p.writeAt(ctx, b.idle/4, replyRate, nil); err != nil { // warms up connections, query plans and statements
		return err
	}
	if err := c.reaches(ctx, firingsDone, p.wrote, firingsWithin); err != nil {
		return err
	}
	for _, rate := range []int{calmReplies, replyRate} {
		if err := b.ruledAt(ctx, p, rate); err != nil {
			return err
		}
	}
	return nil
}

const firingsDone = "select count(*) from automation_firing where acted = 1"

// ruledAt lets people write at the given rate, in replies a second, and measures how long the rules take to act on the
// replies.
func (b *bench) ruledAt(ctx context.Context, p *people, rate int) error {
	first, begun := p.wrote, time.Now()
	n := int(b.idle.Seconds()) * rate
	what, w, used := repliesRuled(p.engine), b.watch(p.engine), p.server.cpu()
	last, err := p.count(ctx, "select coalesce(max(id), 0) from automation_firing") // the id of the last line of the log before a rule acts
	if err != nil {
		return err
	}
	written := make(chan error, 1)
	go func() { written <- p.writeAt(ctx, time.Duration(n)*time.Second/time.Duration(rate), rate, nil) }()
	var acted delays
	err = p.acted(ctx, first, n, last, func(i int, at time.Time) {
		acted.add(at.Sub(begun.Add(time.Duration(i-first) * time.Second / time.Duration(rate))))
	})
	took := time.Since(begun)
	if err = errors.Join(err, <-written); err != nil {
		return err
	}
	e := w.stop(what, n)
	if rate == replyRate {
		b.sheet.note(what, perSecond, float64(n)/took.Seconds())
		b.sheet.note(what+": CPU of the server", microCPU, (p.server.cpu()-used).Seconds()*1e6/float64(n))
		if e.served {
			b.sheet.note(what+itsEffort, microCPU, e.database)
		}
	}
	return acted.note(&b.sheet, func(quantile string) string { return replyActs(rate, quantile, p.engine) }, n)
}

// acted waits until the rules acted on n replies. The argument first is the number of the first reply. acted calls the
// function saw with the number of each reply, and the time at which the log showed the reply. The argument last is the
// id of the log's last line before these replies.
func (p *people) acted(ctx context.Context, first, n, last int, saw func(i int, at time.Time)) error {
	for got, until := 0, time.Now().Add(firingsWithin); got < n; {
		rows, err := p.db.QueryContext(ctx, `select id, occurrence, acted, reason from automation_firing where id > $1 order by id`, last)
		if err != nil {
			return fmt.Errorf("look at the log of rules: %w", err)
		}
		now := time.Now()
		for rows.Next() {
			var name, reason string
			var acted, i int
			if err = rows.Scan(&last, &name, &acted, &reason); err == nil && acted == 0 {
				err = fmt.Errorf("a rule did not act: %s", reason)
			}
			if err == nil {
				_, err = fmt.Sscanf(name, "wamid.in.%d", &i)
			}
			if err != nil {
				return errors.Join(err, rows.Close())
			}
			if i >= first {
				saw(i, now)
				got++
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		if now.After(until) {
			return fmt.Errorf("rules acted on %d of %d replies", got, n)
		}
		if err := pass(ctx, firingLook); err != nil {
			return err
		}
	}
	return nil
}
