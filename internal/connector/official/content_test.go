package official_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
)

const person = "+393331111111"

// TestContents checks how each kind of content is written in the request to Meta.
func TestContents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.wrote(person)
	media := func(url, name, caption string) puntuale.Content {
		return puntuale.Content{MediaURL: url, MediaName: name, Text: caption}
	}
	template := func(c puntuale.Content, header, body []puntuale.Parameter) puntuale.Content {
		if c.Latitude == nil {
			c.Text = "" // so that the template leaves also within the 24-hour window
		}
		c.Template, c.Official = "t", &puntuale.Approved{Name: "promo", Language: "it", Header: header, Body: body}
		return c
	}
	body := func(places ...graphtest.Parameter) graphtest.Component {
		return graphtest.Component{Type: "body", Parameters: places}
	}
	header := func(p graphtest.Parameter) graphtest.Component {
		return graphtest.Component{Type: "header", Parameters: []graphtest.Parameter{p}}
	}
	promo := func(components ...graphtest.Component) graphtest.Message {
		m := graphtest.Message{Type: "template", Template: &graphtest.Template{Name: "promo", Components: components}}
		m.Template.Language.Code = "it"
		return m
	}
	for name, test := range map[string]struct {
		content puntuale.Content
		want    graphtest.Message
	}{
		"text":           {text("ciao"), graphtest.Message{Type: "text", Text: &graphtest.Text{Preview: new(false), Body: "ciao"}}},
		"text with link": {text("v. https://example.com"), graphtest.Message{Type: "text", Text: &graphtest.Text{Preview: new(true), Body: "v. https://example.com"}}},
		"image":          {media("https://e.com/a.jpg", "", "ecco"), graphtest.Message{Type: "image", Image: &graphtest.Media{Caption: "ecco"}}},
		"video":          {media("https://e.com/a.mp4", "", ""), graphtest.Message{Type: "video", Video: &graphtest.Media{}}},
		"audio":          {media("https://e.com/a.mp3", "", ""), graphtest.Message{Type: "audio", Audio: &graphtest.Media{}}},
		"voice":          {media("https://e.com/a.ogg", "", ""), graphtest.Message{Type: "audio", Audio: &graphtest.Media{Voice: true}}},
		"document":       {media("https://e.com/x/a%20b.pdf?y=1", "", "il listino"), graphtest.Message{Type: "document", Document: &graphtest.Media{Caption: "il listino", Filename: "a b.pdf"}}},
		"document with a name": {media("https://e.com/a.pdf", "Listino è.pdf", ""),
			graphtest.Message{Type: "document", Document: &graphtest.Media{Filename: "Listino è.pdf"}}},
		"location": {puntuale.Content{Latitude: new(45.0), Longitude: new(-9.25), Text: "Studio\nVia Roma 1"},
			graphtest.Message{Type: "location", Location: &graphtest.Location{Latitude: "45", Longitude: "-9.25", Name: "Studio", Address: "Via Roma 1"}}},
		"numbered places": {template(text("t"), nil, []puntuale.Parameter{{Text: "Ada"}, {Text: "10:30"}}),
			promo(body(graphtest.Parameter{Type: "text", Text: "Ada"}, graphtest.Parameter{Type: "text", Text: "10:30"}))},
		"named places": {template(text("t"), []puntuale.Parameter{{Name: "chi", Text: "Ada"}}, []puntuale.Parameter{{Name: "ora", Text: "10:30"}}),
			promo(header(graphtest.Parameter{Type: "text", Name: "chi", Text: "Ada"}), body(graphtest.Parameter{Type: "text", Name: "ora", Text: "10:30"}))},
		"no places": {template(text("t"), nil, nil), promo()},
		"image header": {template(media("https://e.com/b.png", "", "t"), nil, []puntuale.Parameter{{Text: "Ada"}}),
			promo(header(graphtest.Parameter{Type: "image", Image: &graphtest.Media{}}), body(graphtest.Parameter{Type: "text", Text: "Ada"}))},
		"document header": {template(media("https://e.com/b.pdf", "b.pdf", "t"), nil, nil),
			promo(header(graphtest.Parameter{Type: "document", Document: &graphtest.Media{Filename: "b.pdf"}}))},
		"location header": {template(puntuale.Content{Latitude: new(1.5), Longitude: new(2.5), Text: "Qui"}, nil, nil),
			promo(header(graphtest.Parameter{Type: "location", Location: &graphtest.Location{Latitude: "1.5", Longitude: "2.5", Name: "Qui"}}))},
	} {
		got := w.must(person, test.content).Message
		ids := fileIDs(&got)
		test.want.Product, test.want.RecipientType, test.want.To, test.want.Token = "whatsapp", "individual", person, got.Token
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if test.content.MediaURL != "" && (len(ids) != 1 || addressOf(w.peer.File(ids[0])) != test.content.MediaURL) {
			t.Errorf("%s: files %v", name, ids)
		}
	}
}

// fileIDs removes the ids of files from a message, and returns them.
func fileIDs(m *graphtest.Message) (ids []string) {
	take := func(p *graphtest.Media) {
		if p != nil {
			ids = append(ids, p.ID)
			p.ID = ""
		}
	}
	for _, p := range []*graphtest.Media{m.Image, m.Video, m.Audio, m.Document} {
		take(p)
	}
	if m.Interactive != nil && m.Interactive.Header != nil {
		h := m.Interactive.Header
		take(h.Image)
		take(h.Video)
		take(h.Document)
	}
	if m.Template != nil {
		for _, c := range m.Template.Components {
			for _, p := range c.Parameters {
				take(p.Image)
				take(p.Video)
				take(p.Document)
			}
		}
	}
	return ids
}

// TestRefusedContents: if Meta would refuse a content, the connector refuses it before it uploads anything.
func TestRefusedContents(t *testing.T) {
	t.Parallel()
	const mega = 1 << 20
	for name, test := range map[string]struct {
		content puntuale.Content
		size    int64
		kind    string
		limit   int64 // the limit that the connector must pass to Fetch
		says    string
	}{
		"a large image":            {puntuale.Content{MediaURL: "https://e.com/a.jpg"}, 5*mega + 1, "", 5 * mega, "troppo grande"},
		"a large video":            {puntuale.Content{MediaURL: "https://e.com/a.mp4"}, 16*mega + 1, "", 16 * mega, "troppo grande"},
		"an image called document": {puntuale.Content{MediaURL: "https://e.com/a.pdf"}, 5*mega + 1, "image/png", 100 * mega, "troppo grande"},
		"a page":                   {puntuale.Content{MediaURL: "https://e.com/a.pdf"}, 0, "text/html", 100 * mega, "tipo di file"},
		"ogg that is not opus":     {puntuale.Content{MediaURL: "https://e.com/a.ogg"}, -1, "", 16 * mega, "opus"},
		"audio with text":          {puntuale.Content{MediaURL: "https://e.com/a.mp3", Text: "x"}, 0, "", 16 * mega, "audio"},
		"audio with buttons":       {puntuale.Content{MediaURL: "https://e.com/a.mp3", Text: "x", Asks: confirmOrNot}, 0, "", 16 * mega, "audio"},
		"an empty value":           {withValue(" "), 0, "", 0, "vuoto"},
		"a value with a break":     {withValue("a\nb"), 0, "", 0, "a capo"},
		"a value with five spaces": {withValue("a     b"), 0, "", 0, "spazi"},
		"audio in a header":        {headed("https://e.com/a.mp3"), 0, "", 16 * mega, "intestazione"},
		"a long place":             {puntuale.Content{Latitude: new(1.0), Longitude: new(2.0), Text: strings.Repeat("x", 1001)}, 0, "", 0, "posizione"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			w.wrote(person)
			w.files.size, w.files.plain = max(0, test.size), test.size < 0
			if test.kind != "" {
				w.files.kinds[".pdf"] = test.kind
			}
			_, err := w.conn.Prepare(w.within(), w.envelope(person, test.content))
			if e := w.refused(err, puntuale.Final); !strings.Contains(italian(e.Reason), test.says) {
				t.Errorf("says %q", e.Reason)
			}
			if test.size != 0 && w.peer.Uploads() != 0 {
				t.Error("it was uploaded")
			}
			if test.limit != 0 && w.files.limits[0] != test.limit {
				t.Errorf("%d bytes were worth fetching, want %d", w.files.limits[0], test.limit)
			}
		})
	}
}

// TestSuffixIsEncoded: what may not stand in an address is percent-encoded in the end of a button's address. The parts of
// an address, and what is encoded already, stay.
func TestSuffixIsEncoded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	c := approved("uno")
	c.Official.Buttons = []puntuale.Button{{Index: 1, Kind: puntuale.ButtonURL, Text: "ordini/17?di=Zoë Rossi|a:b&x=%2F&y=5%"}}
	taken := w.must(person, c)
	for _, part := range taken.Message.Template.Components {
		if part.Type == "button" && part.Parameters[0].Text != "ordini/17?di=Zo%C3%AB%20Rossi%7Ca%3Ab&x=%2F&y=5%25" {
			t.Errorf("sent: %+v", part)
		}
	}
}

func withValue(v string) puntuale.Content {
	c := approved("uno")
	c.Official.Body[0].Text = v
	return c
}

func headed(url string) puntuale.Content {
	c := approved("uno")
	c.MediaURL = url
	return c
}

// TestUploadOnce: the same file is uploaded once for as long as Meta stores it. This is also true if several senders
// send at the same time, and after a restart.
func TestUploadOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.wrote(person)
	content := puntuale.Content{MediaURL: "https://e.com/a.jpg"}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := w.conn.Prepare(w.within(), w.envelope(person, content)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	uploads := func(want int) {
		t.Helper()
		if n := w.peer.Uploads(); n != want {
			t.Errorf("%d uploads, want %d", n, want)
		}
	}
	uploads(1)
	w.conn.Close(w.within(), w.session)
	w.open(w.session)
	w.must(person, content)
	uploads(1)
	w.files.mu.Lock()
	w.files.size = 100 // the file at this address changed
	w.files.mu.Unlock()
	w.must(person, content)
	uploads(2)
	w.clock.Advance(29 * 24 * time.Hour)
	w.wrote(person)
	w.must(person, content)
	uploads(3)
	// Meta reports that it lost the file. So the connector uploads the file again for the next message.
	w.peer.Answer(func(graphtest.Message) graphtest.Reply { return graphtest.Reply{Code: 131053} })
	_, err := w.send(person, content)
	w.refused(err, puntuale.Final)
	w.peer.Answer(nil)
	w.must(person, content)
	uploads(4)
}
