package store

import (
	"strings"

	"puntuale/internal/store/engine"
)

func init() {
	for name, st := range map[string]Statement{
		"past clients":   {pastClients, []any{int64(0), int64(9), int64(9), 10}},
		"past runs":      {pastNext, []any{int64(1), int64(0), int64(9), 10}},
		"past late":      {pastLate, []any{int64(1), int64(0), int64(9), 10}},
		"past messages":  {pastMessagesOf, []any{engine.Columns{one1, one1}}},
		"past events":    {pastEventsOf, []any{engine.Columns{one1, one1}}},
		"past sandbox":   {pastSandboxOf, []any{engine.Columns{one1, oneText}}},
		"past entries":   {pastEntriesNext, []any{int64(1), int64(0), 10}},
		"past lock":      {lockPastMessages, []any{engine.Columns{one1, one1}}},
		"past lock runs": {lockPastRuns, []any{engine.Columns{one1, one1}}},
		"past delete":    {deletePastMessages, []any{int64(1), engine.Columns{one1}}},
		"past forget":    {deletePastRuns, []any{int64(1), engine.Columns{one1}}},
		"past unsay":     {deletePastEvents, []any{engine.Columns{one1, one1}}},
	} {
		for table, name := range alias {
			st.Text = strings.ReplaceAll(st.Text, ":"+table, name+".client_id")
		}
		Statements[name] = st
	}
}

// FailAt makes an archiver's work end at a step with an error; ErrKilled ends it as a kill would.
func FailAt(a *Archiver, fail func(step string) error) { a.fail = fail }

// ErrKilled is such an error.
var ErrKilled = errKilled

// ArchivedTables are those whose rows go to the archive, with their columns.
func ArchivedTables() map[string]string {
	all := map[string]string{}
	for _, m := range movedTables {
		for _, name := range pastTables {
			if m.name == name {
				all[name] = m.columns
			}
		}
	}
	return all
}
