package archive

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"puntuale/internal/store/engine"
)

// movedTable describes a table whose rows move to another database.
type movedTable struct {
	Name    string
	Columns string // columns that move, in the order in the file
	left    string // columns that do not move, because they describe running servers; the new installation uses their defaults
	Serial  string // column that PostgreSQL numbers by itself; "": none
}

// MovedTables and LeftTables together contain every table. MovedTables also contains every column of its tables, so
// that none is forgotten. A test compares these lists with the catalogues of both databases. Export and import compare
// them with the catalogue of their database. If a migration adds a column, add the column here. Then decide what an
// import does with older files that do not have the column.
var MovedTables = []movedTable{
	{Name: "secret", Columns: "name value"}, // the value stays sealed with a key that does not move
	{Name: "counter", Columns: "noun next"}, // includes the counter of nodes: an attempt's token contains the node's number, which must never be used again
	{Name: "id_block", Columns: "one next"},
	{Name: "partner", Columns: "id name slug created_at"},
	{Name: "client", Columns: "id partner_id name email phone type profile refill refill_to refill_at credits cap expires_on expires_at" +
		" zone region suspended features closed created_at deleted_at blanked_to erased revision held_at" +
		" credits_topped credits_told expiry_told expiry_told_at marketing_from plan_id plan_since"},
	{Name: "client_plan", Columns: "partner_id id name body"},
	{Name: "quota", Columns: "client_id noun most"},
	{Name: "login", Columns: "id partner_id client_id email password created_at name role language stamp second second_last recovery seen_at"},
	{Name: "invitation", Columns: "login_id hash expires_at"},
	{Name: "brand", Columns: "partner_id name colour logo logo_kind host mark confirmed"},
	{Name: "day_total", Columns: "client_id day sent failed"},
	{Name: "total_mark", Columns: "client_id at"},
	{Name: "audit", Columns: "id partner_id client_id login_id who entry action target at address times", Serial: "id"},
	{Name: "api_key", Columns: "id partner_id client_id name prefix hash created_at expires_at revoked_at used_at"},
	{Name: "session", Columns: "client_id id name type sandbox is_default per_min start_sequence stop_sequence created_at deleted_at link link_at number link_detail keys" +
		" link_condition limited_until per_day cold_per_min cold_per_day jitter network_mark way told direct_send marketing_path creative",
		left: "owner code code_until code_mark page_until page_starts"},
	{Name: "sequence", Columns: "client_id id name session_id if_running stop_on_reply steps created_at updated_at deleted_at purpose booking last_step track_links"},
	{Name: "template", Columns: "client_id id name text media media_name latitude longitude created_at updated_at official"},
	{Name: "run", Columns: "client_id id sequence_id session_id phone origin messages name zone received_at request client_name sequence_name" +
		" content blanked_at campaign_id reference depth steps rule_id"},
	{Name: "booking", Columns: "client_id id reference sequence_id session_id phone zone fields date_at status status_by revision as_of as_of_kind told_at moments" +
		" created_at changed_at erased_at answer page_token"},
	{Name: "booking_step", Columns: "client_id booking_id sequence_id step occurrence phone message_id previous_id timing digest fate question answered_at"},
	{Name: "booking_former", Columns: "client_id reference booking_id"},
	{Name: "booking_change", Columns: "client_id booking_id revision at door what"},
	{Name: "calendar", Columns: "client_id id name host address sequence_id sources all_day created_at started_at reading next_at tried_at read_at" +
		" etag modified digest failures fault told asked cancels entries understood", left: "owner"},
	{Name: "calendar_entry", Columns: "client_id calendar_id reference start_at all_day title place phone name cancelled problem warning digest applied" +
		" withdrawn missing refused"},
	{Name: "replan", Columns: "client_id sequence_id state door edited_at cursor_id last_id bookings done planned moved cancelled refused started_at ended_at", left: "owner owned_until"},
	{Name: "late_run", Columns: "client_id run_id since"},
	{Name: "message", Columns: "client_id id session_id run_id desired_at due_at next_at valid_until intent intent_at done_at resent_from" +
		" step origin attempt repeats generation state outcome credit phone reason detail campaign_id priority purpose"},
	{Name: "campaign", Columns: "client_id id session_id sequence_id state name draft frozen list_id checked checked_at reason created_at created_by" +
		" started_at paused_at resumed_at ended_at final"},
	{Name: "statement", Columns: "client_id month frozen_at counted_to body", left: "working_until"},
	{Name: "statement_part", Columns: "month client_id counted_to n line messages"},
	{Name: "statement_price", Columns: "partner_id currency prices"},
	{Name: "budget", Columns: "client_id amount currency zone began_at ends_at spent unpriced generation counted place_at place_id told held_to let_at"},
	{Name: "budget_message", Columns: "client_id message_id generation amount"},
	{Name: "free_service", Columns: "client_id session_id month messages"},
	{Name: "campaign_feed", Columns: "client_id campaign_id place next_at waiting fed refused held_out"},
	{Name: "campaign_list", Columns: "client_id id campaign_id columns mapping size written_at"},
	{Name: "charge", Columns: "client_id campaign_id country category billable messages"},
	{Name: "recipient", Columns: "client_id list_id n line phone cells state reason value run_id moved_at"},
	{Name: "result_change", Columns: "id client_id messages at", Serial: "id"},
	{Name: "result_key", Columns: "client_id id sequence_id step campaign_id rule_id session_id template told variant"},
	{Name: "result_message", Columns: "client_id message_id key_id day marks hour words generation"},
	{Name: "result_answer", Columns: "client_id message_id id kind button"},
	{Name: "result_month", Columns: "client_id month key_id generation counts hours words"},
	{Name: "result_client", Columns: "client_id generation shown place state began_at"},
	{Name: "unknown_message", Columns: "client_id message_id since at"},
	{Name: "api_usage", Columns: "client_id day cap asked prev used told bytes"},
	{Name: "idempotency", Columns: "client_id scope key hash at result"},
	{Name: "credit_entry", Columns: "id client_id at kind amount", Serial: "id"},
	{Name: "blacklist", Columns: "client_id phone id reason added_at origin"},
	{Name: "event", Columns: "id client_id message_id at kind detail", Serial: "id"},
	{Name: "receipt", Columns: "client_id message_id sent_at delivered_at read_at failed_at billed category country billable charged_at"},
	{Name: "contact", Columns: "client_id session_id phone window_until preference_at met_at"},
	{Name: "client_setting", Columns: "client_id remember remembered_to keep_replies consent opt_out_words opt_out_answer takeover_hours automated_most confirm_words cancel_words button_line flatten_values pause_costlier track_links keep_media"},
	{Name: "person", Columns: "client_id id phone name language source fields tags created_at changed_at"},
	{Name: "person_count", Columns: "client_id people"},
	{Name: "person_term", Columns: "client_id kind term person_id"},
	{Name: "reply", Columns: "client_id id session_id phone at own kind text media network_id run_id effect read_at blanked_at answer payload button in_reply_to matched"},
	{Name: "incoming_file", Columns: "client_id reply_id file_id next_at tries outcome"},
	{Name: "conversation", Columns: "client_id phone last_id unread answered_at"},
	{Name: "inbound_seen", Columns: "client_id mark at"},
	{Name: "consent", Columns: "client_id id phone purpose change source words message mark by_whom at entered_at applied changed"},
	{Name: "consent_state", Columns: "client_id phone purpose change granted_before at"},
	{Name: "event_stream", Columns: "client_id wanted feed_until last_seq"},
	{Name: "outbox_fact", Columns: "client_id id type subject detail at more", Serial: "id"},
	{Name: "outbox_event", Columns: "client_id seq type subject detail at"},
	{Name: "webhook", Columns: "id partner_id client_id url types session_id description active disabled_at reason created_at succeeded_at failing_at" +
		" secret secret_before secret_until", left: "owner"},
	{Name: "chatwoot_link", Columns: "client_id session_id webhook_id account_id inbox_id"},
	{Name: "chatwoot_conversation", Columns: "client_id phone webhook_id contact_id conversation_id posting assigned_at"},
	{Name: "delivery", Columns: "webhook_id at client_id seq type state attempts next_at tried_at status took answer"},
	{Name: "notice", Columns: "id partner_id client_id login_id kind subject detail at due_at open mailed", Serial: "id"},
	{Name: "notice_read", Columns: "login_id notice_id"},
	{Name: "notice_choice", Columns: "login_id on_kinds off_kinds mails mails_from"},
	{Name: "automation", Columns: "client_id id name active kind sequence_id wants trigger_text conditions actions stamp created_at updated_at armed_at fired fired_at" +
		" scanned_to secret sealed payload payload_form payload_phone payload_at"},
	{Name: "automation_client", Columns: "client_id wanted since"},
	{Name: "automation_trigger", Columns: "id client_id kind subject phone detail occurrence at next_at", Serial: "id", left: "node attempts"},
	{Name: "automation_timer", Columns: "client_id rule_id run_id phone since due_at"},
	{Name: "automation_date", Columns: "client_id rule_id person_id value version since day run_id"},
	{Name: "automation_occurrence", Columns: "client_id rule_id phone occurrence keep_until"},
	{Name: "automation_firing", Columns: "client_id id rule_id phone at occurrence acted reached reason detail depth messages", Serial: "id"},
	{Name: "file", Columns: "client_id id name type hash size width height created_at stored_at needed_at hidden_at run_id small incoming",
		left: "place removed_at"}, // a file has the bytes of all files, wherever they are in the database's installation
	{Name: "file_part", Columns: "client_id file_id n content", left: "hash"},
	{Name: "upload", Columns: "client_id session_id number hash media until"},
	{Name: "link", Columns: "client_id run_id step n code address clicked_at clicks machines"},
	{Name: "network_id", Columns: "client_id session_id id message_id token at"},
	{Name: "device", Columns: "client_id id session_id name token dedupes assisted linked_at seen_at push pushed_at push_after push_failures"},
	{Name: "device_hold", Columns: "client_id message_id session_id device_id token take at until done"},
	{Name: "official", Columns: "client_id session_id number account synced_at problem reach_limit chunks direct_send_at opted_out_at"},
	{Name: "official_pause", Columns: "client_id session_id account scope subject code reason final detail at until"},
	{Name: "official_health", Columns: "client_id session_id kind subject value detail at until confirmed_at"},
	{Name: "network_template", Columns: "client_id account name language network_id status category quality reason named parts changed_at advice wanted locked_at"},
	{Name: "template_request", Columns: "client_id id session_id account kind name language network_id draft approved upload state reason made_at called_at due_at ended_at"},
	{Name: "alias", Columns: "client_id session_id alias phone"},
	{Name: "number_change", Columns: "client_id id session_id mark old_phone new_phone names at noted_at undone_at moved"},
	{Name: "former_name", Columns: "client_id name change_id at"},
	{Name: "sandbox_message", Columns: "seq client_id message_id connector_id phone content received_at copies", Serial: "seq"},
	{Name: "archive", Columns: "one folder serial done_to", left: "term until"},
	{Name: "archive_place", Columns: "client_id run_id"},
	{Name: "late_archive", Columns: "client_id run_id since"},
	{Name: "archive_erasure", Columns: "client_id mark times"},
}

// LeftTables do not move, because they describe running servers or this single database, or follow from tables that move
// (person_word).
var LeftTables = []string{"person_word", "node", "key_reader", "command", "cluster", "moved", "backup", "backup_work", "file_storage", "result_counter", "visit", "try", "ticket", "mail", "puntuale_version", "puntuale_migration_lock"}

// BeginTables contain rows even in a new database. So rows in these tables do not mean that a database is in use.
var BeginTables = []string{"secret", "counter", "id_block"}

const (
	PostgresCatalogue = `select table_name, column_name, data_type from information_schema.columns
 where table_schema = current_schema() order by table_name, ordinal_position`
	SQLiteCatalogue = `select m.name, p.name, p.type from sqlite_schema m, pragma_table_info(m.name) p
 where m.type = 'table' and m.name not like 'sqlite\_%' escape '\' order by m.name, p.cid`
)

// KindOf maps each type name of both databases to the kind of its columns.
var KindOf = map[string]Kind{
	"smallint": Integer, "integer": Integer, "bigint": Integer, "text": Text, "bytea": Bytes,
	"double precision": Real, "blob": Bytes, "real": Real, "boolean": Boolean, "uuid": Text,
}

// Catalogue reads the tables of the database and compares them with MovedTables and LeftTables. It returns the tables
// and columns that move, and the names of tables that are in neither list. Such tables do not move, because they belong
// to an extension or an operator.
func Catalogue(ctx context.Context, d *engine.Dialect, a engine.Querier) (all []Table, foreign []string, err error) {
	columns := map[string]map[string]string{}
	text := SQLiteCatalogue
	if d.Postgres {
		text = PostgresCatalogue
	}
	if err := a.Query(ctx, text, nil, func(rows engine.Row) error {
		var table, column, kind string
		err := rows.Scan(&table, &column, &kind)
		if columns[table] == nil {
			columns[table] = map[string]string{}
		}
		columns[table][column] = strings.ToLower(kind)
		return err
	}); err != nil {
		return nil, nil, fmt.Errorf("read the catalogue: %w", err)
	}
	for _, name := range LeftTables {
		delete(columns, name)
	}
	for _, m := range MovedTables {
		t, err := m.described(columns[m.Name])
		if err != nil {
			return nil, nil, err
		}
		all = append(all, t)
		delete(columns, m.Name)
	}
	return all, slices.Sorted(maps.Keys(columns)), nil
}

// described compares the table with the columns of the database. columns maps the name of each column to its type.
func (m *movedTable) described(columns map[string]string) (Table, error) {
	t := Table{Name: m.Name}
	for _, name := range strings.Fields(m.Columns) {
		kind, ok := KindOf[columns[name]]
		if !ok {
			return t, fmt.Errorf("the table %s has no column %s, or of a type %q that this program does not move", m.Name, name, columns[name])
		}
		t.Columns = append(t.Columns, Column{Name: name, Kind: kind})
		delete(columns, name)
	}
	for _, name := range strings.Fields(m.left) {
		delete(columns, name)
	}
	if unknown := slices.Sorted(maps.Keys(columns)); len(unknown) > 0 {
		return t, fmt.Errorf("this program does not know whether to move the columns %s of table %s", strings.Join(unknown, ", "), m.Name)
	}
	return t, nil
}

// ColumnNames returns the names of the columns, separated by commas, for a statement.
func ColumnNames(t Table) string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

// StepRows is how many rows are read before the next check whether to stop.
const StepRows = 1000

// ReadTable reads the columns of a table, and calls take for each row, always with the same slice. The memory that it
// uses does not depend on the number of rows.
func ReadTable(ctx context.Context, a engine.Querier, t Table, take func([]any) error) error {
	values, targets := make([]any, len(t.Columns)), make([]any, len(t.Columns))
	for i := range values {
		targets[i] = &values[i]
	}
	n := int64(0)
	err := a.Query(ctx, "select "+ColumnNames(t)+" from "+t.Name, nil, func(r engine.Row) error {
		if err := r.Scan(targets...); err != nil {
			return err
		}
		Plain(values, t)
		if n++; n%StepRows == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return take(values)
	})
	if err != nil {
		return fmt.Errorf("read table %s: %w", t.Name, err)
	}
	return nil
}

// Plain converts the values of a row from the types of a database to the types of a file.
func Plain(values []any, t Table) {
	for i, c := range t.Columns {
		switch v := values[i].(type) {
		case []byte:
			if c.Kind == Text {
				values[i] = string(v)
			}
		case int64:
			if c.Kind == Boolean {
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
