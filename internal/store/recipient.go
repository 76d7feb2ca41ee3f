package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// While the rows of a new list are written, the list belongs to no campaign. One change of the campaign's row makes the
// new list the current list. So every current list is complete, and only the current list of a campaign grows.
// forgetLists later deletes the rows of an unfinished upload.

// NewList begins a list that belongs to no campaign yet. If no campaign uses a list, the store deletes the list one
// hour after the last row was added.
func (t tenant) NewList(ctx context.Context, l puntuale.RecipientList, now time.Time) (id puntuale.ListID, err error) {
	columns, err := engine.ToJSON(l.Columns)
	if err != nil {
		return 0, err
	}
	err = t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := engine.NextNumber(ctx, a, "list")
		if err != nil {
			return err
		}
		id = puntuale.ListID(n)
		if _, err := a.Exec(ctx, `insert into campaign_list (client_id, id, campaign_id, columns, mapping, written_at) values ($1, $2, 0, $3, $4, $5)`,
			t.id, id, columns, l.Mapping, engine.Micros(now)); err != nil {
			return fmt.Errorf("begin a list of recipients: %w", err)
		}
		return nil
	})
	return id, err
}

const insertRecipients = `
insert into recipient (client_id, list_id, n, line, phone, cells)
select $1, $2, u.n, u.l, u.p, u.c from $u(n bigint, l bigint, p text, c text)`

// Codes of the faults that functions in this file return.
const (
	faultCampaignCheckRuns     puntuale.ReasonCode = "campaign.check_runs"
	faultListTooManyRecipients puntuale.ReasonCode = "list.too_many_recipients"
)

// AddRecipients appends at most MaxInline rows in one transaction. It reads only the phone, line and cells of
// each row. It also stores the columns and the mapping of l. l.Size must be the size of the stored list;
// otherwise nothing is stored. If the list is in use, AddRecipients deletes the campaign's check. Codes: invalid
// beyond MaxRecipients; conflict (wrong size, the campaign now uses another list, or the campaign is not editable).
func (t tenant) AddRecipients(ctx context.Context, l puntuale.RecipientList, rows []puntuale.Recipient, now time.Time) error {
	if len(rows) > puntuale.MaxInline {
		return fmt.Errorf("%d recipients at once", len(rows))
	}
	cells := make([]string, len(rows))
	for i := range rows {
		var err error
		if cells[i], err = engine.ToJSON(rows[i].Cells); err != nil {
			return err
		}
	}
	header, err := engine.ToJSON(l.Columns)
	if err != nil {
		return err
	}
	id := l.ID
	return t.s.TenantWriter(int64(t.id)).Do(ctx, engine.Single(t.s.kinds.campaign, func(ctx context.Context, a engine.Querier) error {
		stored, err := t.lockList(ctx, a, id)
		if err != nil {
			return err
		}
		if stored.Size != l.Size {
			return puntuale.Conflict(puntuale.FaultListChanged)
		}
		if l.Size+len(rows) > puntuale.MaxRecipients {
			return puntuale.Invalid(puntuale.Fault{Location: "body", Code: faultListTooManyRecipients, Args: []string{strconv.Itoa(puntuale.MaxRecipients)}})
		}
		n := make([]int64, len(rows))
		for i := range n {
			n[i] = int64(l.Size + i + 1)
		}
		if _, err := a.Exec(ctx, insertRecipients, t.id, id, engine.Columns{n,
			engine.Column(rows, func(r *puntuale.Recipient) int64 { return int64(r.Line) }),
			engine.Column(rows, func(r *puntuale.Recipient) string { return r.Phone }),
			cells,
		}); err != nil {
			return fmt.Errorf("insert recipients: %w", err)
		}
		if _, err := a.Exec(ctx, `update campaign_list set size = size + $3, written_at = $4, columns = $5, mapping = $6
 where client_id = $1 and id = $2`, t.id, id, len(rows), engine.Micros(now), header, l.Mapping); err != nil {
			return fmt.Errorf("insert recipients: %w", err)
		}
		if stored.Campaign == 0 {
			return nil
		}
		return t.useList(ctx, a, stored)
	}).ForOwner(int64(t.id)), false)
}

// lockList locks the campaign of a list, and reads the list. A list without a campaign is still being written by one
// call, so nothing is locked. Otherwise the list must be the current list of its campaign, and the campaign editable.
func (t tenant) lockList(ctx context.Context, a engine.Querier, id puntuale.ListID) (l puntuale.RecipientList, err error) {
	if err := t.readList(ctx, a, id, &l); err != nil || l.Campaign == 0 {
		return l, err
	}
	c, err := t.lockCampaign(ctx, a, l.Campaign, puntuale.CampaignState.Editable)
	if err != nil {
		return l, err
	}
	if c.List != id {
		return l, puntuale.Conflict(puntuale.FaultListChanged)
	}
	// Read the size again. The campaign is locked only now, so another call may have added rows before the lock.
	return l, t.readList(ctx, a, id, &l)
}

func (t tenant) readList(ctx context.Context, a engine.Querier, id puntuale.ListID, l *puntuale.RecipientList) error {
	found, err := engine.QueryOne(ctx, a, `select id, campaign_id, size from campaign_list where client_id = $1 and id = $2`, []any{t.id, id}, &l.ID, &l.Campaign, &l.Size)
	return engine.ThereOr(found, err, puntuale.NoList)
}

// UseList makes a new list the current list of a campaign, and deletes the check. The campaign must still have the
// list and the number of recipients that the caller read. Codes: conflict (it has not, or is not editable).
func (t tenant) UseList(ctx context.Context, was puntuale.Campaign, list puntuale.ListID) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		c, err := t.lockCampaign(ctx, a, was.ID, puntuale.CampaignState.Editable)
		if err != nil {
			return err
		}
		var old puntuale.RecipientList
		if c.List != 0 {
			if err := t.readList(ctx, a, c.List, &old); err != nil {
				return err
			}
		}
		if c.List != was.List || old.Size != was.Feed.Size() {
			return puntuale.Conflict(puntuale.FaultListChanged)
		}
		return t.giveList(ctx, a, was.ID, list)
	})
}

// giveList gives a complete list to a campaign, whose row the caller has locked or inserted.
func (t tenant) giveList(ctx context.Context, a engine.Querier, id puntuale.CampaignID, list puntuale.ListID) error {
	n, err := a.Exec(ctx, `update campaign_list set campaign_id = $3 where client_id = $1 and id = $2 and campaign_id = 0`, t.id, list, id)
	if err != nil {
		return fmt.Errorf("use a list of recipients: %w", err)
	}
	if n == 0 {
		return puntuale.NotFound(puntuale.NoList)
	}
	return t.useList(ctx, a, puntuale.RecipientList{ID: list, Campaign: id})
}

// useList makes a list the current list of its campaign, whose row the caller has locked. It removes the result of an
// earlier check.
func (t tenant) useList(ctx context.Context, a engine.Querier, l puntuale.RecipientList) error {
	if _, err := a.Exec(ctx, `update campaign set list_id = $3, state = 0, checked = '' where client_id = $1 and id = $2`, t.id, l.Campaign, l.ID); err != nil {
		return fmt.Errorf("use a list of recipients: %w", err)
	}
	return t.countRecipients(ctx, a, l.Campaign, l.ID)
}

// countRecipients sets the counts of a campaign that has not been fed yet.
func (t tenant) countRecipients(ctx context.Context, a engine.Querier, id puntuale.CampaignID, list puntuale.ListID) error {
	_, err := a.Exec(ctx, `update campaign_feed set place = 0, next_at = 0, fed = 0,
 waiting = (select l.size from campaign_list l where l.client_id = $1 and l.id = $3)
  - (select count(*) from recipient r where r.client_id = $1 and r.list_id = $3 and r.state = 2),
 refused = (select count(*) from recipient r where r.client_id = $1 and r.list_id = $3 and r.state = 2 and r.reason <> 'held_out'),
 held_out = (select count(*) from recipient r where r.client_id = $1 and r.list_id = $3 and r.state = 2 and r.reason = 'held_out')
 where client_id = $1 and campaign_id = $2`, t.id, id, list)
	if err != nil {
		return fmt.Errorf("count recipients: %w", err)
	}
	return nil
}

func (t tenant) RecipientList(ctx context.Context, id puntuale.ListID) (l puntuale.RecipientList, err error) {
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select id, campaign_id, columns, mapping, size from campaign_list where client_id = $1 and id = $2`,
		[]any{t.id, id}, &l.ID, &l.Campaign, engine.ScanJSON(&l.Columns), &l.Mapping, &l.Size)
	return l, engine.FoundOr(found, err, puntuale.NoList)
}

const (
	recipientColumns = `select r.n, r.line, r.phone, r.cells, r.state, r.reason, r.value, r.run_id from recipient r where r.client_id = $1 and r.list_id = $2 and r.n > $3`
	allRecipients    = recipientColumns + ` order by r.n limit $4`
	stateRecipients  = recipientColumns + ` and r.state = $5 order by r.n limit $4`
	refusedFor       = recipientColumns + ` and r.state = 2 and r.reason = $5 order by r.n limit $4`
)

func scanRecipient(rows engine.Row, r *puntuale.Recipient) error {
	return rows.Scan(&r.N, &r.Line, &r.Phone, optionalJSON{&r.Cells}, &r.State, &r.Reason, &r.Value, &r.Run)
}

// Recipients lists at most limit rows after a cursor, in the order of the list.
func (t tenant) Recipients(ctx context.Context, id puntuale.ListID, f puntuale.RecipientFilter, after int64, limit int) ([]puntuale.Recipient, error) {
	text, args := allRecipients, []any{t.id, id, after, limit}
	switch {
	case f.Reason != "":
		text, args = refusedFor, append(args, f.Reason)
	case f.State != nil:
		text, args = stateRecipients, append(args, *f.State)
	}
	all, err := engine.QueryAll(ctx, t.s.ListReads, text, args, scanRecipient)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list recipients: %w", err))
	}
	return all, nil
}

// ChangeCheck stores what a running check has found so far: the rows whose state or reason changed. The call also
// shows that the check is alive. The time at which a check began identifies the check. Codes: conflict if another
// check replaced this check.
func (t tenant) ChangeCheck(ctx context.Context, id puntuale.CampaignID, p puntuale.CheckProgress) error {
	text, err := engine.ToJSON(p.Check)
	if err != nil {
		return err
	}
	return t.s.TenantWriter(int64(t.id)).Do(ctx, engine.Single(t.s.kinds.campaign, func(ctx context.Context, a engine.Querier) error {
		c, err := t.lockCampaign(ctx, a, id, func(s puntuale.CampaignState) bool { return s == puntuale.CampaignChecking })
		if err != nil {
			return err
		}
		if !c.Alive.Equal(p.Alive) {
			return puntuale.Conflict(faultCampaignCheckRuns)
		}
		if err := t.changeRecipients(ctx, a, c.List, p.Changed); err != nil {
			return err
		}
		state := puntuale.CampaignChecking
		if p.Over {
			state = puntuale.CampaignReady
		}
		if _, err := a.Exec(ctx, `update campaign set checked = $3, checked_at = $4, state = $5 where client_id = $1 and id = $2`,
			t.id, id, text, engine.Micros(p.Now), state); err != nil {
			return fmt.Errorf("store a check: %w", err)
		}
		if !p.Over {
			return nil
		}
		if err := queue.NoteCampaigns(ctx, a, puntuale.CampaignChange{To: puntuale.CampaignReady, Now: p.Now}, `c.client_id = $1 and c.id = $2`, t.id, id); err != nil {
			return err
		}
		return t.countRecipients(ctx, a, id, c.List)
	}).ForOwner(int64(t.id)), false)
}

// ofList returns rows of a list as columns with the whole primary key. Without the whole key, SQLite would read the
// whole list for each row.
func ofList(client puntuale.ClientID, list puntuale.ListID, places []int64) engine.Columns {
	clients, lists := make([]int64, len(places)), make([]int64, len(places))
	for i := range places {
		clients[i], lists[i] = int64(client), int64(list)
	}
	return engine.Columns{clients, lists, places}
}

// changeRecipients stores the results of a check. A recipient that was refused because of an erasure stays refused.
func (t tenant) changeRecipients(ctx context.Context, a engine.Querier, id puntuale.ListID, changed []puntuale.Recipient) error {
	if len(changed) == 0 {
		return nil
	}
	_, err := a.Exec(ctx, `update recipient set state = u.s, reason = u.r, value = u.v from $u(c bigint, l bigint, n bigint, s smallint, r text, v text)
 where recipient.client_id = u.c and recipient.list_id = u.l and recipient.n = u.n and recipient.reason <> 'erased'`, append(
		ofList(t.id, id, engine.Column(changed, func(r *puntuale.Recipient) int64 { return r.N })),
		engine.Column(changed, func(r *puntuale.Recipient) int64 { return int64(r.State) }),
		engine.Column(changed, func(r *puntuale.Recipient) string { return r.Reason }),
		engine.Column(changed, func(r *puntuale.Recipient) string { return r.Value }),
	))
	if err != nil {
		return fmt.Errorf("mark recipients: %w", err)
	}
	return nil
}

const failedOfCampaign = `select m.id from campaign c join message m on m.campaign_id = c.id and m.campaign_id <> 0 and m.state = 2
 where c.client_id = $1 and c.id = $2 and ($3 = 1 or m.reason not ` + amongUncertain + `) and m.id > $4 order by m.id limit $5`

// FailedOfCampaign lists failed messages, sorted by id. It begins with the first id that is larger than the
// argument after, and limit is how many it lists at most. It includes messages with an uncertain outcome only if
// uncertain is true.
func (t tenant) FailedOfCampaign(ctx context.Context, id puntuale.CampaignID, uncertain bool, after puntuale.MessageID, limit int) ([]puntuale.MessageID, error) {
	all, err := engine.QueryAll(ctx, t.lists(), failedOfCampaign, []any{t.id, id, engine.Bit(uncertain), after, limit}, engine.ScanOne[puntuale.MessageID])
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list the failed messages of a campaign: %w", err))
	}
	return all, nil
}

const runningAmong = `
select distinct u.i from $u(i bigint, p text) cross join run r cross join message m
where r.client_id = $1 and r.phone = u.p and r.sequence_id = $2
 and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent >= 0`

// Running returns which of the given phones have pending messages of the sequence.
func (t tenant) Running(ctx context.Context, sequence puntuale.SequenceID, phones []string) (map[string]bool, error) {
	places, names, err := t.namesOfEach(ctx, phones, nil)
	if err != nil {
		return nil, err
	}
	busy := map[string]bool{}
	err = t.s.CallReads.Query(ctx, runningAmong, []any{t.id, sequence, engine.Columns{places, names}}, func(rows engine.Row) error {
		var i int
		err := rows.Scan(&i)
		busy[phones[i]] = true
		return err
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for running messages: %w", err))
	}
	return busy, nil
}

// blankRecipients removes everything except the phone numbers from recipients' rows. It handles campaigns that ended
// before the given time, and drafts that have not changed since then. One call handles a limited number of rows.
func (s *Store) blankRecipients(ctx context.Context, before time.Time) error {
	if before.IsZero() {
		return nil
	}
	return s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		var client puntuale.ClientID
		var list, campaign int64
		found, err := engine.QueryOne(ctx, a, `select l.client_id, l.id, l.campaign_id from campaign_list l join campaign c on c.client_id = l.client_id and c.id = l.campaign_id
 where l.columns <> '[]' and (c.ended_at between 1 and $1 or c.state < 3 and l.written_at < $1) limit 1`, []any{engine.Micros(before)}, &client, &list, &campaign)
		if err != nil || !found {
			return err
		}
		n, err := a.Exec(ctx, `update recipient set cells = '', value = '' where client_id = $1 and list_id = $2 and n in (
 select r.n from recipient r where r.client_id = $1 and r.list_id = $2 and r.cells <> '' order by r.n limit 5000)`, client, list)
		if err != nil || n > 0 {
			return err
		}
		if _, err := a.Exec(ctx, `update campaign set checked = '', state = case when state = 2 then 0 else state end where client_id = $1 and id = $2`, client, campaign); err != nil {
			return err
		}
		_, err = a.Exec(ctx, `update campaign_list set columns = '[]' where client_id = $1 and id = $2`, client, list)
		return err
	})
}

// listKept is how long an unused list is kept, because its upload may still be running.
const listKept = time.Hour

// forgetLists deletes a limited number of rows of unused lists in each call. When a list has no rows left, forgetLists
// deletes the list.
func (s *Store) forgetLists(ctx context.Context, now time.Time) error {
	return s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		var client puntuale.ClientID
		var id int64
		found, err := engine.QueryOne(ctx, a, `select l.client_id, l.id from campaign_list l where l.written_at < $1 and not exists (
 select 1 from campaign c where c.client_id = l.client_id and c.id = l.campaign_id and c.list_id = l.id) limit 1`, []any{engine.Micros(now.Add(-listKept))}, &client, &id)
		if err != nil || !found {
			return err
		}
		n, err := a.Exec(ctx, `delete from recipient where client_id = $1 and list_id = $2 and n in (
 select r.n from recipient r where r.client_id = $1 and r.list_id = $2 order by r.n limit 5000)`, client, id)
		if err != nil || n > 0 {
			return err
		}
		_, err = a.Exec(ctx, `delete from campaign_list where client_id = $1 and id = $2`, client, id)
		return err
	})
}
