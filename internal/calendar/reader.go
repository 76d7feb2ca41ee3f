package calendar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/outside"
)

// Store is the part of the store that a reader uses. A method returns still = false if the reading is over, because
// another one began or because a person changed the calendar; then it has stored nothing.
type Store interface {
	TakeCalendars(ctx context.Context, node puntuale.NodeID, now time.Time, limit int, skip func(puntuale.ClientID) bool) ([]puntuale.Calendar, error)
	EntriesOf(ctx context.Context, c *puntuale.Calendar) ([]puntuale.CalendarEntry, error)
	SaveEntries(ctx context.Context, node puntuale.NodeID, c *puntuale.Calendar, entries []puntuale.CalendarEntry, gone []string) (still bool, err error)
	// Elsewhere returns which of these references are also live entries of another calendar of the client.
	Elsewhere(ctx context.Context, c *puntuale.Calendar, references []string) (map[string]bool, error)
	// EndReading stores how a reading ended. tell is the reason of a notice for the client's users; its code is "": none.
	EndReading(ctx context.Context, node puntuale.NodeID, c *puntuale.Calendar, tell puntuale.Reason, now time.Time) (still bool, err error)
}

// Account is the client of a calendar.
type Account interface {
	Zone() *time.Location
	Rules(c *puntuale.Calendar) Rules
	// Erased returns which of these references belong to bookings of people who were erased.
	Erased(ctx context.Context, references []string) (map[string]bool, error)
	// Book makes or changes the booking of an entry. It opens a booking again that the calendar had cancelled. silent
	// tells nobody.
	Book(ctx context.Context, c *puntuale.Calendar, e *puntuale.CalendarEntry, silent bool) error
	// Unbook cancels the booking of an entry. silent tells nobody.
	Unbook(ctx context.Context, c *puntuale.Calendar, e *puntuale.CalendarEntry, silent bool) error
}

// Config contains the parts of a [Reader]. All members except Memory must be set.
type Config struct {
	Store   Store
	Node    func() puntuale.NodeID // returns this node's id; 0: the node reads nothing now
	Account func(ctx context.Context, id puntuale.ClientID) (Account, error)
	Address func(c *puntuale.Calendar) (string, error) // opens the sealed address
	Feeds   http.RoundTripper                          // reaches only allowed addresses
	Memory  outside.MemoryGrants                       // pays for the feeds; nil: they are only bounded
	Clock   clock.Clock
	Logger  *slog.Logger
}

// Reader reads the calendars that are due, and changes their bookings. Several nodes may each run one.
type Reader struct {
	Config
	client *http.Client

	mu   sync.Mutex
	busy map[puntuale.ClientID]bool // clients of which a calendar is read
	jobs sync.WaitGroup
}

const (
	readers   = 4                // calendars that a node reads at the same time
	lookEvery = time.Second      // how often it looks for calendars that are due
	redirects = 5                // that a feed may make
	within    = 60 * time.Second // how long a whole answer may take
	chunk     = 50               // bookings that change before their entries are written
	bookers   = 4                // bookings of one calendar that change at the same time
	jitter    = 0.1              // of the time between two readings
	soon      = time.Minute      // when a reading is repeated after a failure of this service
	slowest   = 6 * time.Hour    // between two readings of a feed that fails
	tellAfter = 3                // failures that may pass by themselves, until people are told
)

// NewReader returns a reader. It does nothing before Run.
func NewReader(cfg Config) *Reader {
	return &Reader{Config: cfg, busy: map[puntuale.ClientID]bool{}, client: &http.Client{
		Transport: cfg.Feeds, Timeout: within,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > redirects {
				return errors.New("too many redirects")
			}
			return nil
		},
	}}
}

// Run reads calendars until ctx ends. It returns when the readings that it began have ended.
func (r *Reader) Run(ctx context.Context) {
	defer r.jobs.Wait()
	for ctx.Err() == nil {
		if err := r.round(ctx); err != nil && ctx.Err() == nil {
			r.Logger.Warn("looking for calendars failed", "error", err)
		}
		if r.Clock.Sleep(ctx, lookEvery) != nil {
			return
		}
	}
}

func (r *Reader) round(ctx context.Context) error {
	r.mu.Lock()
	free := readers - len(r.busy)
	r.mu.Unlock()
	node := r.Node()
	if free <= 0 || node == 0 {
		return nil
	}
	taken, err := r.Store.TakeCalendars(ctx, node, r.Clock.Now(), free, func(id puntuale.ClientID) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.busy[id]
	})
	for i := range taken {
		c := work{taken[i], node}
		r.mu.Lock()
		r.busy[c.Client] = true
		r.mu.Unlock()
		r.jobs.Go(func() {
			defer func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				delete(r.busy, c.Client)
			}()
			err := puntuale.Recovered(func() error { return r.read(ctx, &c) })
			if puntuale.Panicked(err) {
				err = r.postpone(ctx, &c, err)
			}
			if err != nil && ctx.Err() == nil {
				r.Logger.Warn("reading a calendar failed", "client_id", int64(c.Client), "calendar_id", int64(c.ID), "error", err)
			}
		})
	}
	return err
}

// work is a calendar that is read, and the node that reads it.
type work struct {
	puntuale.Calendar
	node puntuale.NodeID
}

// errOver says that the reading is no longer ours.
var errOver = errors.New("another reading began")

// read reads one calendar, and changes its bookings.
func (r *Reader) read(ctx context.Context, c *work) error {
	ctx, done := r.Memory.Client(ctx, c.Client)
	defer done()
	account, err := r.Account(ctx, c.Client)
	if err != nil {
		return r.postpone(ctx, c, err)
	}
	stored, err := r.Store.EntriesOf(ctx, &c.Calendar)
	if err != nil {
		return r.postpone(ctx, c, err)
	}
	found := r.fetch(ctx, &c.Calendar, account)
	if ctx.Err() != nil {
		return nil // the lease ends by itself, and the next reading begins anew
	}
	if found.fault.Code == "" && !found.same && len(found.entries) == 0 && r.hasFuture(stored) {
		found.fault = puntuale.Because(faultEmptied)
	}
	if found.fault.Code != "" {
		return r.failed(ctx, c, found)
	}
	entries, err := r.keep(ctx, c, account, stored, found)
	if err != nil {
		return r.postpone(ctx, c, err)
	}
	var tell puntuale.Reason
	if !c.Started.IsZero() {
		if tell, err = r.apply(ctx, c, account, entries); err != nil {
			return r.postpone(ctx, c, err)
		}
	}
	now := r.Clock.Now()
	c.Tried, c.Read, c.Failures, c.Fault, c.Told = now, now, 0, puntuale.Reason{}, false
	c.Next = now.Add(jittered(max(puntuale.CalendarEvery, min(found.refresh, 24*time.Hour))))
	_, err = r.Store.EndReading(ctx, c.node, &c.Calendar, tell, now)
	return err
}

func (r *Reader) hasFuture(entries []puntuale.CalendarEntry) bool {
	now := r.Clock.Now()
	for i := range entries {
		if entries[i].Start.After(now) && entries[i].Missing < puntuale.CalendarAgreed {
			return true
		}
	}
	return false
}

// postpone ends a reading that failed for a reason of this service. The feed is not to blame.
func (r *Reader) postpone(ctx context.Context, c *work, cause error) error {
	if errors.Is(cause, errOver) || errors.Is(cause, puntuale.ErrFenced) {
		return nil
	}
	c.Next = r.Clock.Now().Add(jittered(soon))
	_, err := r.Store.EndReading(ctx, c.node, &c.Calendar, puntuale.Reason{}, r.Clock.Now())
	return errors.Join(cause, err)
}

// failed ends a reading of a feed that could not be read. Nothing changes.
func (r *Reader) failed(ctx context.Context, c *work, f reading) error {
	now := r.Clock.Now()
	c.Tried, c.Fault, c.Failures = now, f.fault, c.Failures+1
	wait := puntuale.CalendarEvery
	for range min(c.Failures-tellAfter, 8) {
		wait *= 2
	}
	c.Next = now.Add(max(jittered(min(wait, slowest)), f.after))
	var tell puntuale.Reason
	if !c.Told && (!f.passes || c.Failures >= tellAfter) {
		tell, c.Told = f.fault, true
	}
	_, err := r.Store.EndReading(ctx, c.node, &c.Calendar, tell, now)
	return err
}

// keep stores what a reading found, and returns the entries as they are then.
func (r *Reader) keep(ctx context.Context, c *work, account Account, stored []puntuale.CalendarEntry, f reading) ([]puntuale.CalendarEntry, error) {
	now := r.Clock.Now()
	var changed []puntuale.CalendarEntry
	var gone []string
	if f.same {
		changed = Again(stored)
	} else {
		read, err := withoutErased(ctx, account, stored, f.entries)
		if err != nil {
			return nil, err
		}
		changed, gone = Compare(stored, read, now)
	}
	if len(changed) > 0 || len(gone) > 0 {
		still, err := r.Store.SaveEntries(ctx, c.node, &c.Calendar, changed, gone)
		if err != nil || !still {
			return nil, overOr(err)
		}
	}
	entries := merged(stored, changed, gone)
	c.Entries, c.Understood = 0, 0
	for i := range entries {
		if e := &entries[i]; e.Start.After(now) || e.Start.IsZero() {
			if e.Missing > 0 && e.Problem == "" { // gone from the feed
				continue
			}
			if c.Entries++; e.Problem == "" {
				c.Understood++
			}
		}
	}
	if !f.same {
		c.ETag, c.Modified, c.Digest = f.etag, f.modified, f.digest
	}
	return entries, nil
}

func overOr(err error) error {
	if err != nil {
		return err
	}
	return errOver
}

// withoutErased returns the entries that do not belong to a booking of an erased person.
func withoutErased(ctx context.Context, account Account, stored, read []puntuale.CalendarEntry) ([]puntuale.CalendarEntry, error) {
	known := make(map[string]bool, len(stored))
	for i := range stored {
		known[stored[i].Reference] = true
	}
	var unknown []string
	for i := range read {
		if !known[read[i].Reference] {
			unknown = append(unknown, read[i].Reference)
		}
	}
	if len(unknown) == 0 {
		return read, nil
	}
	erased, err := account.Erased(ctx, unknown)
	if err != nil || len(erased) == 0 {
		return read, err
	}
	var kept []puntuale.CalendarEntry
	for _, e := range read {
		if !erased[e.Reference] {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// merged returns the entries after a change.
func merged(stored, changed []puntuale.CalendarEntry, gone []string) []puntuale.CalendarEntry {
	skip := make(map[string]bool, len(changed)+len(gone))
	for i := range changed {
		skip[changed[i].Reference] = true
	}
	for _, reference := range gone {
		skip[reference] = true
	}
	all := changed
	for _, e := range stored {
		if !skip[e.Reference] {
			all = append(all, e)
		}
	}
	return all
}

// apply changes the bookings of the entries. After each chunk it writes what was done. A chunk that was not written is
// done again by the next reading, which changes nothing more. tell is what people must know of it.
func (r *Reader) apply(ctx context.Context, c *work, account Account, entries []puntuale.CalendarEntry) (tell puntuale.Reason, err error) {
	orders, asked := Due(entries, c.Cancels, c.Asked > 0, r.Clock.Now())
	if asked > 0 && c.Asked == 0 {
		tell = puntuale.Because(puntuale.NoticeCalendarGone, strconv.Itoa(asked))
	}
	c.Asked, c.Cancels = asked, 0
	if err := r.notElsewhere(ctx, c, orders); err != nil {
		return tell, err
	}
	refused := 0
	for len(orders) > 0 {
		n := min(chunk, len(orders))
		done, gone, err := r.book(ctx, &c.Calendar, account, orders[:n])
		if len(done)+len(gone) > 0 {
			still, failed := r.Store.SaveEntries(ctx, c.node, &c.Calendar, done, gone)
			if failed != nil || !still {
				return tell, overOr(failed)
			}
		}
		if err != nil {
			return tell, err
		}
		for i := range done {
			if done[i].Refused != "" {
				refused++
			}
		}
		orders = orders[n:]
	}
	if refused > 0 && tell.Code == "" {
		tell = puntuale.Because(puntuale.NoticeCalendarRefused, strconv.Itoa(refused))
	}
	return tell, nil
}

// notElsewhere keeps the bookings of entries that another calendar of the client also has: such an entry was moved there.
func (r *Reader) notElsewhere(ctx context.Context, c *work, orders []Order) error {
	var cancelled []string
	for i := range orders {
		if orders[i].Cancel {
			cancelled = append(cancelled, orders[i].Entry.Reference)
		}
	}
	if len(cancelled) == 0 {
		return nil
	}
	elsewhere, err := r.Store.Elsewhere(ctx, &c.Calendar, cancelled)
	if err != nil {
		return fmt.Errorf("look for entries in other calendars: %w", err)
	}
	for i := range orders {
		orders[i].elsewhere = orders[i].Cancel && elsewhere[orders[i].Entry.Reference]
	}
	return nil
}

// book executes some orders. It returns the entries that changed, and the references of those whose person was erased. An
// error is a failure of this service: what was not done is due again.
func (r *Reader) book(ctx context.Context, c *puntuale.Calendar, account Account, orders []Order) (done []puntuale.CalendarEntry, gone []string, err error) {
	results := make([]error, len(orders))
	slots := make(chan struct{}, bookers)
	var wg sync.WaitGroup
	for i := range orders {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i] = puntuale.Recovered(func() error {
				switch o := &orders[i]; {
				case o.elsewhere:
					return nil
				case o.Cancel:
					return account.Unbook(ctx, c, &o.Entry, o.Silent)
				default:
					return account.Book(ctx, c, &o.Entry, o.Silent)
				}
			})
		})
	}
	wg.Wait()
	for i, o := range orders {
		e := o.Entry
		refused := ""
		switch code := puntuale.CodeOf(results[i]); {
		case results[i] == nil:
			e.Withdrawn = o.Cancel
			if !o.Cancel {
				e.Applied = e.Digest
			}
		case reasonOf(results[i]).Code == puntuale.FaultBookingErased:
			gone = append(gone, e.Reference)
			continue
		case slices.Contains(refusals, code):
			refused = reasonOf(results[i]).Stored()
		default:
			err = errors.Join(err, fmt.Errorf("change the booking of an entry: %w", results[i]))
			continue
		}
		if e.Refused = refused; e != o.Entry {
			done = append(done, e)
		}
	}
	return done, gone, err
}

// refusals are the codes of changes that the booking refuses. They are shown at the entry.
var refusals = []puntuale.Code{puntuale.CodeInvalid, puntuale.CodeConflict, puntuale.CodeStale, puntuale.CodeNotFound, puntuale.CodeForbidden, puntuale.CodeRateLimited}

// reasonOf returns why a booking was refused: the first fault, if there are several.
func reasonOf(err error) puntuale.Reason {
	e := &puntuale.Error{}
	if !errors.As(err, &e) {
		return puntuale.Reason{}
	}
	if len(e.Faults) == 0 {
		return e.Reason
	}
	f := e.Faults[0]
	if name, ok := strings.CutPrefix(f.Location, "body."); ok {
		return puntuale.Because(puntuale.FaultOfField, name, f.Reason().Stored())
	}
	return f.Reason()
}

func jittered(d time.Duration) time.Duration {
	return d + time.Duration((2*rand.Float64()-1)*jitter*float64(d)) //nolint:gosec // the random number only spreads load
}
