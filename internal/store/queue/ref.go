package queue

import (
	"cmp"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// RefColumns returns the messages' primary keys as columns: clients, then ids.
func RefColumns(refs []puntuale.MessageRef) engine.Columns {
	return engine.Columns{
		engine.Column(refs, func(r *puntuale.MessageRef) int64 { return int64(r.Client) }),
		engine.Column(refs, func(r *puntuale.MessageRef) int64 { return int64(r.ID) }),
	}
}

// CompareRefs defines the order in which messages are locked: by client, then by id.
func CompareRefs(a, b puntuale.MessageRef) int {
	return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.ID, b.ID))
}

// ScanRef scans the two columns of a message's primary key: client and id.
func ScanRef(rows engine.Row, r *puntuale.MessageRef) error { return rows.Scan(&r.Client, &r.ID) }

// FirstID returns approximately the smallest identifier of a run that starts at the given time. The result may be wrong
// by a few seconds, because writers use a block of identifiers for some time.
func FirstID(at time.Time) int64 { return engine.Micros(at) - puntuale.IDEpoch }
