//go:build !nosocket

package main

import (
	"context"
	"database/sql"

	"puntuale/internal/auth"
	"puntuale/internal/connector/socket"
)

// socketBuilt says that this build can link numbers. Other builds leave out the library for linked numbers, because it
// has the licence GPL.
const socketBuilt = true

// makeNumbers makes the empty tables of linked numbers.
var makeNumbers = func(ctx context.Context, db *sql.DB, postgres bool) error {
	return socket.MakeTables(ctx, socket.Database{DB: db, Postgres: postgres})
}

// newSocket makes the connector for linked numbers.
func newSocket(s *server, cfg serverConfig, vault *auth.Vault) socketWay {
	c := socket.Config{
		Database: func(ctx context.Context) (socket.Database, error) {
			db, postgres, err := s.store.WhatsApp(ctx)
			return socket.Database{DB: db, Postgres: postgres}, err
		},
		Seal: vault.Seal, Unseal: vault.Open, IDKey: []byte(vault.Mark("ids of messages at WhatsApp")),
		Known: s.store, Report: s.report, Take: s.networks.intake.Take,
		Owned: func() bool { return s.dispatch.Healthy() == nil },
		HTTP:  cfg.WhatsApp, Memory: s.payer(), Clock: cfg.Clock, Logger: cfg.Logger,
	}
	if s.media != nil {
		c.Media = s.files()
	}
	return socket.New(c)
}
