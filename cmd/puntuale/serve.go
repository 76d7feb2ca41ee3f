package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"strings"

	"puntuale/internal/store"
)

// serveCommand runs a server until it is told to stop.
type serveCommand struct {
	serveSettings `embed:""`
}

func (c *serveCommand) Run(ctx context.Context, p *program) error {
	logger := newLogger(p.stderr, p.logColor, c.LogLevel)
	c.Data = p.path(c.Data)
	if c.KeyFile != "" {
		c.KeyFile = p.path(c.KeyFile)
	}
	if c.Archive != "" {
		c.Archive = p.path(c.Archive)
	}
	s, err := openServer(ctx, serverConfig{serveSettings: c.serveSettings, Clock: p.clock, Logger: logger, Files: p.files, WhatsApp: p.whatsApp})
	if err != nil {
		return err
	}
	logger.Info("serving", "url", s.URL(), "version", versionText(), "roles", strings.Join(c.Roles, ","), "sandbox", c.Sandbox)
	debug.FreeOSMemory() // what only starting needed
	failed := s.Wait(ctx)
	logger.Info("stopping", "within", c.StopWithin)
	if err := s.Close(); err != nil {
		return err
	}
	logger.Info("stopped")
	return failed
}

// migrateCommand brings the database up to date without serving.
type migrateCommand struct {
	baseSettings `embed:""`
}

func (c *migrateCommand) Run(ctx context.Context, p *program) error {
	logger := newLogger(p.stderr, p.logColor, c.LogLevel)
	c.Data = p.path(c.Data)
	if err := store.Migrate(ctx, storeConfig(&c.baseSettings, p.clock, nil, logger, false)); err != nil {
		return opening(err, &c.baseSettings)
	}
	logger.Info("the database is up to date", slog.String("database", databaseName(&c.baseSettings)))
	return nil
}
