package store_test

import (
	"context"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// access lists how each statement must reach a table: by an index, or by the key. avoids is a part of a plan, such as an index
// or a scan, that the statement's plan must not contain.
var access = map[string]struct {
	reads  bool
	wants  []string // names of indexes on both databases; "key" is the key of table message
	avoids string
	scans  string // a scan that the statement must not do, as SQLite names it in the plan
	allows string // a part of the plan that is allowed here, although the test forbids it for other statements
}{
	"followed link":   {reads: true, wants: []string{"link_code"}, avoids: "Seq Scan on link", scans: "SCAN l\n", allows: "Seq Scan on client"},
	"waits for money": {wants: []string{"message_budget"}},
	"persons":         {reads: true, wants: []string{"person_phone"}},
	"answered":        {reads: true, avoids: "Seq Scan on conversation", scans: "SCAN g\n"},
	"assigned":        {reads: true, avoids: "Seq Scan on chatwoot_conversation", scans: "SCAN h\n"},
	"reached":         {reads: true, wants: []string{"automation_firing_phone"}},
	"acted":           {reads: true, wants: []string{"automation_firing_phone"}},
	"first reply":     {reads: true, wants: []string{"reply_phone"}},
	"in a run":        {reads: true, wants: []string{"run_recipient", "key", "message_resent"}},
	"trigger reply":   {reads: true, avoids: "Seq Scan on reply", scans: "SCAN y\n"},
	"trigger message": {reads: true, wants: []string{"key"}},
	"take triggers":   {wants: []string{"automation_trigger_due"}},
	"take contacts":   {wants: []string{"automation_trigger_contact"}},
	"reply rules":     {reads: true, scans: "SCAN a\n"},
	"runs of dates":   {reads: true, wants: []string{"run_recipient"}},
	"due dates":       {reads: true, wants: []string{"automation_date_day"}},
	"move dates":      {avoids: "Seq Scan on automation_date", scans: "SCAN automation_date\n"},
	"keep runs":       {avoids: "Seq Scan on automation_date", scans: "SCAN automation_date\n"},
	"count firings":   {avoids: "Seq Scan on automation", scans: "SCAN automation\n"},
	"lock persons":    {wants: []string{"person_phone"}},
	"lock contacts":   {avoids: "Seq Scan on person", scans: "SCAN p\n"},
	"rules dated":     {avoids: "automation_date_day"},
	"dates":           {avoids: "Seq Scan on automation_date", scans: "SCAN d\n"},
	"former dates":    {reads: true, wants: []string{"key", "message_resent"}},

	"due":              {reads: true, wants: []string{"message_open"}},
	"campaigns":        {reads: true, wants: []string{"message_open"}},
	"ahead":            {reads: true, wants: []string{"message_open"}},
	"sending":          {reads: true, wants: []string{"message_campaign"}},
	"counts":           {reads: true, wants: []string{"message_campaign"}},
	"again":            {reads: true, wants: []string{"message_campaign"}},
	"rows":             {reads: true},
	"refused":          {reads: true},
	"feed":             {},
	"to move":          {},
	"mark moved":       {},
	"movable":          {wants: []string{"message_resent"}, avoids: "message_open"},
	"moved":            {avoids: "run_client"},
	"by pause":         {wants: []string{"key"}, avoids: "message_open"},
	"retrying":         {reads: true, wants: []string{"message_open"}, allows: "SCAN m\n"}, // SCAN m reads only the result of the inner select, which uses message_open
	"expiring":         {reads: true, wants: []string{"message_open"}},
	"claim":            {wants: []string{"key", "blacklist_pkey"}, avoids: "message_open"},
	"marked":           {wants: []string{"blacklist_pkey"}},
	"former":           {wants: []string{"key", "former_name_pkey"}, avoids: "message_open"},
	"former names":     {wants: []string{"former_name_pkey"}},
	"close":            {wants: []string{"key"}, avoids: "message_open"},
	"reopen":           {wants: []string{"key"}, avoids: "message_open"},
	"cancel":           {wants: []string{"key"}, avoids: "message_open"},
	"fail":             {wants: []string{"key"}, avoids: "message_open"},
	"postpone":         {wants: []string{"key"}, avoids: "message_open"},
	"stop":             {reads: true, wants: []string{"run_recipient", "key", "message_resent"}},
	"phones":           {reads: true, wants: []string{"run_recipient", "key", "message_resent"}},
	"replies":          {reads: true, wants: []string{"reply_phone"}},
	"consents":         {reads: true, wants: []string{"consent_phone"}},
	"replied":          {wants: []string{"run_recipient", "key", "message_resent"}},
	"names of runs":    {wants: []string{"run_recipient"}},
	"who wrote":        {wants: []string{"run_recipient", "key", "message_resent", "person_phone"}, avoids: "run_client"},
	"all":              {reads: true, wants: []string{"message_open"}},
	"reference":        {reads: true, wants: []string{"run_reference", "key", "message_resent"}},
	"names":            {wants: []string{"alias_name", "alias_phone"}},
	"running":          {wants: []string{"run_recipient", "run_reference", "key", "message_resent"}},
	"sequence":         {wants: []string{"message_open"}},
	"details":          {reads: true, wants: []string{"key"}},
	"contents":         {reads: true, avoids: "run_client"},
	"usage":            {},
	"send permissions": {},

	"done":             {reads: true, wants: []string{"message_done", "key"}},
	"failed":           {reads: true, wants: []string{"message_done", "key"}},
	"upcoming":         {reads: true, wants: []string{"message_open", "key"}},
	"quarters":         {reads: true, wants: []string{"message_open"}},
	"overdue":          {reads: true, wants: []string{"message_open"}, allows: "SCAN s\n"},
	"pushes":           {wants: []string{"message_open"}},
	"version":          {reads: true, wants: []string{"message_done", "message_open"}},
	"uncertain":        {reads: true, wants: []string{"message_open", "key"}},
	"recent":           {reads: true},
	"among":            {reads: true, avoids: "b USING PRIMARY KEY (client_id=?)\n"},
	"resent as":        {reads: true, wants: []string{"message_resent"}},
	"outcomes":         {reads: true, wants: []string{"message_done"}},
	"resendable":       {wants: []string{"key"}, avoids: "message_open"},
	"blank clients":    {reads: true, wants: []string{"run"}, allows: "Seq Scan on client"},
	"blank runs":       {reads: true, wants: []string{"run"}},
	"blank late":       {reads: true, wants: []string{"late_run"}},
	"ended":            {wants: []string{"key", "message_resent"}, avoids: "message_done"},
	"blank sandbox":    {wants: []string{"key", "message_resent"}, avoids: "message_open"},
	"members":          {wants: []string{"key", "message_resent"}},
	"lock resendable":  {},
	"reschedule":       {wants: []string{"key"}, avoids: "message_open"},
	"insert resent":    {wants: []string{"key"}, avoids: "message_open"},
	"move":             {wants: []string{"key"}, avoids: "message_open"},
	"list":             {reads: true, wants: []string{"key"}, allows: "message_resent (client_id=?)\n"},
	"list a phone":     {reads: true, wants: []string{"run_recipient", "key"}, allows: "run_recipient (client_id=? AND phone=?)\n"},
	"list a reference": {reads: true, wants: []string{"run_reference", "key"}},
	"list a campaign":  {reads: true, wants: []string{"message_campaign", "key"}},
	"list a sequence":  {reads: true, wants: []string{"key"}, allows: "message_resent (client_id=?)\n"},
	"past clients":     {wants: []string{"late_archive_since", "credit_entry_client"}},
	"past runs":        {wants: []string{"key", "message_resent"}, avoids: "message_done"},
	"past late":        {wants: []string{"key", "message_resent"}, avoids: "message_done"},
	"past messages":    {wants: []string{"key", "message_resent"}, avoids: "message_done"},
	"past events":      {wants: []string{"event_message"}},
	"past sandbox":     {wants: []string{"sandbox_connector"}},
	"past entries":     {wants: []string{"credit_entry_client"}},
	"past lock":        {wants: []string{"key"}, avoids: "message_open"},
	"past lock runs":   {},
	"past delete":      {wants: []string{"key"}, avoids: "message_done"},
	"past forget":      {avoids: "run_recipient"},
	"past unsay":       {wants: []string{"event_message"}},
	"uncertain once":   {wants: []string{"key", "event_message", "outbox_event_subject"}, avoids: "message_open"},
	"emit":             {},
	"facts":            {reads: true},
	"deliver a range":  {avoids: "Seq Scan on outbox_event"},
	"expiries":         {reads: true, allows: "Seq Scan on client"},
	"number targets":   {wants: []string{"webhook_account"}},
	"feed events":      {reads: true},
	"waiting hooks":    {reads: true, wants: []string{"delivery_due"}},
	"due of webhook":   {reads: true, wants: []string{"delivery_due"}},
	"due webhooks":     {reads: true, wants: []string{"delivery_due"}},
	"attempts":         {avoids: "Seq Scan on delivery"},
	"deliveries":       {reads: true, avoids: "Seq Scan on delivery"},
	"replay":           {avoids: "Seq Scan on delivery"},
	"old deliveries":   {avoids: "Seq Scan on delivery"},
	"old events":       {reads: true, avoids: "Seq Scan on outbox_event"},
	"answers":          {wants: []string{"outbox_event_subject"}, avoids: "Seq Scan on delivery"},
	"list pending":     {reads: true, wants: []string{"message_open", "key"}},
}

// fill gives the tables sizes and statistics that are like those in a real installation.
func fill(t *testing.T, w *storetest.World) {
	t.Helper()
	c := w.Client(puntuale.AccountFull)
	for range 3 {
		c.MustStart("+393331234567", storetest.Begin, 2)
	}
	n := "generate_series(1, 20000) as n(i)"
	if !w.DB.Postgres {
		n = "(with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000) select i from n) as n"
	}
	exec(t, w.DB.SQL, `insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request,
 client_name, sequence_name, content) select 1 + i % 200, i, i % 300, i % 200, '+39' || i % 3000, 2, 1, '', '', 1, $1, '', '', '[]' from `+n, []byte{})
	exec(t, w.DB.SQL, `insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone,
 state, intent, outcome, done_at) select 1 + i % 200, i, i % 200, i, 0, i, i, i, 0, 2, '+39' || i % 3000,
 case when i % 3 = 0 then 0 else 1 end, case when i % 3 = 0 then 0 else -1 end, case when i % 3 = 0 then 0 else 1 end,
 case when i % 3 = 0 then null else i end from `+n)
	exec(t, w.DB.SQL, `insert into reply (client_id, id, session_id, phone, at, kind) select 1 + i % 5, i, i % 5, '+39' || i % 3000, i, 'text' from `+n)
	exec(t, w.DB.SQL, `insert into consent (client_id, id, phone, purpose, change, source, at, entered_at, applied, changed)
 select 1 + i % 5, i, '+39' || i % 3000, 1, 1, 'x', i, i, 1, 1 from `+n)
	exec(t, w.DB.SQL, `insert into outbox_event (client_id, seq, type, subject, at) select 1 + i % 5, i, 1, i, i from `+n)
	exec(t, w.DB.SQL, `insert into delivery (webhook_id, at, client_id, seq, type, state, next_at) select 1 + i % 20, i, 1 + i % 5, i, 1, case when i % 10 = 0 then 0 else 1 end, i from `+n)
	exec(t, w.DB.SQL, `insert into webhook (id, partner_id, client_id, url, types, created_at, secret, secret_before) select i, 1, 1 + i % 200, '', 2, 1, $1, $1 from `+n, []byte{})
	exec(t, w.DB.SQL, `insert into person (client_id, id, phone, created_at, changed_at) select 1 + i % 5, i, '+39' || i, 1, 1 from `+n)
	exec(t, w.DB.SQL, `insert into conversation (client_id, phone) select 1 + i % 5, '+39' || i from `+n)
	exec(t, w.DB.SQL, `insert into chatwoot_conversation (client_id, phone, webhook_id) select 1 + i % 5, '+39' || i, 1 from `+n)
	exec(t, w.DB.SQL, `insert into automation_firing (client_id, rule_id, phone, at, occurrence, acted) select 1 + i % 5, i % 10, '+39' || i % 3000, i, '', i % 2 from `+n)
	exec(t, w.DB.SQL, `insert into automation_date (client_id, rule_id, person_id, value, version, since, day) select 1 + i % 5, i % 10, i, '', 1, 1, 20260101 + i % 28 from `+n)
	exec(t, w.DB.SQL, `insert into automation_trigger (client_id, kind, subject, at, next_at) select 1 + i % 5, 8, i, i, i from `+n)
	exec(t, w.DB.SQL, `insert into link (client_id, run_id, step, n, code, address) select 1 + i % 200, i, 0, 1, 'c' || i, 'https://negozio.example' from `+n)
	exec(t, w.DB.SQL, "analyze")
}

func testPlans(t *testing.T, d *storetest.Database, full bool) {
	w := storetest.NewWorld(t, d)
	if full {
		fill(t, w)
	}
	ctx := context.Background()
	key := "message_pkey"
	if !d.Postgres {
		key = "INTEGER PRIMARY KEY"
	}
	for name, statement := range store.Statements {
		want, known := access[name]
		if !known {
			t.Errorf("%s: nothing is said of its plan", name)
			continue
		}
		if other, ok := store.ForPostgres[name]; ok && d.Postgres {
			statement = other
		}
		plan, err := w.Explain(ctx, statement, want.reads)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want.reads && !full && d.Postgres {
			continue // the tables are small here, and PostgreSQL may scan small tables
		}
		for _, index := range want.wants {
			switch {
			case index == "key":
				index = key
			case index == "former_name_pkey" && !d.Postgres:
				index = "f USING PRIMARY KEY (client_id=? AND name=?)"
			case index == "blacklist_pkey" && !d.Postgres:
				index = "b USING PRIMARY KEY (client_id=? AND phone=?)"
			}
			if !strings.Contains(plan, index) {
				t.Errorf("%s does not use %s:\n%s", name, index, plan)
			}
		}
		for _, bad := range []string{"Seq Scan on message", "Seq Scan on run", "Seq Scan on client", "Hash Join", "Merge Join", "SCAN message", "SCAN m\n", "SCAN r\n",
			"run_recipient (client_id=?)\n", "message_resent (client_id=?)\n", want.avoids, want.scans} {
			if bad != "" && bad != want.allows && strings.Contains(plan, bad) {
				t.Errorf("%s: %s\n%s", name, bad, plan)
			}
		}
	}
}

func TestSQLitePlans(t *testing.T) {
	t.Parallel()
	testPlans(t, storetest.SQLite(t), false)
	testPlans(t, storetest.SQLite(t), true)
}

func TestPostgresPlans(t *testing.T) {
	t.Parallel()
	testPlans(t, storetest.Postgres(t), false)
	testPlans(t, storetest.Postgres(t), true)
}
