package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// The test changes valid requests at random. Some of the changed requests are still valid, and others are not. No
// answer has a 5xx status, and the document describes every answer (see service.send). Each refusal is a problem.
func TestGeneratedRequests(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		n := 10_000
		switch {
		case raced || testing.Short():
			n = 600
		case s.db.Postgres: // the answers are the same as on SQLite, so fewer requests are enough
			n = 3_000
		}
		seed := uint64(time.Now().UnixNano()) //nolint:gosec // any value is good enough
		t.Logf("seed %d", seed)
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), s: s, ids: documented(t)} //nolint:gosec // a test needs no secure random numbers
		g.other = newTenant(s, "other@x", "+393331234567")
		statuses := map[int]int{}
		worn := true
		for i := range n {
			if worn {
				g.own = newTenant(s, fmt.Sprintf("own%d@x", i), "+393330000001")
			}
			r := g.request()
			a := s.send(r.build(t))
			worn = a.status == 200 && r.method == http.MethodDelete || i%100 == 99 // the request deleted something that later requests need, or it may have suspended the tenant
			statuses[a.status]++
			problem := a.header.Get("Content-Type") == "application/problem+json"
			kind := a.header.Get("Content-Type")
			file := a.status == 200 && kind == "application/octet-stream" && strings.Contains(r.target, "/content")
			if a.status >= 500 || (a.status != 200) != problem || !json.Valid([]byte(a.body)) && !strings.HasPrefix(kind, "text/csv") && !file {
				log := s.log.String()
				t.Errorf("%+v: %d %s\n%s", r, a.status, a.body, log[max(0, len(log)-2000):])
			}
			if t.Failed() {
				return
			}
		}
		t.Log(statuses)
		if statuses[200] < n/10 || statuses[400] < n/100 || statuses[401] < n/100 || statuses[404] < n/100 || statuses[422] < n/100 {
			t.Errorf("the requests are too much alike: %v", statuses)
		}
	})
}

// generator makes random requests.
type generator struct {
	*rand.Rand
	s          *service
	ids        []string // the operations to choose from
	own, other tenant
}

type generated struct {
	method, target, key, body string
	header                    [][2]string
}

// build makes the HTTP request. If the target is not a valid address, build uses another path, because no HTTP client
// could send the invalid target.
func (r generated) build(t *testing.T) *http.Request {
	t.Helper()
	q := httptest.NewRequestWithContext(t.Context(), r.method, "/", strings.NewReader(r.body))
	u, err := url.Parse(r.target)
	if err != nil {
		u = &url.URL{Path: r.target}
	}
	q.URL.Path, q.URL.RawPath, q.URL.RawQuery = u.Path, u.RawPath, u.RawQuery
	if r.key != "" {
		q.Header.Set("Authorization", "Bearer "+r.key)
	}
	for _, h := range r.header {
		q.Header.Set(h[0], h[1])
	}
	return q
}

// request makes a request. Half of the requests are valid. All others have one or more mistakes.
func (g *generator) request() generated {
	id := g.ids[g.IntN(len(g.ids))]
	op := operations[id]
	for op.last && g.IntN(8) > 0 { // operations that remove things which other operations need are chosen rarely
		id = g.ids[g.IntN(len(g.ids))]
		op = operations[id]
	}
	from := g.own
	if g.IntN(20) == 0 {
		from = g.other
	}
	r := generated{op.method, from.fill(op.path), g.own.keyFor(g.s, op.path, op.partner), strings.ReplaceAll(from.fill(op.body), "new@x", fmt.Sprintf("new%d@x", g.IntN(1000))), nil}
	if g.IntN(5) == 0 {
		r.header = append(r.header, [2]string{"Idempotency-Key", fmt.Sprint(g.IntN(5))})
	}
	if g.IntN(2) == 0 {
		return r
	}
	for slips := 1 + g.IntN(3); slips > 0; slips-- {
		g.slip(&r)
	}
	return r
}

func (g *generator) slip(r *generated) {
	switch g.IntN(12) {
	case 0:
		r.key = g.pick("", "ck_x", g.s.partner, g.own.key, g.own.key+"x")
	case 1:
		r.method = g.pick("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW")
	case 2:
		path, query, _ := strings.Cut(r.target, "?")
		parts := strings.Split(path, "/")
		parts[1+g.IntN(len(parts)-1)] = url.PathEscape(g.odd())
		r.target = strings.Join(parts, "/") + g.pick("", "/", "//") + "?" + query
	case 3, 4:
		name := g.pick("limit", "cursor", "start", "end", "from", "to", "state", "sequence", "phone", "origin", "timezone", "if_running", "dry_run",
			"dry-run", "message_ids[]", "phones[]", "client_ids[]", "pending", "move_to", "api_key", "%zz", "a;b", "")
		value := g.pick(g.odd(), g.odd(), "20/11/2026 10:30", "2026-11-20", "true", "Europe/Rome", "1", "PENDING", "cancel", "0", g.own.second)
		r.target += map[bool]string{true: "&", false: "?"}[strings.Contains(r.target, "?")] + name + "=" + url.QueryEscape(value)
	case 5:
		r.header = append(r.header, [2]string{g.pick("Idempotency-Key", "Content-Type", "Accept", "Authorization", "X-Request-Id"), g.header()})
	case 6:
		cut := g.IntN(len(r.body) + 1)
		r.body = r.body[:cut] + g.pick("", "{", "}", "\xff", "\\ud800", ",", "[]", "\x00", "\ufeff") + r.body[cut:]
	case 7:
		r.body = g.pick("", " ", "null", "[]", "{}", "1", `"x"`, "{", r.body+r.body, "\ufeff"+r.body, strings.Repeat("[", 20_000))
	default:
		var v any
		d := json.NewDecoder(strings.NewReader(r.body))
		d.UseNumber()
		if d.Decode(&v) != nil {
			return
		}
		v = g.change(v)
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(v) == nil {
			r.body = b.String()
		}
	}
}

// change changes one randomly chosen place inside a value.
func (g *generator) change(v any) any {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 || g.IntN(6) == 0 {
			v[g.pick("text", "media", "media_name", "latitude", "longitude", "template", "date", "time", "timezone", "id_sessione", "name", "credits",
				"credits_add", "daily_api_cap", "refill_period", "expiration_date", "holidays", "active_features", "suspended", "if_running", "grace",
				"at", "window", "jitter", "if_past", "valid_for", "stop_on_reply", "sandbox", "reason", "unknown")] = g.value()
			return v
		}
		name := names[g.IntN(len(names))]
		switch g.IntN(4) {
		case 0:
			delete(v, name)
		case 1:
			v[name] = g.value()
		default:
			v[name] = g.change(v[name])
		}
		return v
	case []any:
		if len(v) == 0 || g.IntN(4) == 0 {
			return append(v, g.value())
		}
		i := g.IntN(len(v))
		v[i] = g.change(v[i])
		return v
	}
	return g.value()
}

func (g *generator) value() any {
	switch g.IntN(10) {
	case 0:
		return nil
	case 1:
		return g.IntN(2) == 0
	case 2:
		return json.Number(g.pick("0", "-1", "1.5", "1e400", "12345678901234567890", "999999", "100", "3331234567"))
	case 3:
		return []any{g.odd()}
	case 4:
		return map[string]any{g.pick("amount", "unit", "weekdays", "from", g.odd()): g.odd()}
	case 5:
		return g.pick("2026-12-01", "01/12/2026 10:00", "10:00", "start", "quando", "before", "days", "Illimitati", "Mensile", "Annuale", "avoid",
			"Europe/Rome", "IT", "skip", "Saluto", "https://x.it/a.pdf", g.own.session, g.other.session, g.own.sequence, g.own.message, g.other.message)
	}
	return g.odd()
}

// odd returns an unusual text that might cause an error.
func (g *generator) odd() string {
	return g.pick("", " ", "x", "\x00", "\u202e", "è", "😀", "'; drop table client; --", "{{", "{{x}}", "{{quando:ora}}", "../..", "%", "0", "-1", "007",
		"999999", "9007199254740993", "99999999999999999999", "3331234567", "+393331234567", "899123456", "120363025246125016@g.us",
		"AbCdEfGhIjKlMnOpQrStUv", "31/02/2026 25:61", "2026-02-30", "9999-12-31", "0001-01-01", strings.Repeat("a", 300), strings.Repeat("è", 5000))
}

// header returns a random value that an HTTP header may contain.
func (g *generator) header() string {
	return g.pick("", "x", strings.Repeat("k", 256), "text/html", "application/json; charset=utf-8", "Bearer ck_x", "Basic eDp5", ";;", "è", "k\tk")
}

func (g *generator) pick(texts ...string) string { return texts[g.IntN(len(texts))] }
