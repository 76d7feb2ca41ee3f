package store_test

import (
	"slices"
	"strings"
	"testing"

	"puntuale/internal/store/archive"
	"puntuale/internal/store/retention"
)

// impersonal are the tables that have no data about the people to whom clients write, each with the reason.
var impersonal = map[string]string{
	"accounts of partners, clients and users":               "partner client client_plan quota login invitation brand audit api_key client_setting notice notice_read notice_choice mail visit try ticket",
	"what clients made for all their people":                "session sequence calendar template campaign_list campaign_feed webhook chatwoot_link official official_health network_template template_request device automation_client",
	"only numbers and times":                                "day_total total_mark charge statement statement_part statement_price budget budget_message free_service unknown_message api_usage credit_entry receipt person_count event_stream device_hold network_id late_run id_block counter booking_change replan result_change result_counter result_key result_message result_month result_client",
	"labels of the clients' own buttons":                    "result_answer",
	"keyed hashes":                                          "inbound_seen archive_erasure",
	"files that were uploaded to a network":                 "upload",
	"files that clients uploaded":                           "file file_part", // those that only one erased run had go with it
	"the archive's files; the archiver erases people there": "archive archive_place late_archive",
	"servers and this database":                             "secret node key_reader command cluster moved backup backup_work file_storage puntuale_version puntuale_migration_lock",
}

// TestEveryTableIsPersonalOrNot: each table is in the one table that drives both erasures and the document about a
// person, or is known to have no data about people. A new table must be added to one of them.
func TestEveryTableIsPersonalOrNot(t *testing.T) {
	t.Parallel()
	personal, other := retention.PersonalTables(), map[string]bool{}
	for _, tables := range impersonal {
		for _, table := range strings.Fields(tables) {
			other[table] = true
		}
	}
	seen := map[string]bool{}
	check := func(table string) {
		seen[table] = true
		if _, known := personal[table]; known == other[table] {
			t.Errorf("%s: personal %v, not personal %v", table, known, other[table])
		}
	}
	for _, table := range archive.MovedTables {
		check(table.Name)
		if columns := strings.Fields(table.Columns); other[table.Name] && table.Name != "client" && slices.ContainsFunc(columns, func(c string) bool { return strings.Contains(c, "phone") }) {
			t.Errorf("%s has a phone", table.Name)
		}
	}
	for _, table := range archive.LeftTables {
		check(table)
	}
	for table := range personal {
		if !seen[table] {
			t.Errorf("there is no table %s", table)
		}
	}
	for table := range other {
		if !seen[table] {
			t.Errorf("there is no table %s", table)
		}
	}
}
