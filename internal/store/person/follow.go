package person

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// Limits of one transaction that reads a client's runs.
const (
	followRuns  = 200      // largest number of runs in one transaction
	followBytes = 64 << 10 // largest size of a call's body, in bytes; longer bodies are not read
	followSteps = 50
)

// Remember adds the recipients of runs to the contacts of clients whose setting remember is on. It reads runs in the
// order of ids, and stores its cursor in each client's settings.
//
// A run gets its id before it is stored, so a run with a smaller id may still appear. So Remember reads only runs that
// are older than the duration settle. read makes a contact from a run, or returns false if the run gives no contact.
// read must be a pure function.
func (p *Persons) Remember(ctx context.Context, settle time.Duration, now time.Time, read func(puntuale.CalledRun) (puntuale.Contact, bool)) error {
	clients, err := engine.QueryAll(ctx, p.db.MaintenanceReads, `select s.client_id from client_setting s join client c on c.id = s.client_id
 where s.remember = 1 and c.deleted_at = 0 order by s.client_id`, nil, engine.ScanOne[puntuale.ClientID])
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for clients that remember people: %w", err))
	}
	for _, client := range clients {
		f := runReader{ContactStore: p.ForClient(client, 0), settle: settle, now: now, read: read}
		for step, more := 0, true; more && step < followSteps; step++ {
			if err := p.db.FeedWriter.Do(ctx, engine.Single(p.merges, func(ctx context.Context, a engine.Querier) (err error) {
				more, err = f.step(ctx, a)
				return err
			}).ForOwner(int64(client)), false); err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound { // not_found: the client was deleted after the list was read
				return fmt.Errorf("remember people of runs: %w", err)
			}
		}
	}
	return nil
}

// runReader reads the runs of one client.
type runReader struct {
	ContactStore
	settle time.Duration
	now    time.Time
	read   func(puntuale.CalledRun) (puntuale.Contact, bool)
}

// step handles some runs, and reports whether there may be more. It takes the lock of lockPeople before it reads the
// runs. An erasure first empties the runs, and later deletes the contact under the same lock. So step never adds an
// erased person again.
func (f *runReader) step(ctx context.Context, a engine.Querier) (more bool, err error) {
	people, err := f.lockPeople(ctx, a)
	if err != nil {
		return false, err
	}
	var at, settled int64
	found, err := engine.QueryOne(ctx, a, `select s.remembered_to, $clock - $2::bigint - $3::bigint from client_setting s where s.client_id = $1 and s.remember = 1`,
		[]any{f.client, int64(puntuale.IDEpoch), f.settle.Microseconds()}, &at, &settled)
	if err != nil || !found {
		return false, err
	}
	if at == 0 { // the client has just turned the setting on, so skip earlier runs
		return false, f.move(ctx, a, at, settled)
	}
	runs, err := engine.QueryAll(ctx, a, `select r.id, r.phone, r.origin, r.zone, case when octet_length(r.request) <= $5 then r.request else $6::bytea end
 from run r where r.client_id = $1 and r.id > $2 and r.id <= $3 order by r.id limit $4`,
		[]any{f.client, at, settled, followRuns, followBytes, []byte{}}, func(r engine.Row, run *puntuale.CalledRun) error {
			return r.Scan(&run.ID, &run.Phone, queue.ScanOrigin(&run.Origin), &run.Zone, &run.Request)
		})
	if err != nil {
		return false, fmt.Errorf("read runs: %w", err)
	}
	if len(runs) == 0 {
		return false, nil
	}
	given := map[string]puntuale.Contact{}
	for _, run := range runs {
		c, ok := f.read(run)
		if !ok || c.Phone == "" {
			continue
		}
		merged, _ := given[c.Phone].Merge(c)
		merged.Phone = c.Phone
		given[c.Phone] = merged
	}
	all := slices.SortedFunc(maps.Values(given), func(a, b puntuale.Contact) int { return strings.Compare(a.Phone, b.Phone) })
	if _, err := f.mergeLocked(ctx, a, puntuale.ContactBatch{All: all, Now: f.now}, people); err != nil {
		return false, err
	}
	return len(runs) == followRuns, f.move(ctx, a, at, int64(runs[len(runs)-1].ID))
}

// move stores the cursor: the last run that was read.
func (f *runReader) move(ctx context.Context, a engine.Querier, from, to int64) error {
	if _, err := a.Exec(ctx, `update client_setting set remembered_to = $3 where client_id = $1 and remembered_to = $2 and remember = 1`, f.client, from, to); err != nil {
		return fmt.Errorf("keep how far runs were followed: %w", err)
	}
	return nil
}
