package person

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/queue"
)

// numberChange is the transaction that moves a person from the old names to the new ones. Locks: the number of the
// client's contacts, so that one change of a client runs at a time; bookings, messages in the order of their ids, runs,
// and what hangs on people.
type numberChange struct {
	puntuale.NumberChange
	ContactStore
	a   engine.Querier
	now time.Time
	id  int64

	ended  []string // names that end now
	led    []string // names that ended before, by which the person is still found
	target string   // the name under which the person is stored from now on
	joined []string // the person's other names from now on
	wrote  bool     // the report is late: somebody wrote from an ended number after the change
	undo   undoRecord
}

// undoRecord is what a change did, as JSON in number_change.moved.
type undoRecord struct {
	Moved    map[string]*movedRows `json:"moved,omitempty"` // by the name that ended
	Aliases  []aliasRow            `json:"aliases,omitempty"`
	Former   []formerRow           `json:"former,omitempty"` // names that were former before, and are no longer
	Consents []consentRow          `json:"consents,omitempty"`
	Windows  []windowRow           `json:"windows,omitempty"` // of the new number
	Merged   *puntuale.Contact     `json:"merged,omitempty"`  // the new number's contact before the old one's was merged into it
	Removed  *puntuale.Contact     `json:"removed,omitempty"`
	Result   *puntuale.Contact     `json:"result,omitempty"`  // the merged contact
	Blocked  int64                 `json:"blocked,omitempty"` // id of the entry that the new number got
}

type aliasRow struct {
	Session     int64
	Name, Phone string
}

type formerRow struct {
	Name   string
	Change int64
	At     int64
}

// ChangeNumber moves a person to new names. What is in flight stays as it is. Everything moves in one transaction, and a
// report with the same Mark changes nothing, so a network may report the change several times, late and in any order.
//
// The transaction has few statements, and moves at most 1,000 messages in each. So 10,000 pending messages need about as long as
// their cancellation.
func (p *Persons) ChangeNumber(ctx context.Context, now time.Time, c puntuale.NumberChange) error {
	if len(c.Old) == 0 || len(c.New) == 0 || c.Mark == "" {
		return nil
	}
	if c.At.After(now) {
		c.At = now
	}
	err := p.db.TenantWriter(int64(c.Client)).Do(ctx, engine.Single(p.changes, func(ctx context.Context, a engine.Querier) error {
		x := &numberChange{NumberChange: c, ContactStore: p.ForClient(c.Client, 0), a: a, now: now}
		return x.run(ctx)
	}).ForOwner(int64(c.Client)), false)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound { // the client was deleted
		return nil
	}
	if err != nil {
		return fmt.Errorf("change a person's number: %w", err)
	}
	return nil
}

func (x *numberChange) run(ctx context.Context) (err error) {
	if _, err := x.lockPeople(ctx, x.a); err != nil {
		return err
	}
	var known int64
	if found, err := engine.QueryOne(ctx, x.a, `select id from number_change where client_id = $1 and mark = $2`, []any{x.Client, x.Mark}, &known); err != nil || found {
		return err
	}
	if x.id, err = engine.NextNumber(ctx, x.a, "number_change"); err != nil {
		return err
	}
	if err := x.resolve(ctx); err != nil {
		return err
	}
	if erased, err := x.moveMarks(ctx); err != nil || erased {
		return err
	}
	if len(x.ended) > 0 {
		x.undo.Moved = map[string]*movedRows{}
		for _, step := range []func(context.Context) error{x.moveRows, x.moveConsents, x.copyBlocks, x.moveContact} {
			if err := step(ctx); err != nil {
				return err
			}
		}
	}
	if err := x.join(ctx); err != nil {
		return err
	}
	return x.note(ctx)
}

// forms returns the names, with the other forms of numbers.
func forms(names []string) (all []string) {
	for _, name := range names {
		for _, form := range []string{name, puntuale.OtherForm(name)} {
			if form != "" && !slices.Contains(all, form) {
				all = append(all, form)
			}
		}
	}
	return all
}

func isNumber(name string) bool { return strings.HasPrefix(name, "+") }

// resolve decides which names end, and where the person goes. Reports may come late and in any order: a name that ended
// by a later change leads on to where that change led.
func (x *numberChange) resolve(ctx context.Context) error {
	old, fresh := forms(x.Old), forms(x.New)
	former, err := alias.FormerOf(ctx, x.a, x.Client, slices.Concat(old, fresh))
	if err != nil {
		return err
	}
	for _, name := range fresh { // an earlier change ended a name that is somebody's again
		f, is := former[name]
		if !is || f.At.After(x.At) {
			continue
		}
		if err := x.revive(ctx, f); err != nil {
			return err
		}
	}
	theirs, err := alias.Names(ctx, x.a, x.Client, fresh...)
	if err != nil {
		return err
	}
	for _, name := range old { // the number ended before, and is the number of somebody else who leaves it, too
		if f, is := former[name]; is && f.At.Before(x.At) && !slices.Contains(theirs, name) {
			if err := x.revive(ctx, f); err != nil {
				return err
			}
		}
	}
	group, err := alias.Names(ctx, x.a, x.Client, old...)
	if err != nil {
		return err
	}
	if former, err = alias.FormerOf(ctx, x.a, x.Client, slices.Concat(theirs, group)); err != nil {
		return err
	}
	living := func(name string) bool { _, is := former[name]; return !is }
	ends := func(name string) bool { // not if the person is back at the old name by a later change
		return living(puntuale.ShownName(fresh)) && slices.Contains(old, name) && !slices.Contains(fresh, name)
	}
	for _, name := range slices.Concat(theirs, group) {
		if !living(name) && !slices.Contains(x.led, name) {
			x.led = append(x.led, name)
		}
	}
	theirs = slices.DeleteFunc(theirs, func(name string) bool { return !living(name) || ends(name) })
	changesNumber := slices.ContainsFunc(old, isNumber)
	for _, name := range group {
		switch {
		case !living(name) || slices.Contains(theirs, name):
		case slices.Contains(old, name) || changesNumber && isNumber(name):
			x.ended = append(x.ended, name)
		default:
			x.joined = append(x.joined, name)
		}
	}
	x.joined = append(theirs, x.joined...)
	if len(x.joined) == 0 {
		return nil
	}
	x.target = puntuale.ShownName(x.joined)
	x.joined = slices.DeleteFunc(x.joined, func(name string) bool { return name == x.target })
	return x.findWriter(ctx)
}

// findWriter finds out whether somebody wrote from an ended number after the change. Such a number is not a former one,
// and what came from it since stays with it.
func (x *numberChange) findWriter(ctx context.Context) error {
	numbers := slices.DeleteFunc(slices.Clone(x.ended), func(name string) bool { return !isNumber(name) })
	var one int
	var err error
	x.wrote, err = engine.QueryOne(ctx, x.a, `select 1 from $u(p text) cross join contact c where c.client_id = $1 and c.phone = u.p and c.window_until > $2 limit 1`,
		[]any{x.Client, engine.Micros(x.At.Add(puntuale.ServiceWindow)), engine.Columns{numbers}}, &one)
	if err != nil {
		return fmt.Errorf("look who wrote from an old number: %w", err)
	}
	return nil
}

// revive makes a former name one that people have: the person changed back to it, or somebody else has it now. Its other
// forms come with it.
func (x *numberChange) revive(ctx context.Context, f alias.FormerName) error {
	names := engine.Columns{forms([]string{f.Name})}
	x.undo.Former = append(x.undo.Former, formerRow{f.Name, f.Change, engine.Micros(f.At)})
	rows, err := engine.QueryAll(ctx, x.a, `delete from alias where client_id = $1 and alias in (select u.n from $u(n text)) returning session_id, alias, phone`, []any{x.Client, names}, scanAlias)
	if err != nil {
		return fmt.Errorf("take names apart: %w", err)
	}
	x.undo.Aliases = append(x.undo.Aliases, rows...)
	if _, err := x.a.Exec(ctx, `delete from former_name where client_id = $1 and name = $2`, x.Client, f.Name); err != nil {
		return fmt.Errorf("use a former name again: %w", err)
	}
	return nil
}

func scanAlias(r engine.Row, x *aliasRow) error { return r.Scan(&x.Session, &x.Name, &x.Phone) }

// moveMarks moves what an erasure left: the blocks under the marks of the names. If nothing else is known of the person,
// the change itself is not stored, because it names an erased person.
func (x *numberChange) moveMarks(ctx context.Context) (erased bool, err error) {
	if x.NameMark == nil || x.target == "" {
		return false, nil
	}
	marks := engine.Columns{puntuale.Person{Mark: x.NameMark}.Marks(append(slices.Clone(x.ended), x.Old...))}
	mark := x.NameMark(x.target)
	var n int64
	for _, statement := range []string{
		`insert into blacklist (client_id, phone, id, reason, added_at, origin) select b.client_id, $2::text, -abs(b.id), '', b.added_at, b.origin from $u(p text) cross join blacklist b
 where b.client_id = $1 and b.phone = u.p order by b.id limit 1 on conflict (client_id, phone) do nothing`,
		`insert into consent_state (client_id, phone, purpose, change, granted_before, at) select distinct s.client_id, $2::text, s.purpose, 2, 0, max(s.at) from $u(p text) cross join consent_state s
 where s.client_id = $1 and s.phone = u.p and s.change = 2 group by s.client_id, s.purpose on conflict (client_id, phone, purpose) do nothing`,
	} {
		k, err := x.a.Exec(ctx, statement, x.Client, mark, marks)
		if n += k; err != nil {
			return false, fmt.Errorf("move the marks of an erased person: %w", err)
		}
	}
	if n == 0 {
		return false, nil
	}
	var one int
	known, err := engine.QueryOne(ctx, x.a, `select 1 from $u(p text) where exists (select 1 from run r where r.client_id = $1 and r.phone = u.p) or exists (select 1 from reply y where y.client_id = $1 and y.phone = u.p)
 or exists (select 1 from person p where p.client_id = $1 and p.phone = u.p) or exists (select 1 from booking b where b.client_id = $1 and b.phone = u.p)
 or exists (select 1 from contact c where c.client_id = $1 and c.phone = u.p) limit 1`, []any{x.Client, engine.Columns{append(slices.Clone(x.ended), x.Old...)}}, &one)
	return !known, err
}

// join makes one group of the names: each leads to the target. The names that ended stay in the group, and nothing is
// sent to them.
func (x *numberChange) join(ctx context.Context) error {
	if x.target == "" {
		return nil
	}
	rows, err := engine.QueryAll(ctx, x.a, `delete from alias where client_id = $1 and (alias in (select u.n from $u(n text)) or phone in (select u.n from $u(n text))) returning session_id, alias, phone`,
		[]any{x.Client, engine.Columns{x.ended}}, scanAlias)
	if err != nil {
		return fmt.Errorf("take names apart: %w", err)
	}
	x.undo.Aliases = append(x.undo.Aliases, rows...)
	var former []string
	for _, name := range x.ended {
		if !x.wrote || !isNumber(name) {
			former = append(former, name)
		}
	}
	var fresh []aliasRow
	for _, name := range slices.Concat(former, x.led, x.joined) {
		fresh = append(fresh, aliasRow{int64(x.Session), name, x.target})
	}
	if err := insertAliases(ctx, x.a, x.Client, fresh); err != nil {
		return err
	}
	if err := markNamed(ctx, x.a, x.Client, x.Session, []string{x.target}); err != nil {
		return err
	}
	if _, err := x.a.Exec(ctx, `insert into former_name as f (client_id, name, change_id, at) select $1::bigint, u.n, $2::bigint, $3::bigint from $u(n text) where true
 on conflict (client_id, name) do update set change_id = excluded.change_id, at = excluded.at`, x.Client, x.id, engine.Micros(x.At), engine.Columns{former}); err != nil {
		return fmt.Errorf("note former names: %w", err)
	}
	return nil
}

func insertAliases(ctx context.Context, a engine.Querier, client puntuale.ClientID, rows []aliasRow) error {
	if _, err := a.Exec(ctx, `insert into alias (client_id, session_id, alias, phone) select $1::bigint, u.s, u.a, u.p from $u(s bigint, a text, p text) where u.a <> u.p
 on conflict (client_id, session_id, alias, phone) do nothing`, client, engine.Columns{
		engine.Column(rows, func(r *aliasRow) int64 { return r.Session }),
		engine.Column(rows, func(r *aliasRow) string { return r.Name }),
		engine.Column(rows, func(r *aliasRow) string { return r.Phone }),
	}); err != nil {
		return fmt.Errorf("join names: %w", err)
	}
	return nil
}

// markNamed makes each of the names an alias of itself. A dispatcher may have read messages before they got one of these
// names. A claim of a message to a person with aliases compares the phones, so that none leaves to the name before.
func markNamed(ctx context.Context, a engine.Querier, client puntuale.ClientID, session puntuale.SessionID, names []string) error {
	if _, err := a.Exec(ctx, `insert into alias (client_id, session_id, alias, phone) select $1::bigint, $2::bigint, u.n, u.n from $u(n text) where true
 on conflict (client_id, session_id, alias, phone) do nothing`, client, session, engine.Columns{names}); err != nil {
		return fmt.Errorf("mark names: %w", err)
	}
	return nil
}

// note stores the change and its fact. An id that changes behind a known number is nothing that people see.
func (x *numberChange) note(ctx context.Context) error {
	old := ""
	if len(x.ended) > 0 {
		old = puntuale.ShownName(x.ended)
	}
	quiet := old == "" || !isNumber(old) && isNumber(x.target)
	names, err := engine.ToJSON(slices.Concat([]string{x.target}, x.joined))
	if err != nil {
		return err
	}
	moved, err := engine.ToJSON(x.undo)
	if err != nil {
		return err
	}
	if quiet {
		old, moved = "", ""
	}
	if _, err := x.a.Exec(ctx, `insert into number_change (client_id, id, session_id, mark, old_phone, new_phone, names, at, noted_at, moved) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		x.Client, x.id, x.Session, x.Mark, old, x.target, names, engine.Micros(x.At), engine.Micros(x.now), moved); err != nil {
		return fmt.Errorf("note a change of number: %w", err)
	}
	if quiet {
		return nil
	}
	f, err := outbox.NumberChanged(x.Client, x.target, old, slices.Concat([]string{x.target}, x.joined))
	if err != nil {
		return err
	}
	return outbox.Emit(ctx, x.a, x.now, []outbox.Fact{f})
}

// copyBlocks puts the new number on the blacklist if an old name is. The old number stays there.
func (x *numberChange) copyBlocks(ctx context.Context) error {
	all, err := engine.QueryAll(ctx, x.a, `select b.phone, b.reason, b.added_at, b.origin from $u(p text) cross join blacklist b where b.client_id = $1 and b.phone = u.p order by b.added_at, b.phone`,
		[]any{x.Client, engine.Columns{x.ended}}, func(r engine.Row, e *puntuale.BlacklistEntry) error {
			return r.Scan(&e.Phone, &e.Reason, engine.ScanTime(&e.Added), engine.ScanBool(&e.OptOut))
		})
	if err != nil || len(all) == 0 {
		return err
	}
	e := all[0]
	if e.Phone = x.target; x.NameMark != nil {
		e.Mark = x.NameMark(x.target)
	}
	n, err := queue.AddBlacklisted(ctx, x.a, x.Client, e)
	if err != nil || n == 0 {
		return err
	}
	_, err = engine.QueryOne(ctx, x.a, `select id from blacklist where client_id = $1 and phone = $2`, []any{x.Client, x.target}, &x.undo.Blocked)
	return err
}
