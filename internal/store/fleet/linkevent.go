package fleet

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// publishedState is the link state that a session's last event reported. The database stores these numbers.
type publishedState int8

const (
	publishedNothing    publishedState = 0 // no event was written yet, or the link is changing and needs no event now
	publishedUnlinked   publishedState = 1
	publishedOffline    publishedState = 2
	publishedRestricted publishedState = 3
	publishedOnline     publishedState = 4
)

var publishedTypes = [...]puntuale.EventType{
	publishedUnlinked: puntuale.EventSessionUnlinked, publishedOffline: puntuale.EventSessionOffline,
	publishedRestricted: puntuale.EventSessionRestricted, publishedOnline: puntuale.EventSessionOnline,
}

// shortWait is a limit: only a longer wait before the next login causes an event. Each wait is twice as long as the
// previous wait. So a longer wait means that the connection has failed for about a minute.
const shortWait = 30 * time.Second

// publishedOf returns the state to report for a link. During a login it returns publishedNothing. Logins happen after a
// start of the server, after a session moved to another node, and after a connection broke.
func publishedOf(l *puntuale.Link, now time.Time) publishedState {
	switch {
	case l.State == puntuale.LinkOnline:
		return publishedOnline
	case l.State != puntuale.LinkLinked:
		return publishedUnlinked
	case l.Condition == puntuale.Banned || l.Restricted:
		return publishedRestricted
	case l.Condition == puntuale.Connecting, l.Condition == puntuale.Waiting && l.Until.Sub(now) < shortWait:
		return publishedNothing
	}
	return publishedOffline
}

// publishedSession is a session's row before the session's link changes.
type publishedSession struct {
	puntuale.Session
	reported publishedState
}

const publishedColumns = `session.id, session.client_id, session.name, session.type, session.sandbox, session.link, session.link_condition, session.code_until,
 session.limited_until, session.told`

func scanPublished(r engine.Row, s *publishedSession) error {
	return r.Scan(&s.ID, &s.Client, &s.Name, &s.Type, engine.ScanBool(&s.Sandbox), &s.Link.State, &s.Link.Condition, engine.ScanTime(&s.Link.Until),
		engine.ScanTime(&s.Link.Limited), &s.reported)
}

// known returns the state that the client knows: the state that the last event reported. If no event was written yet,
// known returns the state of the row's link, or publishedOnline while this link is changing.
func (s *publishedSession) known(now time.Time) publishedState {
	if s.reported != publishedNothing {
		return s.reported
	}
	former := s.Link
	former.State = s.LinkOf()
	if t := publishedOf(&former, now); t != publishedNothing {
		return t
	}
	return publishedOnline
}

// become sets the session's new link, and returns the facts to write about it.
func (s *publishedSession) become(l puntuale.Link, now time.Time) ([]outbox.Fact, error) {
	before, limited := s.known(now), s.Link.Limited
	s.Link = l
	s.reported = publishedOf(&l, now)
	var types []puntuale.EventType
	switch {
	case s.reported == publishedNothing:
		s.reported = before
	case s.reported != before:
		types = append(types, publishedTypes[s.reported])
	}
	if l.Limited.After(now) && !limited.After(now) && s.reported != publishedRestricted {
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

func (s *publishedSession) detail() (string, error) {
	l := s.Link
	l.State = s.LinkOf()
	limitedUntil := l.Until
	if l.State == puntuale.LinkPairing {
		limitedUntil = time.Time{} // this is the end of the pairing code, which the event does not contain
	}
	return outbox.Detail(struct {
		Name    string                  `json:"name"`
		Type    puntuale.ConnectionType `json:"connection_type"`
		Sandbox bool                    `json:"sandbox"`
		State   string                  `json:"state"`
		Reason  string                  `json:"reason,omitempty"`
		Until   string                  `json:"until,omitempty"`
		Limited string                  `json:"limited_until,omitempty"`
	}{s.Name, s.Type, s.Sandbox, l.Word(), l.Detail.Stored(), outbox.Moment(limitedUntil), outbox.Moment(l.Limited)})
}

// TellLink writes the event of a session's new link, if the link needs an event. The caller has locked the session's
// row, and stores the link afterwards.
func TellLink(ctx context.Context, a engine.Querier, id puntuale.SessionID, l puntuale.Link, now time.Time) error {
	var s publishedSession
	err := a.Query(ctx, `select `+publishedColumns+` from session where session.id = $1`, []any{id}, func(r engine.Row) error { return scanPublished(r, &s) })
	if err != nil || s.ID == 0 {
		return err
	}
	facts, err := s.become(l, now)
	if err != nil {
		return err
	}
	if _, err := a.Exec(ctx, `update session set told = $2 where id = $1`, id, s.reported); err != nil {
		return fmt.Errorf("note what was told of a session: %w", err)
	}
	return outbox.Tell(ctx, a, now, facts...)
}
