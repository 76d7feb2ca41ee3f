package media

import (
	"context"
	"errors"
	"io"
	"time"

	"puntuale"
	"puntuale/internal/semaphore"
)

// Limits of opening the files of replies. Each open file uses disk space and a slot until it is closed.
const (
	opensAtOnce    = 16
	opensPerClient = 4
	openWithin     = 10 * time.Second // how long a call waits for a slot
	openTakes      = 2 * time.Minute  // how long it may take to fetch a whole file
)

// Opener opens the files of replies. The connector of the reply's session fetches the file. Opener is safe for
// concurrent use.
type Opener struct {
	openerOf func(puntuale.Session) puntuale.MediaOpener
	slots    *semaphore.Semaphore
}

var _ puntuale.MediaOpener = (*Opener)(nil)

// NewOpener returns an opener. The function openerOf returns the connector of a session, or nil if the session's
// network has no files.
func NewOpener(openerOf func(puntuale.Session) puntuale.MediaOpener) *Opener {
	return &Opener{openerOf: openerOf, slots: semaphore.New(opensAtOnce)}
}

// OpenMedia fetches the file; see [puntuale.MediaOpener]. One client cannot use all slots.
func (o *Opener) OpenMedia(ctx context.Context, s puntuale.Session, m puntuale.ReplyMedia, maxBytes int64) (*puntuale.ReplyFile, error) {
	opener := o.openerOf(s)
	if opener == nil {
		return nil, &puntuale.Error{Code: puntuale.CodeGone, Reason: puntuale.Because(puntuale.FaultMediaGone), Err: errors.New("no network has the file")}
	}
	leave, err := o.enter(ctx, s.Client)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTakes)
	defer cancel() // the whole file has been fetched when OpenMedia returns
	f, err := opener.OpenMedia(ctx, s, m, maxBytes)
	if err != nil {
		leave()
		return nil, err
	}
	f.ReadCloser = &openFile{f.ReadCloser, leave}
	return f, nil
}

// enter waits for a slot.
func (o *Opener) enter(ctx context.Context, client puntuale.ClientID) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	leave, err = o.slots.Enter(ctx, semaphore.Holder{Key: client, Slots: opensPerClient})
	if err == nil {
		return leave, nil
	}
	return nil, &puntuale.Error{Code: puntuale.CodeOverloaded, Reason: puntuale.Because(puntuale.FaultMediaUnavailable), RetryAfter: openWithin, Err: err}
}

// openFile releases its slot when it is closed.
type openFile struct {
	io.ReadCloser
	leave func()
}

func (f *openFile) Close() error {
	defer f.leave()
	return f.ReadCloser.Close()
}
