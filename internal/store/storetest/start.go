package storetest

import (
	"context"
	"testing"

	"puntuale"
)

func testStart(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	ctx := context.Background()
	ids := c.MustStart("+393331234567", Begin, 3)
	if len(ids) != 3 || ids[1] != ids[0]+1 || ids[2] != ids[0]+2 {
		t.Fatalf("ids = %v, want three without gaps", ids)
	}
	d := c.Detail(ids[1])
	if d.Content.Text != "testo 1" || d.State != puntuale.Pending || d.Phone != "+393331234567" || d.Origin != puntuale.OriginSequence ||
		string(d.Request) != `{"phone":"+393331234567"}` || d.ClientName != "Cliente" || !d.Due.Equal(Begin.Add(1e9)) {
		t.Fatalf("detail = %+v", d)
	}
	due, err := w.Due(ctx, []puntuale.SessionID{c.Session}, Begin.Add(1e9), 10)
	if err != nil || len(due) != 2 || due[0].ID != ids[0] || due[1].ID != ids[1] {
		t.Fatalf("due = %+v, %v", due, err)
	}
	ref := puntuale.RunRef{Client: c.ID, ID: due[0].Run}
	contents, err := w.Contents(ctx, []puntuale.RunRef{ref})
	if err != nil || len(contents[ref].Steps) != 3 || contents[ref].Zone != "Europe/Rome" {
		t.Fatalf("contents = %+v, %v", contents, err)
	}
	node := w.MustJoin()
	items := c.Items(d.Phone, 0, ids[0], ids[1])
	token, granted := w.MustClaim(node, Begin.Add(1e9), items...)
	if granted[0] != puntuale.ClaimGranted || granted[1] != puntuale.ClaimGranted {
		t.Fatalf("granted = %v", granted)
	}
	if !w.MustRecord(Begin.Add(2e9), items[0], token, puntuale.Outcome{Verdict: puntuale.Sent, Detail: "ok"}) {
		t.Fatal("not applied")
	}
	if d := c.Detail(ids[0]); d.State != puntuale.Completed || !d.Left().Equal(Begin.Add(1e9)) {
		t.Fatalf("detail = %+v", d)
	}
	p, err := w.Principal(ctx, c.Key, Begin)
	if err != nil || p.Side != puntuale.ClientSide || p.Client.ID != c.ID {
		t.Fatalf("principal = %+v, %v", p, err)
	}
	nodes, sessions, err := w.Roster(ctx, node)
	if err != nil || len(nodes) != 1 || len(sessions) != 1 {
		t.Fatalf("roster = %v %v %v", nodes, sessions, err)
	}
}
