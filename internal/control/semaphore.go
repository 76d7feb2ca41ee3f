package control

import (
	"context"
	"time"

	"puntuale"
	"puntuale/internal/control/upload"
	"puntuale/internal/semaphore"
)

// Bounds of what callers hold at the same time. A partner with all its clients gets only a fair share of each.
const (
	defaultConnections = 4096
	maxPages           = 1000
	clientPages        = 40 // open pages of one client
	pageReaders        = 4  // browsers that keep one linking page open, or begin to link with it; they count for the client, too
	clientWaits        = 40 // calls of one client, and of its devices, that wait for something new
	deviceWaits        = 4
	maxCommands        = 256
	clientCommands     = 16 // calls of one client that wait for a session's node
	maxChecks          = 32
	clientChecks       = 4
	maxLinks           = 8 // a Chatwoot server may be slow, and its answers long
	clientLinks        = 1
	maxFiles           = 64 // uploaded files that are being sent; each has 1 MiB in memory
	clientFiles        = 16
	fileWaits          = 10 * time.Second // how long a file waits until others have been sent
	shareRetry         = 5 * time.Second
)

// semaphores keep one caller from taking what the others need: connections, and the store's time.
type semaphores struct {
	pages    *semaphore.Semaphore // open pages that receive updates
	waits    *semaphore.Semaphore // calls that wait for something new
	commands *semaphore.Semaphore // calls that wait for a session's node
	checks   *semaphore.Semaphore // checks of campaigns, and comparisons of bookings, that run
	links    *semaphore.Semaphore // links to Chatwoot that wait for their servers
	files    *semaphore.Semaphore // uploaded files that are being sent to callers and browsers
}

// newSemaphores returns the semaphores of a server with this many connections. All calls that wait together leave some
// connections to the others.
func newSemaphores(connections int) semaphores {
	return semaphores{
		pages: semaphore.New(min(maxPages, connections/4)), waits: semaphore.New(connections / 2),
		commands: semaphore.New(maxCommands), checks: semaphore.New(maxChecks), links: semaphore.New(maxLinks), files: semaphore.New(maxFiles),
	}
}

// Holders returns the caller's place in a semaphore that all clients share. own is how many slots the client may have.
func (c *Client) Holders(own int) []semaphore.Holder {
	all := []semaphore.Holder{{Key: c.account.Partner, Slots: semaphore.FairShare}, {Key: c.account.ID, Slots: own}}
	if c.page != 0 {
		all = append(all, semaphore.Holder{Key: c.page, Slots: pageReaders})
	}
	return all
}

// Wait counts a call that begins to wait for something new. The caller must call leave. Codes: rate_limited if too many
// calls of the client, or of all the partner's clients, wait already.
func (c *Client) Wait() (leave func(), err error) {
	return share(c.control.shares.waits, c.Holders(clientWaits)...)
}

// BeginLink counts a link to Chatwoot that is made now. The call gives its seat back, because it waits for the Chatwoot
// server. The caller must call leave. Codes: rate_limited.
func (c *Client) BeginLink(ctx context.Context) (leave func(), err error) {
	leave, err = share(c.control.shares.links, c.Holders(clientLinks)...)
	if err == nil {
		puntuale.AdmissionDeadlineOf(ctx).LeaveSeat()
	}
	return leave, err
}

// BeginCompare counts a call that compares many bookings now. The call gives its seat back, because it takes long. The
// caller must call leave. Codes: rate_limited.
func (c *Client) BeginCompare(ctx context.Context) (leave func(), err error) {
	leave, err = share(c.control.shares.checks, c.Holders(clientChecks)...)
	if err == nil {
		puntuale.AdmissionDeadlineOf(ctx).LeaveSeat()
	}
	return leave, err
}

// beginFile waits until the client may be sent one more file. The caller must call leave. Codes: overloaded.
func (c *Client) beginFile(ctx context.Context) (leave func(), err error) {
	within, cancel := context.WithTimeout(ctx, fileWaits)
	defer cancel()
	leave, err = c.control.shares.files.Enter(within, c.Holders(clientFiles)...)
	if err != nil && ctx.Err() == nil {
		return nil, puntuale.Overloaded(shareRetry)
	}
	return leave, err
}

// Wait counts a call that begins to wait for messages, as [Client.Wait] does.
func (d *Device) Wait() (leave func(), err error) {
	return share(d.client.control.shares.waits, append(d.client.Holders(clientWaits), semaphore.Holder{Key: d.ID, Slots: deviceWaits})...)
}

// beginUpload counts one more list that the server reads. Codes: overloaded.
func (c *Client) beginUpload() (*upload.Upload, error) {
	own := c.Holders(upload.ClientUploads)
	return c.control.lists.uploads.Begin(own[0], own[1])
}

// beginFileUpload counts one more file that the server stores. Codes: overloaded.
func (c *Client) beginFileUpload() (*upload.Upload, error) {
	own := c.Holders(upload.ClientUploads)
	return c.control.lists.uploads.BeginFile(own[0], own[1])
}

// share takes a slot. Codes: rate_limited.
func share(s *semaphore.Semaphore, path ...semaphore.Holder) (leave func(), err error) {
	leave, ok := s.TryEnter(path...)
	if !ok {
		return nil, &puntuale.Error{Code: puntuale.CodeRateLimited, Reason: puntuale.Because(puntuale.FaultCallTooManyAtOnce), RetryAfter: shareRetry}
	}
	return leave, nil
}
