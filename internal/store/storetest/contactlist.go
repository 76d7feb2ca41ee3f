package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
)

// mustMerge merges contacts without counting a call.
func (c *Client) mustMerge(now time.Time, all ...puntuale.Contact) puntuale.MergedContacts {
	c.w.t.Helper()
	slices.SortFunc(all, func(a, b puntuale.Contact) int { return strings.Compare(a.Phone, b.Phone) })
	merged, err := c.MergeContacts(context.Background(), puntuale.ContactBatch{All: all, Now: now})
	if err != nil {
		c.w.t.Fatalf("merge contacts: %v", err)
	}
	return merged
}

// contacted adds a contact to the client and returns its id.
func (c *Client) contacted() puntuale.ContactID {
	return c.mustMerge(Begin, puntuale.Contact{Phone: phone, Name: "Anna Rossi", Tags: []string{"cliente"}}).All[0].ID
}

// mustFind lists all contacts that match a filter, page by page, and returns their names.
func (c *Client) mustFind(f puntuale.ContactFilter, limit int) (names []string) {
	c.w.t.Helper()
	for cursor := ""; ; {
		all, next, err := c.Contacts(context.Background(), f, puntuale.Page{Limit: limit, Cursor: cursor})
		if err != nil || len(all) > limit {
			c.w.t.Fatalf("list %+v: %d contacts, %v", f, len(all), err)
		}
		for _, one := range all {
			names = append(names, one.Name)
		}
		if cursor = next; next == "" {
			return names
		}
	}
}

func sameContact(a, b puntuale.Contact) bool {
	return fmt.Sprint(a.ID, a.Phone, a.Name, a.Language, a.Source, a.Fields, a.Tags, a.Created.UnixMicro(), a.Changed.UnixMicro()) ==
		fmt.Sprint(b.ID, b.Phone, b.Name, b.Language, b.Source, b.Fields, b.Tags, b.Created.UnixMicro(), b.Changed.UnixMicro())
}

// testMergeContacts checks that a merge adds new contacts, changes the given fields of stored contacts, and keeps their
// other fields.
func testMergeContacts(t *testing.T, w *World) {
	c, ctx := w.Client(puntuale.AccountTest), context.Background()
	birth := puntuale.ContactField{Kind: puntuale.FieldDate, Value: "1990-02-28"}
	first := c.mustMerge(Begin, puntuale.Contact{Phone: "+393330000001", Name: "Anna Rossi", Source: "modulo", Tags: []string{"b", "a"}, Fields: map[string]puntuale.ContactField{"nascita": birth}},
		puntuale.Contact{Phone: "+393330000002", Name: "Bruno"})
	if first.Added != 2 || first.Changed != 0 || len(first.Refused) > 0 || first.All[0].ID == 0 || first.All[1].ID <= first.All[0].ID {
		t.Fatalf("added: %+v", first)
	}
	later := Begin.Add(time.Hour)
	points := puntuale.ContactField{Kind: puntuale.FieldNumber, Value: "7"}
	second := c.mustMerge(later, puntuale.Contact{Phone: "+393330000001", Name: "Anna Bianchi", Tags: []string{"c", "a"}, Fields: map[string]puntuale.ContactField{"punti": points}},
		puntuale.Contact{Phone: "+393330000002"}, puntuale.Contact{Phone: "+393330000003", Language: "en"})
	if second.Added != 1 || second.Changed != 1 {
		t.Errorf("%d added, %d changed", second.Added, second.Changed)
	}
	want := puntuale.Contact{ID: first.All[0].ID, Phone: "+393330000001", Name: "Anna Bianchi", Source: "modulo", Tags: []string{"a", "b", "c"},
		Fields: map[string]puntuale.ContactField{"nascita": birth, "punti": points}, Created: Begin, Changed: later}
	got, err := c.Contact(ctx, want.ID)
	if err != nil || !sameContact(got, want) || !sameContact(second.All[0], want) {
		t.Errorf("merged: %+v (%v), answered %+v", got, err, second.All[0])
	}
	if same := second.All[1]; !same.Changed.Equal(Begin) || same.Name != "Bruno" {
		t.Errorf("what was there already: %+v", same)
	}
	found, ok, err := c.ContactOf(ctx, "+393330000001")
	if err != nil || !ok || !sameContact(found, want) {
		t.Errorf("by the number: %+v, %v, %v", found, ok, err)
	}
	if _, ok, err := c.ContactOf(ctx, "+393330000009"); ok || err != nil {
		t.Errorf("unknown number: %v, %v", ok, err)
	}
	some, err := c.ContactsOf(ctx, []string{"+393330000003", "+393330000009"})
	if err != nil || len(some) != 1 || some["+393330000003"].Language != "en" {
		t.Errorf("by numbers: %+v, %v", some, err)
	}
	if names := c.mustFind(puntuale.ContactFilter{Name: "rossi"}, 5); len(names) > 0 {
		t.Errorf("found by the name before: %v", names)
	}
	for tag, n := range map[string]int{"a": 1, "b": 1, "c": 1} {
		if tags, err := c.ContactTags(ctx); err != nil || tags[tag] != n || len(tags) != 3 {
			t.Errorf("tags: %v, %v", tags, err)
		}
	}
}

// testFindContacts checks that a list contains the contacts for which all conditions of the filter hold. Each contact
// must be in the list once, for every page size.
func testFindContacts(t *testing.T, w *World) {
	c, ctx := w.Client(puntuale.AccountTest), context.Background()
	full := map[string]puntuale.ContactField{"città": {}, "nota": {Kind: puntuale.FieldText, Value: `"vip":{`}}
	c.mustMerge(Begin,
		puntuale.Contact{Phone: "+393330000001", Name: "Anna Annalisa Rossi", Tags: []string{"cliente", "vip"}},
		puntuale.Contact{Phone: "+393330000002", Name: "Niccolò D’Angelo", Tags: []string{"cliente"}, Fields: full},
		puntuale.Contact{Phone: "+393340000003", Name: "Anna Maria Bianchi", Tags: []string{"vip"}, Fields: map[string]puntuale.ContactField{"vip": {Kind: puntuale.FieldText, Value: "x"}}},
		puntuale.Contact{Phone: "+33612345678", Name: "ÉMILE ROSSIGNOL", Tags: []string{`a"b`, ","}},
		puntuale.Contact{Phone: "+39333000000", Name: "Zoe"},
	)
	all := []string{"ÉMILE ROSSIGNOL", "Zoe", "Anna Annalisa Rossi", "Niccolò D’Angelo", "Anna Maria Bianchi"} // sorted by their phones at this point
	for _, test := range []struct {
		f    puntuale.ContactFilter
		want []string
	}{
		{puntuale.ContactFilter{}, all},
		{puntuale.ContactFilter{Tag: "vip"}, []string{all[2], all[4]}},
		{puntuale.ContactFilter{Tag: "VIP"}, nil},
		{puntuale.ContactFilter{Tag: ","}, all[:1]},
		{puntuale.ContactFilter{Tag: `a"b`}, all[:1]},
		{puntuale.ContactFilter{Name: "ann"}, []string{all[2], all[4]}},
		{puntuale.ContactFilter{Name: "NICCOLO angel"}, all[3:4]},
		{puntuale.ContactFilter{Name: "ross"}, []string{all[2], all[0]}}, // this list is in the order of the words: rossi, rossignol
		{puntuale.ContactFilter{Name: "rossi ann"}, all[2:3]},
		{puntuale.ContactFilter{Name: "emile"}, all[:1]},
		{puntuale.ContactFilter{Name: "nna"}, nil},
		{puntuale.ContactFilter{Phone: "+39333000000"}, all[1:2]},
		{puntuale.ContactFilter{Phone: "+39333000000*"}, []string{all[1], all[2], all[3]}},
		{puntuale.ContactFilter{Phone: "+39*", Tag: "vip"}, []string{all[2], all[4]}},
		{puntuale.ContactFilter{Phone: "+393330000001", Tag: "vip", Name: "anna"}, all[2:3]},
		{puntuale.ContactFilter{Phone: "+393330000001", Tag: "x"}, nil},
		{puntuale.ContactFilter{Name: "anna", Tag: "vip"}, []string{all[2], all[4]}},
		{puntuale.ContactFilter{Name: "anna", Phone: "+39334*"}, all[4:]},
		{puntuale.ContactFilter{Any: []string{"vip", "cliente", "nessuno"}}, all[2:]},
		{puntuale.ContactFilter{Any: []string{"vip", "cliente"}, Name: "d"}, all[3:4]},
		{puntuale.ContactFilter{Any: []string{"nessuno", "vip"}, Phone: "+393330000001"}, all[2:3]},
		{puntuale.ContactFilter{Filled: "vip"}, all[4:]},
		{puntuale.ContactFilter{Filled: "Vip"}, nil},
		{puntuale.ContactFilter{Filled: "nota", Tag: "cliente"}, all[3:4]},
	} {
		for _, limit := range []int{1, 2, 100} {
			if got := c.mustFind(test.f, limit); !slices.Equal(got, test.want) {
				t.Errorf("%+v, %d a page: %q, want %q", test.f, limit, got, test.want)
			}
		}
		for _, maximum := range []int{1, 100} {
			if n, all, err := c.CountContacts(ctx, test.f, maximum); err != nil || n != min(maximum, len(test.want)) || all != (n == len(test.want)) {
				t.Errorf("%+v: counted %d of at most %d, want %d (%v)", test.f, n, maximum, len(test.want), err)
			}
		}
	}
	for _, f := range []puntuale.ContactFilter{{}, {Tag: "vip"}, {Tag: "cliente", Filled: "nota"}, {Tag: "vip", Phone: "+39*"}, {Name: "anna"}, {Any: []string{"vip", "cliente"}}} {
		for _, limit := range []int{1, 2, 100} {
			first, last := c.mustFind(f, limit), c.mustFind(puntuale.ContactFilter{Newest: true, Tag: f.Tag, Phone: f.Phone, Name: f.Name, Filled: f.Filled, Any: f.Any}, limit)
			if f.Name == "" && len(f.Any) == 0 {
				slices.Reverse(first)
			}
			if len(first) == 0 || !slices.Equal(first, last) {
				t.Errorf("%+v, newest first, %d a page: %q, want %q", f, limit, last, first)
			}
		}
	}
	if _, cursor, err := c.Contacts(ctx, puntuale.ContactFilter{}, puntuale.Page{Limit: 1}); err != nil {
		t.Error(err)
	} else if _, _, err := c.Contacts(ctx, puntuale.ContactFilter{Newest: true}, puntuale.Page{Cursor: cursor}); puntuale.CodeOf(err) != puntuale.CodeInvalid {
		t.Errorf("the cursor of the other order: %v", err)
	}
	// The first text is no cursor. The second is the cursor of a list by tag. The third is a cursor at an eighth word.
	for _, cursor := range []string{"x", "Y29udGFjdDp7ImIiOjJ9", "Y29udGFjdDp7ImIiOjQsInciOjd9"} {
		if _, _, err := c.Contacts(ctx, puntuale.ContactFilter{}, puntuale.Page{Cursor: cursor}); puntuale.CodeOf(err) != puntuale.CodeInvalid {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

// testLongContacts checks that a page stays below 4 MiB. It must also end early if it would read too many contacts.
func testLongContacts(t *testing.T, w *World) {
	c, ctx := w.Client(puntuale.AccountTest), context.Background()
	long := map[string]puntuale.ContactField{}
	for i := range puntuale.MaxContactFields {
		long[fmt.Sprintf("f%d", i)] = puntuale.ContactField{Kind: puntuale.FieldText, Value: strings.Repeat("x", 4000)}
	}
	var all []puntuale.Contact
	for i := range 50 {
		all = append(all, puntuale.Contact{Phone: fmt.Sprintf("+3933300000%02d", i), Name: "Lungo", Fields: long})
	}
	c.mustMerge(Begin, all...)
	some, next, err := c.Contacts(ctx, puntuale.ContactFilter{}, puntuale.Page{Limit: 100})
	if err != nil || len(some) < 10 || len(some) > 25 || next == "" {
		t.Errorf("%d contacts, next %q, %v", len(some), next, err)
	}
	if n := len(c.mustFind(puntuale.ContactFilter{}, 100)); n != 50 {
		t.Errorf("%d contacts in all", n)
	}
	for part := range 5 {
		var many []puntuale.Contact
		for i := range 1000 {
			many = append(many, puntuale.Contact{Phone: fmt.Sprintf("+39334%03d%04d", part, i), Name: "Tanti"})
		}
		c.mustMerge(Begin, many...)
	}
	c.mustMerge(Begin, puntuale.Contact{Phone: "+393359999999", Name: "Ultima", Fields: map[string]puntuale.ContactField{"raro": {Kind: puntuale.FieldText, Value: "x"}}})
	some, next, err = c.Contacts(ctx, puntuale.ContactFilter{Filled: "raro"}, puntuale.Page{Limit: 10})
	if err != nil || len(some) > 0 || next == "" {
		t.Errorf("a rare field: %d contacts, next %q, %v", len(some), next, err)
	}
	if names := c.mustFind(puntuale.ContactFilter{Filled: "raro"}, 10); !slices.Equal(names, []string{"Ultima"}) {
		t.Errorf("a rare field: %q", names)
	}
}

// testChangeContact checks that a patch changes only the fields that it contains, and that a deleted contact is not
// found.
func testChangeContact(t *testing.T, w *World) {
	c, ctx := w.Client(puntuale.AccountTest), context.Background()
	id := c.contacted()
	number := &puntuale.ContactField{Kind: puntuale.FieldNumber, Value: "3"}
	changed, err := c.UpdateContact(ctx, id, puntuale.ContactPatch{Name: new("Anna Verdi"), Fields: map[string]*puntuale.ContactField{"punti": number, "x": nil}, AddTags: []string{"vip", "cliente"}, RemoveTags: []string{"cliente"}}, Day, Begin.Add(time.Hour))
	if err != nil || changed.Name != "Anna Verdi" || changed.Fields["punti"] != *number || !slices.Equal(changed.Tags, []string{"vip"}) || !changed.Changed.Equal(Begin.Add(time.Hour)) {
		t.Errorf("changed: %+v, %v", changed, err)
	}
	if got, err := c.Contact(ctx, id); err != nil || !sameContact(got, changed) {
		t.Errorf("read: %+v, %v", got, err)
	}
	changed, err = c.UpdateContact(ctx, id, puntuale.ContactPatch{Fields: map[string]*puntuale.ContactField{"punti": nil}, Tags: &[]string{"b", "a", "b"}}, Day, Begin)
	if err != nil || len(changed.Fields) > 0 || !slices.Equal(changed.Tags, []string{"a", "b"}) {
		t.Errorf("changed: %+v, %v", changed, err)
	}
	if names := c.mustFind(puntuale.ContactFilter{Tag: "vip"}, 5); len(names) > 0 {
		t.Errorf("found by the tag before: %v", names)
	}
	var many []string
	for i := range puntuale.MaxContactTags + 1 {
		many = append(many, fmt.Sprintf("t%d", i))
	}
	if _, err := c.UpdateContact(ctx, id, puntuale.ContactPatch{AddTags: many}, Day, Begin); puntuale.CodeOf(err) != puntuale.CodeInvalid {
		t.Errorf("too many tags: %v", err)
	}
	if err := c.DeleteContact(ctx, id, Day); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := c.DeleteContact(ctx, id, Day); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("delete again: %v", err)
	}
	if _, err := c.Contact(ctx, id); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("read: %v", err)
	}
	if n := w.Int("select people from person_count") + w.Int("select count(*) from person_term"); n != 0 {
		t.Errorf("%d are left", n)
	}
	if used := w.Int("select used from api_usage"); used != 3 {
		t.Errorf("%d calls counted", used)
	}
}

// testContactOnce checks a call with an idempotency key. The call must add contacts once and count once. A repeated call
// must get the same answer. A call with a refused contact must not count.
func testContactOnce(t *testing.T, w *World) {
	c, ctx := w.Client(puntuale.AccountTest), context.Background()
	add := func(key string, one puntuale.Contact) error {
		_, err := c.MergeContacts(ctx, puntuale.ContactBatch{All: []puntuale.Contact{one}, Now: Begin, Day: Day,
			Key: &puntuale.Idempotency{Scope: "POST /api/contacts", Key: key, Hash: "h", Answer: func(v any) ([]byte, error) { return []byte(v.(puntuale.MergedContacts).All[0].Name), nil }}})
		return err
	}
	if err := add("k", puntuale.Contact{Phone: phone, Name: "Anna"}); err != nil {
		t.Fatal(err)
	}
	earlier := &puntuale.Replayed{}
	if err := add("k", puntuale.Contact{Phone: phone, Name: "Anna"}); !errors.As(err, &earlier) || string(earlier.Answer) != "Anna" {
		t.Errorf("again: %v", err)
	}
	fields := map[string]puntuale.ContactField{}
	for i := range puntuale.MaxContactFields + 1 {
		fields[fmt.Sprintf("f%d", i)] = puntuale.ContactField{Kind: puntuale.FieldText, Value: "x"}
	}
	if err := add("l", puntuale.Contact{Phone: phone, Fields: fields}); puntuale.CodeOf(err) != puntuale.CodeInvalid {
		t.Errorf("too many fields: %v", err)
	}
	if used := w.Int("select used from api_usage"); used != 1 {
		t.Errorf("%d calls counted", used)
	}
	if err := c.CountCall(ctx, Day); err != nil {
		t.Error(err)
	}
	if used := w.Int("select used from api_usage"); used != 2 {
		t.Errorf("%d calls counted", used)
	}
}

// testContactsTogether lets many callers add contacts at the same time. The client must never have more contacts than
// allowed, and no contact twice.
func testContactsTogether(t *testing.T, w *World) {
	c, ctx := w.Client(puntuale.AccountTest), context.Background()
	c.contacted()
	w.Exec("update person_count set people = $1", puntuale.MaxContacts-20)
	var mu sync.Mutex
	added, refused := 0, 0
	var done sync.WaitGroup
	for caller := range 8 {
		done.Go(func() {
			var all []puntuale.Contact
			for i := range 15 { // each batch contains some phones of the next batch
				all = append(all, puntuale.Contact{Phone: fmt.Sprintf("+39333100%04d", caller*10+i), Name: "Insieme"})
			}
			merged, err := c.MergeContacts(ctx, puntuale.ContactBatch{All: all, Now: Begin})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("merge: %v", err)
			}
			added, refused = added+merged.Added, refused+len(merged.Refused)
			for i, code := range merged.Refused {
				if code != puntuale.FaultContactQuota || merged.All[i].ID != 0 {
					t.Errorf("refused for %s: %+v", code, merged.All[i])
				}
			}
		})
	}
	done.Wait()
	if n := w.Int("select count(*) from person"); added != 20 || n != 21 || refused == 0 {
		t.Errorf("%d added, %d refused, %d there", added, refused, n)
	}
	_, err := c.MergeContacts(ctx, puntuale.ContactBatch{All: []puntuale.Contact{{Phone: "+393332000000"}}, Now: Begin, Day: Day})
	if puntuale.CodeOf(err) != puntuale.CodeQuotaReached {
		t.Errorf("one more: %v", err)
	}
	if merged := c.mustMerge(Begin, puntuale.Contact{Phone: phone, Name: "Anna Neri"}); merged.Changed != 1 {
		t.Errorf("a known one in a full list: %+v", merged)
	}
}

// testForgottenContacts checks that an erased person is no longer a contact, and that a deleted client has no contacts.
func testForgottenContacts(t *testing.T, w *World) {
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest)
	c.contacted()
	c.mustMerge(Begin, puntuale.Contact{Phone: "+393330000002", Name: "Bruno", Tags: []string{"cliente"}})
	other.contacted()
	c.mustErase(phone, Begin)
	if names := c.mustFind(puntuale.ContactFilter{}, 5); !slices.Equal(names, []string{"Bruno"}) {
		t.Errorf("after the erasure: %q", names)
	}
	if names := other.mustFind(puntuale.ContactFilter{}, 5); len(names) != 1 {
		t.Errorf("another client's: %q", names)
	}
	if n, _, err := c.CountContacts(context.Background(), puntuale.ContactFilter{}, 10); err != nil || n != 1 {
		t.Errorf("counted %d, %v", n, err)
	}
	if err := w.Store.Partner(w.Partner).DeleteClient(context.Background(), c.ID, Begin); err != nil {
		t.Fatal(err)
	}
	if _, err := c.MergeContacts(context.Background(), puntuale.ContactBatch{All: []puntuale.Contact{{Phone: phone}}, Now: Begin}); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("a deleted client's: %v", err)
	}
	if n := w.Int("select count(*) from person"); n != 1 {
		t.Errorf("%d contacts are left", n)
	}
	if n := w.Int("select count(*) from person_count"); n != 1 {
		t.Errorf("%d counts are left", n)
	}
	if n := w.Int("select count(*) from person_term"); n != 3 {
		t.Errorf("%d terms are left", n)
	}
}

// testRemember checks that the recipients of runs become contacts if the client turned this on. The data of each call
// must be merged once, in the order of calls.
func testRemember(t *testing.T, w *World) {
	c, other, ctx := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest), context.Background()
	read := func(r puntuale.CalledRun) (puntuale.Contact, bool) {
		return puntuale.Contact{Phone: r.Phone, Name: r.Zone + " " + string(r.Origin), Fields: map[string]puntuale.ContactField{"said": {Kind: puntuale.FieldText, Value: string(r.Request)}}}, r.Phone != "+393330000009"
	}
	remember := func(settle time.Duration) {
		t.Helper()
		if err := w.Remember(ctx, settle, Begin, read); err != nil {
			t.Fatal(err)
		}
	}
	start := func(c *Client, to, said string) {
		t.Helper()
		r := c.Run(to, Begin.Add(time.Hour), 2)
		r.Run.Request = []byte(said)
		if _, err := c.Start(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	start(c, phone, "before")
	remember(-time.Hour)
	if names := c.mustFind(puntuale.ContactFilter{}, 5); len(names) > 0 {
		t.Errorf("remembered unasked: %q", names)
	}
	for _, enabled := range []bool{true, false, true} {
		if _, err := c.UpdateSettings(ctx, puntuale.SettingsPatch{Remember: &enabled}); err != nil {
			t.Fatal(err)
		}
		if enabled {
			remember(-time.Second) // after the client turned this on, the first pass skips earlier runs
			w.Exec("update client_setting set remembered_to = (select max(id) from run) where client_id = $1", int64(c.ID))
		}
	}
	start(c, "+393330000001", "eins")
	start(c, "+393330000002", "zwei")
	start(c, "+393330000009", "none")
	start(c, "+393330000001", "drei")
	start(other, "+393330000001", "other")
	remember(time.Hour)
	if names := c.mustFind(puntuale.ContactFilter{}, 5); len(names) > 0 {
		t.Errorf("remembered too early: %q", names)
	}
	var together sync.WaitGroup
	for range 3 {
		together.Go(func() {
			if err := w.Remember(ctx, -time.Hour, Begin, read); err != nil {
				t.Errorf("remember: %v", err)
			}
		})
	}
	together.Wait()
	all, _, err := c.Contacts(ctx, puntuale.ContactFilter{}, puntuale.Page{})
	if err != nil || len(all) != 2 || all[0].Fields["said"].Value != "drei" || all[1].Fields["said"].Value != "zwei" || all[0].Name != "Europe/Rome SEQUENCE" {
		t.Errorf("remembered %+v, %v", all, err)
	}
	if _, err := c.UpdateContact(ctx, all[0].ID, puntuale.ContactPatch{Fields: map[string]*puntuale.ContactField{"said": {Kind: puntuale.FieldText, Value: "mine"}}}, Day, Begin); err != nil {
		t.Fatal(err)
	}
	c.mustErase("+393330000002", Begin)
	remember(-time.Hour)
	all, _, err = c.Contacts(ctx, puntuale.ContactFilter{}, puntuale.Page{})
	if err != nil || len(all) != 1 || all[0].Fields["said"].Value != "mine" {
		t.Errorf("remembered again: %+v, %v", all, err)
	}
	if names := other.mustFind(puntuale.ContactFilter{}, 5); len(names) > 0 {
		t.Errorf("another client's: %q", names)
	}
}

// testTagContacts checks that contacts get and lose tags together. A contact that would get too many tags stays as it is, and
// a contact that was deleted does not come back.
func testTagContacts(t *testing.T, w *World) {
	c, ctx := w.Client(puntuale.AccountFull), context.Background()
	full := make([]string, puntuale.MaxContactTags)
	for i := range full {
		full[i] = fmt.Sprintf("t%02d", i)
	}
	merged := c.mustMerge(Begin, puntuale.Contact{Phone: "+393330000001", Name: "Anna", Tags: []string{"vip"}}, puntuale.Contact{Phone: "+393330000002", Name: "Bea"},
		puntuale.Contact{Phone: "+393330000003", Name: "Carla", Tags: full}, puntuale.Contact{Phone: "+393330000004", Name: "Dora"})
	ids := make([]puntuale.ContactID, len(merged.All))
	for i := range merged.All {
		ids[i] = merged.All[i].ID
	}
	if err := c.DeleteContact(ctx, ids[3], Day); err != nil {
		t.Fatal(err)
	}
	later := Begin.Add(time.Hour)
	for _, step := range []struct {
		add, remove []string
		changed     int
		tag         string
		want        []string
	}{
		{[]string{"vip"}, nil, 1, "vip", []string{"Anna", "Bea"}},
		{[]string{"vip"}, nil, 0, "vip", []string{"Anna", "Bea"}},
		{nil, []string{"t07", "vip"}, 3, "vip", nil},
		{[]string{"vip"}, nil, 3, "vip", []string{"Anna", "Bea", "Carla"}},
	} {
		n, err := c.TagContacts(ctx, ids, step.add, step.remove, later)
		if got := c.mustFind(puntuale.ContactFilter{Tag: step.tag}, 10); err != nil || n != step.changed || !slices.Equal(got, step.want) {
			t.Errorf("add %q, remove %q: %d changed, %q, %v", step.add, step.remove, n, got, err)
		}
	}
	if got, err := c.Contact(ctx, ids[0]); err != nil || !got.Changed.Equal(later) || got.Name != "Anna" {
		t.Errorf("Anna: %+v, %v", got, err)
	}
	if n, all, err := c.CountContacts(ctx, puntuale.ContactFilter{}, 10); n != 3 || !all || err != nil {
		t.Errorf("%d contacts, %v, %v", n, all, err)
	}
}
