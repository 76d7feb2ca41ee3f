package queue

import (
	"database/sql"
	"fmt"

	"puntuale"
)

var origins = [...]puntuale.Origin{1: puntuale.OriginSingle, 2: puntuale.OriginSequence, 3: puntuale.OriginMassive,
	4: puntuale.OriginAutomation}

// OriginNumber returns the stored number of an origin, or 0 for an unknown origin.
func OriginNumber(o puntuale.Origin) int64 {
	for i, known := range origins {
		if known == o && o != "" {
			return int64(i)
		}
	}
	return 0 // a CHECK constraint refuses 0 in stored rows
}

// ScanOrigin scans a column that contains the number of an origin.
func ScanOrigin(target *puntuale.Origin) sql.Scanner { return originColumn{target} }

type originColumn struct{ into *puntuale.Origin }

func (o originColumn) Scan(value any) error {
	n, ok := value.(int64)
	if !ok || n < 1 || n >= int64(len(origins)) {
		return fmt.Errorf("%v is not the number of an origin", value)
	}
	*o.into = origins[n]
	return nil
}

// ErrStep returns the error for a message whose step does not exist in its run. n is the number of the run's steps.
func ErrStep(m *puntuale.MessageDetail, n int) error {
	return fmt.Errorf("message %d has step %d of %d", m.ID, m.Step, n)
}
