package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
)

// sends lets a person send a file, and returns the reply.
func (c *Client) sends(phone, id string, at time.Time) puntuale.Reply {
	c.w.t.Helper()
	media := &puntuale.ReplyMedia{Type: "image/jpeg", Name: id, Ref: []byte(id)}
	c.mustTake(at, c.reply(id, at, puntuale.TakenMessage{Keep: puntuale.KeepAllReplies, InboundMessage: puntuale.InboundMessage{Phone: phone, Kind: puntuale.ReplyImage, Media: media}}))
	return c.mustReplies(puntuale.ReplyFilter{Phone: phone})[0]
}

// MustWaitForFile lets a person send a file, which the client keeps, and which is not fetched yet.
func (c *Client) MustWaitForFile(phone string) {
	c.w.t.Helper()
	c.keepsMedia(true)
	c.sends(phone, Unique("file"), Begin)
}

// MustKeepFile keeps the file for which the client waits.
func (c *Client) MustKeepFile() {
	c.w.t.Helper()
	f, content := newFile(Unique("kept"), Begin)
	c.keep(f, content, Begin)
}

// toldFiles returns the types and the replies of all events about files.
func (c *Client) toldFiles() (told []string) {
	c.w.t.Helper()
	ctx := context.Background()
	if _, err := c.w.NumberEvents(ctx, Begin); err != nil {
		c.w.t.Fatal(err)
	}
	all, _, err := c.Events(ctx, 0, puntuale.EventsOf(puntuale.EventFileKept, puntuale.EventFileFailed), 100, Begin)
	if err != nil {
		c.w.t.Fatal(err)
	}
	for _, e := range all {
		told = append(told, fmt.Sprint(e.Type, " ", e.Subject, " ", e.Reply.FileOf(), e.Reply.Kept.Code))
	}
	return told
}

// dueFiles lists the client's files that are due, and checks that the list is not cut.
func (c *Client) dueFiles(now time.Time) (all []puntuale.IncomingFile) {
	c.w.t.Helper()
	found, more, err := c.w.DueIncoming(context.Background(), now, 0)
	if err != nil || more {
		c.w.t.Fatalf("due files: more %v, %v", more, err)
	}
	for _, x := range found {
		if x.Client == c.ID {
			all = append(all, x)
		}
	}
	return all
}

// keep makes the attempt that is due for the client's only waiting file, until the file is kept.
func (c *Client) keep(f puntuale.File, content []byte, at time.Time) puntuale.File {
	c.w.t.Helper()
	ctx := context.Background()
	due := c.dueFiles(at)
	if len(due) != 1 {
		c.w.t.Fatalf("%d files are due", len(due))
	}
	x, ok, err := c.w.ClaimIncoming(ctx, due[0], at.Add(time.Minute))
	if err != nil || !ok {
		c.w.t.Fatalf("claim: %v, %v", ok, err)
	}
	f.For, f.Needed = &x, at
	begun, err := c.CreateFile(ctx, f)
	if err == nil && begun.ID == f.ID {
		c.addParts(f, content)
		for range 2 { // also if the answer of the first call is lost
			begun, err = c.FinishFile(ctx, f)
		}
	}
	if err != nil {
		c.w.t.Fatalf("keep: %v", err)
	}
	return begun
}

func (c *Client) keepsMedia(on bool) {
	c.w.t.Helper()
	if _, err := c.UpdateSettings(context.Background(), puntuale.SettingsPatch{KeepMedia: &on, KeepReplies: new(puntuale.KeepAllReplies)}); err != nil {
		c.w.t.Fatal(err)
	}
}

// testIncomingFiles checks that a file in a reply is kept once, by one attempt at a time, and only if the client wants it. One
// event tells that it is kept, or that it never will be.
func testIncomingFiles(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	other.keepsMedia(true)
	c.toldFiles() // turns the feed on
	if y := c.sends(phone, "off", Begin); y.Kept != nil || len(c.dueFiles(Begin)) != 0 {
		t.Errorf("nobody asked for it: %+v", y.Kept)
	}
	c.keepsMedia(true)
	own := c.reply("own", Begin, puntuale.TakenMessage{Keep: puntuale.KeepAllReplies, InboundMessage: puntuale.InboundMessage{Own: true, Kind: puntuale.ReplyImage, Media: &puntuale.ReplyMedia{Ref: []byte("x")}}})
	c.mustTake(Begin, own, own)
	y := c.sends(phone, "a.jpg", Begin)
	due := c.dueFiles(Begin)
	if y.Kept == nil || !y.Kept.Waiting || len(due) != 1 || due[0].Reply != y.ID || due[0].Partner != w.Partner || due[0].Tries != 0 || len(c.dueFiles(Begin.Add(-time.Second))) != 0 {
		t.Fatalf("due: %+v of %+v", due, y)
	}
	first, ok, err := w.ClaimIncoming(ctx, due[0], Begin.Add(time.Minute))
	if err != nil || !ok || first.Tries != 1 {
		t.Fatalf("claim: %+v, %v, %v", first, ok, err)
	}
	if _, ok, err := w.ClaimIncoming(ctx, due[0], Begin.Add(time.Minute)); ok || err != nil {
		t.Errorf("two attempts at once: %v", err)
	}
	if len(c.dueFiles(Begin.Add(59*time.Second))) != 0 {
		t.Error("a second attempt may begin beside the first one")
	}
	due = c.dueFiles(Begin.Add(time.Minute)) // its process crashed
	second, ok, err := w.ClaimIncoming(ctx, due[0], Begin.Add(2*time.Minute))
	if err != nil || !ok || second.Tries != 2 {
		t.Fatalf("claim after a crash: %+v, %v, %v", second, ok, err)
	}
	f, content := newFile("a.jpg", Begin)
	f.For = &first
	if _, err := c.CreateFile(ctx, f); err != nil {
		t.Fatal(err)
	}
	c.addParts(f, content)
	_, err = c.FinishFile(ctx, f)
	WantCode(t, err, puntuale.CodeNotFound) // the first attempt took too long
	stolen := second
	stolen.Client = other.ID
	for _, x := range []puntuale.IncomingFile{first, stolen} {
		if err := w.SettleIncoming(ctx, x, time.Time{}, puntuale.KeptFile{Code: "media.gone"}); err != nil {
			t.Error(err)
		}
	}
	if err := w.SettleIncoming(ctx, second, Begin.Add(time.Hour), puntuale.KeptFile{Code: "media.unavailable"}); err != nil {
		t.Fatal(err)
	}
	if y, _ = c.Reply(ctx, y.ID); y.Kept == nil || !y.Kept.Waiting {
		t.Errorf("after a failed attempt: %+v", y.Kept)
	}
	at := Begin.Add(time.Hour)
	if err := c.DropFile(ctx, f.ID); err != nil {
		t.Fatal(err)
	}
	f.ID = puntuale.FileID(fmt.Sprintf("%026d.jpg", serial.Add(1)))
	kept := c.keep(f, content, at)
	y, _ = c.Reply(ctx, y.ID)
	if y.FileOf() != kept.ID || y.Kept.Name != "a.jpg" || y.Kept.Size != kept.Size || y.Kept.Type != "image/jpeg" || !y.Kept.Small || !kept.Received || len(c.dueFiles(at.Add(time.Hour))) != 0 {
		t.Errorf("kept: %+v, %+v", y.Kept, kept)
	}
	if listed := c.mustReplies(puntuale.ReplyFilter{Phone: phone}); listed[0].FileOf() != kept.ID {
		t.Errorf("in the list: %+v", listed[0].Kept)
	}
	bad := c.sends(phone, "virus", at)
	x, _, err := w.ClaimIncoming(ctx, c.dueFiles(at)[0], at.Add(time.Minute))
	for range 2 { // also if the answer of the first call is lost
		if err = errors.Join(err, w.SettleIncoming(ctx, x, time.Time{}, puntuale.KeptFile{Code: "file.infected"})); err != nil {
			t.Fatal(err)
		}
	}
	if told, want := c.toldFiles(), []string{fmt.Sprint("file.kept ", y.ID, " ", kept.ID), fmt.Sprint("file.failed ", bad.ID, " file.infected")}; !slices.Equal(told, want) {
		t.Errorf("told: %q, want %q", told, want)
	}
}

// testIncomingSmallPicture checks that a file without a small picture gets the one that the same bytes have later.
func testIncomingSmallPicture(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	c.keepsMedia(true)
	at := Begin
	c.sends(phone, "plain", at)
	plain, bytes := newFile("plain", at)
	plain.Small = nil
	c.keep(plain, bytes, at)
	c.sends(phone, "again", at)
	again, _ := newFile("plain", at)
	for _, has := range []bool{false, true} {
		if listed := c.mustReplies(puntuale.ReplyFilter{Phone: phone}); listed[1].Kept.Small || has && !listed[0].Kept.Small {
			t.Errorf("%v: %+v, %+v", has, listed[0].Kept, listed[1].Kept)
		}
		if !has {
			c.keep(again, bytes, at)
		}
	}
	if small, err := c.SmallPicture(ctx, plain.ID); err != nil || string(small) != "small plain" {
		t.Errorf("the small picture is %q, %v", small, err)
	}
	if err := c.DeleteFile(ctx, plain.ID, at); err != nil {
		t.Error(err)
	}
}

// testIncomingSameBytes checks that the same bytes from another person are the same file, and that a person's name for a file
// of the client changes nothing.
func testIncomingSameBytes(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	c.keepsMedia(true)
	at := Begin
	c.toldFiles() // turns the feed on
	y := c.sends(phone, "a.jpg", at)
	f, content := newFile("a.jpg", at)
	kept := c.keep(f, content, at)
	mine := c.upload("mine.jpg", Begin)
	for i, with := range []puntuale.File{kept, mine} {
		y := c.sends("+393330000007", fmt.Sprint("theirs", i), at)
		again, content := newFile(with.Name, at)
		again.Name = "fattura falsa.jpg"
		if got := c.keep(again, content, at); got.ID != with.ID || got.Name != with.Name {
			t.Errorf("the same bytes: %+v, want %+v", got, with)
		}
		if y, _ = c.Reply(ctx, y.ID); y.FileOf() != with.ID || y.Kept.Name != "fattura falsa.jpg" {
			t.Errorf("the reply has %+v", y.Kept)
		}
	}
	if told := c.toldFiles(); len(told) != 3 || !strings.HasSuffix(told[2], string(mine.ID)) {
		t.Errorf("told: %q", told)
	}
	if err := c.DeleteFile(ctx, kept.ID, at); err != nil { // people may delete it, to have room
		t.Error(err)
	}
	if y, _ = c.Reply(ctx, y.ID); y.FileOf() != "" || y.Kept.Waiting || y.Kept.Code != "file.deleted" {
		t.Errorf("after its deletion: %+v", y.Kept)
	}
}

// testIncomingShares checks that one client's files do not delay another's, that a client that changes its mind waits for
// nothing, and that files of people take at most half of the room.
func testIncomingShares(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	c.keepsMedia(true)
	other.keepsMedia(true)
	at := Begin
	for i := range 5 {
		c.sends(phone, fmt.Sprint("many", i), at)
	}
	other.sends(phone, "one", at)
	if n := len(c.dueFiles(at)); n != 2 || len(other.dueFiles(at)) != 1 {
		t.Errorf("%d files of the first client, %d of the other", n, len(other.dueFiles(at)))
	}
	c.keepsMedia(false)
	if n := len(c.dueFiles(at)); n != 0 || len(other.dueFiles(at)) != 1 {
		t.Errorf("%d files after the setting, %d of the other client", n, len(other.dueFiles(at)))
	}

	_, content := newFile("c", at)
	other.keep(puntuale.File{ID: puntuale.FileID(fmt.Sprintf("%026d.jpg", serial.Add(1))), Name: "c", Type: "image/jpeg", Hash: content[:32], Size: 1, Created: at}, make([]byte, puntuale.FilePartBytes), at)
	other.sends(phone, "large", at)
	x, _, err := w.ClaimIncoming(ctx, other.dueFiles(at)[0], at.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	large := puntuale.File{ID: puntuale.FileID(fmt.Sprintf("%026d.jpg", serial.Add(1))), Name: "l", Type: "image/jpeg", Hash: make([]byte, 32), Size: puntuale.MaxClientFileBytes / 2, Created: at, For: &x}
	_, err = other.CreateFile(ctx, large)
	WantCode(t, err, puntuale.CodeQuotaReached)
	large.For = nil
	if _, err = other.CreateFile(ctx, large); err != nil {
		t.Error(err)
	}
}

// testIncomingFilesEnd checks that a person's file goes with the reply, with the person, and with the client.
func testIncomingFilesEnd(t *testing.T, w *World) {
	ctx, day := context.Background(), fileDay
	c := w.Client(puntuale.AccountFull)
	c.keepsMedia(true)
	const erased, stays = "+393330000002", "+393330000003"
	keep := func(phone, name string, at time.Time) puntuale.File {
		c.sends(phone, phone+name, at)
		f, content := newFile(name, at)
		return c.keep(f, content, at)
	}
	uploaded := c.upload("uploaded", Begin)
	keep(erased, "uploaded", Begin)
	only := keep(erased, "only", Begin)
	both := keep(erased, "both", Begin)
	keep(stays, "both", Begin.Add(day))
	sent := keep(erased, "sent", Begin)
	c.withFile(erased, Begin.Add(2*day), sent)
	others := keep(erased, "others", Begin)
	c.withFile(stays, Begin.Add(2*day), others)
	back, lent := c.upload("back", Begin), c.upload("lent", Begin) // they sent back what they got; one of these, others got, too
	c.withFile(erased, Begin.Add(2*day), back)
	keep(erased, "back", Begin)
	for _, to := range []string{erased, stays} {
		c.withFile(to, Begin.Add(2*day), lent)
	}
	keep(erased, "lent", Begin)
	c.there(uploaded, only, both, sent, others, back, lent)
	c.sends(erased, "waits", Begin)
	c.mustErase(erased, Begin.Add(3*day))
	others.Name = "file.jpg" // its name was the erased person's
	c.there(uploaded, both, others, lent)
	if n := w.Int("select count(*) from incoming_file"); n != 1 {
		t.Errorf("%d files of replies after the erasure", n)
	}
	if _, err := c.Tenant.File(ctx, only.ID); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("the person's file: %v", err)
	}

	old := keep(stays, "old", Begin)
	before := Begin.Add(12 * time.Hour)
	if err := w.Maintain(ctx, Begin.Add(3*day), before); err != nil {
		t.Fatal(err)
	}
	w.maintainFiles(Begin.Add(3*day), before)
	c.there(both, others, lent)
	if _, err := c.Tenant.File(ctx, old.ID); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("a file older than its reply's text: %v", err)
	}
	if err := w.Store.Partner(w.Partner).DeleteClient(ctx, c.ID, Begin.Add(4*day)); err != nil {
		t.Fatal(err)
	}
	w.maintainFiles(Begin.Add(4*day), time.Time{})
	w.noParts()
	if n := w.Int("select count(*) from incoming_file"); n != 0 {
		t.Errorf("%d files of replies after the client", n)
	}
}

// testErasedFileNames checks that the name of an erased person's file does not stay as the name of somebody else's.
func testErasedFileNames(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	c.keepsMedia(true)
	const stays = "+393330000003"
	at := Begin
	keep := func(phone, bytes, name string) puntuale.File {
		c.sends(phone, name, at)
		f, content := newFile(bytes, at)
		f.Name = name
		return c.keep(f, content, at)
	}
	named := func(f puntuale.File, want string) {
		t.Helper()
		if got, err := c.Tenant.File(ctx, f.ID); err != nil || got.Name != want {
			t.Errorf("the file is %q, %v, want %q", got.Name, err, want)
		}
	}
	aged := keep(phone, "aged", "Rossi Mario.jpg")
	at = Begin.Add(fileDay)
	keep(stays, "aged", "mare.jpg")
	if err := w.Maintain(ctx, at, at); err != nil { // removes the first reply's text
		t.Fatal(err)
	}
	named(aged, "mare.jpg")
	both := keep(phone, "both", "Mario Rossi.jpg")
	keep(stays, "both", "foto.jpg")
	sent, only := keep(phone, "sent", "Rossi.jpg"), keep(phone, "only", "M.R..jpg")
	c.withFile(stays, Begin.Add(fileDay), sent)
	mine := c.upload("mine", Begin)
	keep(phone, "mine", "R.jpg")
	c.mustErase(phone, at.Add(time.Hour))
	named(both, "foto.jpg")
	named(sent, "file.jpg")
	named(mine, "mine")
	if got := keep(stays, "only", "gatto.jpg"); got.ID != only.ID { // its bytes are still there
		t.Fatalf("another file: %+v", got)
	}
	named(only, "gatto.jpg")
	if places := w.mentions(c.ID, "Rossi"); len(places) > 0 {
		t.Errorf("%v mention the name", places)
	}
}

// testReplyErasedByVersionBefore blanks replies as a server does that does not know their files. An attempt that runs keeps
// nothing, and maintenance erases a file that was kept.
func testReplyErasedByVersionBefore(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	c.keepsMedia(true)
	const stays = "+393330000003"
	f, content := newFile("kept", Begin)
	c.sends(phone, "kept", Begin)
	c.keep(f, content, Begin)
	f, content = newFile("stays", Begin)
	c.sends(stays, "stays", Begin)
	other := c.keep(f, content, Begin)

	y := c.sends(phone, "waits", Begin)
	x, ok, err := w.ClaimIncoming(ctx, c.dueFiles(Begin)[0], Begin.Add(time.Minute))
	if err != nil || !ok {
		t.Fatalf("claim: %v, %v", ok, err)
	}
	w.Exec("update reply set phone = '', text = '', media = '', blanked_at = 1 where client_id = $1 and phone = $2", c.ID, phone)
	f, content = newFile("waits", Begin)
	f.For, f.Needed = &x, Begin
	if _, err := c.CreateFile(ctx, f); err != nil {
		t.Fatal(err)
	}
	c.addParts(f, content)
	_, err = c.FinishFile(ctx, f)
	WantCode(t, err, puntuale.CodeNotFound)
	w.Exec("delete from reply where client_id = $1 and id = $2", c.ID, y.ID)
	w.maintainFiles(Begin.Add(2*time.Hour), time.Time{})
	c.there(other)
	if n := w.Int("select count(*) from incoming_file"); n != 1 {
		t.Errorf("%d files of replies after maintenance", n)
	}
}

// testErasureMeetsKeptFile erases a person while the transaction that keeps the person's file is open. The erasure waits for
// it, and hides the file.
func testErasureMeetsKeptFile(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	c.keepsMedia(true)
	f := c.upload("only", Begin)
	w.Exec("update file set incoming = 1")
	y := c.sends(phone, "only", Begin)
	keeping, err := w.DB.SQL.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer keeping.Rollback() //nolint:errcheck // it is committed
	if _, err := keeping.Exec(`update incoming_file set next_at = 0, file_id = $3, outcome = '{}' where client_id = $1 and reply_id = $2`, c.ID, y.ID, f.ID); err != nil {
		t.Fatal(err)
	}
	erased := make(chan error, 1)
	go func() {
		_, err := c.Erase(ctx, c.erasure(phone, Begin.Add(time.Hour)))
		erased <- err
	}()
	w.awaitLockWait(keeping)
	if err := keeping.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-erased; err != nil {
		t.Fatal(err)
	}
	c.there()
}
