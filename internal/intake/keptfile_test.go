package intake_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"os"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/store/storetest"
)

// sentFile is a file that a person sent, with everything that may go wrong with it.
type sentFile struct {
	content []byte
	breaks  bool // the network breaks off after the content
	told    int64
	refused error // what the network answers
	finding string
	scan    error
	away    bool // the storage takes the file's first part only
	before  func(*storetest.World, *storetest.Client)
	during  func(*storetest.World, *storetest.Client)

	want   puntuale.ReasonCode // "": it is kept
	tries  int                 // 0: one
	silent bool                // nothing is told, because the reply is gone or the file not wanted any more
}

// OpenMedia answers as the network does.
func (f *sentFile) OpenMedia(context.Context, puntuale.Session, puntuale.ReplyMedia, int64) (*puntuale.ReplyFile, error) {
	if f.refused != nil {
		return nil, f.refused
	}
	content := io.Reader(bytes.NewReader(f.content))
	if f.breaks {
		content = io.MultiReader(content, iotest.ErrReader(errors.New("the connection broke")))
	}
	return &puntuale.ReplyFile{ReadCloser: io.NopCloser(content), Size: int64(len(f.content))}, nil
}

// partlyTenants are a store that takes only the first part of each file.
type partlyTenants struct{ puntuale.TenantStore }

type partlyTenant struct{ puntuale.Tenant }

func (p partlyTenants) Tenant(id puntuale.ClientID) puntuale.Tenant {
	return partlyTenant{p.TenantStore.Tenant(id)}
}

func (p partlyTenants) Uncounted(id puntuale.ClientID) puntuale.Tenant {
	return partlyTenant{p.TenantStore.Uncounted(id)}
}

func (p partlyTenant) AddFilePart(ctx context.Context, id puntuale.FileID, n int, content []byte) error {
	if n > 0 {
		return &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because("file.storage_away")}
	}
	return p.Tenant.AddFilePart(ctx, id, n, content) //nolint:wrapcheck // the store's own error
}

// has lets a client have files of people already: n of them, with so many bytes each.
func has(n int, size int64) func(*storetest.World, *storetest.Client) {
	return func(w *storetest.World, c *storetest.Client) {
		for i := range n {
			sum := sha256.Sum256([]byte(fmt.Sprint(i)))
			w.Exec(`insert into file (client_id, id, name, type, hash, size, width, height, small, created_at, needed_at, stored_at, incoming, place)
 values ($1, $2, 'x', 'image/jpeg', $3, $4, 0, 0, $5, 1, 1, 1, 1, '')`, c.ID, fmt.Sprintf("%026d.jpg", i), sum[:], size, []byte{})
		}
	}
}

func picture(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, image.NewGray(image.Rect(0, 0, 40, 40)), nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func document(t *testing.T, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range names {
		if _, err := z.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestEveryEndIsTold: a file that a person sent is kept or is not, whatever happens to it. One event tells it, when no attempt
// follows any more, and nothing of a file that is not kept stays: no row, no part, nothing on the disk.
func TestEveryEndIsTold(t *testing.T) {
	t.Parallel()
	pdf, huge := []byte("%PDF-1.7\nconto"), picture(t)
	copy(huge[bytes.Index(huge, []byte{0xff, 0xc0})+5:], "\x7f\xff\x7f\xff") // its height and width
	unavailable := &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because(puntuale.FaultMediaUnavailable)}
	erase := func(w *storetest.World, c *storetest.Client) {
		if _, err := c.Erase(context.Background(), puntuale.Erasure{Person: puntuale.Person{Names: []string{"+393471112223"}, Mark: func(string) string { return "~m" }}, Day: storetest.Day, Now: w.DB.Clock.Now()}); err != nil {
			w.Test().Error(err)
		}
	}
	off := func(w *storetest.World, c *storetest.Client) {
		if _, err := c.UpdateSettings(context.Background(), puntuale.SettingsPatch{KeepMedia: new(false)}); err != nil {
			w.Test().Error(err)
		}
	}
	all := map[string]sentFile{
		"picture":                {content: picture(t)},
		"document":               {content: pdf},
		"large document":         {content: append(slices.Clone(pdf), make([]byte, 3<<20)...)},
		"virus":                  {content: pdf, finding: "Eicar", want: control.FileInfected},
		"larger for the scanner": {content: pdf, scan: &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: puntuale.Because("file.scanner_limit")}, want: "file.scanner_limit"},
		"no scanner":             {content: pdf, scan: &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because("file.scanner_away")}, want: "file.scanner_away", tries: puntuale.IncomingFileTries},
		"told too large":         {content: pdf, told: puntuale.MaxFileBytes + 1, want: "file.too_large"},
		"too large":              {refused: &puntuale.Error{Code: puntuale.CodeTooLarge}, want: "file.too_large"},
		"larger than told":       {content: append(slices.Clone(pdf), make([]byte, puntuale.MaxFileBytes)...), want: "file.too_large"},
		"empty":                  {content: []byte{}, want: "file.empty"},
		"not allowed":            {content: []byte("<svg onload='alert(1)'/>"), want: "file.not_kept"},
		"HEIC":                   {content: []byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"), want: "file.not_kept"},
		"damaged":                {content: picture(t)[:100], want: "file.damaged"},
		"too many pixels":        {content: huge, want: "file.pixels"},
		"macros":                 {content: document(t, "[Content_Types].xml", "word/document.xml", "word/vbaProject.bin"), want: "file.macros"},
		"no room":                {content: pdf, before: has(1, puntuale.MaxClientFileBytes/2), want: "file.no_room"},
		"too many files":         {content: pdf, before: has(puntuale.MaxClientFiles/2, 1), want: "file.too_many"},
		"gone":                   {refused: &puntuale.Error{Code: puntuale.CodeGone, Reason: puntuale.Because(puntuale.FaultMediaGone)}, want: puntuale.FaultMediaGone},
		"no network":             {refused: unavailable, want: puntuale.FaultMediaUnavailable, tries: puntuale.IncomingFileTries},
		"network breaks off":     {content: append(slices.Clone(pdf), make([]byte, 2<<20)...), breaks: true, want: puntuale.FaultMediaUnavailable, tries: puntuale.IncomingFileTries},
		"no storage":             {content: append(slices.Clone(pdf), make([]byte, 2<<20)...), away: true, want: "file.storage_away", tries: puntuale.IncomingFileTries},
		"erased meanwhile":       {content: pdf, during: erase, silent: true},
		"not wanted any more":    {content: pdf, during: off, silent: true},
	}
	onStores(t, func(t *testing.T, w *storetest.World) {
		for name, sent := range all {
			scratch, c := t.TempDir(), w.Client(puntuale.AccountFull)
			tenants := puntuale.TenantStore(w.Store)
			if sent.away {
				tenants = partlyTenants{tenants}
			}
			of := control.New(control.Config{Tenants: tenants, Devices: w.Store, Maintenance: w.Store, Clock: w.DB.Clock, Scratch: scratch, Opener: &sent, Scan: func(context.Context, io.Reader) (string, error) {
				if sent.during != nil {
					sent.during(w, c)
				}
				return sent.finding, sent.scan
			}})
			f := newFetching(t, w, func(ctx context.Context, x puntuale.IncomingFile) error {
				client, err := of.OfNetwork(ctx, x.Client)
				if err != nil {
					return err
				}
				return client.KeepFile(ctx, x)
			})
			f.size = sent.told
			events := func() (told []string) {
				if _, err := w.NumberEvents(t.Context(), w.DB.Clock.Now()); err != nil {
					t.Fatal(err)
				}
				found, _, err := c.Events(t.Context(), 0, puntuale.EventsOf(puntuale.EventFileKept, puntuale.EventFileFailed), 100, w.DB.Clock.Now())
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range found {
					told = append(told, fmt.Sprint(e.Type, " ", e.Reply.FileOf() != "", " ", e.Reply.Kept.Code))
				}
				return told
			}
			events() // turns the feed on
			if sent.before != nil {
				sent.before(w, c)
			}
			had := w.Int("select count(*) from file where client_id = $1", c.ID)
			f.sends(c, 1)
			for n := 1; n <= max(1, sent.tries); n++ {
				if told := events(); len(told) != 0 {
					t.Errorf("%s: told before attempt %d: %q", name, n, told)
				}
				f.round()
				if wait, more := puntuale.IncomingFileRetry(n); more && n < sent.tries {
					w.DB.Clock.Advance(wait)
				}
			}
			f.round()
			if f.tries != max(1, sent.tries) || w.Int("select count(*) from incoming_file where client_id = $1 and next_at > 0", c.ID) != 0 {
				t.Errorf("%s: %d attempts, want %d", name, f.tries, max(1, sent.tries))
			}
			var want []string
			kept := int64(0)
			switch {
			case sent.silent:
			case sent.want == "":
				want, kept = []string{"file.kept true "}, 1
			default:
				want = []string{"file.failed false " + string(sent.want)}
			}
			if told := events(); !slices.Equal(told, want) {
				t.Errorf("%s: told %q, want %q", name, told, want)
			}
			if n := w.Int("select count(*) from file where client_id = $1 and hidden_at = 0", c.ID) - had; n != kept {
				t.Errorf("%s: %d files more", name, n)
			}
			now := w.DB.Clock.Now()
			for _, at := range []time.Time{now, now.Add(20 * time.Minute)} {
				if err := w.MaintainFiles(t.Context(), at, time.Time{}); err != nil {
					t.Fatal(err)
				}
			}
			parts := int64(len(sent.content)+puntuale.FilePartBytes-1) / puntuale.FilePartBytes * kept
			if rows, n := w.Int("select count(*) from file where client_id = $1", c.ID)-had, w.Int("select count(*) from file_part where client_id = $1", c.ID); rows != kept || n != parts {
				t.Errorf("%s: %d rows and %d parts stay", name, rows, n)
			}
			if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
				t.Errorf("%s: %v stay on the disk, %v", name, left, err)
			}
		}
	})
}
