package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/bookings"
	"puntuale/internal/control/request"
)

// registerManyBookings registers the calls that concern many bookings. They take several transactions, and may be
// repeated.
func registerManyBookings(a *api) {
	client(a, operation{id: "reconcileBookings", method: http.MethodPost, path: "/api/bookings/reconcile", body: reconcileBody{}, bodyBytes: maxInline, strict: true,
		summary: "Compare the bookings of a period with your list of them, and make them equal",
		description: "Without `apply` it only answers what differs, and counts no call. With the digest of that answer it applies exactly these differences, and counts one call. " +
			"Only bookings that the API made are compared. After an interruption, compare again and apply the rest.",
		refusals: []int{http.StatusConflict}}, reconcileBookings)
	client(a, operation{id: "importBookings", method: http.MethodPost, path: "/api/bookings/import", upload: maxList, strict: true, creates: createsAlways,
		summary:     "Make or change bookings from a list: the request's body is the file",
		description: "CSV or XLSX with a header row, at most 100 MiB and 50,000 rows, and counted as one call. Each row is a booking with its reference. A refused row changes nothing, and no other row.",
		refusals:    []int{http.StatusConflict}}, importBookings)
	documentUpload(a, "/api/bookings/import")
}

// reconcileBody documents a list of bookings.
type reconcileBody struct {
	Start    string            `json:"start" read:"need" doc:"First day, or moment, of the appointments, in the client's zone"`
	End      string            `json:"end" read:"need" doc:"Last day, or moment, inclusive"`
	Sequence string            `json:"sequence,omitempty" read:"id" doc:"Only bookings of this sequence; also the sequence of entries that name none"`
	AsOf     json.RawMessage   `json:"as_of" read:"-" doc:"How new the list is, as in a booking. Bookings that changed later stay"`
	Bookings []reconciledEntry `json:"bookings" read:"-" maxItems:"10000" doc:"All bookings of the period: each with reference and the members of a booking"`
	Apply    string            `json:"apply,omitempty" doc:"The digest of a dry run whose differences are to be applied; null: a dry run"`
	Silent   *bool             `json:"silent,omitempty" default:"true" doc:"false: messages tell people of what changes"`
}

// reconciledEntry is what the list says about one booking.
type reconciledEntry struct {
	Reference string `json:"reference" read:"id" doc:"Your own name of the appointment"`
	BookingBody
}

type reconcileAnswer struct {
	Missing   []string           `json:"missing" doc:"References that only your list has: they are made"`
	Extra     []string           `json:"extra" doc:"References of the period that your list lacks, open or confirmed: they are cancelled"`
	Different []differentBooking `json:"different" doc:"Bookings that your list changes"`
	Newer     []string           `json:"newer" doc:"Bookings that changed after as_of: they stay"`
	Digest    string             `json:"digest" doc:"Of these differences; see apply"`
	Applied   bool               `json:"applied"`
	Unused    []string           `json:"unused,omitempty" doc:"Members of missing and different bookings that no step uses, and whose name is close to a field that the booking leaves out"`
}

type differentBooking struct {
	Reference string   `json:"reference"`
	Members   []string `json:"members" doc:"Names of the members that change"`
}

const (
	reconcileValues = 500_000 // the largest number of values in a body
	entryValues     = 1_000   // of these, of one entry
)

func reconcileBookings(ctx context.Context, c *control.Client, in *call, _ *struct{}) (reconcileAnswer, error) {
	o, err := readObject(in.body, reconcileValues)
	if err != nil {
		return reconcileAnswer{}, err
	}
	var body reconcileBody
	o.into(&body)
	truth := bookings.List{
		Start: body.Start, End: body.End, Sequence: body.Sequence, AsOf: o.members["as_of"], Apply: body.Apply, Silent: body.Silent == nil || *body.Silent,
	}
	o.entries(&truth)
	if err := o.err(); err != nil {
		return reconcileAnswer{}, err
	}
	truth.Faults = append(in.unknown, *o.refused...)
	done, err := bookings.Reconcile(in.unhurried(ctx), c, truth)
	if err != nil {
		return reconcileAnswer{}, err
	}
	return reconcileAnswer{
		Missing: append([]string{}, done.Missing...), Extra: append([]string{}, done.Extra...), Newer: append([]string{}, done.Newer...), Digest: done.Digest, Applied: done.Applied, Unused: done.Unused,
		Different: append([]differentBooking{}, each(done.Different, func(d bookings.DifferentBooking) differentBooking {
			return differentBooking{d.Reference, append([]string{}, d.Members...)}
		})...),
	}, nil
}

// entries reads the list of bookings.
func (o *object) entries(t *bookings.List) {
	raw, ok := o.member("bookings")
	if !ok {
		o.required("bookings")
		return
	}
	var all []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &all) != nil {
		o.addFault("bookings", faultCallMustBeArray)
		return
	}
	if t.Entries = make([]control.BookingCall, len(all)); len(all) > puntuale.MaxReconciled {
		return // their number is the fault
	}
	for i, one := range all {
		entry := &object{at: request.At("body.bookings", i), faults: o.faults, refused: new([]puntuale.Fault)}
		if one[0] != '{' || json.Unmarshal(one, &entry.members) != nil {
			o.addFault(request.At("bookings", i), faultCallMustBeObject)
			continue
		}
		var b reconciledEntry
		entry.into(&b)
		t.Entries[i] = control.BookingCall{
			Reference: b.Reference, Sequence: b.Sequence, Phone: b.Phone, Status: b.Status, Fields: entry.members,
			Session: b.Session.orEmpty(), Zone: b.Timezone.orEmpty(), Body: one, Faults: *entry.refused,
		}
	}
}

type bookingImportInput struct {
	Columns  string `query:"columns" doc:"Members with their columns: reference:Codice,phone:Telefono,appuntamento:Data. Besides fields: reference, phone, sequence, status. Without it they are guessed by the header"`
	Sequence string `query:"sequence" doc:"ID of the sequence of rows without one"`
	Dates    string `query:"dates" doc:"Fields that are dates, with the order of their numbers: appuntamento:dmy. none: no field is. Without it, each column decides as a whole"`
	Header   string `query:"header" doc:"The line of the header row. Without it the server looks for it, also below a title"`
	DryRun   string `query:"dry_run" enum:"true,false" doc:"true: store nothing, and answer what would be stored"`
}

type importedBookingsAnswer struct {
	Rows    int              `json:"rows"`
	Made    int              `json:"made" doc:"Bookings that are new"`
	Changed int              `json:"changed" doc:"Bookings that a row changed"`
	Same    int              `json:"same" doc:"Bookings that were already as their row says"`
	Header  int              `json:"header" doc:"The line of the header row"`
	Hidden  int              `json:"hidden" doc:"Rows that the spreadsheet hides. They are read like the others"`
	Columns []columnAnswer   `json:"columns"`
	Dates   []datesAnswer    `json:"dates" doc:"The fields that are dates, or may be"`
	Numbers []numberAnswer   `json:"numbers" doc:"The first numbers of the file"`
	Refused []refusedAnswer  `json:"refused" doc:"How many rows were refused, by reason"`
	Lines   []refusedContact `json:"lines" doc:"The first 1,000 refused rows"`
}

func importBookings(ctx context.Context, c *control.Client, in *call, p *bookingImportInput) (importedBookingsAnswer, error) {
	dry, faults := wantsDry(in.query)
	ask := fileImport(p.Columns, p.Dates, p.Header, "", append(in.unknown, faults...))
	ask.Check = dry
	done, err := bookings.ImportBookings(ctx, c, in.file, in.kind, bookings.Import{FileImport: ask, Sequence: strings.TrimSpace(p.Sequence), Door: puntuale.DoorAPI})
	if err != nil {
		return importedBookingsAnswer{}, err
	}
	return importedBookingsAnswer{
		Rows: done.Rows, Made: done.Made, Changed: done.Changed, Same: done.Same, Header: done.Header, Hidden: done.Hidden, Columns: columnsOf(done.Columns, done.Mapping),
		Dates: datesOf(done.Dates), Numbers: numbersOf(done.Numbers),
		Refused: each(done.Refused, func(g puntuale.RefusedGroup) refusedAnswer { return refusedAnswer(g) }), Lines: linesOf(done.Lines),
	}, nil
}
