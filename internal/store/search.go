package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// Texts are compared in Go, not in the databases. Each database treats case and accents differently, and PostgreSQL
// also treats them differently in each collation.

// searchWords contains the words of a search.
type searchWords []string

// needleOf returns the words of a search text, without case and accents.
func needleOf(text string) searchWords { return strings.Fields(folded(text)) }

// matches reports whether a text contains all the words. A word may be a part of a longer word of the text.
func (n searchWords) matches(text string) bool {
	text = folded(text)
	return !slices.ContainsFunc(n, func(word string) bool { return !strings.Contains(text, word) })
}

// folded returns a text without case and accents. It keeps punctuation, unlike package keyword. The documentation of
// that package explains the difference.
func folded(text string) string {
	const firstAccent = '\u0300'
	return strings.Map(func(r rune) rune {
		switch {
		case r < firstAccent && (r < 'A' || 'Z' < r) && r <= unicode.MaxASCII:
			return r
		case r >= firstAccent && unicode.Is(unicode.Mn, r):
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(text))
}

// These limits say how much one page of a search reads. A page ends when it has read slightly more than searchedBytes.
const (
	searchedMessages = 10_000
	searchedBytes    = 16 << 20
	searchedAtOnce   = 500 // how many messages one statement reads; the number is small, so that matches among the latest messages come quickly
)

// candidate is a message that may contain the words of a search.
type candidate struct {
	id, run int64
	step    int
	found   bool
}

// searched returns the newest messages that contain the words of the filter, at most limit of them. Their ids are
// smaller than last and not smaller than floor. It also returns the id at which it stopped, or floor if it searched all
// messages.
func (t tenant) searched(ctx context.Context, f puntuale.MessageFilter, last, floor int64, limit int, others []string) (found []puntuale.MessageID, reached int64, err error) {
	words, read := needleOf(f.Text), 0
	for looked := 0; looked < searchedMessages && read < searchedBytes; looked += searchedAtOnce {
		part, err := t.candidates(ctx, f, last, floor, searchedAtOnce, others)
		if err != nil {
			return nil, 0, err
		}
		bytes, err := t.match(ctx, words, part)
		if err != nil {
			return nil, 0, err
		}
		for _, c := range part {
			last = c.id
			if c.found {
				found = append(found, puntuale.MessageID(c.id))
			}
			if len(found) == limit {
				return found, last, nil
			}
		}
		if read += bytes; len(part) < searchedAtOnce {
			return found, floor, nil
		}
	}
	return found, last, nil
}

// candidates returns the newest messages that match all other conditions of the filter. It does not compare texts.
func (t tenant) candidates(ctx context.Context, f puntuale.MessageFilter, last, floor int64, limit int, others []string) (all []candidate, err error) {
	l := t.listing(last, floor, limit, others...)
	return all, t.lists().Query(ctx, `with f as (`+l.found(f)+`) select m.id, m.run_id, m.step
 from f cross join message m where m.client_id = $1 and m.id = f.i order by m.id desc`, l.args, func(rows engine.Row) error {
		var c candidate
		err := rows.Scan(&c.id, &c.run, &c.step)
		all = append(all, c)
		return err
	})
}

// match sets the field found of each message that contains the words, and returns how many bytes it read. A message
// without content never matches. match reads one run at a time, and does not keep the run's content in memory.
func (t tenant) match(ctx context.Context, words searchWords, all []candidate) (bytes int, err error) {
	ofRun := map[int64][]*candidate{}
	var runs []int64
	for i := range all {
		c := &all[i]
		if ofRun[c.run] == nil {
			runs = append(runs, c.run)
		}
		ofRun[c.run] = append(ofRun[c.run], c)
	}
	if len(runs) == 0 {
		return 0, nil
	}
	return bytes, t.lists().Query(ctx, `select r.id, r.origin, r.content, r.request`+runContents, []any{t.id, engine.Columns{runs}}, func(rows engine.Row) error {
		var run int64
		var content string
		var origin puntuale.Origin
		var request []byte
		if err := rows.Scan(&run, queue.ScanOrigin(&origin), &content, &request); err != nil {
			return err
		}
		bytes += len(content) + len(request)
		var steps []struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		if err := json.Unmarshal([]byte(content), &steps); err != nil {
			return fmt.Errorf("read the texts of a run: %w", err)
		}
		name := puntuale.RecipientName(origin, request)
		for _, c := range ofRun[run] {
			c.found = c.step >= 0 && c.step < len(steps) && words.matches(name+"\n"+steps[c.step].Content.Text)
		}
		return nil
	})
}

// namedBound is how many things of one kind are compared with a text. Only campaigns have no quota.
const namedBound = 20_000

// namedThings selects the names of a client's things, the newest first.
var namedThings = map[puntuale.NamedKind]string{
	puntuale.NamedSequence: `select q.id, q.name from sequence q where q.client_id = $1 and q.deleted_at = 0 order by q.id desc limit $2`,
	puntuale.NamedCampaign: `select c.id, c.name from campaign c where c.client_id = $1 order by c.id desc limit $2`,
	puntuale.NamedTemplate: `select t.id, t.name from template t where t.client_id = $1 order by t.id desc limit $2`,
}

// FindNamed returns the newest things of each noun whose names contain all words of a text, or that have the text as
// their id, at most limit of each noun.
func (t tenant) FindNamed(ctx context.Context, text string, limit int) (map[puntuale.NamedKind][]puntuale.NamedItem, error) {
	found, needle := map[puntuale.NamedKind][]puntuale.NamedItem{}, needleOf(text)
	if len(needle) == 0 {
		return found, nil
	}
	for noun, query := range namedThings {
		err := t.lists().Query(ctx, query, []any{t.id, namedBound}, func(r engine.Row) error {
			var n puntuale.NamedItem
			if err := r.Scan(&n.ID, &n.Name); err != nil {
				return err
			}
			if len(found[noun]) < limit && (needle.matches(n.Name) || strconv.FormatInt(n.ID, 10) == text) {
				found[noun] = append(found[noun], n)
			}
			return nil
		})
		if err != nil {
			return nil, engine.PublicError(fmt.Errorf("find %s by name: %w", noun, err))
		}
	}
	return found, nil
}
