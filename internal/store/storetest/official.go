package storetest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"puntuale"
)

// MustOfficial creates a session of type Official. Its sealed keys are the bytes "keys of <id>".
func (c *Client) MustOfficial(sandbox bool) puntuale.SessionID {
	c.w.t.Helper()
	id, err := c.CreateOfficial(context.Background(), puntuale.Session{Name: "ufficiale", Type: puntuale.Official, Sandbox: sandbox, Created: Begin},
		func(id puntuale.SessionID) []byte { return []byte("keys of " + id.String()) }, nil)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return id
}

func testOfficialKeys(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest)
	id := c.MustOfficial(false)
	has := func(id puntuale.SessionID, want string) {
		t.Helper()
		client, sealed, err := w.SealedKeys(ctx, id)
		if err != nil || client != c.ID || !bytes.Equal(sealed, []byte(want)) || (want == "") != (sealed == nil) {
			t.Errorf("session %d of client %d: %q, %v, want %q", id, client, sealed, err, want)
		}
	}
	has(id, "keys of "+id.String())
	if err := c.SetKeys(ctx, id, []byte("others")); err != nil {
		t.Fatal(err)
	}
	has(id, "others")
	wrong := puntuale.Invalid(puntuale.Fault{Location: "x", Code: "y"})
	WantCode(t, c.ChangeKeys(ctx, id, func([]byte) ([]byte, string, error) { return []byte("never"), "", wrong }), puntuale.CodeInvalid)
	has(id, "others")
	if err := c.ChangeKeys(ctx, id, func(old []byte) ([]byte, string, error) { return append(old, " again"...), "", nil }); err != nil {
		t.Fatal(err)
	}
	has(id, "others again")
	WantCode(t, other.SetKeys(ctx, id, []byte("mine")), puntuale.CodeNotFound)
	if err := w.ForgetKeys(ctx, id); err != nil {
		t.Fatal(err)
	}
	has(id, "")
	for _, none := range []puntuale.SessionID{c.Session, c.MustOfficial(true), 987654} { // another type, a sandbox, and a missing session
		_, _, err := w.SealedKeys(ctx, none)
		WantCode(t, err, puntuale.CodeNotFound)
	}
	gone := c.MustOfficial(false)
	c.mustHear(phone, Begin, Begin)
	upload := puntuale.Upload{Client: c.ID, Session: gone, Number: "1", Hash: "h"}
	if err := w.KeepUpload(ctx, upload, "900", Begin.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteSession(ctx, gone, false, 0, Begin); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.SealedKeys(ctx, gone)
	WantCode(t, err, puntuale.CodeNotFound)
	kept := c.MustOfficial(false)
	if err := w.Store.Partner(w.Partner).DeleteClient(ctx, c.ID, Begin); err != nil {
		t.Fatal(err)
	}
	_, _, err = w.SealedKeys(ctx, kept)
	WantCode(t, err, puntuale.CodeNotFound)
	for _, what := range []string{"session where length(keys) > 0", "contact", "upload"} {
		if n := w.Int("select count(*) from " + what); n != 0 {
			t.Errorf("%d rows are left: %s", n, what)
		}
	}
}

func testUploads(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountTest)
	u := puntuale.Upload{Client: c.ID, Session: c.Session, Number: "1", Hash: "h"}
	has := func(u puntuale.Upload, now time.Time, want string) {
		t.Helper()
		if id, err := w.Upload(ctx, u, now); err != nil || id != want {
			t.Errorf("%+v at %v: %q, %v, want %q", u, now, id, err, want)
		}
	}
	has(u, Begin, "")
	for _, id := range []string{"900", "901"} {
		if err := w.KeepUpload(ctx, u, id, Begin.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		has(u, Begin, id)
	}
	has(u, Begin.Add(time.Hour), "")
	otherNumber := u
	otherNumber.Number = "2"
	has(otherNumber, Begin, "")
	if err := w.Maintain(ctx, Begin.Add(30*time.Minute), time.Time{}); err != nil {
		t.Fatal(err)
	}
	has(u, Begin, "901")
	if err := w.Maintain(ctx, Begin.Add(2*time.Hour), time.Time{}); err != nil || w.Int("select count(*) from upload") != 0 {
		t.Errorf("after its time it is still there, %v", err)
	}
	if err := w.KeepUpload(ctx, u, "902", Begin.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := w.KeepUpload(ctx, u, "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	has(u, Begin, "")
}

// testAddressed checks which people a session has addressed. These people got a message of the session since the given
// time, and had not written in the 24 hours before this message.
func testAddressed(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	at := Begin.Add(time.Minute)
	const addressed, answered, refused, older = "+393330000001", "+393330000002", "+393330000003", "+393330000004"
	c.mustHear(answered, Begin, Begin)
	for phone, o := range map[string]puntuale.Outcome{
		addressed: {Verdict: puntuale.Sent}, answered: {Verdict: puntuale.Sent}, refused: {Verdict: puntuale.Refused},
	} {
		items := c.Items(phone, 0, c.MustStart(phone, Begin, 1)...)
		token, _ := w.MustClaim(node, at, items...)
		w.MustRecord(at, items[0], token, o)
	}
	items := c.Items(older, 0, c.MustStart(older, Begin, 1)...)
	token, _ := w.MustClaim(node, Begin, items...)
	w.MustRecord(at, items[0], token, puntuale.Outcome{Verdict: puntuale.Sent})
	got, err := w.Addressed(context.Background(), c.ID, c.Session, at)
	if err != nil || len(got) != 1 || !got[addressed].Equal(at) {
		t.Errorf("addressed: %v, %v", got, err)
	}
}
