package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// ErrMoved is the error for an installation that was exported for good.
var ErrMoved = errors.New("this installation was exported for good")

// MovedAt returns when the installation was exported for good. It returns the zero time if there was no such export.
func MovedAt(ctx context.Context, a engine.Querier) (at time.Time, err error) {
	if _, err := engine.QueryOne(ctx, a, `select at from moved where one = 1`, nil, engine.ScanTime(&at)); err != nil {
		return at, fmt.Errorf("look whether the installation moved: %w", err)
	}
	return at, nil
}

// RefuseMoved returns [ErrMoved] if the installation was exported for good.
func RefuseMoved(ctx context.Context, a engine.Querier) error {
	at, err := MovedAt(ctx, a)
	if err == nil && !at.IsZero() {
		err = fmt.Errorf("%w on %s; serve where it was imported, for what is sent from both arrives twice. "+
			"If nothing was ever sent from there, the command reopen gives this one back", ErrMoved, at.Format(time.DateTime+" MST"))
	}
	return err
}

// RefuseGone does the same as [RefuseMoved] for a store that is already open. Codes: unavailable (the installation was
// exported for good after the store was opened).
func RefuseGone(ctx context.Context, a engine.Querier) error {
	err := RefuseMoved(ctx, a)
	if errors.Is(err, ErrMoved) {
		return puntuale.Unavailable(err)
	}
	return err
}

// ServerName begins the name that PostgreSQL shows for the connections of a Puntuale server. ConnectionName is the whole
// name. Servers of versions that do not read their keys again have only the beginning.
const (
	ServerName     = "puntuale"
	ConnectionName = ServerName + " server"
)
