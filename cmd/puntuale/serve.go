package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"puntuale/internal/logging"
	"puntuale/internal/objectstore"
	"puntuale/internal/store"
)

// garbage is the value of GOGC if the environment sets none. It says how much garbage may accumulate before a
// collection, in per cent of the memory in use. A server uses little memory, so 200 costs little. This value halves the
// number of garbage collections. This saves about a seventh of the processor time of a message
// (docs/decisions/speed.md).
const garbage = 200

// memoryLimit is how much memory, in bytes, the runtime tries to stay below by collecting garbage more often.
// GOMEMLIMIT overrides it. Connections and [memoryBudget] need much less, so the runtime collects more often only after
// a flood of calls. With a lower limit, a flood of connections makes the calls of other clients late. The runtime does
// not count pages of the program (52 MB) and SQLite's caches (at most 128 MB). With a small database, the process stays
// below 400 MB in a flood.
const memoryLimit = 288 << 20

// serveCommand runs a server until it is stopped.
type serveCommand struct {
	serveSettings `embed:""`
}

func (c *serveCommand) Run(ctx context.Context, p *program) error {
	logger := logging.New(p.stderr, p.logColor, c.LogLevel)
	log.SetFlags(0)
	// If another server sends data that this process did not ask for, net/http reports this to the standard log. These
	// lines get the level debug.
	log.SetOutput(slog.NewLogLogger(logger.Handler(), slog.LevelDebug).Writer())
	c.Data = p.path(c.Data)
	if c.KeyFile != "" {
		c.KeyFile = p.path(c.KeyFile)
	}
	if c.Prices != "" {
		c.Prices = p.path(c.Prices)
	}
	if c.BackupTo != "" && !objectstore.IsS3(c.BackupTo) {
		c.BackupTo = p.path(c.BackupTo)
	}
	c.place(p)
	if c.Archive != "" {
		c.Archive = p.path(c.Archive)
	}
	s, err := openServer(ctx, serverConfig{serveSettings: c.serveSettings, Clock: p.clock, Logger: logger, Files: p.files, WhatsApp: p.whatsApp, Push: p.push})
	if err != nil {
		return err
	}
	logger.Info("serving", "url", s.URL(), "version", versionText(), "roles", strings.Join(c.Roles, ","), "sandbox", c.Sandbox)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	debug.FreeOSMemory() // gives back the memory that only the start needed
	failed := s.Wait(ctx)
	logger.Info("stopping", "within", c.StopWithin)
	err = s.Close()
	if failed != nil { // errors of closing would only be results of the first failure
		return failed
	}
	if err != nil {
		return err
	}
	logger.Info("stopped")
	return nil
}

// migrateCommand brings the tables of the database up to date, and does not serve.
type migrateCommand struct {
	baseSettings `embed:""`
}

func (c *migrateCommand) Run(ctx context.Context, p *program) error {
	logger := logging.New(p.stderr, p.logColor, c.LogLevel)
	c.Data = p.path(c.Data)
	if err := store.Migrate(ctx, storeConfig(&c.baseSettings, p.clock, nil, logger, false)); err != nil {
		return opening(err, &c.baseSettings)
	}
	logger.Info("the database is up to date", slog.String("database", databaseName(&c.baseSettings)))
	return nil
}
