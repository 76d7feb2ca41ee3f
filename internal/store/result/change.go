package result

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// maxNoted is the largest number of messages in one row of changes. The counter reads only whole rows.
const maxNoted = 1000

// A transaction usually changes messages of one client. Then a statement without a batch costs less.
const (
	insertChange  = `insert into result_change (client_id, messages, at) values ($1, $2, $3)`
	insertChanges = `insert into result_change (client_id, messages, at) select u.c, u.m, $1::bigint from $u(c bigint, m bytea)`
)

// noting is false only while a test measures what noting costs.
var noting = true

// Note stores that the count of messages may have changed, in the transaction that changes them. Its statement may be
// sent together with the transaction's next statement. To note too much is harmless. Neighbours of one client share a row.
func Note(ctx context.Context, a engine.Querier, at time.Time, messages iter.Seq[puntuale.MessageRef]) (err error) {
	var clients []int64
	var rows [][]byte
	var ids []byte
	var last puntuale.MessageRef
	n := 0
	for m := range messages {
		if n > 0 && m == last {
			continue
		}
		if n > 0 && (m.Client != last.Client || n == maxNoted) {
			clients, rows = append(clients, int64(last.Client)), append(rows, ids)
			ids, n = nil, 0
		}
		before := int64(0)
		if n > 0 {
			before = int64(last.ID)
		}
		if ids == nil {
			ids = make([]byte, 0, bytesOfRow)
		}
		ids = binary.AppendVarint(ids, int64(m.ID)-before)
		last = m
		n++
	}
	switch {
	case n == 0 || !noting:
		return nil
	case len(rows) == 0:
		err = a.Queue(ctx, insertChange, []any{int64(last.Client), ids, engine.Micros(at)}, nil)
	default:
		err = a.Queue(ctx, insertChanges, []any{engine.Micros(at), engine.Columns{append(clients, int64(last.Client)), append(rows, ids)}}, nil)
	}
	if err != nil {
		return fmt.Errorf("note messages to count: %w", err)
	}
	return nil
}

// bytesOfRow is how long most rows of changes are at most.
const bytesOfRow = 64

// NoteAll does the same as Note.
func NoteAll(ctx context.Context, a engine.Querier, at time.Time, messages ...puntuale.MessageRef) error {
	return Note(ctx, a, at, slices.Values(messages))
}

// NoteBookings stores that the count of bookings of a client may have changed, in the transaction that changes them.
func NoteBookings(ctx context.Context, a engine.Querier, at time.Time, client puntuale.ClientID, bookings ...puntuale.BookingID) error {
	return Note(ctx, a, at, func(yield func(puntuale.MessageRef) bool) {
		for _, id := range bookings {
			if !yield(unitOfBooking(client, id)) {
				return
			}
		}
	})
}

// noted reads the ids of a row of changes.
func noted(row []byte) (ids []puntuale.MessageID, err error) {
	last := int64(0)
	for len(row) > 0 {
		d, n := binary.Varint(row)
		if n <= 0 {
			return nil, errors.New("a row of changed messages is cut")
		}
		last += d
		ids, row = append(ids, puntuale.MessageID(last)), row[n:]
	}
	return ids, nil
}
