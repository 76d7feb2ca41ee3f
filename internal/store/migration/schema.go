package migration

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // Compare builds the wanted tables in a SQLite database in memory

	"puntuale"
)

// Compare compares a database with the tables that this program's migrations make. The error wraps
// puntuale.ErrUntrusted and lists what is missing. Compare ignores additional tables and indexes. All migrations must
// have run on the database. If a migration was changed after it ran on this database, Compare finds the difference
// before a statement fails.
func Compare(ctx context.Context, db *sql.DB, database Database) error {
	want, err := wantedSchema(ctx, db, database)
	if err != nil {
		return fmt.Errorf("build the tables to compare with: %w", err)
	}
	have, err := describe(ctx, db, database, "(select relnamespace from pg_class where oid = to_regclass('"+table+"'))")
	if err != nil {
		return fmt.Errorf("read the tables' definitions: %w", err)
	}
	missing := slices.DeleteFunc(slices.Clone(want), func(line string) bool {
		_, found := slices.BinarySearch(have, line)
		return found
	})
	if len(missing) == 0 {
		return nil
	}
	extra := ""
	// List only the added columns. On SQLite, an added column also changes the line of its table, and this line would look
	// like an added table.
	if added := slices.DeleteFunc(have, func(line string) bool {
		_, found := slices.BinarySearch(want, line)
		return found || !strings.HasPrefix(line, "column ")
	}); len(added) > 0 {
		extra = " It has besides: " + listed(added) + "."
	}
	return fmt.Errorf("%w: its tables are not as this program's migrations make them, although all of them ran. It lacks: %s.%s "+
		"Restore a backup, or have the tables mended; nothing was changed", puntuale.ErrUntrusted, listed(missing), extra)
}

// listed joins the first few names into one text.
func listed(all []string) string {
	const shown = 10
	if more := len(all) - shown; more > 0 {
		all = append(all[:shown:shown], fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, "; ")
}

// known contains the descriptions of the tables. A process builds them only once for each kind of database.
var known struct {
	sync.Mutex
	lines map[Database][]string
}

// wantedSchema returns the description of the tables that the migrations make. On PostgreSQL, the installation's own
// PostgreSQL makes these tables, because each release of PostgreSQL describes tables differently. The tables are
// temporary, in a transaction that is rolled back.
func wantedSchema(ctx context.Context, db *sql.DB, database Database) (lines []string, err error) {
	known.Lock()
	defer known.Unlock()
	if lines := known.lines[database]; lines != nil {
		return lines, nil
	}
	if database == SQLite {
		if db, err = sql.Open("sqlite", ":memory:"); err != nil {
			return nil, fmt.Errorf("open a database in memory: %w", err)
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		db.SetMaxOpenConns(1)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	if database == Postgres {
		if _, err := tx.ExecContext(ctx, "set local search_path = pg_temp"); err != nil {
			return nil, fmt.Errorf("use temporary tables: %w", err)
		}
	}
	names, err := fs.Glob(files, string(database)+"/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list the migrations: %w", err)
	}
	for _, name := range names { // the numbers in the names have leading zeros, so the names are in the order of the numbers
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read a migration: %w", err)
		}
		if _, err := tx.ExecContext(ctx, strings.ReplaceAll(string(text), " concurrently ", " ")); err != nil { // a transaction allows no such index
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if lines, err = describe(ctx, tx, database, "pg_my_temp_schema()"); err != nil {
		return nil, err
	}
	if known.lines == nil {
		known.lines = map[Database][]string{}
	}
	known.lines[database] = lines
	return lines, nil
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// sqliteSchema lists the columns one by one, so that a difference names the column. It also lists the whole SQL text of
// each table and index.
var sqliteSchema = []string{
	`select 'column ' || t.name || '.' || c.name || ' ' || lower(c.type) || case when c."notnull" then ' not null' else '' end
 || coalesce(' default ' || c.dflt_value, '') || case when c.pk > 0 then ' key ' || c.pk else '' end
 from sqlite_schema t join pragma_table_xinfo(t.name) c where t.type = 'table' and t.name not like 'puntuale_%' and t.name not like 'sqlite_%'`,
	`select type || ' ' || name || ' as ' || sql from sqlite_schema
 where sql is not null and name not like 'puntuale_%' and name not like 'sqlite_%'`,
}

// postgresSchema contains %s, which is replaced by an expression for the schema's oid. Not-null constraints are listed
// with their columns, because only PostgreSQL 18 and later also list them in pg_constraint.
var postgresSchema = []string{
	`select 'column ' || t.relname || '.' || c.attname || ' ' || format_type(c.atttypid, c.atttypmod) || case when c.attnotnull then ' not null' else '' end
 || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') || case when c.attidentity <> '' then ' identity' else '' end
 from pg_class t join pg_attribute c on c.attrelid = t.oid left join pg_attrdef d on d.adrelid = t.oid and d.adnum = c.attnum
 where t.relnamespace = %s and t.relkind = 'r' and c.attnum > 0 and not c.attisdropped and t.relname not like 'puntuale_%%'`,
	`select 'constraint ' || t.relname || ' ' || pg_get_constraintdef(k.oid) from pg_constraint k join pg_class t on t.oid = k.conrelid
 where t.relnamespace = %s and k.contype in ('c', 'f', 'p', 'u') and t.relname not like 'puntuale_%%'`,
	`select 'index ' || pg_get_indexdef(i.indexrelid) || case when i.indisvalid then '' else ' (invalid)' end
 from pg_index i join pg_class t on t.oid = i.indrelid where t.relnamespace = %s and t.relname not like 'puntuale_%%'`,
}

// countersSchema lists the rows that migrations insert into the table counter. Without its row, a counter cannot give
// numbers.
const countersSchema = `select 'counter ' || noun from counter`

func withoutComments(text string) string {
	if !strings.Contains(text, "--") {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "--")
		out.WriteString(line + "\n")
	}
	return out.String()
}

// withoutSchema removes the schema before the table's name from the definition of an index on PostgreSQL.
func withoutSchema(line string) string {
	if !strings.HasPrefix(line, "index ") {
		return line
	}
	index, on, _ := strings.Cut(line, " ON ")
	if schema, table, ok := strings.Cut(strings.TrimPrefix(on, "ONLY "), "."); ok && !strings.Contains(schema, " ") {
		return index + " ON " + table
	}
	return line
}

// describe returns the definitions of all tables as sorted lines. On PostgreSQL, schema is an expression for the
// schema's oid.
func describe(ctx context.Context, q querier, database Database, schema string) (all []string, err error) {
	queries := append(slices.Clone(sqliteSchema), countersSchema)
	if database == Postgres {
		queries = nil
		for _, text := range postgresSchema {
			queries = append(queries, fmt.Sprintf(text, schema))
		}
		queries = append(queries, countersSchema)
	}
	for _, text := range queries {
		if all, err = describeBy(ctx, q, text, all); err != nil {
			return nil, err
		}
	}
	slices.Sort(all)
	return all, nil
}

func describeBy(ctx context.Context, q querier, query string, all []string) ([]string, error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		line = withoutSchema(strings.Join(strings.Fields(withoutComments(line)), " "))
		if name, text, ok := strings.Cut(line, " as "); ok && strings.HasPrefix(name, "table ") { // a checksum replaces the definition, which is too long for an error message
			line = fmt.Sprintf("%s defined as %.4x", name, sha256.Sum256([]byte(text)))
		}
		all = append(all, line)
	}
	return all, rows.Err()
}
