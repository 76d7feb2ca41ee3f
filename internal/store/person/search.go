package person

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/store/engine"
)

// A list reads contacts by its rarest condition, in the order of an index. It checks the other conditions for each
// contact. So it usually reads little more than it shows. But each condition may hold for many contacts, while all
// conditions together hold for few. Then the page ends early, after scanBound contacts.

// order says how a list of contacts is sorted. It follows from the condition by which the list is read. Cursors contain
// the number of the order.
type order int

const (
	byID    order = iota
	byPhone       // the list is sorted by phone
	byTag         // the condition is one tag; the list is sorted by id
	byAny         // the condition is any of several tags; the list is sorted by id
	byWord        // the condition is the beginning of a word; the list is sorted by each contact's smallest such word, then by id
)

const (
	manyRows     = 2000 // counting the contacts of one condition stops at this number
	maxWords     = 10
	scanBound    = 3000 // largest number of contacts that are read for one page
	checkedBound = 1000 // largest number of contacts that CountContacts checks against several conditions
)

// cursor is the place where a list continues.
type cursor struct {
	By   order              `json:"b"`
	Word int                `json:"w,omitempty"` // index of the word in search.words
	Text string             `json:"t,omitempty"` // the list continues after this phone or word
	ID   puntuale.ContactID `json:"i,omitempty"`
	Back bool               `json:"d,omitempty"` // the list by id or tag has falling ids
}

const cursorNoun = "contact:"

func (c cursor) String() string {
	text, _ := json.Marshal(c) // cannot fail, because a cursor contains only numbers and texts
	return base64.RawURLEncoding.EncodeToString(append([]byte(cursorNoun), text...))
}

// search is one search for contacts.
type search struct {
	ContactStore
	f      puntuale.ContactFilter
	words  []string // the words of the search; the longest word is first
	prefix string   // beginning of the phone; "": the filter contains a whole number or no number

	at      cursor
	scanned int
	ended   bool
}

func (s ContactStore) search(ctx context.Context, f puntuale.ContactFilter, from string) (*search, error) {
	x := &search{ContactStore: s, f: f, words: words(f.Name)}
	engine.SortStable(x.words, func(a, b string) int { return len(b) - len(a) })
	x.words = x.words[:min(maxWords, len(x.words))]
	if prefix, ok := strings.CutSuffix(f.Phone, "*"); ok {
		x.prefix, x.f.Phone = prefix, ""
	}
	if x.f.Phone != "" { // the person's contact may have another name
		c, found, err := s.ContactOf(ctx, x.f.Phone)
		if err != nil {
			return nil, err
		}
		if found {
			x.f.Phone = c.Phone
		}
	}
	if from == "" {
		return x, x.choose(ctx)
	}
	text, err := base64.RawURLEncoding.DecodeString(from)
	inner, ok := strings.CutPrefix(string(text), cursorNoun)
	if err != nil || !ok || json.Unmarshal([]byte(inner), &x.at) != nil || !x.drives(x.at) {
		return nil, engine.BadCursor(puntuale.Page{Cursor: from})
	}
	return x, nil
}

// drives reports whether the filter still contains the condition by which the cursor's list is read.
func (x *search) drives(c cursor) bool {
	if c.Back != (x.f.Newest && (c.By == byID || c.By == byTag)) {
		return false
	}
	switch c.By {
	case byID:
		return x.f.Tag == "" && x.f.Phone == "" && x.prefix == "" && len(x.words) == 0 && len(x.f.Any) == 0
	case byPhone:
		return x.f.Phone != "" || x.prefix != ""
	case byTag:
		return x.f.Tag != ""
	case byAny:
		return len(x.f.Any) > 0
	case byWord:
		return c.Word >= 0 && c.Word < len(x.words)
	}
	return false
}

// choose chooses the condition by which the list is read. If the filter contains a whole phone number or several tags,
// choose takes that condition. Otherwise it takes the rarest condition, or the first one if all hold for many contacts.
func (x *search) choose(ctx context.Context) error {
	switch {
	case x.f.Phone != "":
		x.at = cursor{By: byPhone}
		return nil
	case len(x.f.Any) > 0:
		x.at = cursor{By: byAny}
		return nil
	}
	var all []cursor
	for i := range x.words {
		all = append(all, cursor{By: byWord, Word: i})
	}
	for _, c := range []cursor{{By: byTag, Back: x.f.Newest, ID: x.begin()}, {By: byPhone}} {
		if x.drives(c) {
			all = append(all, c)
		}
	}
	if len(all) < 2 {
		x.at = append(all, cursor{Back: x.f.Newest, ID: x.begin()})[0]
		return nil
	}
	least := manyRows + 1
	x.at = all[0]
	for _, c := range all {
		text, args := x.statement(c, x.f.Tag)
		var n int
		if _, err := engine.QueryOne(ctx, x.lists(), `select count(*) from (`+text+`) as k`, append(args, manyRows), &n); err != nil {
			return engine.PublicError(fmt.Errorf("count contacts: %w", err))
		}
		if n < least {
			x.at, least = c, n
		}
	}
	return nil
}

func (s ContactStore) lists() engine.Querier { return s.db.Lists(int64(s.client)) }

// begin returns the id after which a list by id begins.
func (x *search) begin() puntuale.ContactID {
	if x.f.Newest {
		return puntuale.MaxID
	}
	return 0
}

// after returns the condition and the order of a list by id, after the id with the placeholder sign.
func (c cursor) after(id, sign string) string {
	if c.Back {
		return id + ` < ` + sign + ` order by ` + id + ` desc`
	}
	return id + ` > ` + sign + ` order by ` + id
}

// statement returns a statement that reads contacts by one condition, after the cursor c. The caller adds the last
// argument, the limit.
func (x *search) statement(c cursor, tag string) (text string, args []any) {
	switch c.By {
	case byTag, byAny:
		return `select t.person_id, '' from person_term t where t.client_id = $1 and t.kind = 2 and t.term = $2 and ` + c.after("t.person_id", "$3") + ` limit $4`, []any{x.client, tag, c.ID}
	case byWord:
		word := x.words[c.Word]
		return `select t.person_id, t.term from person_term t where t.client_id = $1 and t.kind = 1 and (t.term, t.person_id) > ($2, $3) and t.term < $4
 order by t.term, t.person_id limit $5`, []any{x.client, max(c.Text, word), c.ID, prefixEnd(word)}
	case byPhone:
		from, to := x.f.Phone, x.f.Phone+" "
		if x.prefix != "" {
			from, to = x.prefix, prefixEnd(x.prefix)
		}
		if c.Text != "" {
			from = max(from, c.Text+" ") // the next phones; a space is smaller than every character of a phone, so c.Text itself is left out
		}
		return `select p.id, p.phone from person p where p.client_id = $1 and p.phone >= $2 and p.phone < $3 order by p.phone limit $4`, []any{x.client, from, to}
	}
	return `select p.id, '' from person p where p.client_id = $1 and ` + c.after("p.id", "$2") + ` limit $3`, []any{x.client, c.ID}
}

// foundContact is a contact that a search has found.
type foundContact struct {
	engine.SizedRow
	text string // the phone or the word by which the contact was found
}

// keys reads at most limit contacts by the list's condition, after the cursor. If there are several tags, it reads at
// most limit contacts for each tag. Of all these contacts, it returns the first ones, at most limit.
func (x *search) keys(ctx context.Context, limit int) (keys []foundContact, err error) {
	tags := []string{x.f.Tag}
	if x.at.By == byAny {
		tags = x.f.Any
	}
	for _, tag := range tags {
		text, args := x.statement(x.at, tag)
		part, err := engine.QueryAll(ctx, x.lists(), text, append(args, limit), func(r engine.Row, k *foundContact) error { return r.Scan(&k.Id, &k.text) })
		if err != nil {
			return nil, engine.PublicError(fmt.Errorf("list contacts: %w", err))
		}
		keys = append(keys, part...)
	}
	if len(tags) > 1 {
		engine.Sort(keys, func(a, b foundContact) int { return cmp.Compare(a.Id, b.Id) })
		keys = slices.Compact(keys)
	}
	return keys[:min(limit, len(keys))], nil
}

// next reads at most limit further contacts, and returns those for which all conditions hold. If sized is true, it also
// returns their sizes.
func (x *search) next(ctx context.Context, limit int, sized bool) ([]foundContact, error) {
	keys, err := x.keys(ctx, limit)
	if err != nil {
		return nil, err
	}
	x.scanned += len(keys)
	if x.ended = len(keys) < limit; len(keys) == 0 {
		return nil, nil
	}
	where, args := x.conditions()
	x.at.Text, x.at.ID = keys[len(keys)-1].text, puntuale.ContactID(keys[len(keys)-1].Id)
	if where == "" && !sized {
		return keys, nil
	}
	sizes := make(map[foundContact]int, len(keys))
	args = append(args, engine.Columns{engine.Column(keys, func(k *foundContact) int64 { return k.Id }), engine.Column(keys, func(k *foundContact) string { return k.text })})
	if err := x.lists().Query(ctx, `select p.id, u.t, octet_length(p.fields) + octet_length(p.tags) from $u(i bigint, t text) cross join person p
 where p.client_id = $1 and p.id = u.i`+where, args, func(r engine.Row) error {
		var k foundContact
		var size int
		err := r.Scan(&k.Id, &k.text, &size)
		sizes[k] = size
		return err
	}); err != nil {
		return nil, engine.PublicError(fmt.Errorf("list contacts: %w", err))
	}
	held := keys[:0]
	for _, k := range keys {
		if size, ok := sizes[k]; ok {
			k.Bytes = size
			held = append(held, k)
		}
	}
	return held, nil
}

// wordsOfPerson and tagsOfPerson look up the terms of one contact at a time. They are counts, because a planner cannot
// turn a count into a join. So a wrong estimate of the number of terms does no harm.
const (
	wordsOfPerson = `(select count(*) from person_term w where w.client_id = $1 and w.person_id = p.id and w.kind + 0 = 1 and w.term || '' >= `
	tagsOfPerson  = `(select count(*) from person_term w where w.client_id = $1 and w.kind = 2 and w.person_id = p.id and w.term `
)

// conditions returns all conditions except the condition by which the list is read.
func (x *search) conditions() (where string, args []any) {
	args = []any{x.client}
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	if x.f.Tag != "" && x.at.By != byTag {
		where += ` and ` + tagsOfPerson + `= ` + arg(x.f.Tag) + `) > 0`
	}
	if len(x.f.Any) > 0 && x.at.By != byAny {
		var tags []string
		for _, tag := range x.f.Any {
			tags = append(tags, arg(tag))
		}
		where += ` and ` + tagsOfPerson + `in (` + strings.Join(tags, ", ") + `)) > 0`
	}
	for i, word := range x.words {
		if x.at.By == byWord && x.at.Word == i {
			continue
		}
		where += ` and ` + wordsOfPerson + arg(word) + ` and w.term || '' < ` + arg(prefixEnd(word)) + `) > 0`
	}
	if x.prefix != "" && x.at.By != byPhone {
		where += ` and p.phone >= ` + arg(x.prefix) + ` and p.phone < ` + arg(prefixEnd(x.prefix))
	}
	// The condition searches the stored JSON for the name of the field. A text inside the JSON never matches, because the
	// JSON has a backslash before each quotation mark of a text.
	if x.f.Filled != "" {
		where += ` and replace(p.fields, ` + arg(`"`+x.f.Filled+`":{`) + `, '') <> p.fields`
	}
	if x.at.By == byWord {
		// Leave out contacts that were listed before, under a smaller matching word.
		where += ` and ` + wordsOfPerson + arg(x.words[x.at.Word]) + ` and w.term || '' < u.t) = 0`
	}
	return where, args
}
