package person

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/engine"
)

// The table person_word has the words of a client's contacts, each under several forms: the word itself, and the word
// without each one of its letters. A person who types a name wrongly usually adds, leaves out, changes or swaps letters
// once. Then the typed word and the right word share a form. So similar words are found with one read for each form,
// however many contacts there are.

// Which words have forms, in letters.
const (
	shortestKept = 3 // a shorter word has no form
	shortestCut  = 4 // a shorter word has only itself as its form
	longWord     = 6 // a word of this length may differ in two letters
	mostSimilar  = 8 // how many similar words of one word are looked for
)

// wordForms returns the forms of a word.
func wordForms(word string) []string {
	letters := []rune(word)
	if len(letters) < shortestKept {
		return nil
	}
	all := []string{word}
	for i := range letters {
		if len(letters) >= shortestCut {
			all = append(all, string(letters[:i])+string(letters[i+1:]))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// keepWords adds words of names to person_word. The caller has locked the number of the client's contacts.
func keepWords(ctx context.Context, a engine.Querier, client puntuale.ClientID, words []string) error {
	if len(words) == 0 {
		return nil
	}
	added, err := engine.QueryAll(ctx, a, `select u.w from $u(w text) where not exists (
 select 1 from person_word p where p.client_id = $1 and p.form = u.w and p.word = u.w)`, []any{client, engine.Columns{words}}, engine.ScanOne[string])
	if err != nil {
		return fmt.Errorf("look for new words of names: %w", err)
	}
	return eachForms(added, func(rows engine.Columns) error {
		_, err := a.Exec(ctx, `insert into person_word (client_id, form, word) select $1::bigint, u.f, u.w from $u(f text, w text) where true
 on conflict (client_id, form, word) do nothing`, client, rows)
		return err
	})
}

// forgetWords removes the words that no contact has any more. The caller has locked the number of the client's contacts.
func forgetWords(ctx context.Context, a engine.Querier, client puntuale.ClientID, words []string) error {
	if len(words) == 0 {
		return nil
	}
	gone, err := engine.QueryAll(ctx, a, `select u.w from $u(w text) where not exists (
 select 1 from person_term t where t.client_id = $1 and t.kind = 1 and t.term = u.w)`, []any{client, engine.Columns{words}}, engine.ScanOne[string])
	if err != nil {
		return fmt.Errorf("look for words that no name has: %w", err)
	}
	return eachForms(gone, func(rows engine.Columns) error {
		_, err := a.Exec(ctx, `delete from person_word where client_id = $1 and (form, word) in (select u.f, u.w from $u(f text, w text))`, client, rows)
		return err
	})
}

// eachForms calls do with the rows of words, in the order of the key, if there are any.
func eachForms(words []string, do func(engine.Columns) error) error {
	type row struct{ form, word string }
	var rows []row
	for _, word := range words {
		for _, form := range wordForms(word) {
			rows = append(rows, row{form, word})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	engine.Sort(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.form, b.form), cmp.Compare(a.word, b.word)) })
	if err := do(engine.Columns{engine.Column(rows, func(r *row) string { return r.form }), engine.Column(rows, func(r *row) string { return r.word })}); err != nil {
		return fmt.Errorf("write words of names: %w", err)
	}
	return nil
}

// wordsIn returns the words among terms, each once.
func wordsIn(terms []term) []string {
	var all []string
	for _, t := range terms {
		if t.kind == wordTerm {
			all = append(all, t.text)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// RebuildWords fills the empty table person_word from the words of all clients' contacts.
func RebuildWords(ctx context.Context, a engine.Querier) error {
	places := make([]int64, maxWord)
	for i := range places {
		places[i] = int64(i + 1)
	}
	if _, err := a.Exec(ctx, `insert into person_word (client_id, form, word)
select w.client_id, w.term, w.term from (select distinct t.client_id, t.term from person_term t where t.kind = 1 and length(t.term) >= 3) w
union
select w.client_id, substr(w.term, 1, (u.i - 1)::int) || substr(w.term, (u.i + 1)::int), w.term
from (select distinct t.client_id, t.term from person_term t where t.kind = 1 and length(t.term) >= 4) w cross join $u(i bigint)
where u.i <= length(w.term)`, engine.Columns{places}); err != nil {
		return fmt.Errorf("write the words of names: %w", err)
	}
	return nil
}

// similar returns stored words that differ from a typed word by a typing error, the most similar first.
func (s ContactStore) similar(ctx context.Context, typed string) ([]similarMatch, error) {
	if len([]rune(typed)) < shortestCut {
		return nil, nil
	}
	const read = 200 // a form of few letters belongs to many words
	words, err := engine.QueryAll(ctx, s.lists(), `select distinct p.word from $u(f text) cross join person_word p where p.client_id = $1 and p.form = u.f limit $2`,
		[]any{s.client, read, engine.Columns{wordForms(typed)}}, engine.ScanOne[string])
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for similar words: %w", err))
	}
	most := 1
	if len([]rune(typed)) >= longWord {
		most = 2
	}
	var near []similarMatch
	for _, word := range words {
		if d := distance(typed, word); d > 0 && d <= most {
			near = append(near, similarMatch{word, d})
		}
	}
	engine.Sort(near, func(a, b similarMatch) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.text, b.text))
	})
	return near[:min(mostSimilar, len(near))], nil
}

// similarMatch is a word that is similar to a typed one.
type similarMatch struct {
	text     string
	distance int
}

// distance returns how many letters must be added, removed, changed or swapped with their neighbour to make b of a.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	before, last, row := make([]int, len(to)+1), make([]int, len(to)+1), make([]int, len(to)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(from); i++ {
		row[0] = i
		for j := 1; j <= len(to); j++ {
			change := 1
			if from[i-1] == to[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(to)]
}
