package intake_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/intake"
	"puntuale/internal/store/storetest"
)

// fetching is a fetcher over a real store, with an end that the test decides.
type fetching struct {
	*intake.FileFetcher
	t *testing.T
	w *storetest.World

	mu      sync.Mutex
	running map[puntuale.ClientID]int
	most    int // of one client, at once
	tries   int
	size    int64 // that the network tells; 0: none
	begun   chan puntuale.IncomingFile
}

func newFetching(t *testing.T, w *storetest.World, keep func(ctx context.Context, x puntuale.IncomingFile) error) *fetching {
	f := &fetching{t: t, w: w, running: map[puntuale.ClientID]int{}, begun: make(chan puntuale.IncomingFile, 100)}
	f.FileFetcher = &intake.FileFetcher{Store: w.Store, Clock: w.DB.Clock, Logger: slog.New(slog.DiscardHandler), Keep: func(ctx context.Context, x puntuale.IncomingFile) error {
		f.mu.Lock()
		f.running[x.Client]++
		f.most = max(f.most, f.running[x.Client])
		f.tries++
		f.mu.Unlock()
		f.begun <- x
		defer func() {
			f.mu.Lock()
			f.running[x.Client]--
			f.mu.Unlock()
		}()
		return keep(ctx, x)
	}}
	return f
}

// sends lets a person send files to a client that keeps them.
func (f *fetching) sends(c *storetest.Client, n int) {
	f.t.Helper()
	if _, err := c.UpdateSettings(f.t.Context(), puntuale.SettingsPatch{KeepMedia: new(true), KeepReplies: new(puntuale.KeepAllReplies)}); err != nil {
		f.t.Fatal(err)
	}
	var all []puntuale.TakenMessage
	for i := range n {
		all = append(all, puntuale.TakenMessage{Mark: "m" + strconv.Itoa(i), Names: []string{"+393471112223"}, Keep: puntuale.KeepAllReplies, InboundMessage: puntuale.InboundMessage{
			Client: c.ID, Session: c.Session, Phone: "+393471112223", At: f.w.DB.Clock.Now(), Kind: puntuale.ReplyImage, Media: &puntuale.ReplyMedia{Ref: []byte("x"), Size: f.size},
		}})
	}
	if _, err := f.w.KeepInbound(f.t.Context(), f.w.DB.Clock.Now(), all); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fetching) round() {
	f.t.Helper()
	if err := f.Round(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// kept returns what the client's only reply says about its file.
func (f *fetching) kept(c *storetest.Client) *puntuale.KeptFile {
	f.t.Helper()
	all, _, err := c.Replies(f.t.Context(), puntuale.ReplyFilter{}, puntuale.Page{})
	if err != nil || len(all) != 1 || all[0].Kept == nil {
		f.t.Fatalf("%+v, %v", all, err)
	}
	return all[0].Kept
}

func onStores(t *testing.T, test func(t *testing.T, w *storetest.World)) {
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, storetest.NewWorld(t, driver(t)))
		})
	}
}

// TestFilesAreTriedAgain: an attempt is repeated by a schedule with an end, also if each attempt takes its process with it; a
// reason that stays ends them at once.
func TestFilesAreTriedAgain(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *storetest.World) {
		t.Helper()
		away := &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because("file.scanner_away")}
		answer := error(away)
		f := newFetching(t, w, func(context.Context, puntuale.IncomingFile) error { return answer })
		c := w.Client(puntuale.AccountFull)
		f.sends(c, 1)
		for n := 1; ; n++ {
			f.round()
			f.round() // it is not due yet
			if f.tries != n {
				t.Fatalf("%d attempts, want %d", f.tries, n)
			}
			wait, more := puntuale.IncomingFileRetry(n)
			if got := f.kept(c); got.Waiting != more {
				t.Errorf("after %d attempts: %+v", n, got)
			}
			if !more {
				break
			}
			w.DB.Clock.Advance(wait)
		}
		if got := f.kept(c); f.tries != puntuale.IncomingFileTries || got.Code != "file.scanner_away" || got.File != "" {
			t.Errorf("after %d attempts: %+v", f.tries, got)
		}
		bad := newFetching(t, w, func(context.Context, puntuale.IncomingFile) error { panic("a bad picture") })
		other := w.Client(puntuale.AccountFull)
		bad.sends(other, 1)
		bad.round()
		if got := bad.kept(other); bad.tries != 1 || !got.Waiting {
			t.Errorf("after a panic: %+v", got)
		}
		w.DB.Clock.Advance(24 * time.Hour)
		for final := 0; final < 24 && bad.kept(other).Waiting; final++ {
			bad.round()
			w.DB.Clock.Advance(24 * time.Hour)
		}
		if got := bad.kept(other); got.Waiting || bad.tries != puntuale.IncomingFileTries {
			t.Errorf("after %d panics: %+v", bad.tries, got)
		}
		for _, final := range []struct {
			answer error
			reason puntuale.ReasonCode
		}{
			{&puntuale.Error{Code: puntuale.CodeGone, Reason: puntuale.Because(puntuale.FaultMediaGone)}, puntuale.FaultMediaGone},
			{puntuale.NotFound(puntuale.NoSession), puntuale.FaultMediaGone},
			{puntuale.Invalid(puntuale.Fault{Location: "body.file", Code: "file.infected", Args: []string{"Eicar"}}), "file.infected"},
			{&puntuale.Error{Code: puntuale.CodeQuotaReached, Reason: puntuale.Because("file.no_room", "512")}, "file.no_room"},
		} {
			c, before := w.Client(puntuale.AccountFull), f.tries
			answer = final.answer
			f.sends(c, 1)
			f.round()
			if got := f.kept(c); got.Waiting || got.Code != final.reason || f.tries != before+1 {
				t.Errorf("%v: %+v", final.answer, got)
			}
		}

		crashing, ctx, crash := w.Client(puntuale.AccountFull), context.Context(nil), func() {}
		f.Keep = func(context.Context, puntuale.IncomingFile) error {
			f.tries++
			crash()
			return errors.New("the process ended")
		}
		f.sends(crashing, 1)
		f.tries = 0
		for range 2 * puntuale.IncomingFileTries {
			ctx, crash = context.WithCancel(t.Context())
			_ = f.Round(ctx)
			crash()
			w.DB.Clock.Advance(puntuale.IncomingFileWithin)
		}
		if got := f.kept(crashing); f.tries != puntuale.IncomingFileTries || got.Waiting || got.Code != puntuale.FaultMediaUnavailable {
			t.Errorf("%d attempts that crashed: %+v", f.tries, got)
		}
	})
}

// TestFilesAreShared: a network that hangs delays only the files of its client, and no client gets more than its share.
func TestFilesAreShared(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *storetest.World) {
		t.Helper()
		hang := make(chan struct{})
		slow, fast := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
		f := newFetching(t, w, func(_ context.Context, x puntuale.IncomingFile) error {
			if x.Client == slow.ID {
				<-hang
			}
			return &puntuale.Error{Code: puntuale.CodeGone, Reason: puntuale.Because(puntuale.FaultMediaGone)}
		})
		f.sends(slow, 5)
		done := make(chan error)
		go func() { done <- f.Round(t.Context()) }()
		for range 2 {
			<-f.begun
		}
		f.sends(fast, 1)
		if err := w.DB.Clock.Waiting(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		w.DB.Clock.Advance(time.Second)
		if x := <-f.begun; x.Client != fast.ID {
			t.Errorf("the next file is of %d", x.Client)
		}
		close(hang)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := w.Int("select count(*) from incoming_file where next_at > 0"); n != 0 || f.tries != 6 || f.most != 2 {
			t.Errorf("%d files wait after %d attempts, %d of one client at once", n, f.tries, f.most)
		}
	})
}
