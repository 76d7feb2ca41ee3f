package fleet

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// told is what a client was told last of a session's link. The numbers are what the store keeps.
type told int8

const (
	toldNothing    told = 0 // nothing yet; or the link is in between, and nothing is to be told
	toldUnlinked   told = 1
	toldOffline    told = 2
	toldRestricted told = 3
	toldOnline     told = 4
)

var toldTypes = [...]puntuale.EventType{
	toldUnlinked: puntuale.EventSessionUnlinked, toldOffline: puntuale.EventSessionOffline,
	toldRestricted: puntuale.EventSessionRestricted, toldOnline: puntuale.EventSessionOnline,
}

// shortWait is a wait for the next login that tells nothing. Waits double, so a connection that cannot be made again has failed for about a
// minute when one is longer.
const shortWait = 30 * time.Second

// toldOf returns what to tell of a link. Logins are in between: after a start of the server, after a session moved to another node, and after
// a connection broke.
func toldOf(l *puntuale.Link, now time.Time) told {
	switch {
	case l.State == puntuale.LinkOnline:
		return toldOnline
	case l.State != puntuale.LinkLinked:
		return toldUnlinked
	case l.Condition == puntuale.Banned || l.Restricted:
		return toldRestricted
	case l.Condition == puntuale.Connecting, l.Condition == puntuale.Waiting && l.Until.Sub(now) < shortWait:
		return toldNothing
	}
	return toldOffline
}

// toldSession is a session's row before its link changes.
type toldSession struct {
	puntuale.Session
	told told
}

const toldColumns = `session.id, session.client_id, session.name, session.type, session.sandbox, session.link, session.link_condition, session.code_until,
 session.limited_until, session.told`

func scanTold(r engine.Row, s *toldSession) error {
	return r.Scan(&s.ID, &s.Client, &s.Name, &s.Type, engine.ScanBool(&s.Sandbox), &s.Link.State, &s.Link.Condition, engine.ScanTime(&s.Link.Until),
		engine.ScanTime(&s.Link.Limited), &s.told)
}

// before returns what the client knows. Where nothing was told yet, the row says it. A link in between was online.
func (s *toldSession) before(now time.Time) told {
	if s.told != toldNothing {
		return s.told
	}
	was := s.Link
	was.State = s.LinkOf()
	if t := toldOf(&was, now); t != toldNothing {
		return t
	}
	return toldOnline
}

// become notes the session's new link, and returns what is to be told of it.
func (s *toldSession) become(l puntuale.Link, now time.Time) ([]outbox.Fact, error) {
	before, limited := s.before(now), s.Link.Limited
	s.Link = l
	s.told = toldOf(&l, now)
	var types []puntuale.EventType
	switch {
	case s.told == toldNothing:
		s.told = before
	case s.told != before:
		types = append(types, toldTypes[s.told])
	}
	if l.Limited.After(now) && !limited.After(now) && s.told != toldRestricted {
		types = append(types, puntuale.EventSessionRestricted)
	}
	if len(types) == 0 {
		return nil, nil
	}
	detail, err := s.detail()
	return engine.Column(types, func(t *puntuale.EventType) outbox.Fact {
		return outbox.Fact{Client: s.Client, Type: *t, Subject: int64(s.ID), Detail: detail}
	}), err
}

func (s *toldSession) detail() (string, error) {
	l := s.Link
	l.State = s.LinkOf()
	until := l.Until
	if l.State == puntuale.LinkPairing {
		until = time.Time{} // of the code
	}
	return outbox.Detail(struct {
		Name    string                  `json:"name"`
		Type    puntuale.ConnectionType `json:"connection_type"`
		Sandbox bool                    `json:"sandbox"`
		State   string                  `json:"state"`
		Reason  string                  `json:"reason,omitempty"`
		Until   string                  `json:"until,omitempty"`
		Limited string                  `json:"limited_until,omitempty"`
	}{s.Name, s.Type, s.Sandbox, l.Word(), l.Detail.Stored(), outbox.Moment(until), outbox.Moment(l.Limited)})
}

// TellLink tells the client of a session's new link. The caller has locked the session's row, and stores the link afterwards.
func TellLink(ctx context.Context, a engine.Querier, id puntuale.SessionID, l puntuale.Link, now time.Time) error {
	var s toldSession
	err := a.Query(ctx, `select `+toldColumns+` from session where session.id = $1`, []any{id}, func(r engine.Row) error { return scanTold(r, &s) })
	if err != nil || s.ID == 0 {
		return err
	}
	facts, err := s.become(l, now)
	if err != nil {
		return err
	}
	if _, err := a.Exec(ctx, `update session set told = $2 where id = $1`, id, s.told); err != nil {
		return fmt.Errorf("note what was told of a session: %w", err)
	}
	return outbox.Tell(ctx, a, now, facts...)
}
