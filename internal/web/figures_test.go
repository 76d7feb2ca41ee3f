//go:build figures

package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
	"puntuale/internal/web"
)

// Each page is measured figureRounds times, after two rounds that are not measured. The other values are bounds for the
// median.
const (
	figureRounds = 20
	figurePage   = 50 * time.Millisecond
	figureList   = 100 * time.Millisecond // for lists of messages, if more than 100,000 messages are stored
	figureSearch = 500 * time.Millisecond // for a search by text, because it reads the texts of messages
)

// TestFigurePages opens every page of both dashboards through HTTP, on both databases, and prints the times. One client
// has 100,000 and then 1,000,000 stored messages. PUNTUALE_MESSAGES sets another number of messages. If PUNTUALE_PAGES
// is set, the test opens only the pages whose address contains its value.
//
//	make figures-pages
func TestFigurePages(t *testing.T) {
	sizes := []int{100_000, 1_000_000}
	if n, err := strconv.Atoi(os.Getenv("PUNTUALE_MESSAGES")); err == nil {
		sizes = []int{n}
	}
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		for _, messages := range sizes {
			t.Run(fmt.Sprintf("%s-%d", name, messages), func(t *testing.T) {
				w := newWorldOn(t, driver(t), "")
				crowded(t, w, messages)
				openAll(t, w, messages)
			})
		}
	}
}

// figure is the time that one page needed.
type figure struct {
	page          string
	median, worst time.Duration
	bytes         int
}

func openAll(t *testing.T, w *world, messages int) {
	t.Helper()
	partner, client := w.visitor(w.partners[puntuale.Owner]), w.visitor(w.clients[puntuale.Owner])
	var all []figure
	for _, path := range figurePages(t, w) {
		if !strings.Contains(path, os.Getenv("PUNTUALE_PAGES")) {
			continue
		}
		v := client
		if strings.HasPrefix(path, "/partner") {
			v = partner
		}
		f := opened(v, path)
		all = append(all, f)
		limit := figurePage
		if messages > 100_000 && (strings.HasPrefix(path, w.pages+"/messages?") || path == w.pages+"/messages") {
			limit = figureList
		}
		if strings.Contains(path, "text=") {
			limit = figureSearch
		}
		if f.median > limit && (messages <= 100_000 || limit >= figureList) {
			t.Errorf("%s takes %v, more than %v", path, f.median, limit)
		}
	}
	slices.SortStableFunc(all, func(a, b figure) int { return int(b.median - a.median) })
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "| `%s` | %.1f | %.1f | %d |\n", f.page, ms(f.median), ms(f.worst), f.bytes/1024)
	}
	t.Logf("%d messages\n| page | median ms | worst ms | KB |\n|---|---|---|---|\n%s", messages, b.String())
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func opened(v *visitor, path string) figure {
	v.w.t.Helper()
	f := figure{page: path}
	times := make([]time.Duration, 0, figureRounds)
	for i := range figureRounds + 2 {
		begun := time.Now()
		a := v.get(path)
		took := time.Since(begun)
		if a.status != http.StatusOK {
			v.w.t.Fatalf("%s: %d", path, a.status)
		}
		f.bytes = len(a.body)
		if i >= 2 {
			times = append(times, took)
		}
	}
	slices.Sort(times)
	f.median, f.worst = times[len(times)/2], times[len(times)-1]
	return f
}

// figurePages returns the addresses of all pages. Pages about messages are included with several filters.
func figurePages(t *testing.T, w *world) []string {
	t.Helper()
	ids := map[string]string{}
	for noun, query := range map[string]string{
		"sequences": "select max(id) from sequence", "sessions": "select min(id) from session where client_id = $1",
		"templates": "select max(id) from template", "messages": "select max(id) from message where state = 2", "blacklist": "select max(id) from blacklist",
	} {
		var id int64
		args := []any{w.client}[:strings.Count(query, "$1")]
		if err := w.sql.QueryRow(query, args...).Scan(&id); err != nil {
			t.Fatalf("%s: %v", noun, err)
		}
		ids[noun] = strconv.FormatInt(id, 10)
	}
	skip := []string{"/live", "/link", "/export", "/official", "/sessions/{id}/templates", "/sessions/{id}/delete"}
	var all []string
	for _, r := range web.Routes() {
		if r.Method != http.MethodGet || r.Side == "anyone" || slices.ContainsFunc(skip, func(s string) bool { return strings.HasSuffix(r.Path, s) }) {
			continue
		}
		path := strings.Replace(r.Path, "/c/{client}", w.pages, 1)
		path = strings.Replace(path, "/partner/clients/{id}", "/partner/clients/"+w.client.String(), 1)
		for noun, id := range ids {
			path = strings.Replace(path, "/"+noun+"/{id}", "/"+noun+"/"+id, 1)
		}
		if !strings.Contains(path, "{") && !strings.HasSuffix(path, "/messages/all") {
			all = append(all, path)
		}
	}
	all = append(all, w.pages+"?part=today", w.pages+"/calendar?view=day", w.pages+"/calendar?day=2027-11-01", w.pages+"/sessions/"+ids["sessions"]+"/phone?phone="+url.QueryEscape("+393330000001"),
		w.pages+"/messages/all?state=FAILED", w.pages+"/messages/all?state=PENDING")
	for _, search := range []string{"state=PENDING", "state=COMPLETED", "state=FAILED", "state=CANCELLED", "state=BLACKLISTED", "state=RESCHEDULED", "phone=3330000001", "phone=3339999999",
		"sequence=" + ids["sequences"], "origin=SEQUENCE", "origin=AUTOMATION", "from=2026-11-20&to=2026-11-20", "from=2026-10-01&to=2026-10-01", "from=2026-10-01&to=2026-10-01&state=FAILED",
		"from=2026-12-10&to=2026-12-10", "from=2027-06-01&to=2027-06-02", "state=PENDING&from=2026-12-10&to=2026-12-10", "state=PENDING&phone=3330000001",
		"state=FAILED&sequence=" + ids["sequences"], "state=FAILED&phone=3330000001",
		"text=mario", "text=altrove", "text=altrove&state=FAILED",
	} {
		all = append(all, w.pages+"/messages?"+search)
	}
	return all
}

// crowded creates messages of the client, from runs in the last 60 days. Each run has two messages. The first message
// left within an hour. The second leaves days later, so it may still be pending. Of the ended messages, 2 in 100 failed
// and a few were stopped by the blacklist. None was cancelled. The messages are spread over all sessions, phones and
// sequences, but one sequence has no messages.
func crowded(t *testing.T, w *world, messages int) {
	t.Helper()
	ctx := context.Background()
	tenant := w.store.Tenant(w.client)
	sessions, _, err := tenant.Sessions(ctx, puntuale.Page{})
	w.must(err)
	now := w.clock.Now()
	var first puntuale.SequenceID
	for i := range 20 {
		id, err := tenant.CreateSequence(ctx, puntuale.Sequence{Name: fmt.Sprintf("Promemoria %02d", i), Created: now, Updated: now, Steps: []puntuale.Step{{Text: "Ciao {{nome}}"}, {Text: "A presto!"}}}, nil)
		w.must(err)
		if i == 0 {
			first = id
		}
		_, err = tenant.CreateTemplate(ctx, puntuale.Template{Name: fmt.Sprintf("modello %02d", i), Text: "Ciao {{nome}}", Created: now, Updated: now}, nil)
		w.must(err)
	}
	n := func(to int) string {
		if w.postgres {
			return fmt.Sprintf("generate_series(1::bigint, %d) as n(i)", to)
		}
		return fmt.Sprintf("(with recursive n(i) as (select 1 union all select i + 1 from n where i < %d) select i from n) as n", to)
	}
	runs := messages / 2
	const day = int64(24 * time.Hour / time.Microsecond)
	begin := now.UnixMicro() - 60*day
	received := fmt.Sprintf("%d + i * %d", begin, 60*day/int64(runs))
	phone := "'+3933' || (30000000 + i % 100000)"
	request, padding := "x'7b7d'", "''"
	if w.postgres {
		request, padding = `'\x7b7d'::bytea`, "''"
	}
	do := func(text string) {
		t.Helper()
		if _, err := w.sql.Exec(text); err != nil {
			t.Fatalf("%.120s: %v", text, err)
		}
	}
	do(fmt.Sprintf(`insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request, client_name, sequence_name, content)
 select %d, 1000 + i * 2, %d + i %% 19, %d, %s, 1, 2, 'Mario Rossi', 'Europe/Rome', %s, %s, 'Studio Bianchi', 'Promemoria',
 '[{"step":0,"content":{"text":"Gentile Mario, le ricordiamo l''appuntamento di venerdì 20 novembre alle 10:30."}},{"step":1,"content":{"text":"A domani, Mario!"}}]' from %s`,
		w.client, first, sessions[0].ID, phone, received, request, n(runs)))
	for step, due := range []string{received + fmt.Sprintf(" + %d", day/24), received + fmt.Sprintf(" + (1 + i %% 29) * %d", day)} {
		do(fmt.Sprintf(`insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone, intent, intent_at, attempt, state, done_at, outcome, reason, detail)
 select %d, 1000 + i * 2 + %d, %d, 1000 + i * 2, due, due, due, due + %d, %d, 1, phone, case when state = 0 then 0 else -1 end, case when state in (1, 2) then due else 0 end,
 case when state in (1, 2) then 1 else 0 end, state, case when state = 0 then null else due + 1000000 end, case when state in (2, 4) then 2 else case when state = 1 then 1 else 0 end end,
 case when state = 2 then 'Il numero non ha WhatsApp' else '' end, %s
 from (select i, due, phone, case when due > %d then 0 when i %% 50 = 0 then 2 when i %% 5000 = 1 then 4 else 1 end as state from (select i, %s as due, %s as phone from %s) as a) as b`,
			w.client, step, sessions[0].ID, day, step, padding, now.UnixMicro(), due, phone, n(runs)))
	}
	do(`insert into receipt (client_id, message_id, sent_at, delivered_at, read_at) select client_id, id, done_at, done_at + 2000000, case when id % 3 = 0 then done_at + 9000000 else 0 end from message where state = 1`)
	do(`insert into sandbox_message (client_id, message_id, connector_id, phone, content, received_at) select client_id, id, 'c' || id, phone, '{"text":"A domani, Mario!"}', done_at from message where state = 1 order by done_at`)
	do(`insert into event (client_id, message_id, at, kind, detail) select client_id, id, done_at, 'refused', 'parole della rete' from message where state = 2`)
	do(fmt.Sprintf(`insert into blacklist (client_id, phone, id, reason, added_at) select %d, '+39347' || (1000000 + i), i, 'richiesta', %d + i from %s`, w.client, begin, n(5000)))
	do(fmt.Sprintf(`insert into audit (partner_id, client_id, login_id, who, action, target, at) select %d, %d, 1, 'Anna Bianchi', 'message.cancel', '', %d + i from %s`, w.partner, w.client, begin, n(5000)))
	do(fmt.Sprintf(`insert into client (id, partner_id, name, email, phone, type, profile, refill, expires_on, expires_at, zone, region, features, closed, created_at)
 select 1000 + i, %d, 'Cliente ' || i, 'c' || i || '@example.com', '+39011', 'full', 'Subscription Mensile', 'Nessuno', 0, 0, 'Europe/Rome', 'IT', '[]', 'null', %d from %s`, w.partner, begin, n(300)))
	if w.postgres {
		do("vacuum analyze") // PostgreSQL itself does this within minutes, and SQLite does not need it
	}
	for range 2 {
		w.must(w.store.Maintain(ctx, now, time.Time{}))
	}
}
