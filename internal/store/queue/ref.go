package queue

import (
	"cmp"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// RefColumns is a batch of messages: clients, then numbers.
func RefColumns(refs []puntuale.MessageRef) engine.Columns {
	return engine.Columns{
		engine.Column(refs, func(r *puntuale.MessageRef) int64 { return int64(r.Client) }),
		engine.Column(refs, func(r *puntuale.MessageRef) int64 { return int64(r.ID) }),
	}
}

// CompareRefs orders messages as their rows are locked: by client, then by number.
func CompareRefs(a, b puntuale.MessageRef) int {
	return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.ID, b.ID))
}

// ScanRef scans a client and a message.
func ScanRef(rows engine.Row, r *puntuale.MessageRef) error { return rows.Scan(&r.Client, &r.ID) }

// FirstID is the least identifier of a run that starts at the moment. It may be wrong by the few seconds for which a block of identifiers
// is in use.
func FirstID(at time.Time) int64 { return engine.Micros(at) - engine.IDEpoch }
