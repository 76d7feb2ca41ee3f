package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"puntuale/internal/store/engine"

	"puntuale/internal/store/archive"
)

// movedTable is a table that moves to another database.
type movedTable struct {
	name    string
	columns string // that move, in the file's order
	left    string // that stay, as they say something of servers that run: the other side has their defaults
	serial  string // the column that PostgreSQL numbers
}

// movedTables and leftTables name every table and every column, so that none is forgotten silently: a test compares them
// with the catalogues of both databases, and so do export and import with that of their own. Who adds a column puts it
// here, and asks what it means to a server that has never seen the old ones.
var movedTables = []movedTable{
	{name: "secret", columns: "name value"}, // wrapped, where it is, by a key that does not move
	{name: "counter", columns: "noun next"}, // nodes' too: an attempt's token holds a node that is never there again
	{name: "id_block", columns: "one next"},
	{name: "partner", columns: "id name slug created_at"},
	{name: "client", columns: "id partner_id name email phone type profile refill refill_to refill_at credits cap expires_on expires_at" +
		" zone region suspended features closed created_at deleted_at blanked_to erased revision held_at"},
	{name: "quota", columns: "client_id noun most"},
	{name: "login", columns: "id partner_id client_id email password created_at name role language stamp second second_last recovery seen_at"},
	{name: "invitation", columns: "login_id hash expires_at"},
	{name: "brand", columns: "partner_id name colour logo logo_kind host mark confirmed"},
	{name: "day_total", columns: "client_id day sent failed"},
	{name: "total_mark", columns: "client_id at"},
	{name: "audit", columns: "id partner_id client_id login_id who entry action target at address times", serial: "id"},
	{name: "api_key", columns: "id partner_id client_id name prefix hash created_at expires_at revoked_at"},
	{name: "session", columns: "client_id id name type sandbox is_default per_min start_sequence stop_sequence created_at deleted_at link link_at number link_detail keys" +
		" link_condition limited_until per_day cold_per_min cold_per_day jitter network_mark way",
		left: "owner code code_until code_mark"},
	{name: "sequence", columns: "client_id id name session_id if_running stop_on_reply steps created_at updated_at deleted_at"},
	{name: "template", columns: "client_id id name text media media_name latitude longitude created_at updated_at official"},
	{name: "run", columns: "client_id id sequence_id session_id phone origin messages name zone received_at request client_name sequence_name" +
		" content blanked_at campaign_id"},
	{name: "late_run", columns: "client_id run_id since"},
	{name: "message", columns: "client_id id session_id run_id desired_at due_at next_at valid_until intent intent_at done_at resent_from" +
		" step origin attempt repeats generation state outcome credit phone reason detail campaign_id priority"},
	{name: "campaign", columns: "client_id id session_id sequence_id state name draft frozen list_id checked checked_at reason created_at created_by" +
		" started_at paused_at resumed_at ended_at final"},
	{name: "campaign_feed", columns: "client_id campaign_id place next_at waiting fed refused"},
	{name: "campaign_list", columns: "client_id id campaign_id columns mapping size written_at"},
	{name: "charge", columns: "client_id campaign_id country category billable messages"},
	{name: "recipient", columns: "client_id list_id n line phone cells state reason value run_id moved_at"},
	{name: "unknown_message", columns: "client_id message_id since at"},
	{name: "api_usage", columns: "client_id day cap asked prev used"},
	{name: "idempotency", columns: "client_id scope key hash at result"},
	{name: "credit_entry", columns: "id client_id at kind amount", serial: "id"},
	{name: "blacklist", columns: "client_id phone id reason added_at"},
	{name: "event", columns: "id client_id message_id at kind detail", serial: "id"},
	{name: "receipt", columns: "client_id message_id sent_at delivered_at read_at failed_at billed"},
	{name: "contact", columns: "client_id session_id phone window_until preference_at met_at"},
	{name: "upload", columns: "client_id session_id number hash media until"},
	{name: "network_id", columns: "client_id session_id id message_id token at"},
	{name: "device", columns: "client_id id session_id name token dedupes assisted linked_at seen_at push pushed_at push_after push_failures"},
	{name: "device_hold", columns: "client_id message_id session_id device_id token take at until done"},
	{name: "official", columns: "client_id session_id number account synced_at problem reach_limit"},
	{name: "network_template", columns: "client_id account name language network_id status category quality reason named parts changed_at"},
	{name: "alias", columns: "client_id session_id alias phone"},
	{name: "sandbox_message", columns: "seq client_id message_id connector_id phone content received_at copies", serial: "seq"},
	{name: "archive", columns: "one folder serial done_to", left: "term until"},
	{name: "archive_place", columns: "client_id run_id"},
	{name: "late_archive", columns: "client_id run_id since"},
	{name: "archive_erasure", columns: "client_id mark times"},
}

// leftTables are of servers that run, or of one database.
var leftTables = []string{"node", "command", "cluster", "moved", "backup", "visit", "try", "ticket", "puntuale_version", "puntuale_migration_lock"}

// beginTables are filled from the beginning: that they hold something says nothing.
var beginTables = []string{"secret", "counter", "id_block"}

const (
	postgresCatalogue = `select table_name, column_name, data_type from information_schema.columns
 where table_schema = current_schema() order by table_name, ordinal_position`
	sqliteCatalogue = `select m.name, p.name, p.type from sqlite_schema m, pragma_table_info(m.name) p
 where m.type = 'table' and m.name not like 'sqlite\_%' escape '\' order by m.name, p.cid`
)

var kindOf = map[string]archive.Kind{
	"smallint": archive.Integer, "integer": archive.Integer, "bigint": archive.Integer, "text": archive.Text, "bytea": archive.Bytes,
	"double precision": archive.Real, "blob": archive.Bytes, "real": archive.Real, "boolean": archive.Boolean, "uuid": archive.Text,
}

// catalogue reads the database's tables and compares them with those that we know. It returns the columns that move,
// and the names of tables that are none of ours, which stay: views of an extension, or what an operator put there.
func catalogue(ctx context.Context, d *engine.Dialect, a engine.Querier) (all []archive.Table, foreign []string, err error) {
	there := map[string]map[string]string{}
	text := sqliteCatalogue
	if d.Postgres {
		text = postgresCatalogue
	}
	if err := a.Query(ctx, text, nil, func(rows engine.Row) error {
		var table, column, kind string
		err := rows.Scan(&table, &column, &kind)
		if there[table] == nil {
			there[table] = map[string]string{}
		}
		there[table][column] = strings.ToLower(kind)
		return err
	}); err != nil {
		return nil, nil, fmt.Errorf("read the catalogue: %w", err)
	}
	for _, name := range leftTables {
		delete(there, name)
	}
	for _, m := range movedTables {
		t, err := m.described(there[m.name])
		if err != nil {
			return nil, nil, err
		}
		all = append(all, t)
		delete(there, m.name)
	}
	return all, slices.Sorted(maps.Keys(there)), nil
}

// described compares a table with the catalogue's columns, by name, and their types.
func (m *movedTable) described(there map[string]string) (archive.Table, error) {
	t := archive.Table{Name: m.name}
	for _, name := range strings.Fields(m.columns) {
		kind, ok := kindOf[there[name]]
		if !ok {
			return t, fmt.Errorf("the table %s has no column %s, or of a type %q that this program does not move", m.name, name, there[name])
		}
		t.Columns = append(t.Columns, archive.Column{Name: name, Kind: kind})
		delete(there, name)
	}
	for _, name := range strings.Fields(m.left) {
		delete(there, name)
	}
	if unknown := slices.Sorted(maps.Keys(there)); len(unknown) > 0 {
		return t, fmt.Errorf("this program does not know whether to move the columns %s of table %s", strings.Join(unknown, ", "), m.name)
	}
	return t, nil
}

// columnNames joins the names of columns as a statement does.
func columnNames(t archive.Table) string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

// stepRows is how many rows go by between two looks at whether to go on.
const stepRows = 1000

// readTable reads a table's columns, each row in the same slice. It takes no more memory for more rows.
func readTable(ctx context.Context, a engine.Querier, t archive.Table, take func([]any) error) error {
	values, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
	for i := range values {
		into[i] = &values[i]
	}
	n := int64(0)
	err := a.Query(ctx, "select "+columnNames(t)+" from "+t.Name, nil, func(r engine.Row) error {
		if err := r.Scan(into...); err != nil {
			return err
		}
		plain(values, t)
		if n++; n%stepRows == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return take(values)
	})
	if err != nil {
		return fmt.Errorf("read table %s: %w", t.Name, err)
	}
	return nil
}

// plain makes the values of a row what a file keeps, whichever database they were scanned from.
func plain(values []any, t archive.Table) {
	for i, c := range t.Columns {
		switch v := values[i].(type) {
		case []byte:
			if c.Kind == archive.Text {
				values[i] = string(v)
			}
		case int64:
			if c.Kind == archive.Boolean {
				values[i] = v != 0
			}
		case [16]byte: // a UUID
			values[i] = fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])
		case int16:
			values[i] = int64(v)
		case int32:
			values[i] = int64(v)
		}
	}
}
