package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"puntuale/internal/clock"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/migration"
)

// Upgrade says what this program would change in a database.
type Upgrade struct {
	Version int64                   // of the tables; 0: there are none yet
	Wanted  int64                   // the version that this program needs
	Missing []migration.PendingStep // what this program would run
	Servers int                     // servers that run on the database now
	Backup  time.Time               // when the last backup was made; zero: never, or the tables do not tell
}

// ReadUpgrade compares a database with this program. It changes nothing, and works beside running servers of other
// versions. The error wraps puntuale.ErrUntrusted if the tables are newer than this program, and [fleet.ErrMoved] if the
// installation was exported for good.
func ReadUpgrade(ctx context.Context, cfg engine.Config) (u Upgrade, err error) {
	db, database, err := engine.OpenReading(ctx, cfg)
	if err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if u.Wanted, err = migration.Latest(database); err != nil {
		return u, err
	}
	if u.Version, u.Missing, err = migration.Missing(ctx, db, database); err != nil {
		return u, err
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if u.Version >= movedSince {
		var at sql.NullInt64
		if err := db.QueryRowContext(ctx, `select max(at) from moved`).Scan(&at); err != nil {
			return u, fmt.Errorf("look whether the installation moved: %w", err)
		}
		if at.Valid {
			return u, fmt.Errorf("%w on %s", fleet.ErrMoved, time.UnixMicro(at.Int64).UTC().Format(time.DateTime+" MST"))
		}
	}
	if u.Version >= backupSince {
		var at sql.NullInt64
		if err := db.QueryRowContext(ctx, `select max(at) from backup`).Scan(&at); err != nil {
			return u, fmt.Errorf("look for the last backup: %w", err)
		}
		if at.Valid {
			u.Backup = time.UnixMicro(at.Int64)
		}
	}
	if u.Version > 0 {
		if err := db.QueryRowContext(ctx, `select count(*) from node where lease_until > $1`, cfg.Clock.Now().UnixMicro()).Scan(&u.Servers); err != nil {
			return u, fmt.Errorf("count the servers: %w", err)
		}
	}
	return u, nil
}

// The versions of the tables that first had the tables moved and backup.
const (
	movedSince  = 2
	backupSince = 10
)
