package bookings

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"puntuale"
	"puntuale/internal/booking"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// List is what a program knows about the bookings of a period: all of them.
type List struct {
	Start, End string          // days or moments, inclusive, in the client's zone
	Sequence   string          // "": of all sequences. An entry without a sequence has this one
	AsOf       json.RawMessage // how new the list is
	Entries    []control.BookingCall
	Silent     bool   // no message tells people of changes
	Apply      string // the digest of a dry run; "": a dry run
	Faults     []puntuale.Fault
}

// ReconciledBookings says in what the stored bookings differ from a [List]. The bookings of each list are sorted by reference.
type ReconciledBookings struct {
	Missing   []string // the list has them, and the store does not
	Extra     []string // the store has them, and the list does not
	Different []DifferentBooking
	Newer     []string // a later change is stored, so they stay
	Digest    string   // of all this; applying names it
	Unused    []string // members of missing and different bookings, as in [puntuale.StartNotes]
	Applied   bool
	Usage     *puntuale.Usage // nil: nothing was applied
}

// DifferentBooking is a stored booking that the list would change.
type DifferentBooking struct {
	Reference string
	Members   []string // as in a call
}

// Codes of the faults in this file.
const (
	faultDifferent    puntuale.ReasonCode = "booking.reconcile_changed"
	faultTooManyExtra puntuale.ReasonCode = "booking.reconcile_extra"
	faultTwice        puntuale.ReasonCode = "booking.reconcile_twice"
)

const (
	shownFaults = 99 // of entries; one more says how many were left out
	atOnce      = 4  // how many bookings are changed at the same time
)

// Reconcile compares the bookings of a period with a list, and makes them as the list says if the request names the digest
// of these very differences. It sees only bookings that the API made. A booking that was changed later than the list, and
// one whose person was erased, stays as it is. If Reconcile is interrupted, a repeat applies the rest.
//
// An applying call counts as one call, whatever it changes. Codes: invalid, conflict (the differences are others now; the
// client is held), cap_reached, forbidden.
func Reconcile(ctx context.Context, client *control.Client, ask List) (ReconciledBookings, error) {
	if err := client.MayCreate(); err != nil {
		return ReconciledBookings{}, err
	}
	r := &reconciliation{client: client, ask: ask, faults: slices.Clone(ask.Faults)}
	if err := r.check(); err != nil {
		return ReconciledBookings{}, err
	}
	if err := client.Unheld(ctx); err != nil {
		return ReconciledBookings{}, err
	}
	leave, err := client.BeginCompare(ctx)
	if err != nil {
		return ReconciledBookings{}, err
	}
	defer leave()
	for _, step := range []func(context.Context) error{r.compare, r.extra} {
		if err := step(ctx); err != nil {
			return ReconciledBookings{}, err
		}
	}
	r.sum()
	switch {
	case ask.Apply == "":
		return r.out, nil
	case ask.Apply != r.out.Digest:
		return ReconciledBookings{}, puntuale.Conflict(faultDifferent)
	}
	return r.out, r.apply(ctx)
}

// reconciliation is the state of one call.
type reconciliation struct {
	client   *control.Client
	ask      List
	sequence puntuale.SequenceID
	asOf     puntuale.AsOf
	faults   request.Faults

	mu        sync.Mutex // protects the following while bookings are compared at the same time
	more      int        // faults of entries that are not shown
	changes   []control.BookingCall
	unchanged []puntuale.Booking
	found     []string // what the digest is made of
	out       ReconciledBookings
}

// check checks the request without the store.
func (r *reconciliation) check() error {
	for _, bound := range []struct{ name, text string }{{"start", r.ask.Start}, {"end", r.ask.End}} {
		if bound.text == "" {
			r.faults.Add("body."+bound.name, puntuale.FaultRequired, nil)
		}
	}
	if r.ask.Sequence != "" {
		var err error
		if r.sequence, err = puntuale.ParseID[puntuale.SequenceID](r.ask.Sequence); err != nil {
			r.faults.Add("body.sequence", control.FaultNotSequenceID, r.ask.Sequence)
		}
	}
	var err error
	if r.asOf, err = r.client.AsOf(r.ask.AsOf); err != nil {
		if err := r.faults.Take(err); err != nil {
			return err
		}
	}
	if !r.faults.Entries("body.bookings", len(r.ask.Entries), puntuale.MaxReconciled) {
		return r.faults.Err()
	}
	seen := make(map[string]bool, len(r.ask.Entries))
	for i := range r.ask.Entries {
		e := &r.ask.Entries[i]
		e.Sequence = cmp.Or(e.Sequence, r.ask.Sequence)
		e.AsOf, e.Silent, e.Door = r.ask.AsOf, r.ask.Silent, puntuale.DoorAPI
		e.Status = cmp.Or(e.Status, puntuale.BookingOpen.String()) // opens again what the API had cancelled, and undoes nothing else
		if seen[e.Reference] {
			r.fault(i, puntuale.Fault{Location: "body.reference", Code: faultTwice, Value: e.Reference})
		}
		seen[e.Reference] = true
	}
	return r.err()
}

// fault notes a fault of an entry.
func (r *reconciliation) fault(i int, of ...puntuale.Fault) {
	for _, f := range of {
		if len(r.faults) >= shownFaults {
			r.more++
			continue
		}
		_, member, found := strings.Cut(f.Location, ".")
		if f.Location = request.At("body.bookings", i); found {
			f.Location += "." + member
		}
		r.faults = append(r.faults, f)
	}
}

func (r *reconciliation) err() error {
	if r.more > 0 {
		r.faults.Add("body.bookings", control.FaultListMoreFaults, nil, strconv.Itoa(r.more))
	}
	return r.faults.Err()
}

// comparedTogether is how many entries are compared with their stored bookings at a time. A booking may have 64 KiB of
// fields.
const comparedTogether = 200

// compare decides about each entry of the list.
func (r *reconciliation) compare(ctx context.Context) error {
	var ask []int
	places := make([]int, len(r.ask.Entries))
	for i := range places {
		places[i] = i
	}
	for some := range slices.Chunk(places, comparedTogether) {
		more, err := r.compareSome(ctx, some)
		if err != nil {
			return err
		}
		ask = append(ask, more...)
	}
	if err := each(ctx, ask, r.tryEntry); err != nil {
		return err
	}
	slices.SortFunc(r.faults, func(a, b puntuale.Fault) int { return strings.Compare(a.Location, b.Location) })
	return r.err()
}

// compareSome compares entries with their stored bookings. It returns those that may change something.
func (r *reconciliation) compareSome(ctx context.Context, some []int) (ask []int, err error) {
	references := make([]string, 0, len(some))
	for _, i := range some {
		if reference := r.ask.Entries[i].Reference; control.Nameable(reference) { // otherwise its call says what is wrong
			references = append(references, reference)
		}
	}
	stored, err := r.client.NamedBookings(ctx, references)
	if err != nil {
		return nil, err
	}
	unknown := slices.DeleteFunc(references, func(reference string) bool { _, known := stored[reference]; return known })
	erased, err := r.client.ErasedReferences(ctx, unknown)
	if err != nil {
		return nil, err
	}
	for _, i := range some {
		e := &r.ask.Entries[i]
		b, known := stored[e.Reference]
		switch {
		case erased[e.Reference], known && (b.Erased || b.Made != puntuale.DoorAPI):
		case known && later(b.AsOf, r.asOf):
			r.newer(b.Booking)
		case known && sameKind(b.AsOf, r.asOf) && r.client.Unchanged(*e, b.Booking):
			r.same(b.Booking)
		default:
			ask = append(ask, i)
		}
	}
	return ask, nil
}

// same notes that a booking is already as the list says.
func (r *reconciliation) same(b puntuale.Booking) {
	r.unchanged = append(r.unchanged, puntuale.Booking{ID: b.ID, Revision: b.Revision, AsOf: b.AsOf})
}

func sameKind(a, b puntuale.AsOf) bool { return a.Kind == puntuale.AsOfNone || a.Kind == b.Kind }

func later(a, b puntuale.AsOf) bool { return a.Kind == b.Kind && a.Value > b.Value }

func (r *reconciliation) newer(b puntuale.Booking) {
	r.out.Newer = append(r.out.Newer, b.Reference)
	r.found = append(r.found, "newer\x00"+b.Reference+"\x00"+strconv.FormatInt(b.Revision, 10))
}

// tryEntry finds out what a call with the entry would change.
func (r *reconciliation) tryEntry(ctx context.Context, i int) error {
	call := r.ask.Entries[i]
	call.DryRun = true
	var stored puntuale.Booking
	if control.Nameable(call.Reference) {
		found, err := r.client.NamedBookings(ctx, []string{call.Reference})
		if err != nil {
			return err
		}
		stored = found[call.Reference].Booking
	}
	answer, err := r.client.PutBooking(ctx, call)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch code := puntuale.CodeOf(err); {
	case code == puntuale.CodeStale:
		r.newer(stored)
		return nil
	case code == puntuale.CodeInvalid, code == puntuale.CodeNotFound, code == puntuale.CodeConflict:
		r.fault(i, request.FaultsOf(err)...)
		return nil
	case err != nil:
		return err
	case !answer.Changed:
		r.same(stored)
		return nil
	case stored.Revision == 0:
		r.out.Missing = append(r.out.Missing, call.Reference)
	default:
		r.out.Different = append(r.out.Different, DifferentBooking{call.Reference, members(stored, answer.Booking)})
	}
	for _, name := range answer.Notes.Unused {
		if i, known := slices.BinarySearch(r.out.Unused, name); !known {
			r.out.Unused = slices.Insert(r.out.Unused, i, name)
		}
	}
	r.out.Unused = r.out.Unused[:min(len(r.out.Unused), control.MaxUnused)]
	r.found = append(r.found, "put\x00"+call.Reference+"\x00"+strconv.FormatInt(stored.Revision, 10)+"\x00"+string(call.Body))
	change := r.ask.Entries[i]
	change.Revision = &stored.Revision
	r.changes = append(r.changes, change)
	return nil
}

// members returns the members of a call in which two states of a booking differ.
func members(old, next puntuale.Booking) (names []string) {
	for _, m := range []struct {
		name      string
		different bool
	}{
		{"sequence", old.Sequence != next.Sequence}, {"phone", old.Phone != next.Phone}, {"status", old.Status != next.Status},
		{"id_sessione", old.Session != next.Session}, {"timezone", old.Zone != next.Zone},
	} {
		if m.different {
			names = append(names, m.name)
		}
	}
	fields := maps.Clone(old.Fields)
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	maps.Copy(fields, next.Fields)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !bytes.Equal(old.Fields[name], next.Fields[name]) {
			names = append(names, name)
		}
	}
	return names
}

// extra looks for bookings of the period that the list does not have.
func (r *reconciliation) extra(ctx context.Context) error {
	listed := make(map[string]bool, len(r.ask.Entries))
	for i := range r.ask.Entries {
		listed[r.ask.Entries[i].Reference] = true
	}
	period := request.Period{Start: []request.Bound{{Name: "start", Text: r.ask.Start}}, End: []request.Bound{{Name: "end", Text: r.ask.End}}}
	err := r.client.BookingsMade(ctx, puntuale.DoorAPI, period, r.sequence, func(b puntuale.Booking) bool {
		switch {
		case listed[b.Reference], strings.HasPrefix(b.Reference, puntuale.RunReference): // nobody else knows a start's own reference
		case later(b.AsOf, r.asOf):
			r.newer(b)
		case !sameKind(b.AsOf, r.asOf):
			if !r.faults.At("body.as_of") {
				r.faults.Add("body.as_of", booking.FaultAsOfKind, nil)
			}
		default:
			r.out.Extra = append(r.out.Extra, b.Reference)
			r.found = append(r.found, "cancel\x00"+b.Reference+"\x00"+strconv.FormatInt(b.Revision, 10))
			r.changes = append(r.changes, control.BookingCall{
				Reference: b.Reference, Status: puntuale.BookingCancelled.String(), AsOf: r.ask.AsOf, Silent: r.ask.Silent, Door: puntuale.DoorAPI, Revision: &b.Revision,
			})
		}
		return len(r.out.Extra)+len(r.out.Newer) <= 2*puntuale.MaxReconciled
	})
	if err != nil {
		for _, f := range request.FaultsOf(err) {
			f.Location = "body." + strings.TrimPrefix(f.Location, "query.")
			r.faults = append(r.faults, f)
		}
		if len(r.faults) == 0 || puntuale.CodeOf(err) != puntuale.CodeInvalid {
			return err
		}
	}
	if len(r.out.Extra) > puntuale.MaxReconciled || len(r.out.Newer) > puntuale.MaxReconciled {
		r.faults.Add("body.end", faultTooManyExtra, r.ask.End, strconv.Itoa(puntuale.MaxReconciled))
	}
	return r.faults.Err()
}

// sum sorts what was found, and computes the digest.
func (r *reconciliation) sum() {
	slices.Sort(r.out.Missing)
	slices.Sort(r.out.Extra)
	slices.Sort(r.out.Newer)
	slices.SortFunc(r.out.Different, func(a, b DifferentBooking) int { return strings.Compare(a.Reference, b.Reference) })
	slices.SortFunc(r.changes, func(a, b control.BookingCall) int { return strings.Compare(a.Reference, b.Reference) })
	slices.Sort(r.found)
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q %q %q %d %d %t\n", r.ask.Start, r.ask.End, r.ask.Sequence, r.asOf.Kind, r.asOf.Value, r.ask.Silent)
	for _, line := range r.found {
		_, _ = fmt.Fprintf(sum, "%q\n", line)
	}
	r.out.Digest = hex.EncodeToString(sum.Sum(nil)[:16])
}

// apply changes the bookings, each in a transaction of its own. A booking that was changed since it was compared stays, and
// so does one that cannot be changed any more: the next comparison finds them.
func (r *reconciliation) apply(ctx context.Context) error {
	usage, err := r.client.SpendCall(ctx)
	if err != nil {
		return err
	}
	part := r.client.Uncounted()
	if err := part.KeepAsOf(ctx, r.unchanged, r.asOf); err != nil {
		return err
	}
	err = each(ctx, r.changes, func(ctx context.Context, call control.BookingCall) error {
		_, err := part.PutBooking(ctx, call)
		switch puntuale.CodeOf(err) {
		case puntuale.CodeStale, puntuale.CodeInvalid, puntuale.CodeNotFound, puntuale.CodeConflict:
			return nil
		}
		return err
	})
	r.out.Applied, r.out.Usage = err == nil, &usage
	return err
}

// each calls do for all values, a few at the same time. After the first error it begins no more.
func each[T any](ctx context.Context, all []T, do func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	values := make(chan T)
	var workers sync.WaitGroup
	for range min(atOnce, len(all)) {
		workers.Go(func() {
			for v := range values {
				if err := puntuale.Recovered(func() error { return do(ctx, v) }); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for _, v := range all {
		select {
		case values <- v:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(values)
	workers.Wait()
	return context.Cause(ctx)
}
