package main

import (
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/connector/sandbox"
	"puntuale/internal/dispatch"
	"puntuale/internal/session"
)

// linking makes this node's session manager, which also manages sandbox sessions. The dispatcher and control must exist
// before the manager starts.
func (s *server) linking(cfg serverConfig, vault *auth.Vault, out *sandbox.Connector) *sandbox.Connector {
	var linked *sandbox.Connector
	s.sessions = session.New(session.Config{
		Keeper: s.store,
		Linker: func(one puntuale.Session) puntuale.Linker {
			switch {
			case one.Sandbox:
				return linked
			case one.Type == puntuale.Official:
				return s.networks.official
			case one.Type == puntuale.SendApp && !one.ByDevice():
				return s.networks.sendapp
			case one.Type == puntuale.Socket && s.networks.socket != nil:
				return s.networks.socket
			}
			return nil
		},
		DrainSession: func(id puntuale.SessionID, deadline time.Time) <-chan struct{} { return s.dispatch.Drain(id, deadline) },
		Resume:       func(id puntuale.SessionID) { s.dispatch.Resume(id) },
		Changed:      func(id puntuale.SessionID) { s.dispatch.Wake(id, cfg.Clock.Now()) },
		Answered:     func(id puntuale.SessionID) { s.control.Answered(id) },
		Seal:         vault.Seal, Open: vault.Open,
		Clock: cfg.Clock, Logger: cfg.Logger,
	})
	linked = out.WithLinks(s.sessions.Report)
	return linked
}

// linkable reports whether a connector of this build links this session. Sessions that send through devices are linked
// by their devices.
func linkable(session puntuale.Session) bool {
	switch {
	case session.Sandbox:
		return true
	case session.Type == puntuale.Socket:
		return socketBuilt
	}
	return !session.ByDevice()
}

// socketWay is the connector for linked numbers.
type socketWay interface {
	puntuale.Connector
	puntuale.Linker
	Stop() // call it after all sessions were closed
}

// wake informs this node's parts that a session has something due, or was changed. A dispatcher also informs the other
// nodes. If this node has no dispatcher, wake itself informs the other nodes.
func (s *server) wake(id puntuale.SessionID, due time.Time) {
	if s.dispatch == nil {
		dispatch.RemoteWakeup(s.clock, s.store.Notify)(id, due)
		return
	}
	s.dispatch.Wake(id, due)
	if due.IsZero() {
		s.sessions.Wake(id)
	}
}

// takeWakeup passes another node's wakeup to this node's parts.
func (s *server) takeWakeup(id puntuale.SessionID, due time.Time) {
	s.dispatch.TakeWakeup(id, due)
	if due.IsZero() {
		s.sessions.Wake(id)
	}
}
