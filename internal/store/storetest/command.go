package storetest

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"puntuale"
)

// order returns a command that expires half a minute after Begin.
func order(session puntuale.SessionID, verb puntuale.CommandVerb) puntuale.Command {
	return puntuale.Command{Session: session, Verb: verb, Detail: []byte{0, 1, 0xff}, Created: Begin, Expires: Begin.Add(30 * time.Second)}
}

func (c *Client) mustGive(o puntuale.Command) puntuale.CommandID {
	c.w.t.Helper()
	id, err := c.GiveCommand(context.Background(), o)
	if err != nil {
		c.w.t.Fatalf("give a command: %v", err)
	}
	return id
}

func (w *World) mustOwn(node puntuale.NodeID, sessions ...puntuale.SessionID) {
	w.t.Helper()
	moved, err := w.Assign(context.Background(), 0, node, sessions)
	if err != nil || len(moved) != len(sessions) {
		w.t.Fatalf("assign %v: %v, %v", sessions, moved, err)
	}
}

func (w *World) openIDs(node puntuale.NodeID, now time.Time) []puntuale.CommandID {
	w.t.Helper()
	open, err := w.OpenCommands(context.Background(), node, now)
	if err != nil {
		w.t.Fatalf("open commands: %v", err)
	}
	ids := make([]puntuale.CommandID, len(open))
	for i, c := range open {
		ids[i] = c.ID
	}
	return ids
}

// testCommand checks that only the session's owner sees a command. The command must be taken once and answered once,
// and its caller must be able to read the answer.
func testCommand(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	a, b := w.MustJoin(), w.MustJoin()
	w.mustOwn(a, c.Session)
	w.mustOwn(b, other.Session)
	id := c.mustGive(order(c.Session, puntuale.CommandPair))
	open, err := w.OpenCommands(ctx, a, Begin)
	want := order(c.Session, puntuale.CommandPair)
	want.ID, want.Client = id, c.ID
	if err != nil || len(open) != 1 || open[0].ID != want.ID || open[0].Client != want.Client || open[0].Session != want.Session || open[0].Verb != want.Verb ||
		!bytes.Equal(open[0].Detail, want.Detail) || !open[0].Created.Equal(want.Created) || !open[0].Expires.Equal(want.Expires) || open[0].Taken != 0 {
		t.Fatalf("open commands = %+v, %v, want %+v", open, err, want)
	}
	if ids := w.openIDs(b, Begin); len(ids) != 0 {
		t.Fatalf("another node sees %v", ids)
	}
	expiresAt := Begin.Add(time.Minute)
	if ok, err := w.TakeCommand(ctx, b, id, Begin, expiresAt); ok || err != nil {
		t.Fatalf("another node takes it: %v, %v", ok, err)
	}
	if ok, err := w.TakeCommand(ctx, a, id, Begin, expiresAt); !ok || err != nil {
		t.Fatalf("take: %v, %v", ok, err)
	}
	if open, err := w.OpenCommands(ctx, a, expiresAt.Add(-1)); err != nil || len(open) != 1 || open[0].Taken != a {
		t.Fatalf("taken: %+v, %v", open, err)
	}
	if answer, err := c.CommandAnswer(ctx, id, Begin); answer != nil || err != nil {
		t.Fatalf("before its answer: %v, %v", answer, err)
	}
	if err := w.AnswerCommand(ctx, b, id, []byte("no"), Begin, expiresAt); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"answer", "second"} { // the first answer must stay; the second is ignored
		if err := w.AnswerCommand(ctx, a, id, []byte(text), Begin, expiresAt); err != nil {
			t.Fatal(err)
		}
	}
	if answer, err := c.CommandAnswer(ctx, id, Begin); string(answer) != "answer" || err != nil {
		t.Fatalf("answer = %q, %v", answer, err)
	}
	if ok, err := w.TakeCommand(ctx, a, id, Begin, expiresAt); ok || err != nil {
		t.Fatalf("take after the answer: %v, %v", ok, err)
	}
	_, err = other.CommandAnswer(ctx, id, Begin)
	WantCode(t, err, puntuale.CodeNotFound)
	_, err = c.CommandAnswer(ctx, id, expiresAt)
	WantCode(t, err, puntuale.CodeNotFound)
	if n := w.Int("select count(*) from command where length(detail) > 0"); n != 0 {
		t.Errorf("%d orders are kept after their answer", n)
	}
	if err := w.Maintain(ctx, expiresAt.Add(time.Microsecond), time.Time{}); err != nil || w.Int("select count(*) from command") != 0 {
		t.Errorf("after maintenance %d commands, %v", w.Int("select count(*) from command"), err)
	}
}

// testCommandRefused checks commands that are refused when they are created or taken.
func testCommandRefused(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	w.mustOwn(node, c.Session)
	for _, session := range []puntuale.SessionID{0, 999, other.Session} {
		_, err := c.GiveCommand(ctx, order(session, puntuale.CommandDrain))
		WantCode(t, err, puntuale.CodeNotFound)
	}
	id := c.mustGive(order(c.Session, puntuale.CommandDrain))
	late := Begin.Add(30 * time.Second)
	if ids := w.openIDs(node, late); len(ids) != 0 {
		t.Errorf("expired ones are listed: %v", ids)
	}
	if ok, err := w.TakeCommand(ctx, node, id, late, late.Add(time.Minute)); ok || err != nil {
		t.Errorf("an expired one is taken: %v, %v", ok, err)
	}
	var err error
	for range 40 {
		if _, err = c.GiveCommand(ctx, order(c.Session, puntuale.CommandDrain)); err != nil {
			break
		}
	}
	WantCode(t, err, puntuale.CodeBusy)
	w.Exec("delete from node")
	if _, err := w.TakeCommand(ctx, node, id, Begin, late); !errors.Is(err, puntuale.ErrFenced) {
		t.Errorf("without a lease: %v", err)
	}
	if err := w.AnswerCommand(ctx, node, id, nil, Begin, late); !errors.Is(err, puntuale.ErrFenced) {
		t.Errorf("an answer without a lease: %v", err)
	}
}

// testCommandOfDeadOwner lets an owner take a command and then die. The next owner must get the command, and must see
// that it was already taken.
func testCommandOfDeadOwner(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	a, b := w.MustJoin(), w.MustJoin()
	w.mustOwn(a, c.Session)
	id := c.mustGive(order(c.Session, puntuale.CommandUnlink))
	if ok, err := w.TakeCommand(ctx, a, id, Begin, Begin.Add(time.Minute)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := w.Leave(ctx, a); err != nil {
		t.Fatal(err)
	}
	w.mustOwn(b, c.Session)
	if open, err := w.OpenCommands(ctx, b, Begin); err != nil || len(open) != 1 || open[0].Taken != a {
		t.Fatalf("the successor sees %+v, %v", open, err)
	}
	if ok, err := w.TakeCommand(ctx, b, id, Begin, Begin.Add(time.Minute)); !ok || err != nil {
		t.Errorf("the successor takes it: %v, %v", ok, err)
	}
}

// testDeletedLinks checks that neither the number nor the code of a deleted session stays in the store.
func testDeletedLinks(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	second := c.mustSession("seconda")
	node := w.MustJoin()
	w.mustOwn(node, c.Session, second)
	l := puntuale.Link{State: puntuale.LinkPairing, Number: "+393331234567", Detail: puntuale.Quoted("in attesa"), Code: "sealed", Until: Begin}
	if err := w.SetLinks(ctx, node, Begin, map[puntuale.SessionID]puntuale.Link{c.Session: l, second: l}); err != nil {
		t.Fatal(err)
	}
	kept := func() int64 {
		return w.Int("select count(*) from session where number <> '' or length(code) > 0 or link_detail <> '' or code_until <> 0 or link <> 1")
	}
	if err := c.DeleteSession(ctx, second, true, 0, Begin); err != nil || kept() != 1 {
		t.Errorf("%d sessions have a number or a code, %v", kept(), err)
	}
	if err := w.Store.Partner(w.Partner).DeleteClient(ctx, c.ID, Begin); err != nil || kept() != 0 {
		t.Errorf("%d sessions have a number or a code, %v", kept(), err)
	}
}

func (c *Client) link() puntuale.Link {
	c.w.t.Helper()
	s, err := c.Tenant.Session(context.Background(), c.Session)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return s.Link
}

// mustSetLinks makes a node report one link for several sessions. The node need not be the owner of all of them.
func (w *World) mustSetLinks(node puntuale.NodeID, now time.Time, l puntuale.Link, sessions ...puntuale.SessionID) {
	w.t.Helper()
	links := make(map[puntuale.SessionID]puntuale.Link, len(sessions))
	for _, s := range sessions {
		links[s] = l
	}
	if err := w.SetLinks(context.Background(), node, now, links); err != nil {
		w.t.Fatal(err)
	}
}

// testLinks checks that only the owner can write a session's link, and that every reader can read it.
func testLinks(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	a, b := w.MustJoin(), w.MustJoin()
	w.mustOwn(a, c.Session)
	w.mustOwn(b, other.Session)
	if got := c.link(); !reflect.DeepEqual(got, puntuale.Link{}) {
		t.Fatalf("as created: %+v", got)
	}
	pairing := puntuale.Link{State: puntuale.LinkPairing, Detail: puntuale.Quoted("in attesa"), Code: "\x00sealed\xff", Until: Begin.Add(20 * time.Second)}
	w.mustSetLinks(a, Begin, pairing, c.Session, other.Session, 999)
	pairing.Since = Begin
	if got := c.link(); !reflect.DeepEqual(got, pairing) {
		t.Errorf("pairing = %+v, want %+v", got, pairing)
	}
	if got := other.link(); !reflect.DeepEqual(got, puntuale.Link{}) {
		t.Errorf("another node's session: %+v", got)
	}
	pairing.Code = "next"
	w.mustSetLinks(a, Begin.Add(time.Second), pairing, c.Session) // the state is the same, so its timestamp must not change
	if got := c.link(); !reflect.DeepEqual(got, pairing) {
		t.Errorf("rotated = %+v, want %+v", got, pairing)
	}
	pairing.Since = Begin.Add(time.Second)
	w.mustSetLinks(a, Begin.Add(2*time.Second), pairing, c.Session)
	if got := c.link(); !reflect.DeepEqual(got, pairing) {
		t.Errorf("begun anew = %+v, want %+v", got, pairing)
	}
	online := puntuale.Link{State: puntuale.LinkOnline, Number: "+393331234567"}
	w.mustSetLinks(a, Begin.Add(2*time.Second), online, c.Session)
	online.Since = Begin.Add(2 * time.Second)
	if got := c.link(); !reflect.DeepEqual(got, online) {
		t.Errorf("online = %+v, want %+v", got, online)
	}
	_, sessions, err := w.Roster(ctx, a)
	if i := slices.IndexFunc(sessions, func(s puntuale.Session) bool { return s.ID == c.Session }); err != nil || i < 0 || !reflect.DeepEqual(sessions[i].Link, online) {
		t.Errorf("the roster: %+v, %v", sessions, err)
	}
	if all, _, err := c.Sessions(ctx, puntuale.Page{Limit: 10}); err != nil || !reflect.DeepEqual(all[0].Link, online) {
		t.Errorf("the list: %+v, %v", all, err)
	}
}

// testLinkOfOwnerBefore checks that a former owner cannot write a session's link. A node whose lease has ended must not
// be shown as the owner, even if no other node is running.
func testLinkOfOwnerBefore(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	a, b := w.MustJoin(), w.MustJoin()
	w.mustOwn(a, c.Session)
	online := puntuale.Link{State: puntuale.LinkOnline, Number: "+393331234567"}
	w.mustSetLinks(a, Begin, online, c.Session)
	online.Since = Begin
	if moved, err := w.Assign(ctx, a, b, []puntuale.SessionID{c.Session}); err != nil || len(moved) != 1 {
		t.Fatal(moved, err)
	}
	owner := func() puntuale.NodeID {
		t.Helper()
		s, err := c.Tenant.Session(ctx, c.Session)
		all, _, listed := c.Sessions(ctx, puntuale.Page{Limit: 10})
		if err != nil || listed != nil || all[0].Owner != s.Owner {
			t.Fatalf("%v, %v: %+v, listed %+v", err, listed, s, all)
		}
		return s.Owner
	}
	if got := owner(); got != b {
		t.Errorf("owner %d, want %d", got, b)
	}
	expiresAt := w.Int("select lease_until from node where id = $1", b)
	w.Exec("update node set lease_until = 1 where id = $1", b)
	if got := owner(); got != 0 {
		t.Errorf("owner %d, whose lease has ended", got)
	}
	w.Exec("update node set lease_until = $1 where id = $2", expiresAt, b)
	w.mustSetLinks(a, Begin, puntuale.Link{State: puntuale.LinkPairing}, c.Session) // the node is not the session's owner any more
	if got := c.link(); !reflect.DeepEqual(got, online) {
		t.Errorf("after another node took it: %+v", got)
	}
	w.Exec("delete from node")
	if err := w.SetLinks(ctx, b, Begin, map[puntuale.SessionID]puntuale.Link{c.Session: {State: puntuale.LinkPairing}}); !errors.Is(err, puntuale.ErrFenced) {
		t.Errorf("without a lease: %v", err)
	}
}
