package link

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Links makes and reads the links of a database. It is safe for concurrent use.
type Links struct {
	db   *engine.DB
	kind *engine.Kind // makes links
	hits *engine.Kind // counts clicks
}

// New returns the links of a database.
func New(db *engine.DB) *Links {
	l := &Links{db, engine.NewSingle("links", engine.PrioritySend), engine.NewSingle("clicks", engine.PrioritySend)}
	l.kind.Check = engine.RunAgain // links that exist are found again
	l.hits.Background = true       // no Check: a second run would count clicks twice
	return l
}

// written finds what may be an address in a text. An address ends at every kind of space, also at those without a width.
var written = regexp.MustCompile("(?i)https?://[^\\s\\p{Z}\\p{C}<>\"`—]+")

// addresses returns where the addresses in a text begin and end.
func addresses(text string) (all [][2]int) {
	last := 0
	for _, at := range written.FindAllStringIndex(text, -1) {
		if before, _ := utf8.DecodeLastRuneInString(text[:at[0]]); inWord(before) {
			continue
		}
		found := trimmed(text[at[0]:at[1]], text[max(last, strings.LastIndex(text[:at[0]], "\n")+1):at[0]])
		last = at[0] + len(found)
		u, err := url.Parse(found)
		if err != nil || u.Hostname() == "" || u.User != nil || len(found) > puntuale.MaxURL {
			continue
		}
		all = append(all, [2]int{at[0], last})
	}
	return all
}

// trimmed returns an address without what people write after it: the end of a sentence, brackets and marks of bold, italic or
// struck text that were opened before the address. before is what the line has before the address.
func trimmed(found, before string) string {
	marks := map[string]int{}
	for _, mark := range []string{"*", "_", "~"} {
		marks[mark] = opened(before, mark[0])
	}
	for was := ""; was != found; {
		was = found
		found = strings.TrimRight(found, `.,;:!?'|»”’…`)
		for _, pair := range []string{"()", "[]"} {
			if strings.HasSuffix(found, pair[1:]) && strings.Count(found, pair[1:]) > strings.Count(found, pair[:1]) {
				found = found[:len(found)-1]
			}
		}
		for mark := range marks {
			if marks[mark] > 0 && strings.HasSuffix(found, mark) {
				found, marks[mark] = found[:len(found)-1], marks[mark]-1
			}
		}
	}
	return found
}

// opened returns how many marks are open at the end of a text: none or one, or as many as stand at the end. A mark opens before
// a word and closes after one; inside a word, it is none.
func opened(text string, mark byte) int {
	open, before := false, ' '
	for i, r := range text {
		after, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):] + "h") // the address itself follows
		switch {
		case r != rune(mark):
		case !open:
			open = !inWord(before) && !unicode.IsSpace(after)
		default:
			open = unicode.IsSpace(before) || inWord(after)
		}
		before = r
	}
	if !open {
		return 0
	}
	return max(1, len(text)-len(strings.TrimRight(text, string(mark))))
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// ruleOfRuns finds the runs whose links are tracked, with the partner's own host name if it is confirmed.
const ruleOfRuns = `
select r.client_id, r.id, case when b.confirmed = b.host then b.host else '' end
from $u(c bigint, i bigint) cross join run r cross join client k
 left join brand b on b.partner_id = k.partner_id
 left join client_setting t on t.client_id = r.client_id
 left join sequence q on q.client_id = r.client_id and q.id = r.sequence_id
where r.client_id = u.c and r.id = u.i and k.id = r.client_id
 and (coalesce(q.track_links, 0) = 1 or coalesce(q.track_links, 0) = 0 and coalesce(t.track_links, 0) = 1)`

// Replace replaces the addresses in the texts of steps by links, where the client or the sequence wants that. It makes
// the links that do not exist yet. It leaves texts without addresses, and costs nothing for them.
func (l *Links) Replace(ctx context.Context, contents map[puntuale.StepRef]puntuale.StepContent) error {
	wanted := map[puntuale.StepRef][][2]int{}
	runs := map[puntuale.RunRef]string{}
	for ref, c := range contents {
		if c.Content.Official != nil || !strings.Contains(c.Content.Text, "://") {
			continue
		}
		if found := addresses(c.Content.Text); len(found) > 0 {
			wanted[ref], runs[ref.RunRef] = found, ""
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	if err := l.sites(ctx, runs); err != nil {
		return err
	}
	b := &batch{text: map[puntuale.StepRef][]string{}, codes: map[puntuale.StepRef]map[string]string{}}
	for ref, places := range wanted {
		site := runs[ref.RunRef]
		if site == "" {
			continue
		}
		var found []string
		for _, at := range places {
			if address := contents[ref].Content.Text[at[0]:at[1]]; !own(site, address) && !slices.Contains(found, address) {
				found = append(found, address)
			}
		}
		c := contents[ref].Content
		if len(found) > 0 && fits(&c, rewrite(c.Text, places, site, func(address string) string {
			if slices.Contains(found, address) {
				return longCode
			}
			return ""
		})) { // a link that the text does not show would count as one that nobody followed
			b.text[ref] = found
		}
	}
	if len(b.text) == 0 {
		return nil
	}
	if err := l.codes(ctx, b); err != nil {
		return err
	}
	for ref := range b.text {
		c := contents[ref]
		c.Content.Text = rewrite(c.Content.Text, wanted[ref], runs[ref.RunRef], func(address string) string { return b.codes[ref][address] })
		contents[ref] = c
	}
	return nil
}

// own reports whether an address leads to a page of the service itself. Such pages end by their own rules.
func own(site, address string) bool {
	return address == site || strings.HasPrefix(address, site+"/")
}

// fits reports whether a text that became longer is still one that every network takes. If not, the text stays as it was.
func fits(c *puntuale.Content, text string) bool {
	if len(text) <= len(c.Text) {
		return true
	}
	limit := puntuale.MaxText
	if c.MediaURL != "" || c.Asks != nil || c.Interactive != nil {
		limit = puntuale.MaxCaption - margin
	}
	return utf8.RuneCountInString(text) <= limit
}

// margin is what buttons may take as numbered lines below a text.
const margin = 256

// longCode is as long as every code.
var longCode = strings.Repeat("x", CodeLength)

// rewrite replaces addresses by links with their codes. An address whose code is "" stays.
func rewrite(text string, places [][2]int, site string, codeOf func(address string) string) string {
	var out strings.Builder
	last := 0
	for _, at := range places {
		code := codeOf(text[at[0]:at[1]])
		if code == "" {
			continue
		}
		out.WriteString(text[last:at[0]] + site + puntuale.LinkPath + code)
		last = at[1]
	}
	return out.String() + text[last:]
}

// sites finds at which address the links of runs begin. It leaves "" for runs whose links are not tracked.
func (l *Links) sites(ctx context.Context, runs map[puntuale.RunRef]string) error {
	refs := make([]puntuale.RunRef, 0, len(runs))
	for ref := range runs {
		refs = append(refs, ref)
	}
	public := strings.TrimRight(l.db.Config.Public, "/")
	if err := l.db.DispatchReads.Query(ctx, ruleOfRuns, []any{engine.Columns{
		engine.Column(refs, func(r *puntuale.RunRef) int64 { return int64(r.Client) }), engine.Column(refs, func(r *puntuale.RunRef) int64 { return int64(r.ID) }),
	}}, func(r engine.Row) error {
		var ref puntuale.RunRef
		var host string
		err := r.Scan(&ref.Client, &ref.ID, &host)
		if runs[ref] = public; host != "" {
			runs[ref] = "https://" + host
		}
		return err
	}); err != nil {
		return engine.PublicError(fmt.Errorf("look whose links are tracked: %w", err))
	}
	return nil
}

// batch is the links of some steps.
type batch struct {
	text  map[puntuale.StepRef][]string          // the different addresses in the text of a step
	codes map[puntuale.StepRef]map[string]string // the codes of a step's addresses
}

// codes finds the codes of the addresses, and makes those that are missing, in one transaction.
func (l *Links) codes(ctx context.Context, b *batch) error {
	refs := make([]puntuale.StepRef, 0, len(b.text))
	for ref := range b.text {
		refs = append(refs, ref)
	}
	engine.Sort(refs, compareSteps)
	if _, err := l.read(ctx, l.db.DispatchReads, b, refs); err != nil {
		return engine.PublicError(err)
	}
	refs = slices.DeleteFunc(refs, func(r puntuale.StepRef) bool { return len(b.codes[r]) == len(b.text[r]) })
	for part := range slices.Chunk(refs, engine.Chunk) {
		if err := l.db.RecordWriter.Do(ctx, engine.Single(l.kind, func(ctx context.Context, a engine.Querier) error {
			return l.make(ctx, a, b, part)
		}), false); err != nil {
			return fmt.Errorf("make links: %w", err)
		}
	}
	return nil
}

const readLinks = `select l.client_id, l.run_id, l.step, l.n, l.code, l.address from $u(c bigint, r bigint, s integer) cross join link l
where l.client_id = u.c and l.run_id = u.r and l.step = u.s`

// read reads the codes of steps. It returns how many links each step has.
func (l *Links) read(ctx context.Context, a engine.Querier, b *batch, refs []puntuale.StepRef) (map[puntuale.StepRef]int, error) {
	last := map[puntuale.StepRef]int{}
	if err := a.Query(ctx, readLinks, []any{stepColumns(refs)}, func(r engine.Row) error {
		var ref puntuale.StepRef
		var n int
		var code, address string
		if err := r.Scan(&ref.Client, &ref.RunRef.ID, &ref.Step, &n, &code, &address); err != nil {
			return err
		}
		last[ref] = max(last[ref], n)
		if code != "" && slices.Contains(b.text[ref], address) {
			if b.codes[ref] == nil {
				b.codes[ref] = map[string]string{}
			}
			b.codes[ref][address] = code
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read links: %w", err)
	}
	return last, nil
}

// lockRuns locks the runs whose contents still exist. Blanking and erasing also lock a run before they end its links.
const lockRuns = `select r.client_id, r.id from $u(c bigint, i bigint) join run r on r.client_id = u.c and r.id = u.i
where r.blanked_at = 0 order by r.client_id, r.id for update of r`

// make makes the missing links of steps.
func (l *Links) make(ctx context.Context, a engine.Querier, b *batch, refs []puntuale.StepRef) error {
	runs := slices.Compact(engine.Column(refs, func(r *puntuale.StepRef) puntuale.RunRef { return r.RunRef }))
	live := map[puntuale.RunRef]bool{}
	if err := a.Query(ctx, lockRuns, []any{runColumns(runs)}, func(r engine.Row) error {
		var ref puntuale.RunRef
		err := r.Scan(&ref.Client, &ref.ID)
		live[ref] = true
		return err
	}); err != nil {
		return fmt.Errorf("lock runs: %w", err)
	}
	for _, ref := range refs {
		delete(b.codes, ref) // this transaction may run a second time
	}
	last, err := l.read(ctx, a, b, refs)
	if err != nil {
		return err
	}
	var all []puntuale.LinkRef
	var codes, texts []string
	for _, ref := range refs {
		if !live[ref.RunRef] {
			continue
		}
		for _, address := range b.text[ref] {
			if b.codes[ref][address] != "" {
				continue
			}
			last[ref]++
			all, codes, texts = append(all, puntuale.LinkRef{StepRef: ref, N: last[ref]}), append(codes, newCode()), append(texts, address)
		}
	}
	if len(all) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `insert into link (client_id, run_id, step, n, code, address)
 select u.c, u.r, u.s, u.n, u.k, u.a from $u(c bigint, r bigint, s integer, n integer, k text, a text)`, append(linkColumns(all), codes, texts)); err != nil {
		return fmt.Errorf("insert links: %w", err)
	}
	for i, ref := range all {
		if b.codes[ref.StepRef] == nil {
			b.codes[ref.StepRef] = map[string]string{}
		}
		b.codes[ref.StepRef][texts[i]] = codes[i]
	}
	return nil
}

// codeLetters are the letters of codes: none that people take for another one.
const codeLetters = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// CodeLength is how many letters a code has. There are about 10^14 codes.
const CodeLength = 8

// newCode returns a random code. Its letters are equally likely.
func newCode() string {
	code := make([]byte, 0, CodeLength)
	for random := make([]byte, 2*CodeLength); ; {
		_, _ = rand.Read(random) // it never fails
		for _, b := range random {
			if n := int(b & 63); n < len(codeLetters) && len(code) < CodeLength {
				code = append(code, codeLetters[n])
			}
		}
		if len(code) == CodeLength {
			return string(code)
		}
	}
}
