package person

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Limits of a search by name.
const (
	wholeBound = 6_000 // how many contacts with the rarest word are compared with the other words, if all words are whole
	looseBound = 1500  // the same, if words are only begun or are similar
)

// FindContacts returns the contacts whose names fit a text best, at most limit. Each word of the text must be a word of
// the name, begin one, or differ from one by a typing error. Names with the whole words come first, and similar ones
// last; among equals, the newest contact first. If so many contacts have each of the words that not all were compared,
// or if there are further ones, more is true.
func (s ContactStore) FindContacts(ctx context.Context, text string, limit int) (found []puntuale.Contact, more bool, err error) {
	f := &finder{ContactStore: s, words: words(text)}
	engine.SortStable(f.words, func(a, b string) int { return len(b) - len(a) })
	f.words = f.words[:min(maxWords, len(f.words))]
	if len(f.words) == 0 || limit <= 0 {
		return nil, false, nil
	}
	ids, err := f.whole(ctx, limit+1)
	if err != nil {
		return nil, false, err
	}
	if len(ids) <= limit {
		rest, err := f.loose(ctx, limit+1)
		if err != nil {
			return nil, false, err
		}
		for _, id := range rest {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	found, err = s.read(ctx, ids[:min(limit, len(ids))])
	return found, len(ids) > limit || f.cut, err
}

// finder is one search by name.
type finder struct {
	ContactStore
	words []string // the longest first
	cut   bool     // not all contacts were compared
}

// span is a range of terms: a word, or all words with a beginning.
type span struct {
	from, to string // from inclusive, to exclusive
	cost     int    // how far the terms are from the typed word
}

// only returns the span of one word. A space is smaller than every character of a word.
func only(word string, cost int) span { return span{word, word + " ", cost} }

// count returns how many terms are in the spans, up to limit in each.
func (f *finder) count(ctx context.Context, spans []span, limit int) (n int, err error) {
	for _, s := range spans {
		var part int
		if _, err := engine.QueryOne(ctx, f.lists(), `select count(*) from (select 1 as one from person_term t where t.client_id = $1 and t.kind = 1 and t.term >= $2 and t.term < $3 limit $4) as k`,
			[]any{f.client, s.from, s.to, limit}, &part); err != nil {
			return 0, engine.PublicError(fmt.Errorf("count contacts: %w", err))
		}
		n += part
	}
	return n, nil
}

// whole returns the newest contacts that have all the words.
func (f *finder) whole(ctx context.Context, limit int) ([]int64, error) {
	rarest, least := f.words[0], 0
	for i, word := range f.words {
		n, err := f.count(ctx, []span{only(word, 0)}, wholeBound)
		if err != nil || n == 0 {
			return nil, err
		}
		if i == 0 || n < least {
			rarest, least = word, n
		}
	}
	f.cut = least >= wholeBound && len(f.words) > 1
	args, also := []any{f.client, rarest, limit}, ""
	for _, word := range f.words {
		if word != rarest {
			args = append(args, word)
			also += fmt.Sprintf(` and exists (select 1 from person_term w where w.client_id = $1 and w.kind = 1 and w.term = $%d and w.person_id = t.i)`, len(args))
		}
	}
	args = append(args, wholeBound)
	ids, err := engine.QueryAll(ctx, f.lists(), fmt.Sprintf(`select t.i from (select o.person_id as i from person_term o
 where o.client_id = $1 and o.kind = 1 and o.term = $2 order by o.person_id desc limit $%d) as t where true%s order by t.i desc limit $3`, len(args), also), args, engine.ScanOne[int64])
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("find contacts: %w", err))
	}
	return ids, nil
}

// loose returns the contacts that have the words, words that begin with them, or words that are similar, the nearest
// first.
func (f *finder) loose(ctx context.Context, limit int) ([]int64, error) {
	spans := make([][]span, len(f.words))
	rarest, least := 0, 0
	for i, word := range f.words {
		near, err := f.similar(ctx, word)
		if err != nil {
			return nil, err
		}
		for _, w := range near { // before the words with this beginning, which may be many
			if !strings.HasPrefix(w.text, word) {
				spans[i] = append(spans[i], only(w.text, 1+w.distance))
			}
		}
		spans[i] = append(spans[i], span{word, prefixEnd(word), 2})
		n, err := f.count(ctx, spans[i], looseBound)
		if err != nil || n == 0 {
			return nil, err
		}
		if i == 0 || n < least {
			rarest, least = i, n
		}
	}
	ids, err := f.candidates(ctx, spans[rarest])
	if err != nil {
		return nil, err
	}
	if len(f.words) == 1 { // nothing else is to compare
		return ids[:min(limit, len(ids))], nil
	}
	costs, err := f.costs(ctx, ids, spans)
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(id int64) bool { return costs[id] == nil || slices.Contains(costs[id], 0) })
	total := func(id int64) (sum int) {
		for _, cost := range costs[id] {
			sum += cost
		}
		return sum
	}
	engine.Sort(ids, func(a, b int64) int { return cmp.Or(cmp.Compare(total(a), total(b)), cmp.Compare(b, a)) })
	return ids[:min(limit, len(ids))], nil
}

// candidates returns the contacts with terms in the spans, the nearest spans first, at most looseBound. Of one span, the
// newest contacts come first.
func (f *finder) candidates(ctx context.Context, spans []span) (ids []int64, err error) {
	for _, s := range spans {
		room := looseBound - len(ids)
		if room <= 0 {
			f.cut = true
			break
		}
		part, err := engine.QueryAll(ctx, f.lists(), `select t.person_id from person_term t where t.client_id = $1 and t.kind = 1 and t.term >= $2 and t.term < $3 limit $4`,
			[]any{f.client, s.from, s.to, room}, engine.ScanOne[int64])
		if err != nil {
			return nil, engine.PublicError(fmt.Errorf("find contacts: %w", err))
		}
		f.cut = f.cut || len(part) == room
		engine.Sort(part, func(a, b int64) int { return cmp.Compare(b, a) })
		ids = append(ids, part...)
	}
	seen := make(map[int64]bool, len(ids))
	return slices.DeleteFunc(ids, func(id int64) bool {
		twice := seen[id]
		seen[id] = true
		return twice
	}), nil
}

// costs compares the words of contacts with the spans. It returns for each contact how far its nearest word is from each
// typed word, plus 1; 0 means that no word is near.
func (f *finder) costs(ctx context.Context, ids []int64, spans [][]span) (map[int64][]int, error) {
	costs := make(map[int64][]int, len(ids))
	if len(ids) == 0 {
		return costs, nil
	}
	err := f.lists().Query(ctx, `select w.person_id, w.term from $u(i bigint) cross join person_term w where w.client_id = $1 and w.person_id = u.i and w.kind + 0 = 1`,
		[]any{f.client, engine.Columns{ids}}, func(r engine.Row) error {
			var id int64
			var term string
			if err := r.Scan(&id, &term); err != nil {
				return err
			}
			if costs[id] == nil {
				costs[id] = make([]int, len(spans))
			}
			for i, ofWord := range spans {
				for _, s := range ofWord {
					cost := s.cost + 1
					if term == f.words[i] {
						cost = 1
					}
					if term >= s.from && term < s.to && (costs[id][i] == 0 || cost < costs[id][i]) {
						costs[id][i] = cost
					}
				}
			}
			return nil
		})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("compare the names of contacts: %w", err))
	}
	return costs, nil
}
