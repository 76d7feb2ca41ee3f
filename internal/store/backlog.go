package store

import (
	"context"
	"fmt"
	"time"

	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// Backlog says how many messages are due and have not left at one moment.
type Backlog struct {
	Messages int64
	Oldest   time.Time // the earliest time at which one of these messages was due; zero if Messages is 0
}

// overdueOf is true for a due message m of a session s. Messages that a campaign holds back, for example during a pause,
// are not late.
const overdueOf = `m.session_id = s.id and ` + queue.BothQueues + ` and m.state = 0 and m.next_at <= $1 and (m.priority = 0 or not ` + queue.HeldCampaign + `)`

// overdue reads only the due messages, session by session, from the index of open messages. A session is ready if it is
// a sandbox, or if its number is linked. A session whose messages devices take is never ready, because people may let
// these messages wait.
const overdue = `
select ready, coalesce(sum(n), 0), coalesce(min(first), 0) from (
 select case when s.way = '' and s.link >= 3 or s.sandbox = 1 and s.link = 0 then 1 else 0 end as ready,
  (select count(*) from message m where ` + overdueOf + `) as n,
  (select min(m.next_at) from message m where ` + overdueOf + `) as first
 from session s) as sessions
group by ready`

// Backlog counts the due messages of the whole installation. ready counts messages on sessions that can send. waiting
// counts messages on sessions that cannot send, because their number is not linked. Backlog reads each of these
// messages, so call it only in the background.
func (s *Store) Backlog(ctx context.Context, now time.Time) (ready, waiting Backlog, err error) {
	err = s.MaintenanceReads.Query(ctx, overdue, []any{engine.Micros(now)}, func(r engine.Row) error {
		var can int
		var b Backlog
		var first int64
		if err := r.Scan(&can, &b.Messages, &first); err != nil {
			return err
		}
		if first > 0 {
			b.Oldest = time.UnixMicro(first).UTC()
		}
		if can == 1 {
			ready = b
		} else {
			waiting = b
		}
		return nil
	})
	if err != nil {
		return ready, waiting, engine.PublicError(fmt.Errorf("count what is due: %w", err))
	}
	return ready, waiting, nil
}
