package queue

import (
	"cmp"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

func RefColumns(refs []puntuale.MessageRef) engine.Columns {
	return engine.Columns{
		engine.Column(refs, func(r *puntuale.MessageRef) int64 { return int64(r.Client) }),
		engine.Column(refs, func(r *puntuale.MessageRef) int64 { return int64(r.ID) }),
	}
}

func CompareRefs(a, b puntuale.MessageRef) int {
	return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.ID, b.ID))
}

func ScanRef(rows engine.Row, r *puntuale.MessageRef) error { return rows.Scan(&r.Client, &r.ID) }

// FirstID is the least identifier of a run that starts at the moment. It is exact but for the few seconds that a block
// of identifiers is in use.
func FirstID(at time.Time) int64 { return engine.Micros(at) - engine.IdEpoch }
