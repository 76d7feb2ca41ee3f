package control

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"puntuale"
)

// The node that owns a session executes the session's commands. The caller waits for the answer. If the owner is in the
// caller's process, a wakeup announces the answer. If the owner is another process, the caller polls for the answer.

const (
	commandTakes = 10 * time.Second // a node must begin to execute the command within this time
	commandWait  = 12 * time.Second // how long the caller waits for the answer; programs often give up after 15 seconds
	answerFirst  = 50 * time.Millisecond
	answerLast   = time.Second // the longest time between two polls for the answer
)

// answers are the callers in this process that wait for the answer to a command.
type answers struct {
	mu      sync.Mutex
	waiting map[puntuale.SessionID][]chan struct{}
}

// Answered reports that a command of the session has an answer. It never blocks.
func (c *Control) Answered(session puntuale.SessionID) {
	c.answers.mu.Lock()
	defer c.answers.mu.Unlock()
	for _, waiter := range c.answers.waiting[session] {
		select {
		case waiter <- struct{}{}:
		default:
		}
	}
}

// expect returns a channel that receives a value when a command of the session has an answer. The caller must call
// forget.
func (a *answers) expect(session puntuale.SessionID) (answered <-chan struct{}, forget func()) {
	waiter := make(chan struct{}, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[puntuale.SessionID][]chan struct{}{}
	}
	a.waiting[session] = append(a.waiting[session], waiter)
	return waiter, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		var rest []chan struct{}
		for _, other := range a.waiting[session] {
			if other != waiter {
				rest = append(rest, other)
			}
		}
		if a.waiting[session] = rest; len(rest) == 0 {
			delete(a.waiting, session)
		}
	}
}

// command stores a command and waits for its answer. The call has no seat while it waits. Codes: rate_limited if too
// many calls of the client wait for answers; otherwise see the verbs.
func (c *Client) command(ctx context.Context, session puntuale.SessionID, verb puntuale.CommandVerb, detail []byte) error {
	leave, err := share(c.control.shares.commands, c.Holders(clientCommands)...)
	if err != nil {
		return err
	}
	defer leave()
	answered, forget := c.control.answers.expect(session)
	defer forget()
	id, err := c.give(ctx, session, verb, detail)
	if err != nil {
		return err
	}
	puntuale.AdmissionDeadlineOf(ctx).LeaveSeat()
	end := c.control.clock.Now().Add(commandWait)
	for wait := answerFirst; ; wait = min(2*wait, answerLast) {
		answer, err := c.tenant.CommandAnswer(ctx, id, c.control.clock.Now())
		switch {
		case puntuale.CodeOf(err) == puntuale.CodeNotFound: // no node executed the command
			return errNobody
		case err != nil:
			return fmt.Errorf("look for a command's answer: %w", err)
		case answer != nil:
			return c.read(session, answer)
		case !c.control.clock.Now().Before(end):
			return errNobody
		}
		fired, release := c.control.clock.After(wait)
		select {
		case <-answered:
		case <-fired:
		case <-ctx.Done():
			release()
			return ctx.Err()
		}
		release()
	}
}

// give stores a command, and wakes the session's node. If no node owns the session, the wakeup makes a node take the
// session over.
func (c *Client) give(ctx context.Context, session puntuale.SessionID, verb puntuale.CommandVerb, detail []byte) (puntuale.CommandID, error) {
	now := c.control.clock.Now()
	id, err := c.tenant.GiveCommand(ctx, puntuale.Command{
		Session: session, Verb: verb, Created: now, Expires: now.Add(commandTakes),
		Detail: c.control.vault.Seal(puntuale.SealedCommand, session.SealPlace(), detail),
	})
	if err != nil {
		return 0, fmt.Errorf("give a command: %w", err)
	}
	c.control.wakeup(session, time.Time{})
	return id, nil
}

func (c *Client) read(session puntuale.SessionID, sealed []byte) error {
	plain, err := c.control.vault.Open(puntuale.SealedAnswer, session.SealPlace(), sealed)
	if err != nil {
		return err
	}
	var answer puntuale.CommandAnswer
	if err := json.Unmarshal(plain, &answer); err != nil {
		return fmt.Errorf("read a command's answer: %w", err)
	}
	return answer.Err()
}

const faultCommandNotAnswered puntuale.ReasonCode = "command.not_answered"

// errNobody means that no node executed the command, or that the node did not answer in time.
var errNobody = &puntuale.Error{Code: puntuale.CodeBusy, Reason: puntuale.Because(faultCommandNotAnswered), RetryAfter: 5 * time.Second}
