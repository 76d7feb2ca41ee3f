package main

import (
	"context"
	"errors"
	"fmt"

	"puntuale/internal/logging"
	"puntuale/internal/store"
)

// checkCommand reads the whole database to find damage. It also works beside a running server.
type checkCommand struct {
	baseSettings `embed:""`
}

func (c *checkCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so nothing to check", fresh)
	}
	c.Data = p.path(c.Data)
	logger := logging.New(p.stderr, p.logColor, c.LogLevel)
	opened, err := store.Open(ctx, storeConfig(&c.baseSettings, p.clock, nil, logger, true))
	if err != nil {
		return opening(err, &c.baseSettings)
	}
	err = errors.Join(opened.Verify(ctx), opened.Close())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s is whole.\n", databaseName(&c.baseSettings))
	return err
}
