package control

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/campaign"
	"puntuale/internal/control/request"
	"puntuale/internal/control/upload"
	"puntuale/internal/file"
	"puntuale/internal/plan"
	"puntuale/internal/roster"
	"puntuale/internal/semaphore"
)

// Codes of faults of uploaded files.
const (
	faultFileEmpty     puntuale.ReasonCode = "file.empty"
	faultFileNoAddress puntuale.ReasonCode = "file.no_address" // the session's gateway wants an address, and the service has none
	faultFileForMeta   puntuale.ReasonCode = "file.for_meta"   // {1}: image, video, audio or document; {2}: the most, in MB
)

// FileUpload is a file that arrives.
type FileUpload struct {
	Name     string    // "": the name in the form, if there is one
	Content  io.Reader // the file, or a form of which the first file is taken
	Boundary string    // of the form (multipart/form-data); "": no form
}

// MaxFileForm is the most that a form may have besides the file, in bytes.
const MaxFileForm = 64 << 10

const (
	smallSide  = 160             // the longer side of a small picture, in pixels
	smallWaits = 3 * time.Second // how long a small picture waits for a processor
	keptWaits  = time.Minute     // the same for the file of a reply, because nobody waits for it
)

// UploadFile stores a file, in parts, while at most one part is in memory. The type is the type of the content. If the
// client has the same file already, UploadFile returns that one, with the new name. Codes: invalid, unreadable, too_large,
// quota_reached, rate_limited, overloaded, forbidden, unavailable.
func (c *Client) UploadFile(ctx context.Context, r FileUpload) (f puntuale.File, err error) {
	if err := c.MayCreate(); err != nil {
		return f, err
	}
	r.Content = &uploadedBytes{ctx: ctx, client: c, from: r.Content}
	return c.takeFile(ctx, r, nil, time.Time{})
}

// takeFile checks and stores a file that somebody uploads, or that came with a reply at a time.
func (c *Client) takeFile(ctx context.Context, r FileUpload, of *puntuale.IncomingFile, at time.Time) (f puntuale.File, err error) {
	u, err := c.beginFileUpload()
	if err != nil {
		return f, err
	}
	defer u.End()
	spool, err := roster.Spool(c.control.lists.scratch)
	if err != nil {
		return f, fmt.Errorf("keep a file on disk: %w", err)
	}
	defer func() { _ = spool.Close() }()
	name, size, err := c.receive(ctx, r, spool)
	if err != nil {
		return f, err
	}
	inspect, waits := file.Inspect, smallWaits
	if of != nil {
		inspect, waits = file.InspectReceived, keptWaits
	}
	facts, err := inspect(spool, size)
	if refused, ok := errors.AsType[*file.RefusedError](err); ok {
		return f, puntuale.Invalid(refused.Reason.At("body.file", nil))
	}
	if err != nil {
		return f, err
	}
	if err := c.scan(ctx, io.NewSectionReader(spool, 0, size)); err != nil {
		return f, err
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, facts.Reader(spool)); err != nil {
		return f, fmt.Errorf("read a file: %w", err)
	}
	f = puntuale.File{
		ID:   puntuale.FileID(strings.ToLower(rand.Text()) + "." + facts.Extension),
		Name: facts.Name(name), Type: facts.Type, Hash: hash.Sum(nil), Size: facts.Size, Width: facts.Width, Height: facts.Height, Created: c.control.clock.Now(), For: of,
	}
	if of != nil {
		f.Needed = at // so the file goes with the reply
	}
	f.Small = smallOf(ctx, waits, u, &facts, spool)
	return c.storeFile(ctx, f, facts.Reader(spool))
}

// smallOf returns the small picture of an image. It returns nil for other files, and if no processor becomes free soon.
func smallOf(ctx context.Context, waits time.Duration, u *upload.Upload, facts *file.Facts, spool io.ReaderAt) []byte {
	if !strings.HasPrefix(facts.Type, "image/") || facts.Width == 0 {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, waits)
	defer cancel()
	if u.Work(within) != nil {
		return nil
	}
	small, _, _ := file.Small(func() io.Reader { return facts.Reader(spool) }, smallSide)
	if len(small) > puntuale.MaxSmallPicture {
		return nil
	}
	return small
}

// storeFile stores a file's parts, and then the file. If it fails, it drops the parts that it stored; if it cannot, the
// store's maintenance does.
func (c *Client) storeFile(ctx context.Context, f puntuale.File, content io.Reader) (_ puntuale.File, err error) {
	begun, err := c.tenant.CreateFile(ctx, f)
	if err != nil {
		return f, fmt.Errorf("create a file: %w", err)
	}
	again := begun.ID != f.ID // the client has these bytes already; the storage outside of the database may have lost them
	f.ID = begun.ID
	defer func() {
		if err != nil && !again {
			_ = c.tenant.DropFile(context.WithoutCancel(ctx), f.ID)
		}
	}()
	part := make([]byte, min(f.Size, puntuale.FilePartBytes))
	for n := 0; ; n++ {
		read, err := io.ReadFull(content, part)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return f, fmt.Errorf("read a file: %w", err)
		}
		if again {
			_, err := c.tenant.FilePart(ctx, f.ID, n)
			if err == nil {
				continue
			}
			if code := puntuale.CodeOf(err); code != puntuale.CodeGone && code != puntuale.CodeNotFound { // nobody knows whether the storage lost the part
				return f, fmt.Errorf("look whether the storage lost a part of a file: %w", err)
			}
		}
		err = c.tenant.AddFilePart(ctx, f.ID, n, part[:read])
		if again && puntuale.CodeOf(err) == puntuale.CodeNotFound { // the file has just been deleted
			break
		}
		if err != nil {
			return f, fmt.Errorf("store a part of a file: %w", err)
		}
	}
	if again {
		return begun, nil
	}
	stored, err := c.tenant.FinishFile(ctx, f)
	if err != nil {
		return f, fmt.Errorf("finish a file: %w", err)
	}
	return stored, nil
}

// File returns what is known about a file. Codes: not_found.
func (c *Client) File(ctx context.Context, id string) (puntuale.File, error) {
	wanted, ok := puntuale.ParseFileID(id)
	if !ok {
		return puntuale.File{}, puntuale.NotFound(puntuale.NoFile)
	}
	f, err := c.tenant.File(ctx, wanted)
	if err != nil {
		return f, fmt.Errorf("read a file: %w", err)
	}
	return f, nil
}

// OpenFile returns a reader of a file's bytes, which has one part at a time in memory. The caller must close it. Codes:
// overloaded, if too many files are being sent; unavailable and gone, if the storage outside of the database does not answer,
// or does not have the file any more. Codes of the reader: the same, and not_found, if the file was deleted meanwhile.
func (c *Client) OpenFile(ctx context.Context, f puntuale.File) (io.ReadCloser, error) {
	leave, err := c.beginFile(ctx)
	if err != nil {
		return nil, err
	}
	content := file.NewReader(f.Size, func(n int) ([]byte, error) { return c.tenant.FilePart(ctx, f.ID, n) })
	if err := content.Load(); err != nil {
		leave()
		return nil, fmt.Errorf("open a file: %w", err)
	}
	return &openFile{content, leave}, nil
}

// openFile lets the next file be sent when it is closed.
type openFile struct {
	io.Reader
	leave func()
}

func (f *openFile) Close() error {
	f.leave()
	return nil
}

// Files returns all files of the client, the newest first. There are at most [puntuale.MaxClientFiles].
func (c *Client) Files(ctx context.Context) ([]puntuale.File, error) {
	all, err := c.tenant.Files(ctx)
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	return all, nil
}

// SmallPicture returns the small picture of an image, a JPEG. Codes: not_found (also if there is none).
func (c *Client) SmallPicture(ctx context.Context, id string) ([]byte, error) {
	wanted, ok := puntuale.ParseFileID(id)
	if !ok {
		return nil, puntuale.NotFound(puntuale.NoFile)
	}
	picture, err := c.tenant.SmallPicture(ctx, wanted)
	if err != nil {
		return nil, fmt.Errorf("read a small picture: %w", err)
	}
	return picture, nil
}

// FileUsers returns what names the client's files, at most 20 for each file.
func (c *Client) FileUsers(ctx context.Context) (map[puntuale.FileID][]puntuale.FileUser, error) {
	all, err := c.tenant.FileUsers(ctx)
	if err != nil {
		return nil, fmt.Errorf("look who names files: %w", err)
	}
	return all, nil
}

// DeleteFile deletes a file. Codes: not_found, conflict (something names the file, or a message with it is not over).
func (c *Client) DeleteFile(ctx context.Context, id string) error {
	wanted, ok := puntuale.ParseFileID(id)
	if !ok {
		return puntuale.NotFound(puntuale.NoFile)
	}
	if err := c.tenant.DeleteFile(ctx, wanted, c.control.clock.Now()); err != nil {
		return fmt.Errorf("delete a file: %w", err)
	}
	return nil
}

// CheckFile adds the fault of a step's or message's media address, if it names an uploaded file that is not there, or that
// the session's network would refuse. If the session is zero, the network is not known yet; if it has only a type, it is any of
// this type. The media gets the file's name, unless it has one.
func (c *Client) CheckFile(ctx context.Context, f *request.Faults, at string, address string, name *string, session puntuale.Session) error {
	id, named := puntuale.UploadedFile(strings.TrimSpace(address))
	if !named || id == "" || f.At(at) {
		return nil
	}
	found, err := c.tenant.File(ctx, id)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		f.Add(at, puntuale.FaultFileGone, address)
		return nil
	case err != nil:
		return fmt.Errorf("look for a file: %w", err)
	}
	if *name == "" {
		*name = found.Name
	}
	if reason := c.control.fileRefused(found, session); !reason.IsZero() {
		*f = append(*f, reason.At(at, address))
	}
	return nil
}

// planFiles returns the uploaded files that a plan of the sequence may name, for [plan.Input]; nil if no step has media. values
// are the fields of the call; if there are none, the values are not known yet, so all of the client's files are returned.
func (c *Client) planFiles(ctx context.Context, s puntuale.Sequence, session puntuale.Session, values ...map[string]json.RawMessage) (map[puntuale.FileID]plan.UploadedFile, error) {
	media := false
	for _, step := range puntuale.Texts(s.Steps) {
		media = media || step.Media != ""
	}
	if !media {
		return nil, nil
	}
	filled, composed := false, false
	ids := map[puntuale.FileID]bool{}
	note := func(text string) {
		for id := range puntuale.FilesIn(text) {
			ids[id] = true
		}
	}
	for _, step := range puntuale.Texts(s.Steps) {
		text := step.Media
		field := strings.Contains(text, "{{")
		filled, composed = filled || field, composed || field && strings.Contains(text, "file:")
		note(text)
	}
	for _, fields := range values {
		for _, raw := range fields {
			if filled {
				note(string(raw))
			}
		}
	}
	var found []puntuale.File
	var err error
	if composed || filled && len(values) == 0 || len(ids) > maxSingleFiles {
		found, err = c.tenant.Files(ctx)
	} else {
		for id := range ids {
			f, failed := c.tenant.File(ctx, id)
			if failed == nil {
				found = append(found, f)
			} else if puntuale.CodeOf(failed) != puntuale.CodeNotFound {
				err = failed
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("look for files: %w", err)
	}
	files := make(map[puntuale.FileID]plan.UploadedFile, len(found))
	for _, f := range found {
		files[f.ID] = plan.UploadedFile{Name: f.Name, Refused: c.control.fileRefused(f, session)}
	}
	return files, nil
}

// maxSingleFiles is how many files are read one by one; for more, all files of the client are read.
const maxSingleFiles = 20

// planOf returns the plan of a campaign, which refuses uploaded files that are not there.
func (c *Client) planOf(ctx context.Context, stored puntuale.Campaign, frozen puntuale.CampaignFrozen, session puntuale.Session) (*campaign.Plan, error) {
	files, err := c.planFiles(ctx, frozen.Sequence, session)
	if err != nil {
		return nil, err
	}
	p, err := campaign.NewPlan(stored, frozen, c.control.media, files)
	if err != nil {
		return nil, fmt.Errorf("plan a campaign: %w", err)
	}
	return p, nil
}

// CampaignFiles returns the uploaded files that the messages of a campaign may name. Codes: not_found.
func (c *Control) CampaignFiles(ctx context.Context, g *puntuale.FedCampaign) (map[puntuale.FileID]plan.UploadedFile, error) {
	client, err := c.OfNetwork(ctx, g.Client)
	if err != nil {
		return nil, err
	}
	return client.planFiles(ctx, g.Frozen.Joined().Sequence, puntuale.Session{}) // the check asked whether the session can send them
}

// checkStepFiles does the same as CheckFile for steps without placeholders.
func (c *Client) checkStepFiles(ctx context.Context, f *request.Faults, steps []puntuale.Step, session puntuale.Session, location func(step int) string) error {
	for i := range steps {
		if err := c.CheckFile(ctx, f, location(i), steps[i].Media, &steps[i].MediaName, session); err != nil {
			return err
		}
	}
	return nil
}

// checkDraftFile does the same as CheckFile for the content of a campaign: a step, or the template that it names. A session
// that is not there is another fault.
func (c *Client) checkDraftFile(ctx context.Context, f *request.Faults, at string, step *puntuale.Step, expanded puntuale.Step, session string) error {
	if step.Template != "" {
		step = &expanded
	}
	var to puntuale.Session
	if _, named := puntuale.UploadedFile(step.Media); named && session != "" {
		var err error
		if to, err = c.sessionFor(ctx, &request.Faults{}, session); err != nil {
			return err
		}
	}
	return c.CheckFile(ctx, f, at, step.Media, &step.MediaName, to)
}

// CheckSentFile does the same as CheckFile for the message that a rule sends: for its own media, and for that of its template.
// session is the one that the rule names; if it is "" and byDefault is true, the client's default session sends the message. If
// byDefault is false, only the trigger will tell.
func (c *Client) CheckSentFile(ctx context.Context, f *request.Faults, at string, a *puntuale.Action, session string, byDefault bool) error {
	expanded, err := c.expand(ctx, puntuale.Sequence{Steps: []puntuale.Step{a.Step()}})
	if err != nil {
		return err
	}
	filled := expanded[0].Steps[0]
	var to puntuale.Session
	if _, named := puntuale.UploadedFile(filled.Media); named && (session != "" || byDefault) {
		if to, err = c.sessionFor(ctx, &request.Faults{}, session); err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return err
		}
	}
	if a.Template != "" {
		return c.CheckFile(ctx, f, at+".template", filled.Media, &filled.MediaName, to)
	}
	return c.CheckFile(ctx, f, at+".media", a.Media, &a.MediaName, to)
}

// checkSample does the same as CheckFile for the sample of a draft's header.
func (c *Client) checkSample(ctx context.Context, f *request.Faults, h *puntuale.DraftHeader, session puntuale.Session) error {
	if h == nil {
		return nil
	}
	var name string
	return c.CheckFile(ctx, f, "body.header.media", h.Media, &name, session)
}

func stepMedia(i int) string { return request.At("body.steps", i) + ".media" }

// fileRefused returns why a session's network would refuse a file, or zero.
func (c *Control) fileRefused(f puntuale.File, session puntuale.Session) puntuale.Reason {
	switch {
	case f.Type == file.Sticker:
		return file.StickerRefusal()
	case session.Type == puntuale.Official:
		if most := MaxOfficialFile(f.Type); f.Size > most {
			return puntuale.Because(faultFileForMeta, puntuale.MediaKind(string(f.ID)), strconv.FormatInt(most>>20, 10))
		}
	case session.ID == 0:
	case f.Size > puntuale.MaxFileBytes:
		return file.TooLarge(puntuale.MaxFileBytes)
	case session.Type == puntuale.SendApp && !session.ByDevice() && !session.Sandbox && c.sessions.public == "":
		return puntuale.Because(faultFileNoAddress)
	}
	return puntuale.Reason{}
}

// FilePath begins the addresses at which gateways and phones fetch uploaded files.
const FilePath = "/f/"

// fileAddressLasts is how long such an address leads to the file.
const fileAddressLasts = 7 * 24 * time.Hour

// FileAddress returns an address of an uploaded file that anybody can open for a week. Nobody can guess it. Without a public
// address of the service, the address has only a path.
func (c *Control) FileAddress(client puntuale.ClientID, id puntuale.FileID) string {
	until := strconv.FormatInt(c.clock.Now().Add(fileAddressLasts).Unix(), 36)
	return c.sessions.public + FilePath + client.String() + "/" + until + "/" + c.fileMark(client.String(), until, string(id)) + "/" + string(id)
}

func (c *Control) fileMark(client, until, id string) string {
	return c.vault.Mark("address of a file", client, until, id)
}

// AddressedFile is the file at such an address.
type AddressedFile struct {
	puntuale.File
	Content io.ReadSeeker
	Load    func() error       // reads the beginning; codes: unavailable, gone, as of OpenFile
	Holders []semaphore.Holder // whose share of the server the answer takes
}

// OpenFileAddress returns the file at the path of such an address. Codes: not_found.
func (c *Control) OpenFileAddress(ctx context.Context, path string) (AddressedFile, error) {
	missing := puntuale.NotFound(puntuale.NoFile)
	parts := strings.Split(strings.TrimPrefix(path, FilePath), "/")
	if len(parts) != 4 || c.vault == nil || subtle.ConstantTimeCompare([]byte(parts[2]), []byte(c.fileMark(parts[0], parts[1], parts[3]))) != 1 {
		return AddressedFile{}, missing
	}
	until, err := strconv.ParseInt(parts[1], 36, 64)
	client, unknown := puntuale.ParseID[puntuale.ClientID](parts[0])
	id, ok := puntuale.ParseFileID(parts[3])
	if err != nil || unknown != nil || !ok || c.clock.Now().Unix() > until {
		return AddressedFile{}, missing
	}
	tenant := c.tenants.Tenant(client)
	f, err := tenant.File(ctx, id)
	if err != nil {
		return AddressedFile{}, fmt.Errorf("read a file: %w", err)
	}
	content := file.NewReader(f.Size, func(n int) ([]byte, error) { return tenant.FilePart(ctx, f.ID, n) })
	return AddressedFile{
		File: f, Content: content, Load: content.Load,
		Holders: []semaphore.Holder{{Key: client, Slots: semaphore.FairShare}},
	}, nil
}

// MaxOfficialFile returns the largest file, in bytes, that Meta accepts, by its media type. Linked numbers may send larger
// files. (Meta, business-phone-numbers/media.)
func MaxOfficialFile(kind string) int64 {
	switch family, _, _ := strings.Cut(kind, "/"); family {
	case "image":
		return 5 << 20
	case "video", "audio":
		return 16 << 20
	}
	return 100 << 20
}

// FileFacts describes a file at an address.
type FileFacts struct {
	Kind string // the media type, such as "image/jpeg"
	Size int64  // the size in bytes
}

// Limits of tries to fetch a file. A client may make fileTries tries in each fileSpan. Each try ends after fileWithin.
const (
	fileTries  = 20
	fileSpan   = time.Minute
	fileWithin = 20 * time.Second
)

// fileChecks fetches files to find out whether they can be sent, and counts the tries. Each process counts only its own
// tries. Therefore, two processes allow twice as many tries, which is acceptable.
type fileChecks struct {
	source puntuale.MediaSource // nil: files cannot be tried
	scan   func(ctx context.Context, content io.Reader) (finding string, err error)

	mu      sync.Mutex
	windows map[puntuale.ClientID]fileWindow
}

type fileWindow struct {
	begun time.Time
	tries int
}

// CanTryFiles reports whether this process can fetch files.
func (c *Client) CanTryFiles() bool { return c.control.files.source != nil }

// Codes of the faults that this file reports.
const (
	faultMediaNotFetched puntuale.ReasonCode = "media.not_fetched"
	faultMediaTooMany    puntuale.ReasonCode = "media.too_many"
)

// TryFile fetches the file at an address in the same way as for a message, and returns the file's type and size. It
// fetches only from public addresses. Codes: invalid; rate_limited; unavailable if this process cannot fetch files. If
// the file cannot be sent, the error is a [*puntuale.SendError].
func (c *Client) TryFile(ctx context.Context, address string) (FileFacts, error) {
	address = strings.TrimSpace(address)
	var f request.Faults
	f.Text("body.address", address, puntuale.MaxURL)
	if err := f.Err(); err != nil {
		return FileFacts{}, err
	}
	if c.control.files.source == nil {
		return FileFacts{}, &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because(faultMediaNotFetched)}
	}
	if err := c.control.files.enter(c.account.ID, c.control.clock.Now()); err != nil {
		return FileFacts{}, err
	}
	puntuale.AdmissionDeadlineOf(ctx).LeaveSeat()
	ctx, cancel := context.WithTimeout(ctx, fileWithin)
	defer cancel()
	m, err := c.control.files.source.Fetch(ctx, puntuale.MediaRequest{Client: c.account.ID, URL: address})
	if err != nil {
		return FileFacts{}, err
	}
	defer m.Close()
	return FileFacts{Kind: m.ContentType, Size: m.Size}, nil
}

// enter counts a try, or refuses it if the client made too many tries.
func (w *fileChecks) enter(client puntuale.ClientID, now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, old := range w.windows {
		if now.Sub(old.begun) >= fileSpan {
			delete(w.windows, id)
		}
	}
	if w.windows == nil {
		w.windows = map[puntuale.ClientID]fileWindow{}
	}
	own, known := w.windows[client]
	if !known {
		own.begun = now
	}
	if own.tries >= fileTries {
		return &puntuale.Error{Code: puntuale.CodeRateLimited, Reason: puntuale.Because(faultMediaTooMany), RetryAfter: own.begun.Add(fileSpan).Sub(now)}
	}
	own.tries++
	w.windows[client] = own
	return nil
}
