package store

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
