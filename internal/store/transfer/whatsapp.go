package transfer

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	"puntuale/internal/store/engine"
)

// The keys of linked WhatsApp numbers are in tables of a library, which writes them by itself. The library has separate connections, and on
// SQLite a separate file. In the store's own file, its writes would wait for seconds behind a busy writer.

const postgresWhatsApp = 8 // connections

// OpenWhatsApp opens the database of linked numbers. It is closed with the store.
func OpenWhatsApp(ctx context.Context, s *engine.DB) (db *sql.DB, postgres bool, err error) {
	if s.Dialect.Postgres {
		db, err = s.PostgresPool(s.Config.Database, nil, postgresWhatsApp)
		return db, true, err
	}
	path := WhatsAppFile(s.File)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // a file that the driver creates is readable by other users
	if err != nil {
		return nil, false, fmt.Errorf("open the file of linked numbers: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, false, fmt.Errorf("open the file of linked numbers: %w", err)
	}
	db, err = s.SQLitePool(path, "", false, 1)
	if err == nil {
		err = db.PingContext(ctx)
	}
	if err != nil {
		return nil, false, fmt.Errorf("open the file of linked numbers: %w", err)
	}
	return db, false, nil
}
