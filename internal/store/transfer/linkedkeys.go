package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// The keys of linked numbers are in tables of a library (whatsmeow_…), and in two tables of the connector (socket_…).
// On PostgreSQL these tables are in the database of the store. On SQLite they are in a separate file. A backup contains
// their rows as a second export. A restore inserts these rows into tables that the library has created.
//
// The rows are older than the network's data, and some of them are not safe to use:
//
//   - A state of encryption (whatsmeow_sessions, whatsmeow_sender_keys) counts messages. With an older state, a new
//     message would be encrypted under a number that was already used. Then the recipient's device would assume that it
//     already got the message, and never show it. So a restore deletes all states. The first message to each device
//     begins a new state.
//   - A message that somebody sends under a deleted state cannot be read. The library requests this message again, and
//     the sender begins a new state.
//   - Keys for new states (whatsmeow_pre_keys) are numbered, and each is used once. The network may have later keys, so a
//     restore skips numbers. It marks the restored keys as uploaded.
//   - The identity of the device does not change, so the number stays linked.

// linkedNumbers gives access to the tables of linked numbers in a transaction.
type linkedNumbers struct {
	s      *installation
	link   *engine.Conn
	free   func() error // ends the transaction if it is a separate transaction
	tables []archive.Table

	// version is the version of the library's tables. A program can use the tables if it knows at least the version in
	// compatible.
	version, compatible int64
}

const numbersVersion = "whatsmeow_version"

// numberParents are filled first, because other tables refer to them.
var numberParents = []string{"whatsmeow_device", "whatsmeow_app_state_version"}

func ofNumbers(table string) bool {
	return strings.HasPrefix(table, "whatsmeow_") || strings.HasPrefix(table, "socket_")
}

// openNumbers finds the tables of linked numbers, or returns nil if there are none. On PostgreSQL it uses the
// transaction of own. On SQLite it begins a transaction in the file of the linked numbers.
func (s *installation) openNumbers(ctx context.Context, own *engine.Conn, readOnly bool) (n *linkedNumbers, err error) {
	n = &linkedNumbers{s: s, link: own, free: func() error { return nil }}
	if !s.Dialect.Postgres {
		if n, err = s.openNumbersFile(ctx, readOnly); n == nil || err != nil {
			return nil, err
		}
	}
	err = n.describe(ctx)
	if err != nil || n.version == 0 {
		return nil, errors.Join(err, n.free())
	}
	return n, nil
}

func (s *installation) openNumbersFile(ctx context.Context, readOnly bool) (*linkedNumbers, error) {
	path := WhatsAppFile(s.File)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	db, err := (&engine.DB{Config: s.Config, Dialect: s.Dialect}).SQLitePool(path, "", readOnly, 1)
	if err != nil {
		return nil, err
	}
	l, free, err := engine.NewConn(ctx, s.Dialect, db)
	if err != nil {
		return nil, fmt.Errorf("open the file of linked numbers: %w", err)
	}
	begin := l.Begin
	if readOnly {
		begin = l.BeginSnapshot
	}
	if err := begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("read the file of linked numbers: %w", err), free())
	}
	return &linkedNumbers{s: s, link: l, free: free}, nil
}

// describe finds out which tables exist, and their columns.
func (n *linkedNumbers) describe(ctx context.Context) error {
	text := archive.SQLiteCatalogue
	if n.s.Dialect.Postgres {
		text = archive.PostgresCatalogue
	}
	versioned := false
	if err := n.link.Query(ctx, text, nil, func(rows engine.Row) error {
		var table, column, kind string
		if err := rows.Scan(&table, &column, &kind); err != nil || !ofNumbers(table) {
			return err
		}
		if table == numbersVersion {
			versioned = true
			return nil
		}
		last := len(n.tables) - 1
		if last < 0 || n.tables[last].Name != table {
			n.tables, last = append(n.tables, archive.Table{Name: table}), last+1
		}
		of, ok := archive.KindOf[strings.ToLower(kind)]
		if !ok {
			return fmt.Errorf("its table %s has a column %s of a type %q that this program does not move", table, column, kind)
		}
		n.tables[last].Columns = append(n.tables[last].Columns, archive.Column{Name: column, Kind: of})
		return nil
	}); err != nil {
		return fmt.Errorf("read the catalogue of linked numbers: %w", err)
	}
	engine.SortStable(n.tables, func(a, b archive.Table) int { return numberOrder(a) - numberOrder(b) })
	if !versioned {
		return nil
	}
	if _, err := engine.QueryOne(ctx, n.link, "select version, compat from "+numbersVersion, nil, &n.version, &n.compatible); err != nil {
		return fmt.Errorf("read the version of linked numbers: %w", err)
	}
	return nil
}

func numberOrder(t archive.Table) int {
	if i := slices.Index(numberParents, t.Name); i >= 0 {
		return i
	}
	return len(numberParents)
}

// write writes the linked numbers into the backup. h is the header of the database's entry.
func (n *linkedNumbers) write(ctx context.Context, to io.Writer, h archive.Header) error {
	h.Schema, h.Tables = n.version, n.tables
	if err := countRows(ctx, n.link, h.Tables); err != nil {
		return err
	}
	return writeTables(ctx, tidyQuerier{n.link}, to, h, nil, nil)
}

// tidyQuerier replaces characters in texts that the new database might refuse. SQLite accepts any bytes, and people may
// choose any names.
type tidyQuerier struct{ engine.Querier }

func (t tidyQuerier) Query(ctx context.Context, text string, args []any, scan func(r engine.Row) error) error {
	return t.Querier.Query(ctx, text, args, func(r engine.Row) error { return scan(tidyRow{r}) })
}

type tidyRow struct{ engine.Row }

func (t tidyRow) Scan(target ...any) error {
	if err := t.Row.Scan(target...); err != nil {
		return err
	}
	for _, value := range target {
		if p, ok := value.(*any); ok {
			if text, ok := (*p).(string); ok {
				*p = strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "")
			}
		}
	}
	return nil
}

const faultStoreHasNumbers puntuale.ReasonCode = "store.has_numbers"

// load fills the empty tables with the rows of a backup, makes the keys safe to use, and counts the linked numbers.
func (n *linkedNumbers) load(ctx context.Context, backup *archive.BackupReader) (linked int64, err error) {
	from, err := backup.Open(archive.NumbersEntry)
	if err != nil {
		return 0, err
	}
	defer from.Close()
	file, err := archive.NewReader(from)
	if err != nil {
		return 0, err
	}
	switch {
	case file.Header.Schema > n.version:
		return 0, fmt.Errorf("%w: its linked numbers have version %d, this program knows up to %d", archive.ErrNewer, file.Header.Schema, n.version)
	case file.Header.Schema < n.compatible:
		return 0, fmt.Errorf("the backup's linked numbers have version %d, and this program takes %d and later: restore with the program that made it (%s), then upgrade",
			file.Header.Schema, n.compatible, backup.Program)
	}
	m := &importer{s: n.s, link: n.link, file: file, tables: map[string]archive.Table{}}
	for _, t := range n.tables {
		m.tables[t.Name] = t
		var existing int64
		if found, err := engine.QueryOne(ctx, n.link, "select 1 from "+t.Name+" limit 1", nil, &existing); err != nil {
			return 0, fmt.Errorf("look whether %s is empty: %w", t.Name, err)
		} else if found {
			return 0, puntuale.Conflict(faultStoreHasNumbers, t.Name)
		}
	}
	if err := m.compareTables(n.tables, file.Header.Schema == n.version); err != nil {
		return 0, err
	}
	for _, step := range []func(context.Context) error{m.load, m.check, n.renew} {
		if err := step(ctx); err != nil {
			return 0, err
		}
	}
	if _, err := engine.QueryOne(ctx, n.link, `select count(*) from socket_device`, nil, &linked); err != nil {
		return 0, fmt.Errorf("count the linked numbers: %w", err)
	}
	return linked, nil
}

func (n *linkedNumbers) renew(ctx context.Context) error { return queue.RenewNumbers(ctx, n.link) }

// Commit ends the transaction if it is a separate transaction. On PostgreSQL it does nothing, because the caller's
// transaction continues.
func (n *linkedNumbers) Commit(ctx context.Context) error {
	if n.s.Dialect.Postgres {
		return nil
	}
	if err := n.link.Commit(ctx); err != nil {
		return fmt.Errorf("commit the linked numbers: %w", err)
	}
	return nil
}

// WhatsAppFile returns the path of the file of linked numbers that belongs to a SQLite store. For puntuale.db it is
// whatsapp.db in the same folder. For another name, such as a.db, it is a.whatsapp.db.
func WhatsAppFile(file string) string {
	base := filepath.Base(file)
	if base == "puntuale.db" {
		return filepath.Join(filepath.Dir(file), "whatsapp.db")
	}
	return filepath.Join(filepath.Dir(file), strings.TrimSuffix(base, ".db")+".whatsapp.db")
}
