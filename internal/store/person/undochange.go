package person

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/queue"
)

const changeColumns = `n.id, n.old_phone, n.new_phone, n.at, n.noted_at, n.undone_at,
 case when exists (select 1 from former_name f where f.client_id = n.client_id and f.change_id = n.id and f.name = n.old_phone) then 1 else 0 end`

func changeFields(c *puntuale.NotedChange) []any {
	return []any{&c.ID, &c.Old, &c.New, engine.ScanTime(&c.At), engine.ScanTime(&c.Noted), engine.ScanTime(&c.Undone), engine.ScanBool(&c.Left)}
}

// maxChanges is how many changes of one person NumberChanges returns.
const maxChanges = 20

// NumberChanges returns the changes to and from the names of a person, newest first.
func (s ContactStore) NumberChanges(ctx context.Context, phone string) ([]puntuale.NotedChange, error) {
	names, err := alias.Names(ctx, s.db.CallReads, s.client, phone)
	if err != nil {
		return nil, engine.PublicError(err)
	}
	all, err := engine.QueryAll(ctx, s.db.CallReads, `select `+changeColumns+` from $u(p text) cross join number_change n where n.client_id = $1 and n.new_phone = u.p and n.old_phone <> ''
 union select `+changeColumns+` from $u(p text) cross join number_change n where n.client_id = $1 and n.old_phone = u.p order by 1 desc limit $2`,
		[]any{s.client, maxChanges, engine.Columns{names}}, func(r engine.Row, c *puntuale.NotedChange) error { return r.Scan(changeFields(c)...) })
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list changes of a number: %w", err))
	}
	return all, nil
}

// UndoChange undoes the latest change of the person who has the phone, and counts one call; the cap never refuses it.
// What moved goes back, what came from the new number since stays with it, and each number keeps the blocks of the other.
// Codes: not_found (the number comes from no change, or the change was undone); conflict (the change is too old).
func (s ContactStore) UndoChange(ctx context.Context, phone string, day puntuale.Date, now time.Time) (c puntuale.NotedChange, err error) {
	err = s.db.WriteTimestamped(ctx, int64(s.client), func(ctx context.Context, a engine.Querier) error {
		if err := s.countCall(ctx, a, day); err != nil {
			return err
		}
		if _, err := s.lockPeople(ctx, a); err != nil {
			return err
		}
		names, err := alias.Names(ctx, a, s.client, phone)
		if err != nil {
			return err
		}
		var moved string
		var session puntuale.SessionID
		found, err := engine.QueryOne(ctx, a, `select n.moved, n.session_id, `+changeColumns+` from $u(p text) cross join number_change n where n.client_id = $1 and n.new_phone = u.p and n.old_phone <> '' and n.undone_at = 0
 order by n.id desc limit 1`, []any{s.client, engine.Columns{names}}, append([]any{&moved, &session}, changeFields(&c)...)...)
		if err := engine.ThereOr(found, err, puntuale.NoChange); err != nil {
			return err
		}
		if !c.Undoable(now) || moved == "" {
			return puntuale.Conflict(puntuale.FaultChangeTooOld)
		}
		x := &undoneChange{ContactStore: s, a: a, session: session, now: now, NotedChange: &c}
		if err := json.Unmarshal([]byte(moved), &x.undo); err != nil {
			return fmt.Errorf("read what a change moved: %w", err)
		}
		for _, step := range []func(context.Context) error{x.rows, x.consents, x.contacts, x.blocks, x.names} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		c.Undone = now
		if names, err = alias.Names(ctx, a, s.client, c.Old); err != nil {
			return err
		}
		f, err := outbox.NumberChanged(s.client, c.Old, c.New, names)
		if err != nil {
			return err
		}
		if err := outbox.Emit(ctx, a, now, []outbox.Fact{f}); err != nil {
			return err
		}
		_, err = a.Exec(ctx, `update number_change set undone_at = $3, moved = '' where client_id = $1 and id = $2`, s.client, c.ID, engine.Micros(now))
		return err
	})
	return c, err
}

// undoneChange is the transaction that undoes a change. It has the locks of [numberChange].
type undoneChange struct {
	ContactStore
	*puntuale.NotedChange
	a       engine.Querier
	session puntuale.SessionID
	now     time.Time
	undo    undoRecord
}

// ended returns the names that the change ended, sorted.
func (x *undoneChange) ended() (names []string) {
	for name := range x.undo.Moved {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// rows moves back what the change moved. A row that is no longer under the new number, because it was erased, stays.
func (x *undoneChange) rows(ctx context.Context) error {
	for _, name := range x.ended() {
		m := x.undo.Moved[name]
		for _, move := range movedTables {
			if move.table == "run" {
				for part := range slices.Chunk(m.Messages, engine.Chunk) {
					if _, err := x.a.Exec(ctx, `update message set phone = $3 from $u(i bigint) where message.client_id = $1 and message.id = u.i and message.phone = $2 and message.state = 0 and message.intent = 0`,
						x.client, x.New, name, engine.Columns{part}); err != nil {
						return fmt.Errorf("move messages back: %w", err)
					}
				}
			}
			text := `update ` + move.table + ` set phone = $3 where client_id = $1 and phone = $2 and ` + move.key + ` in (select u.i from $u(i bigint))`
			if move.only != "" {
				text += ` and ` + move.only
			}
			if _, err := x.a.Exec(ctx, text, x.client, x.New, name, engine.Columns{*move.ids(m)}); err != nil {
				return fmt.Errorf("move %s back: %w", move.table, err)
			}
		}
		if err := moveSteps(ctx, x.a, x.client, x.New, name, m.Bookings); err != nil {
			return err
		}
		if _, err := x.a.Exec(ctx, `update automation_timer set phone = $3 where client_id = $1 and phone = $2 and run_id in (select u.i from $u(i bigint))`, x.client, x.New, name, engine.Columns{m.Runs}); err != nil {
			return fmt.Errorf("move timers back: %w", err)
		}
		// What a rule did under either number, it does not repeat under the other.
		if _, err := x.a.Exec(ctx, `insert into automation_occurrence (client_id, rule_id, phone, occurrence, keep_until) select o.client_id, o.rule_id, $3::text, o.occurrence, o.keep_until
 from automation_occurrence o where o.client_id = $1 and o.phone = $2 on conflict (client_id, rule_id, phone, occurrence) do nothing`, x.client, x.New, name); err != nil {
			return fmt.Errorf("copy what rules did: %w", err)
		}
		if err := countConversation(ctx, x.a, x.client, name, m.Answered); err != nil {
			return err
		}
		if err := insertWindows(ctx, x.a, x.client, name, m.Windows); err != nil {
			return err
		}
		if err := x.closeWindows(ctx, m.Windows); err != nil {
			return err
		}
	}
	if err := insertWindows(ctx, x.a, x.client, x.New, x.undo.Windows); err != nil {
		return err
	}
	return countConversation(ctx, x.a, x.client, x.New, 0)
}

// closeWindows takes the windows away from the new number that it has only from the old one.
func (x *undoneChange) closeWindows(ctx context.Context, all []windowRow) error {
	type W = windowRow
	if _, err := x.a.Exec(ctx, `delete from contact where client_id = $1 and phone = $2 and exists (select 1 from $u(s bigint, w bigint) where contact.session_id = u.s and contact.window_until = u.w)`, x.client, x.New,
		engine.Columns{engine.Column(all, func(w *W) int64 { return w.Session }), engine.Column(all, func(w *W) int64 { return w.Until })}); err != nil {
		return fmt.Errorf("close windows: %w", err)
	}
	return nil
}

// consents gives the old number back what it had agreed to, and the new number what it had before, unless the new number
// said something since. A withdrawal counts for both.
func (x *undoneChange) consents(ctx context.Context) error {
	latest := map[int64]consentRow{}
	for _, s := range x.undo.Consents { // sorted by time
		latest[s.Purpose] = s
	}
	present := map[int64]consentRow{}
	all, err := engine.QueryAll(ctx, x.a, `select s.phone, s.purpose, s.change, s.granted_before, s.at from consent_state s where s.client_id = $1 and s.phone = $2`, []any{x.client, x.New}, scanConsentRow)
	if err != nil {
		return fmt.Errorf("read what a person agreed to: %w", err)
	}
	for _, s := range all {
		present[s.Purpose] = s
	}
	for purpose, s := range latest {
		if p := present[purpose]; p.At != s.At || p.Change != s.Change { // changed since
			if p.Change == withdrawn {
				for _, name := range x.ended() {
					p.Phone = name
					if err := putConsent(ctx, x.a, x.client, p); err != nil {
						return err
					}
				}
			}
			continue
		}
		if _, err := x.a.Exec(ctx, `delete from consent_state where client_id = $1 and phone = $2 and purpose = $3`, x.client, x.New, purpose); err != nil {
			return fmt.Errorf("move what a person agreed to back: %w", err)
		}
	}
	for _, s := range x.undo.Consents {
		p, there := present[s.Purpose]
		changed := !there || p.At != latest[s.Purpose].At || p.Change != latest[s.Purpose].Change
		if changed && (s.Phone == x.New || p.Change == withdrawn) {
			continue
		}
		if err := putConsent(ctx, x.a, x.client, s); err != nil {
			return err
		}
	}
	return nil
}

// contacts makes two contacts of a merged one. What people changed in it since stays in the new number's contact.
func (x *undoneChange) contacts(ctx context.Context) error {
	for _, name := range x.ended() {
		if id := x.undo.Moved[name].Contact; id != 0 {
			if _, err := x.a.Exec(ctx, `update person set phone = $4, changed_at = $5 where client_id = $1 and id = $2 and phone = $3`, x.client, id, x.New, name, engine.Micros(x.now)); err != nil {
				return fmt.Errorf("move a contact back: %w", err)
			}
		}
	}
	old, kept, result := x.undo.Removed, x.undo.Merged, x.undo.Result
	if old == nil {
		return nil
	}
	w := &writtenContacts{client: x.client}
	var present puntuale.Contact
	found, err := engine.QueryOne(ctx, x.a, `select `+personColumns+` from person p where p.client_id = $1 and p.id = $2`, []any{x.client, kept.ID}, personFields(&present)...)
	if err != nil {
		return fmt.Errorf("read a contact: %w", err)
	}
	if found && present.Changed.Equal(result.Changed) {
		kept.Changed = x.now
		w.change(present, *kept)
	}
	var one int
	if taken, err := engine.QueryOne(ctx, x.a, `select 1 from person p where p.client_id = $1 and p.phone = $2 union all select 1 from person p where p.client_id = $1 and p.id = $3`, []any{x.client, old.Phone, old.ID}, &one); err != nil {
		return fmt.Errorf("read a contact: %w", err)
	} else if !taken {
		w.add(*old)
	}
	if err := w.write(ctx, x.a); err != nil {
		return err
	}
	return x.count(ctx, x.a, int64(len(w.added)))
}

// blocks takes the entry away that the new number got from the old one, and gives the old number the new one's own.
func (x *undoneChange) blocks(ctx context.Context) error {
	if x.undo.Blocked != 0 {
		_, err := queue.RemoveBlacklisted(ctx, x.a, x.client, x.now, `phone = $2 and id = $3`, x.New, x.undo.Blocked)
		return err
	}
	var e puntuale.BlacklistEntry
	found, err := engine.QueryOne(ctx, x.a, `select b.reason, b.origin from blacklist b where b.client_id = $1 and b.phone = $2 and b.added_at >= $3`, []any{x.client, x.New, engine.Micros(x.Noted)}, &e.Reason, engine.ScanBool(&e.OptOut))
	if err != nil || !found {
		return err
	}
	names := x.ended()
	last, err := engine.NextNumbers(ctx, x.a, "blacklist", len(names))
	if err != nil {
		return err
	}
	for i, name := range names {
		if !isNumber(name) {
			continue
		}
		n, err := x.a.Exec(ctx, `insert into blacklist (client_id, phone, id, reason, added_at, origin) values ($1, $2, $3, $4, $5, $6) on conflict (client_id, phone) do nothing`,
			x.client, name, last-int64(i), e.Reason, engine.Micros(x.now), engine.Bit(e.OptOut))
		if err != nil {
			return fmt.Errorf("copy an entry of the blacklist: %w", err)
		}
		if n > 0 {
			e.Phone = name
			if err := outbox.TellBlacklist(ctx, x.a, x.client, puntuale.EventBlacklistAdded, x.now, []puntuale.BlacklistEntry{e}); err != nil {
				return err
			}
		}
	}
	return nil
}

// names takes the names apart that the change joined.
func (x *undoneChange) names(ctx context.Context) error {
	ended := engine.Columns{x.ended()}
	for _, statement := range []string{
		`delete from alias where client_id = $1 and (alias in (select u.n from $u(n text)) or phone in (select u.n from $u(n text)))`,
		`delete from former_name where client_id = $1 and name in (select u.n from $u(n text))`,
	} {
		if _, err := x.a.Exec(ctx, statement, x.client, ended); err != nil {
			return fmt.Errorf("take names apart: %w", err)
		}
	}
	var moved []string // names that the change took along, such as an id
	for _, r := range x.undo.Aliases {
		for _, name := range []string{r.Name, r.Phone} {
			if _, is := x.undo.Moved[name]; !is && name != x.New && !slices.Contains(moved, name) {
				moved = append(moved, name)
			}
		}
	}
	if _, err := x.a.Exec(ctx, `delete from alias where client_id = $1 and phone = $2 and alias in (select u.n from $u(n text))`, x.client, x.New, engine.Columns{moved}); err != nil {
		return fmt.Errorf("take names apart: %w", err)
	}
	if err := insertAliases(ctx, x.a, x.client, x.undo.Aliases); err != nil {
		return err
	}
	if err := markNamed(ctx, x.a, x.client, x.session, x.ended()); err != nil {
		return err
	}
	for _, f := range x.undo.Former {
		if _, err := x.a.Exec(ctx, `insert into former_name (client_id, name, change_id, at) values ($1, $2, $3, $4) on conflict (client_id, name) do nothing`, x.client, f.Name, f.Change, f.At); err != nil {
			return fmt.Errorf("note former names: %w", err)
		}
	}
	return nil
}

// Maintain removes what changes moved, after the time in which they can be undone.
func (p *Persons) Maintain(ctx context.Context, now time.Time) error {
	type change = puntuale.MessageRef
	return engine.Purge(ctx, p.db, "what changes of numbers moved", `select client_id, id from number_change where noted_at < $1 and moved <> '' order by noted_at limit $2`, engine.Micros(now.Add(-puntuale.UndoChangeTime)),
		queue.ScanRef, queue.CompareRefs, func(ctx context.Context, a engine.Querier, part []change) error {
			_, err := a.Exec(ctx, `update number_change set moved = '' from $u(c bigint, i bigint) where number_change.client_id = u.c and number_change.id = u.i`, queue.RefColumns(part))
			return err
		})
}
