package queue

import (
	"cmp"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// RefColumns returns messages as columns: clients, then ids.
func RefColumns(refs []puntuale.MessageRef) engine.Columns {
	return engine.Columns{
		engine.Column(refs, func(r *puntuale.MessageRef) int64 { return int64(r.Client) }),
		engine.Column(refs, func(r *puntuale.MessageRef) int64 { return int64(r.ID) }),
	}
}

// CompareRefs gives the order in which messages are locked: by client, then by id.
func CompareRefs(a, b puntuale.MessageRef) int {
	return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.ID, b.ID))
}

// ScanRef scans the columns client and message.
func ScanRef(rows engine.Row, r *puntuale.MessageRef) error { return rows.Scan(&r.Client, &r.ID) }

// FirstID returns the smallest identifier of a run that starts at a moment. It may be wrong by a few seconds, because
// a block of identifiers is used for so long.
func FirstID(at time.Time) int64 { return engine.Micros(at) - engine.IDEpoch }
