package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"puntuale"
)

// Searches compare texts here and not in the databases: what LIKE and lower make of case and accents is another thing in
// each of them, and on PostgreSQL in each collation.

// needle is the words that a search looks for.
type needle []string

// needleOf reads the words of a search.
func needleOf(text string) needle { return strings.Fields(folded(text)) }

// in reports whether a text holds all the words, each perhaps as part of a longer one.
func (n needle) in(text string) bool {
	text = folded(text)
	return !slices.ContainsFunc(n, func(word string) bool { return !strings.Contains(text, word) })
}

// folded is a text without case and accents.
func folded(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(text))
}

// What one page of a search by text looks through, at most. A page that was slow to read ends after some more than so many
// bytes.
const (
	searchedMessages = 10_000
	searchedBytes    = 16 << 20
	searchedAtOnce   = 200 // messages whose runs are read with one statement
)

// candidate is a message that may hold the words of a search.
type candidate struct {
	id, run int64
	step    int
}

// searched finds messages that hold the words of a filter among those below last and from floor on, newest first, at most
// limit. It returns the floor that it reached: 0 where it looked through all.
func (t tenant) searched(ctx context.Context, f puntuale.MessageFilter, last, floor int64, limit int) (found []puntuale.MessageID, reached int64, err error) {
	l := t.listing(last, floor, searchedMessages+1)
	var all []candidate
	if err := t.lists().each(ctx, `with f as (`+l.found(f)+`) select m.id, m.run_id, m.step
 from f cross join message m where m.client_id = $1 and m.id = f.i order by m.id desc`, l.args, func(rows row) error {
		var c candidate
		err := rows.Scan(&c.id, &c.run, &c.step)
		all = append(all, c)
		return err
	}); err != nil {
		return nil, 0, err
	}
	if len(all) > searchedMessages {
		all = all[:searchedMessages]
		floor = all[searchedMessages-1].id
	}
	looked, of := 0, needleOf(f.Text)
	for part := range slices.Chunk(all, searchedAtOnce) {
		texts, bytes, err := t.textsOf(ctx, part)
		if err != nil {
			return nil, 0, err
		}
		for _, c := range part {
			if text, ok := texts[c.run][c.step]; ok && of.in(text) {
				found = append(found, puntuale.MessageID(c.id))
			}
			if len(found) == limit {
				return found, c.id, nil
			}
		}
		if looked += bytes; looked > searchedBytes && part[len(part)-1] != all[len(all)-1] {
			return found, part[len(part)-1].id, nil
		}
	}
	return found, floor, nil
}

// textsOf returns what the messages' runs say, by run and step, each with the recipient's name in front, and how much was
// read for that, in bytes. What was blanked says nothing.
func (t tenant) textsOf(ctx context.Context, of []candidate) (map[int64]map[int]string, int, error) {
	wanted := map[int64]map[int]string{}
	for _, c := range of {
		if wanted[c.run] == nil {
			wanted[c.run] = map[int]string{}
		}
		wanted[c.run][c.step] = ""
	}
	runs := make([]int64, 0, len(wanted))
	for run := range wanted {
		runs = append(runs, run)
	}
	bytes := 0
	err := t.lists().each(ctx, `select r.id, r.content, r.request`+runContents, []any{t.id, batch{runs}}, func(rows row) error {
		var run int64
		var content string
		var request []byte
		if err := rows.Scan(&run, &content, &request); err != nil {
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
		name := puntuale.RecipientName(request)
		for i := range wanted[run] {
			if i < 0 || i >= len(steps) {
				delete(wanted[run], i)
				continue
			}
			wanted[run][i] = name + "\n" + steps[i].Content.Text
		}
		return nil
	})
	return wanted, bytes, err
}
