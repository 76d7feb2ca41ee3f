package transfer

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	"puntuale/internal/store/engine"
)

// The keys of linked WhatsApp numbers are in tables of a library, which writes them itself. The library has its own
// connections, and on SQLite its own file. If the library used the store's file, the library's writes would wait for
// seconds behind the store's writer.

const postgresWhatsApp = 8 // largest number of connections to the tables of linked numbers

// OpenWhatsApp opens the database of linked numbers. Closing the store also closes it.
func OpenWhatsApp(ctx context.Context, s *engine.DB) (db *sql.DB, postgres bool, err error) {
	if s.Dialect.Postgres {
		db, err = s.PostgresPool(s.Config.Database, nil, postgresWhatsApp)
		return db, true, err
	}
	path := WhatsAppFile(s.File)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // created here, because other users could read a file that the driver creates
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
