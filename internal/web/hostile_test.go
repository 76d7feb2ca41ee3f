package web_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// hostileTexts are 200 texts that would run code if a page did not escape them. The code sets "hacked" in the page's
// global scope. Each text has at most 190 characters, so that it can also be a name.
func hostileTexts() []string {
	const run = "globalThis.hacked=1"
	bare := []string{
		"<script>" + run + "</script>", "<img src=x onerror=" + run + ">", "<svg onload=" + run + ">", "<svg><script>" + run + "</script></svg>", "<iframe srcdoc='<script>parent." + run + "</script>'>",
		"<details open ontoggle=" + run + ">", "<input autofocus onfocus=" + run + ">", "<video src=x onerror=" + run + ">", "<body onload=" + run + ">", "<a href=javascript:" + run + ">x</a>",
		"<form action=javascript:" + run + "><button>x", "<math><mtext></form><form><mglyph><style></math><img src onerror=" + run + ">", "<style>*{color:red}</style>", "<link rel=stylesheet href=//evil.example/x.css>",
		"<meta http-equiv=refresh content='0;url=//evil.example'>", "<base href=//evil.example/>", "<object data=javascript:" + run + ">", "<div hx-get=/logout hx-trigger=load>", "<div hx-on:load='" + run + "'>",
		"<div x-data x-init='" + run + "'>", "{{constructor.constructor('" + run + "')()}}", "${" + run + "}", "javascript:" + run, "data:text/html,<script>" + run + "</script>", "<!--<img src=--><img src=x onerror=" + run + "//>",
	}
	around := []func(string) string{
		func(s string) string { return s }, func(s string) string { return `">` + s }, func(s string) string { return `'>` + s }, func(s string) string { return "</textarea>" + s }, func(s string) string { return "</title>" + s },
		func(s string) string { return "]]>" + s }, func(s string) string { return "\u202e" + s + "\u2028" }, func(s string) string { return strings.ReplaceAll(s, "<", "&lt;") },
	}
	var all []string
	for _, w := range around {
		for _, s := range bare {
			all = append(all, w(s))
		}
	}
	return all
}

// inert checks that no text ran code in the page, and that the page shows each text unchanged.
func (b *browser) inert(selector string, texts []string) {
	b.t.Helper()
	if evaluate[bool](b, `"hacked" in globalThis`) {
		b.t.Errorf("%s: a text did something", b.look)
	}
	if n := evaluate[int](b, `document.querySelectorAll("main :is(script, iframe, object, embed, style, link, base, meta, video, math), [onerror], [onload], [onfocus], [ontoggle], [x-init]").length`); n != 0 {
		b.t.Errorf("%s: %d elements were made of texts", b.look, n)
	}
	shown := evaluate[[]string](b, fmt.Sprintf(`[...document.querySelectorAll(%q)].map(e => e.value ?? e.textContent)`, selector))
	for _, text := range texts {
		if !slices.Contains(shown, text) {
			b.t.Errorf("%s: %q is not shown as it is", b.look, text)
		}
	}
}

// TestHostileNames shows 200 clients with names that would run code.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	startChromium(t)
	texts := hostileTexts()
	if len(texts) != 200 {
		t.Fatalf("%d texts", len(texts))
	}
	w := newWorld(t)
	ctx := context.Background()
	p := w.store.Partner(w.partner)
	var first puntuale.ClientID
	for i, text := range texts {
		c := puntuale.NewAccount(puntuale.AccountFull, storetest.Day)
		c.Name, c.Phone, c.Features, c.Created = text, text, []string{text}, w.clock.Now()
		created, err := p.CreateClient(ctx, puntuale.NewClient{Client: c, Login: puntuale.Login{Email: fmt.Sprintf("%d%s@x", i, text), Password: "x"},
			Session: puntuale.Session{Name: text, Type: puntuale.Socket, Created: w.clock.Now()}, Key: puntuale.Key{Name: text, Hash: [32]byte{byte(i), 1}, Created: w.clock.Now()}}, nil)
		w.must(err)
		if i == 0 {
			first = created.Client
		}
	}
	b := newBrowser(t, w, screens(t)[0])
	b.signIn(w.partners[puntuale.Owner])
	var seen []string
	for next := "/partner"; next != ""; {
		b.open(next)
		b.inert("none", nil)
		seen = append(seen, evaluate[[]string](b, `[...document.querySelectorAll(".list-name")].map(e => e.textContent)`)...)
		next = strings.TrimPrefix(evaluate[string](b, `document.querySelector("a[rel=next]")?.href ?? ""`), w.base)
	}
	for _, text := range texts {
		if !slices.Contains(seen, text) {
			t.Errorf("%q is not shown as it is", text)
		}
	}
	for i := range texts[:25] {
		id := (first + puntuale.ClientID(i)).String()
		b.open("/partner/clients/" + id)
		b.inert("h1, .chip, .row-text .list-name", texts[i:i+1])
		b.open("/partner/clients/" + id + "/edit")
		b.inert("input, textarea", texts[i:i+1])
	}
}
