package web_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/control"
)

// sequencesNamed creates sequences of one step with these names.
func (w *world) sequencesNamed(names ...string) (ids []string) {
	w.t.Helper()
	for _, name := range names {
		ids = append(ids, w.sequence(control.NewSequence{Name: name, Steps: []puntuale.Step{{Text: "ciao", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}}))
	}
	return ids
}

// rowsOf returns the ids of the sequences in a page's lists, in order.
func rowsOf(page string) (ids []string) {
	for _, m := range regexp.MustCompile(`class="list-name" href="/c/\d+/sequences/(\d+)"`).FindAllStringSubmatch(page, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// TestSequenceSearch: the list, and the choice before a start, begin with the newest sequence. A person can search
// sequences by name and id, with or without scripts. If there are many sequences, recently started ones come first.
func TestSequenceSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.sequencesNamed("Caffè 100%", "Visita di controllo", "Richiamo", "Richiamo vaccino", "Benvenuto")
	foreign, err := w.store.Tenant(w.other).CreateSequence(context.Background(), puntuale.Sequence{Name: "Caffè altrui", Steps: []puntuale.Step{{Text: "x"}}}, nil)
	w.must(err)
	v := w.visitor(w.clients[puntuale.Staff])
	search := func(path, text string) string {
		return v.do(http.MethodGet, w.pages+path+"?"+url.Values{"text": {text}}.Encode(), nil, http.Header{"Hx-Request": {"true"}}).body
	}
	for _, path := range []string{"/sequences", "/start"} {
		if got := fmt.Sprint(rowsOf(v.get(w.pages + path).body)); got != fmt.Sprint([]string{ids[4], ids[3], ids[2], ids[1], ids[0]}) {
			t.Errorf("%s begins with %s", path, got)
		}
		for text, want := range map[string][]string{"CAFFE": {ids[0]}, "controllo visita": {ids[1]}, "richiamo": {ids[3], ids[2]}, " " + ids[1]: {ids[1]}, "%": {ids[0]}, "_": nil, foreign.String(): nil} {
			whole, part := v.get(w.pages+path+"?"+url.Values{"text": {text}}.Encode()).body, search(path, text)
			if fmt.Sprint(rowsOf(whole)) != fmt.Sprint(want) || fmt.Sprint(rowsOf(part)) != fmt.Sprint(want) || strings.Contains(part, "<main") {
				t.Errorf("%s, %q: %v, %v, want %v", path, text, rowsOf(whole), rowsOf(part), want)
			}
			if !strings.Contains(whole, `name="text"`) || !strings.Contains(whole, `value="`+strings.TrimSpace(text)+`"`) {
				t.Errorf("%s, %q: the field lost it", path, text)
			}
		}
		for text, says := range map[string]string{"caffe": "Una sequenza trovata", "richiamo": "2 sequenze trovate", "niente": "Nessuna sequenza trovata"} {
			if part := words(search(path, text)); !strings.Contains(part, says) {
				t.Errorf("%s, %q: %s", path, text, part)
			}
		}
		if got := v.get(w.pages + path + "?" + url.Values{"text": {strings.Repeat("x", puntuale.MaxName+1)}}.Encode()); got.status != http.StatusNotFound {
			t.Errorf("%s, a text that no field takes: %d", path, got.status)
		}
	}
	if strings.Contains(v.get(w.pages+"/start").body, "Avviate di recente") {
		t.Error("of five sequences some stand apart")
	}
	for i := range 50 {
		w.sequencesNamed(fmt.Sprintf("Serie %02d", i))
	}
	_, err = w.Client().Start(context.Background(), control.StartCall{Sequence: ids[1], Phone: "3331234567", Body: []byte(`{"phone":"3331234567"}`)})
	w.must(err)
	choice := v.get(w.pages + "/start").body
	if got := rowsOf(choice); len(got) != 51 || got[0] != ids[1] || !strings.Contains(choice, "Avviate di recente") {
		t.Errorf("of 55 sequences %d rows, the first is %s", len(got), got[0])
	}
	if got := words(search("/start", "serie")); !strings.Contains(got, "50 sequenze trovate") {
		t.Errorf("those of a kind: %s", got)
	}
	if got := words(search("/start", "i")); !strings.Contains(got, "53 sequenze trovate") {
		t.Errorf("more than a page: %s", got)
	}
}

// TestMessageSearch: one field finds messages by the name in the call, by their text, and by a number. An action on all
// results changes only these messages.
func TestMessageSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	later := w.clock.Now().Add(time.Hour)
	f.request = `{"nome":"Nicolò Bruni"}`
	nicolo := f.planned("+393331112233", "A domani alle 10%", later)
	f.request = ""
	ugo := f.planned("+393334445566", "Perché no? Ordine 1234567890123456", later)
	v := w.visitor(w.clients[puntuale.Staff])
	both := []puntuale.MessageID{ugo, nicolo}
	for text, want := range map[string][]puntuale.MessageID{
		"NICOLO": {nicolo}, "bruni domani": {nicolo}, "perche": {ugo}, "333 111 2233": {nicolo}, "+39 333 444-5566": {ugo}, "1234567890123456": {ugo}, "%": {nicolo}, "_": nil, "altro": nil, "": both,
	} {
		query := "?" + url.Values{"text": {text}}.Encode()
		list := inMain(v.get(w.pages + "/messages" + query).body)
		file := v.get(w.pages + "/messages/export" + query).body
		ask := words(v.get(w.pages + "/messages/all" + query + "&state=PENDING").body)
		for _, id := range both {
			found := strings.Contains(fmt.Sprint(want), id.String())
			if strings.Contains(list, "/messages/"+id.String()) != found || strings.Contains(file, id.String()) != found {
				t.Errorf("%q: message %d should be found: %v", text, id, found)
			}
		}
		says := map[int]string{0: "Nessun messaggio corrisponde", 1: "Annullare l’invio di un messaggio?", 2: "Annullare l’invio di 2 messaggi?"}[len(want)]
		if !strings.Contains(ask, says) {
			t.Errorf("%q: it asks %s", text, ask)
		}
	}
	page := w.pages + "/messages/all"
	form := formTo(v.get(page+"?state=PENDING&text=nicolo").body, page)
	if got := v.post(page, form); got.status != http.StatusSeeOther || !strings.HasSuffix(got.to(), "text=nicolo") {
		t.Errorf("cancel all: %d %s", got.status, got.to())
	}
	if a, b := detail(t, w, nicolo).State, detail(t, w, ugo).State; a != puntuale.Cancelled || b != puntuale.Pending {
		t.Errorf("those found are %s, the others %s", a, b)
	}
	if got := v.get(w.pages + "/messages?text=" + strings.Repeat("x", puntuale.MaxName+1)); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "f-text-fault") {
		t.Errorf("a long text: %d", got.status)
	}
	if strings.Contains(v.get(w.pages+"/messages?text=nicolo").body, "hx-sse:connect") {
		t.Error("a search by text runs again and again")
	}
}

// TestMessageSearchStops: a search stops after it has read as much as one page may read. The page says so, and offers
// to continue.
func TestMessageSearchStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	first := f.planned("+393331112233", "la prima che comincia", w.clock.Now().Add(time.Hour))
	_, err := w.sql.ExecContext(context.Background(), fmt.Sprintf(`insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request, client_name, sequence_name, content)
 select %[1]d, %[2]d + i, 0, %[3]d, '+39333', 2, 1, '', 'Europe/Rome', %[4]d, x'', '', '', '[{"step":0,"content":{"text":"' || iif(i > 10000, 'un’altra prima', 'altro') || '"}}]'
 from (with recursive n(i) as (select 1 union all select i + 1 from n where i < 10001) select i from n)`, w.client, first+1000, f.session, w.clock.Now().UnixMicro()))
	w.must(err)
	_, err = w.sql.ExecContext(context.Background(), fmt.Sprintf(`insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone)
 select client_id, id, session_id, id, 0, received_at, received_at, received_at + 1000000, 0, 2, phone from run where client_id = %d and id > %d`, w.client, first+1000))
	w.must(err)
	v := w.visitor(w.clients[puntuale.Reader])
	none := v.get(w.pages + "/messages?text=comincia")
	if text := words(none.body); !strings.Contains(text, "Nulla fra i più recenti") {
		t.Errorf("nothing among the latest: %s", text)
	}
	further := strings.ReplaceAll(between(none.body, `rel="next" href="`, `"`), "&amp;", "&")
	if got := v.get(further).body; !strings.Contains(got, "/messages/"+first.String()) {
		t.Errorf("further back, at %s: %s", further, words(got))
	}
	last := first + 11_001
	if got := v.get(w.pages + "/messages?text=prima").body; !strings.Contains(got, "/messages/"+last.String()) || !strings.Contains(words(got), "La ricerca si è fermata dopo 10.000 messaggi") {
		t.Errorf("one among the latest: %s", words(got))
	}
}

// TestListsInBrowser searches while a person types, using only the keyboard. At no width does a long name cut off other
// parts. A printed page begins on the first sheet, with light colours.
func TestListsInBrowser(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		long := strings.Repeat("Promemoria", 19)
		ids := w.sequencesNamed("Visita uno", "Visita due", "Richiamo", "Benvenuto", "Scadenza", "Compleanno", "Saldo", "Invito", long)
		_, err := w.Client().Start(context.Background(), control.StartCall{Sequence: ids[0], Phone: "3331234567", Body: []byte(`{"phone":"3331234567"}`)})
		w.must(err)
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/start")
		b.check("choice")
		b.mouse("#f-text")
		b.do(chromedp.KeyEvent("visita d"))
		const rows = `[...document.querySelectorAll("#sequences tbody tr .list-name")].map(e => e.innerText).join()`
		b.until(rows + ` === "Visita due" && location.search === "?text=visita+d"`)
		if got := evaluate[string](b, `document.activeElement.id + " " + document.querySelector("[role=status]").innerText`); !strings.HasPrefix(got, "f-text Un") && !strings.HasPrefix(got, "f-text One") {
			t.Errorf("while one types: %q", got)
		}
		b.check("found")
		b.do(chromedp.KeyEvent("\t\t"))
		b.enter()
		b.until(`location.pathname.endsWith("/` + ids[1] + `/start") && document.readyState === "complete"`)
		widths := []int64{b.look.width}
		if b.look.width > 600 {
			widths = append(widths, 1440)
		}
		for _, width := range widths {
			look := b.look
			look.width = width
			b.turn(look)
			for _, path := range []string{"/sequences", "/start", "/sequences?text=promemoria"} {
				b.open(w.pages + path)
				b.check(fmt.Sprint("list", width, path[1:]))
				if cut := evaluate[int](b, `[...document.querySelectorAll(".card-list")].flatMap(c => [...c.querySelectorAll(".btn")].filter(e => e.getBoundingClientRect().right > c.getBoundingClientRect().right)).length`); cut > 0 {
					t.Errorf("%s at %d px: %d buttons are cut off", path, width, cut)
				}
			}
		}
		f := w.traffic()
		for i := range 60 {
			f.planned("+393331112233", fmt.Sprint("Messaggio numero ", i), w.clock.Now().Add(time.Hour))
		}
		b.open(w.pages + "/messages")
		b.check("messages")
		if first, second := b.printed("1"), b.printed("2"); first < second/2 {
			t.Errorf("the first page has %d pieces of text, the second %d", first, second)
		}
		const theme = `document.documentElement.dataset.bsTheme`
		if on, after := evaluate[string](b, `(dispatchEvent(new Event("beforeprint")), `+theme+`)`), evaluate[string](b, `(dispatchEvent(new Event("afterprint")), `+theme+`)`); on != "light" || after != b.look.scheme {
			t.Errorf("on paper the page is %s, and %s afterwards", on, after)
		}
		b.open(w.pages + "/messages?text=numero")
		b.check("messages-found")
	})
}

var streams = regexp.MustCompile(`(?s)stream\r?\n(.*?)endstream`)

// printed prints the page, and returns how many pieces of text the given sheets contain.
func (b *browser) printed(pages string) (pieces int) {
	b.t.Helper()
	pdf, err := chromedp.Call(b.ctx, page.PrintToPDF, page.PrintToPDFParams{PageRanges: pages})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, stream := range streams.FindAllSubmatch(pdf.Data, -1) {
		packed, err := zlib.NewReader(bytes.NewReader(stream[1]))
		if err != nil {
			continue // this part contains no text
		}
		content, _ := io.ReadAll(packed) // only the text up to the end of the compressed part belongs to this part
		pieces += bytes.Count(content, []byte(" Tj"))
	}
	return pieces
}
