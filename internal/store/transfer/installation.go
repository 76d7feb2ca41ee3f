package transfer

import (
	"context"
	"errors"

	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/queue"
)

// installation is an open database that is being moved.
type installation struct {
	*engine.DB
	*fleet.Fleet
}

// openInstallation opens a database without checking whether the installation was moved. It returns the errors of
// engine.Open.
func openInstallation(ctx context.Context, cfg engine.Config, o engine.Options) (*installation, error) {
	db, err := engine.Open(ctx, cfg, o)
	if err != nil {
		return nil, err
	}
	f, err := fleet.New(db, queue.SettleTimeline)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &installation{db, f}, nil
}

// Close closes the database. It may be called again.
func (s *installation) Close() error {
	s.Fleet.Close()
	return s.DB.Close()
}
