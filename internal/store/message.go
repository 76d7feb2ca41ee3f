package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"puntuale"
)

const detailColumns = `m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, r.content, r.request`

const messageDetails = `
select ` + detailColumns + `
from $u(i bigint) join message m on m.client_id = $1 and m.id = u.i
 join run r on r.client_id = m.client_id and r.id = m.run_id`

func (t tenant) Details(ctx context.Context, ids []puntuale.MessageID) ([]puntuale.MessageDetail, error) {
	asked := pick(ids, func(id *puntuale.MessageID) int64 { return int64(*id) })
	slices.Sort(asked)
	found := map[puntuale.MessageID]puntuale.MessageDetail{}
	err := t.s.read.each(ctx, messageDetails, []any{t.id, batch{slices.Compact(asked)}}, func(rows *sql.Rows) error {
		var d puntuale.MessageDetail
		if err := scanDetail(rows, &d); err != nil {
			return err
		}
		found[d.ID] = d
		return nil
	})
	if err != nil {
		return nil, outward(fmt.Errorf("read messages: %w", err))
	}
	details := make([]puntuale.MessageDetail, 0, len(found))
	for _, id := range ids {
		if d, ok := found[id]; ok {
			details = append(details, d)
			delete(found, id)
		}
	}
	return details, nil
}

func scanDetail(rows *sql.Rows, d *puntuale.MessageDetail) error {
	var steps []puntuale.FrozenStep
	if err := rows.Scan(&d.Client, &d.ID, &d.Session, &d.Run, &d.Step, origin{&d.Origin}, &d.Phone, moment{&d.Desired},
		moment{&d.Due}, moment{&d.Next}, moment{&d.ValidUntil}, &d.Intent, moment{&d.IntentAt}, &d.Attempt, &d.Repeats,
		&d.Generation, &d.State, moment{&d.Done}, &d.Reason, &d.Detail, &d.ResentFrom, moment{&d.Received}, &d.RunName,
		&d.ClientName, &d.SequenceName, &d.Zone, inJSON{&steps}, &d.Request); err != nil {
		return err
	}
	if d.Step < 0 || d.Step >= len(steps) {
		return fmt.Errorf("message %d has step %d of %d", d.ID, d.Step, len(steps))
	}
	d.Content, d.Window = steps[d.Step].Content, steps[d.Step].Window
	return nil
}
