package retention

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
)

// erasureStep is a step of an erasure, with the tables whose data about the person it removes.
type erasureStep struct {
	erase func(*erasureTransaction, context.Context) error
	data  []personalTable
}

// personalTable describes a table with data about people.
type personalTable struct {
	table string

	// member is the member of the document about a person that contains the rows. If rows is "", another list of the
	// store writes this member.
	member string

	// columns are the columns in the document. Some have a kind: "at:time", "fields:json", "acted:flag", "payload:text".
	columns string

	key  string // the columns that identify a row of rows
	rows string // an SQL query for the person's rows: $1 is the client, and each name and mark is a row of $u(p text)
}

// personal is the only table of the data about people. It contains the steps of an erasure in their order. For each
// step, it says what the document about a person shows from the tables of the step. So each table that an erasure
// empties is also in the document. A test compares it with the tables of the database.
//
// A rule for dates may start runs as long as the contact exists, and a hook's call may make a booking until its trigger
// is removed with the contact. So bookings and runs are erased once more after the contact is deleted.
var personal = []erasureStep{
	{(*erasureTransaction).recipients, []personalTable{
		{"recipient", "recipients", "campaign line phone cells:json state reason value", "list_id n", `select r.list_id, r.n, c.id as campaign, r.line, r.phone, r.cells,
 case r.state when 0 then 'waiting' when 1 then 'fed' else 'refused' end as state, r.reason, r.value from $u(p text) cross join recipient r
 left join campaign_list l on l.client_id = r.client_id and l.id = r.list_id left join campaign c on c.client_id = l.client_id and c.id = l.campaign_id
 where r.client_id = $1 and r.phone = u.p`},
		{table: "campaign", member: "recipients"}, // samples of the recipients
	}},
	{(*erasureTransaction).automations, []personalTable{
		{"automation_trigger", "waiting_triggers", "at:time phone detail:json occurrence", "id",
			`select t.id, t.at, t.phone, t.detail, t.occurrence from $u(p text) cross join automation_trigger t where t.client_id = $1 and t.phone = u.p`},
		{"automation_timer", "awaited_replies", "automation run since:time due_at:time", "automation run",
			`select t.rule_id as automation, t.run_id as run, t.since, t.due_at from $u(p text) cross join automation_timer t where t.client_id = $1 and t.phone = u.p`},
		{"automation_date", "awaited_dates", "automation value since:time", "automation person_id", `select d.rule_id as automation, d.person_id, d.value, d.since
 from $u(p text) cross join person p cross join automation_date d where p.client_id = $1 and p.phone = u.p and d.client_id = p.client_id and d.person_id = p.id`},
	}},
	{(*erasureTransaction).bookings, []personalTable{
		{"calendar_entry", "calendar_entries", "calendar reference phone name title place start:time", "calendar reference", `select e.calendar_id as calendar, e.reference, e.phone, e.name, e.title, e.place,
 e.start_at as start from $u(p text) cross join calendar_entry e where e.client_id = $1 and e.phone = u.p`},
		{"booking", "bookings", "reference sequence phone fields:json date:time status created_at:time changed_at:time", "id", `select b.id, b.reference, b.sequence_id as sequence, b.phone,
 b.fields, b.date_at as date, case b.status when 0 then 'open' when 1 then 'confirmed' when 2 then 'cancelled' when 3 then 'arrived' else 'no_show' end as status, b.created_at, b.changed_at
 from $u(p text) cross join booking b where b.client_id = $1 and b.phone = u.p`},
		{"booking_former", "former_references", "booking reference", "reference", `select f.booking_id as booking, f.reference from $u(p text) cross join booking b cross join booking_former f
 where b.client_id = $1 and b.phone = u.p and f.client_id = b.client_id and f.booking_id = b.id`},
		{table: "booking_step", member: "bookings"}, // the phones to which messages went
	}},
	{erase: (*erasureTransaction).cancel},
	{(*erasureTransaction).runs, []personalTable{
		{table: "run", member: "messages"},
		{table: "message", member: "messages"},
		{"event", "message_events", "message at:time kind detail", "id",
			`select e.id, e.message_id as message, e.at, e.kind, e.detail from ` + theirMessages + ` t cross join event e where e.client_id = $1 and e.message_id = t.id`},
		{"link", "links", "message address clicked_at:time clicks machines", "run_id step n", `select l.run_id, l.step, l.n, l.run_id + l.step as message, l.address, l.clicked_at, l.clicks, l.machines
 from $u(p text) cross join run r cross join link l where r.client_id = $1 and r.phone = u.p and l.client_id = r.client_id and l.run_id = r.id`},
		{"sandbox_message", "sandbox_messages", "message phone content:json received_at:time copies", "seq", `select s.seq, s.message_id as message, s.phone, s.content, s.received_at, s.copies
 from sandbox_message s where s.client_id = $1 and s.message_id in ` + theirMessages},
	}},
	{(*erasureTransaction).answers, []personalTable{
		{table: "idempotency", member: "messages"}, // the answers about these messages
	}},
	{erase: (*erasureTransaction).archived},
	{(*erasureTransaction).contact, []personalTable{
		{"person", "contacts", "id phone name language source fields:json tags:json created_at:time changed_at:time", "id", `select p.id, p.phone, p.name, p.language, p.source,
 p.fields, p.tags, p.created_at, p.changed_at from $u(p text) cross join person p where p.client_id = $1 and p.phone = u.p`},
		{table: "person_term", member: "contacts"}, // the words by which people search for contacts
		{table: "person_word", member: "contacts"}, // the same, with typing errors
		{"automation_firing", "automations", "automation at:time phone occurrence acted:flag reason detail messages:json", "id", `select f.id, f.rule_id as automation, f.at,
 f.phone, f.occurrence, f.acted, f.reason, f.detail, f.messages from $u(p text) cross join automation_firing f where f.client_id = $1 and f.phone = u.p`},
		{"automation", "hooks", "automation at:time payload:text", "automation", `select a.id as automation, a.payload_at as at, a.payload
 from automation a where a.client_id = $1 and a.payload is not null and a.payload_phone in (select u.p from $u(p text))`},
		{"automation_occurrence", "occurrences", "automation occurrence keep_until:time", "automation phone occurrence", `select o.rule_id as automation, o.phone, o.occurrence, o.keep_until
 from $u(p text) cross join automation_occurrence o where o.client_id = $1 and o.phone = u.p`},
	}},
	{erase: (*erasureTransaction).bookings},
	{erase: (*erasureTransaction).cancel},
	{erase: (*erasureTransaction).runs},
	{(*erasureTransaction).replies, []personalTable{
		{table: "reply", member: "replies"},
		{table: "incoming_file", member: "replies"}, // names of their files, and files that only they sent
		{table: "delivery", member: "replies"},      // what receivers answered to events about replies and messages
		{"conversation", "conversations", "phone unread answered_at:time", "phone",
			`select c.phone, c.unread, c.answered_at from $u(p text) cross join conversation c where c.client_id = $1 and c.phone = u.p`},
		{"chatwoot_conversation", "chatwoot", "phone contact_id conversation_id assigned_at:time", "webhook_id phone", `select c.webhook_id, c.phone, c.contact_id, c.conversation_id,
 c.assigned_at from $u(p text) cross join chatwoot_conversation c where c.client_id = $1 and c.phone = u.p`},
	}},
	{(*erasureTransaction).mark, []personalTable{
		{table: "consent", member: "consent"},
		{table: "consent_state", member: "consent"}, // the latest change for each purpose
		{"contact", "sessions", "session phone window_until:time preference_at:time met_at:time", "session phone", `select c.session_id as session, c.phone, c.window_until,
 c.preference_at, c.met_at from $u(p text) cross join contact c where c.client_id = $1 and c.phone = u.p`},
		{"official_pause", "refused_by_network", "session person code final:flag detail at:time until:time", "session person code", `select w.session_id as session, w.subject as person,
 w.code, w.final, w.detail, w.at, w.until from $u(p text) cross join official_pause w where w.client_id = $1 and w.subject = u.p and w.scope in (1, 2, 7)`},
		{"alias", "names", "session alias phone", "session alias", `select a.session_id as session, a.alias, a.phone from alias a
 where a.client_id = $1 and (a.alias in (select u.p from $u(p text)) or a.phone in (select u.p from $u(p text)))`},
		{"number_change", "number_changes", "session old_phone new_phone names:json changed_at:time noted_at:time undone_at:time", "id", `select n.id, n.session_id as session, n.old_phone, n.new_phone, n.names,
 n.at as changed_at, n.noted_at, n.undone_at from number_change n where n.client_id = $1 and (n.old_phone in (select u.p from $u(p text)) or n.new_phone in (select u.p from $u(p text)))`},
		{"former_name", "former_names", "name changed_at:time", "name", `select f.name, f.at as changed_at from $u(p text) cross join former_name f where f.client_id = $1 and f.name = u.p`},
		{"blacklist", "blacklist", "added_at:time reason opt_out:flag", "phone", `select b.phone, b.added_at, b.reason, b.origin as opt_out
 from $u(p text) cross join blacklist b where b.client_id = $1 and b.phone = u.p`},
		{table: "outbox_fact", member: "blacklist"}, // events about the blacklist
		{table: "outbox_event", member: "blacklist"},
	}},
	{erase: (*erasureTransaction).finish},
}

// theirMessages is an SQL query for the ids of the person's messages.
const theirMessages = `(select m.id from $u(p text) cross join run r cross join message m
 where r.client_id = $1 and r.phone = u.p and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages
union all
select m.id from $u(p text) cross join run r cross join message m
 where r.client_id = $1 and r.phone = u.p and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0)`

// PersonalTables returns the names of all tables with data about people, each with its member of the document about a
// person.
func PersonalTables() map[string]string {
	all := map[string]string{}
	for _, step := range personal {
		for _, t := range step.data {
			all[t.table] = t.member
		}
	}
	return all
}

// personalRows is how many rows of a person's data are in memory at most.
const personalRows = 100

// PersonalData reads a person's data, a page at a time, and calls each with the pages. Each row is a JSON object. each
// is called at least once for each member of the document, with all pages of a member in a row. PersonalData leaves out
// consent, messages and replies, which have lists of their own.
func (s *Retention) PersonalData(ctx context.Context, client puntuale.ClientID, of puntuale.Person, each func(member string, rows []json.RawMessage) error) error {
	names, err := alias.Names(ctx, s.CallReads, client, of.Names...)
	if err != nil {
		return engine.PublicError(err)
	}
	names = append(names, of.Marks(names)...)
	for _, step := range personal {
		for _, t := range step.data {
			if t.rows == "" {
				continue
			}
			if err := t.read(ctx, s.Lists(int64(client)), client, names, each); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t personalTable) read(ctx context.Context, a engine.Querier, client puntuale.ClientID, names []string, each func(member string, rows []json.RawMessage) error) error {
	keys, columns := strings.Fields(t.key), strings.Fields(t.columns)
	list := make([]string, 0, len(keys)+len(columns))
	for _, column := range slices.Concat(keys, columns) {
		name, _, _ := strings.Cut(column, ":")
		list = append(list, "x."+name)
	}
	order := "x." + strings.Join(keys, ", x.")
	for last := []any(nil); ; {
		text, args := "select "+strings.Join(list, ", ")+" from ("+t.rows+") x", []any{client, personalRows}
		for i, key := range last {
			args = append(args, key)
			text += map[bool]string{true: " where (" + order + ") > (", false: ", "}[i == 0] + fmt.Sprintf("$%d", len(args))
		}
		if last != nil {
			text += ")"
		}
		rows, err := engine.QueryAll(ctx, a, text+" order by "+order+" limit $2", append(args, engine.Columns{names}), func(r engine.Row, row *personalRow) error {
			return row.scan(r, len(keys), columns)
		})
		if err != nil {
			return engine.PublicError(fmt.Errorf("read the rows of %s about a person: %w", t.table, err))
		}
		if err := each(t.member, engine.Column(rows, func(r *personalRow) json.RawMessage { return r.object })); err != nil || len(rows) < personalRows {
			return err
		}
		last = rows[len(rows)-1].key
	}
}

// personalRow is one row, as a JSON object.
type personalRow struct {
	key    []any
	object json.RawMessage
}

func (p *personalRow) scan(r engine.Row, keys int, columns []string) error {
	values := make([]any, keys+len(columns))
	targets := make([]any, len(values))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := r.Scan(targets...); err != nil {
		return err
	}
	p.key = values[:keys]
	object := []byte{'{'}
	for i, value := range values[keys:] {
		name, kind, _ := strings.Cut(columns[i], ":")
		if value = shown(value, kind); value == nil {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode a person's data: %w", err)
		}
		if len(object) > 1 {
			object = append(object, ',')
		}
		object = fmt.Appendf(object, "%q:%s", name, text)
	}
	p.object = append(object, '}')
	return nil
}

// shown returns a value as the document shows it. It returns nil for a value that is empty.
func shown(value any, kind string) any {
	switch v := value.(type) {
	case []byte:
		value = string(v)
	case int16:
		value = int64(v)
	case int32:
		value = int64(v)
	}
	switch v := value.(type) {
	case int64:
		switch {
		case kind == "flag":
			return v != 0
		case kind == "time" && v == 0:
			return nil
		case kind == "time":
			return engine.Instant(v).Format(time.RFC3339Nano)
		}
	case string:
		switch {
		case v == "":
			return nil
		case kind == "json" && json.Valid([]byte(v)):
			return json.RawMessage(v)
		}
	}
	return value
}
