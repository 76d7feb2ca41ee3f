package store

import (
	"strings"

	"puntuale/internal/store/archive"
	"puntuale/internal/store/archiver"
	"puntuale/internal/store/engine"
)

func init() {
	for name, st := range map[string]Statement{
		"past clients":   {archiver.PastClients, []any{int64(0), int64(9), int64(9), 10}},
		"past runs":      {archiver.PastNext, []any{int64(1), int64(0), int64(9), 10}},
		"past late":      {archiver.PastLate, []any{int64(1), int64(0), int64(9), 10}},
		"past messages":  {archiver.PastMessagesOf, []any{engine.Columns{one1, one1}}},
		"past events":    {archiver.PastEventsOf, []any{engine.Columns{one1, one1}}},
		"past sandbox":   {archiver.PastSandboxOf, []any{engine.Columns{one1, oneText}}},
		"past entries":   {archiver.PastEntriesNext, []any{int64(1), int64(0), 10}},
		"past lock":      {archiver.LockPastMessages, []any{engine.Columns{one1, one1}}},
		"past lock runs": {archiver.LockPastRuns, []any{engine.Columns{one1, one1}}},
		"past delete":    {archiver.DeletePastMessages, []any{int64(1), engine.Columns{one1}}},
		"past forget":    {archiver.DeletePastRuns, []any{int64(1), engine.Columns{one1}}},
		"past unsay":     {archiver.DeletePastEvents, []any{engine.Columns{one1, one1}}},
	} {
		for table, name := range archiver.Alias {
			st.Text = strings.ReplaceAll(st.Text, ":"+table, name+".client_id")
		}
		Statements[name] = st
	}
}

// FailAt makes the archiver call the function fail at each point of its work. If fail returns an error, the archiver
// stops with this error. With [ErrKilled] the archiver stops as if its process was killed.
func FailAt(a *archiver.Archiver, fail func(step string) error) { a.Fail = fail }

// ErrKilled makes an archiver stop as if its process was killed.
var ErrKilled = archiver.ErrKilled

// ArchivedTables returns the tables whose old rows the archiver moves to the archive, with their columns.
func ArchivedTables() map[string]string {
	all := map[string]string{}
	for _, m := range archive.MovedTables {
		for _, name := range archiver.PastTables {
			if m.Name == name {
				all[name] = m.Columns
			}
		}
	}
	return all
}
