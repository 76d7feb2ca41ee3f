package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/request"
	"puntuale/internal/store/storetest"
)

// TestLimits calls every verb directly with values that the API and the pages would refuse. A verb is a method that
// executes a request. Each verb must check its own limits, because any package may call the verb. Each row contains the
// expected refusal.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLimited(t, driver(t))
			for _, row := range slices.Concat(clientLimits, messageLimits, listLimits, replyLimits, partnerLimits, peopleLimits, w.missing()) {
				if got := format(row.call(t.Context(), w)); got != row.want {
					t.Errorf("%s: %s, want %s", row.verb, got, row.want)
				}
			}
		})
	}
}

// limit is one call that exceeds a limit of a verb. want is the expected code with the locations of the faults. ""
// means that the call succeeds.
type limit struct {
	verb string
	want string
	call func(context.Context, *limited) error
}

// format formats an error in the form of the rows: "invalid body.name body.steps".
func format(err error) string {
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return err.Error()
	}
	words := []string{string(e.Code)}
	for _, f := range e.Faults {
		if e.Code == puntuale.CodeInvalid {
			words = append(words, f.Location)
		}
	}
	return strings.Join(words, " ")
}

// limited is a service with one client. The rows call the verbs of this client.
type limited struct {
	control  *control.Control
	accounts *account.Accounts
	client   *control.Client
	partner  *account.Partner
	person   *account.Person
	id       string // the client's id
	sequence string
	bookings string // the id of a sequence for bookings
	session  string // the id of a sandbox session
	official string
	gateway  string
	message  string // the id of a pending message
	device   *control.Device
}

const limitedPassword = "una frase che nessuno indovina"

func newLimited(t *testing.T, db *storetest.Database) *limited {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	vault, err := auth.NewVault(bytes.Repeat([]byte{7}, auth.DataKeySize))
	must(err)
	store := db.Open(t)
	w := &limited{control: control.New(control.Config{Tenants: store, Devices: store, Maintenance: store, Clock: db.Clock, Vault: vault, Sandbox: true, Files: nofiles{},
		Links: func(s puntuale.Session) bool { return s.Sandbox }})}
	w.accounts = account.New(account.Config{Control: w.control, Tenants: store, Partners: store, Clock: db.Clock, Vault: vault, Sandbox: true,
		SignIn: store})
	_, key, err := w.accounts.CreatePartner(ctx, account.NewPartner{Name: "Agenzia", Email: "agenzia@x.it", Password: limitedPassword})
	must(err)
	caller, err := w.control.Authenticate(ctx, key)
	must(err)
	w.partner, err = w.accounts.Partner(caller)
	must(err)
	created, err := w.partner.CreateClient(ctx, account.NewClient{Name: "Studio", Email: "studio@x.it", Password: limitedPassword, Phone: "1"}, control.Once[account.CreatedClient]{})
	must(err)
	w.id = created.ID.String()
	caller, err = w.control.Authenticate(ctx, created.Key)
	must(err)
	w.client, err = caller.Client()
	must(err)
	w.session = created.Session.String()
	bookings, err := w.client.CreateSequence(ctx, control.NewSequence{Name: "Visita", Booking: "appuntamento", Steps: []puntuale.Step{{Text: "ciao"}}}, control.Once[control.Sequence]{})
	must(err)
	w.bookings = bookings.ID.String()
	sandbox := false
	official, err := w.client.CreateSession(ctx, control.NewSession{Name: "Ufficiale", Type: "Official", Sandbox: &sandbox}, control.Once[control.Session]{})
	must(err)
	w.official = official.ID.String()
	gateway, err := w.client.CreateSession(ctx, control.NewSession{Name: "Gateway", Type: "Send_app", Sandbox: &sandbox, Gateway: &control.NewGateway{AccessToken: "t"}}, control.Once[control.Session]{})
	must(err)
	w.gateway = gateway.ID.String()
	phones, err := w.client.CreateSession(ctx, control.NewSession{Name: "Telefoni", Type: "Send_app", Sandbox: &sandbox, Devices: true}, control.Once[control.Session]{})
	must(err)
	phones, err = w.client.Pair(ctx, phones.ID.String(), control.Pairing{})
	must(err)
	_, token, err := w.control.LinkDevice(ctx, control.NewDevice{Code: phones.Code.Text, Name: "telefono"})
	must(err)
	caller, err = w.control.Authenticate(ctx, token)
	must(err)
	w.device, err = caller.Device()
	must(err)
	made, err := w.client.CreateSequence(ctx, asked(puntuale.Step{Text: "ciao", Timing: inAnHour}), control.Once[control.Sequence]{})
	must(err)
	w.sequence = made.ID.String()
	started, err := w.client.Start(ctx, control.StartCall{Sequence: w.sequence, Phone: "3331234567"})
	must(err)
	w.message = started.IDs[0].String()
	users, err := w.accounts.TeamOf(w.client).Users(ctx)
	must(err)
	w.person, err = w.accounts.Person(ctx, users[0].ID, users[0].Stamp)
	must(err)
	return w
}

// nofiles is a media source without files, for a server that can fetch. No row fetches a file.
type nofiles struct{}

func (nofiles) Fetch(context.Context, puntuale.MediaRequest) (*puntuale.Media, error) {
	return nil, errors.New("a file was fetched")
}

var (
	inAnHour = puntuale.Timing{Anchor: puntuale.AnchorStart, Offset: puntuale.Offset{Amount: 1, Unit: puntuale.Hours}}

	long   = strings.Repeat("x", 1<<20+1)
	nul    = "a\x00b"
	many   = slices.Repeat([]string{"1"}, puntuale.MaxRequestIDs+1)
	phones = slices.Repeat([]string{"3331234567"}, puntuale.MaxRequestIDs+1)
	never  = time.UnixMicro(math.MaxInt64)
)

func asked(steps ...puntuale.Step) control.NewSequence {
	return control.NewSequence{Name: "s", Steps: steps}
}

func windowed(window *puntuale.Window) puntuale.Step {
	timing := inAnHour
	timing.Window = window
	return puntuale.Step{Text: "a", Timing: timing}
}

func setTo[T any](v T) puntuale.Change[T] { return puntuale.Change[T]{Set: true, To: v} }

func (w *limited) create(ctx context.Context, r control.NewSequence) error {
	_, err := w.client.CreateSequence(ctx, r, control.Once[control.Sequence]{})
	return err
}

func (w *limited) start(ctx context.Context, change func(*control.StartCall)) error {
	call := control.StartCall{Sequence: w.sequence, Phone: "3331234567"}
	change(&call)
	_, err := w.client.Start(ctx, call)
	_, dry := w.client.Preview(ctx, call)
	return errors.Join(err, same(err, dry))
}

// same returns an error if two errors differ.
func same(a, b error) error {
	if format(a) != format(b) {
		return fmt.Errorf("%w, and as a dry run %w", a, b)
	}
	return nil
}

func (w *limited) send(ctx context.Context, call control.SingleCall) error {
	call.Phone = "3331234567"
	_, err := w.client.Send(ctx, call)
	return err
}

// clientLimits are the limits of data that a client stores.
var clientLimits = []limit{
	{"CreateCampaign", "invalid body.name body.purpose body.recipients body.pace.per_minute body.canary body.timezone body.start_at body.if_running body.sequence body.id_sessione", func(ctx context.Context, w *limited) error {
		_, err := w.client.CreateCampaign(ctx, control.NewCampaign{Name: long, Purpose: nul, PerMinute: -1, Canary: new(-1), Timezone: long,
			StartAt: long, IfRunning: long, Session: long}, make([]control.Recipient, puntuale.MaxInline+1), control.Once[control.Campaign]{})
		return err
	}},
	{"CreateCampaign", "invalid body.window.weekdays", func(ctx context.Context, w *limited) error {
		_, err := w.client.CreateCampaign(ctx, control.NewCampaign{Name: "x", Step: &puntuale.Step{Text: "a"}, Window: &puntuale.Window{Weekdays: slices.Repeat([]int{1}, 340_000)}}, nil, control.Once[control.Campaign]{})
		return err
	}},
	{"CreateCampaign", "invalid body.content.text", func(ctx context.Context, w *limited) error {
		_, err := w.client.CreateCampaign(ctx, control.NewCampaign{Name: "x", Step: &puntuale.Step{Text: long}}, nil, control.Once[control.Campaign]{})
		return err
	}},
	{"PutBooking", "invalid body.phone path.reference body.status body.as_of body.timezone body.sequence", func(ctx context.Context, w *limited) error {
		_, err := w.client.PutBooking(ctx, control.BookingCall{Reference: long, Phone: nul, Status: long, AsOf: []byte(`[]`), Zone: new(long), Sequence: nul})
		return err
	}},
	{"PutBooking", "invalid body.as_of body.appuntamento", func(ctx context.Context, w *limited) error {
		_, err := w.client.PutBooking(ctx, control.BookingCall{Reference: "limits", Phone: "3331234567", Sequence: w.bookings, AsOf: []byte(`"2026-01-01"`)})
		return err
	}},
	{"PutBooking", "invalid body", func(ctx context.Context, w *limited) error {
		fields := map[string]json.RawMessage{"appuntamento": []byte(`"20/01/2027 10:00"`)}
		for i := range 20 {
			fields[fmt.Sprintf("f%d", i)] = []byte(`"` + strings.Repeat("a", puntuale.MaxField) + `"`)
		}
		_, err := w.client.PutBooking(ctx, control.BookingCall{Reference: "limits", Phone: "3331234567", Sequence: w.bookings, Fields: fields})
		return err
	}},
	{"CancelBooking", "not_found", func(ctx context.Context, w *limited) error {
		_, err := w.client.CancelBooking(ctx, control.BookingCall{Reference: long})
		return err
	}},
	{"Booking", "not_found", func(ctx context.Context, w *limited) error {
		_, err := w.client.Booking(ctx, nul)
		return err
	}},
	{"Bookings", "invalid query.text query.status query.sequence query.phone query.limit", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Bookings(ctx, control.BookingQuery{Text: long, Statuses: []string{long}, Sequence: nul, Phone: nul, Page: request.Page{Limit: "1001"}})
		return err
	}},
	{"CreateSequence", "invalid body.name body.if_running body.id_sessione", func(ctx context.Context, w *limited) error {
		r := asked(puntuale.Step{Text: "a", Timing: inAnHour})
		r.Name, r.IfRunning, r.Session = long, nul, nul
		err := w.create(ctx, r)
		if e, ok := errors.AsType[*puntuale.Error](err); ok { // the order of the faults does not matter
			slices.SortFunc(e.Faults, func(a, b puntuale.Fault) int { return -strings.Compare(a.Location, b.Location) })
		}
		return err
	}},
	{"CreateSequence", "invalid body.steps", func(ctx context.Context, w *limited) error {
		return w.create(ctx, asked(make([]puntuale.Step, 300_000)...))
	}},
	{"CreateSequence", "invalid body.steps[0].timing.window.weekdays", func(ctx context.Context, w *limited) error {
		return w.create(ctx, asked(windowed(&puntuale.Window{Weekdays: slices.Repeat([]int{1}, 340_000)})))
	}},
	{"CreateSequence", "invalid body.steps[0].template", func(ctx context.Context, w *limited) error {
		err := w.create(ctx, asked(puntuale.Step{Template: nul, Timing: inAnHour}))
		if e, ok := errors.AsType[*puntuale.Error](err); ok {
			e.Faults = slices.CompactFunc(e.Faults, func(a, b puntuale.Fault) bool { return a.Location == b.Location })
		}
		return err
	}},
	{"CreateSequence", "invalid body.steps[0].timing.offset.direction", func(ctx context.Context, w *limited) error {
		return w.create(ctx, asked(puntuale.Step{Text: "a", Timing: puntuale.Timing{Offset: puntuale.Offset{Direction: puntuale.Before}}}))
	}},
	{"CreateSequence", "invalid body.steps[0].timing.offset.amount", func(ctx context.Context, w *limited) error {
		return w.create(ctx, asked(puntuale.Step{Text: "a", Timing: puntuale.Timing{Offset: puntuale.Offset{Amount: math.MaxInt, Unit: puntuale.Days}}}))
	}},
	{"ReplaceSequence", "invalid body.steps", func(ctx context.Context, w *limited) error {
		_, err := w.client.ReplaceSequence(ctx, w.sequence, asked(make([]puntuale.Step, 51)...))
		return err
	}},
	{"SequenceWarnings", "invalid body.steps", func(ctx context.Context, w *limited) error {
		_, err := w.client.SequenceWarnings(ctx, asked(make([]puntuale.Step, 51)...))
		return err
	}},
	{"Rehearse", "invalid body.steps", func(ctx context.Context, w *limited) error {
		done, err := w.client.Rehearse(ctx, control.RehearsalCall{Sequence: asked(make([]puntuale.Step, 300_000)...)})
		if err == nil && len(done.Faults) < puntuale.MaxSteps+2 { // there is one fault for the number of steps, and at most one for each value that is read
			err = puntuale.Invalid(done.Faults[:1]...)
		}
		return err
	}},
	{"RestoreSequence", "invalid query.start query.stop", func(ctx context.Context, w *limited) error {
		_, err := w.client.RestoreSequence(ctx, w.sequence, many, many)
		return err
	}},
	{"DeleteSequence", "invalid query.pending", func(ctx context.Context, w *limited) error {
		return w.client.DeleteSequence(ctx, w.sequence, nul)
	}},
	{"CreateTemplate", "invalid body.name body.text", func(ctx context.Context, w *limited) error {
		_, err := w.client.CreateTemplate(ctx, control.NewTemplate{Template: puntuale.Template{Name: nul, Text: long}}, control.Once[control.Template]{})
		return err
	}},
	{"CreateSession", "invalid body.name body.connection_type body.pace.per_day body.pace.jitter", func(ctx context.Context, w *limited) error {
		huge, negative := math.MaxInt, -1
		_, err := w.client.CreateSession(ctx, control.NewSession{Name: long, Type: nul, Pace: &control.PaceChange{PerDay: &huge, Jitter: &negative}}, control.Once[control.Session]{})
		return err
	}},
	{"ChangeSession", "invalid body.name body.pace.cold_per_day", func(ctx context.Context, w *limited) error {
		huge := math.MaxInt
		_, err := w.client.ChangeSession(ctx, w.session, control.SessionChange{Name: &nul, Pace: &control.PaceChange{ColdPerDay: &huge}})
		return err
	}},
	{"DeleteSession", "invalid query.pending query.move_to query.move_to", func(ctx context.Context, w *limited) error {
		return w.client.DeleteSession(ctx, w.session, nul, nul)
	}},
	{"SetDefaultPair", "invalid body.start body.stop", func(ctx context.Context, w *limited) error {
		_, err := w.client.SetDefaultPair(ctx, w.session, nul, long, nil)
		return err
	}},
	{"SetKeys", "invalid body.phone_number_id body.access_token body.app_secret body.verify_token", func(ctx context.Context, w *limited) error {
		_, err := w.client.SetKeys(ctx, w.official, control.NewKeys{OfficialKeys: puntuale.OfficialKeys{PhoneNumberID: long, AccessToken: long, AppSecret: nul, VerifyToken: nul}})
		return err
	}},
	{"CreateSession", "invalid body.gateway.base_url body.gateway.access_token body.gateway.instance_id", func(ctx context.Context, w *limited) error {
		_, err := w.client.CreateSession(ctx, control.NewSession{Name: "x", Type: "Send_app", Gateway: &control.NewGateway{BaseURL: long, AccessToken: long, InstanceID: long}}, control.Once[control.Session]{})
		return err
	}},
	{"SetGateway", "invalid body.base_url body.access_token body.instance_id", func(ctx context.Context, w *limited) error {
		_, err := w.client.SetGateway(ctx, w.gateway, control.NewGateway{BaseURL: long, AccessToken: nul, InstanceID: long})
		return err
	}},
	{"Pair", "invalid body.method", func(ctx context.Context, w *limited) error {
		_, err := w.client.Pair(ctx, w.session, control.Pairing{Method: nul})
		return err
	}},
	{"Pair", "invalid body.phone", func(ctx context.Context, w *limited) error {
		_, err := w.client.Pair(ctx, w.session, control.Pairing{Method: "code", Phone: long})
		return err
	}},
	{"LinkDevice", "invalid body.name", func(ctx context.Context, w *limited) error {
		_, _, err := w.control.LinkDevice(ctx, control.NewDevice{Code: long, Name: long})
		return err
	}},
	{"LinkDevice", "not_found", func(ctx context.Context, w *limited) error {
		_, _, err := w.control.LinkDevice(ctx, control.NewDevice{Code: long, Name: "telefono"})
		return err
	}},
	{"UnlinkDevice of", "not_found", func(ctx context.Context, w *limited) error {
		return w.client.UnlinkDevice(ctx, w.device.Session.String(), nul)
	}},
	{"Take", "invalid body.take body.message_id body.max body.lease", func(ctx context.Context, w *limited) error {
		huge := math.MaxInt
		_, err := w.device.Take(ctx, control.TakeCall{ID: long, Message: nul, Most: &huge, Lease: &huge})
		return err
	}},
	{"Take", "invalid body.take body.max", func(ctx context.Context, w *limited) error {
		_, err := w.device.Take(ctx, control.TakeCall{ID: nul, Most: new(101)})
		return err
	}},
	{"Renew", "invalid body.attempts", func(ctx context.Context, w *limited) error {
		_, err := w.device.Renew(ctx, many, nil)
		return err
	}},
	{"Report", "invalid body.reports", func(ctx context.Context, w *limited) error {
		_, err := w.device.Report(ctx, slices.Repeat([]control.Reported{{Attempt: "1.1", Outcome: "sent"}}, puntuale.MaxReported+1))
		return err
	}},
	{"Report", "invalid body.reports[0].detail body.reports[0].outcome", func(ctx context.Context, w *limited) error {
		_, err := w.device.Report(ctx, []control.Reported{{Attempt: nul, Outcome: nul, Detail: long}})
		return err
	}},
	{"SetPush", "invalid body.endpoint body.endpoint body.p256dh body.auth", func(ctx context.Context, w *limited) error {
		return w.device.SetPush(ctx, control.PushTarget{Endpoint: "http://x/" + long, P256dh: long, Auth: nul})
	}},
	{"AddContact", "invalid body.phone body.name body.language body.source body.tags body.fields body.fields", func(ctx context.Context, w *limited) error {
		_, err := w.client.AddContact(ctx, control.NewContact{Phone: long, Name: long, Language: long, Source: nul, Tags: many, Fields: manyValues()}, control.Once[puntuale.Contact]{})
		return err
	}},
	{"AddContact", "invalid body.tags[0] body.tags[1] body.fields body.fields.x", func(ctx context.Context, w *limited) error {
		_, err := w.client.AddContact(ctx, control.NewContact{Phone: "3331234567", Tags: []string{long, " "}, Fields: map[string]control.ContactValue{"x": {Text: long}, nul: {}}}, control.Once[puntuale.Contact]{})
		return err
	}},
	{"ImportContacts", "invalid query.source", func(ctx context.Context, w *limited) error {
		_, err := w.client.ImportContacts(ctx, strings.NewReader(""), "text/csv", control.ContactImport{Source: long})
		return err
	}},
	{"ImportContacts", "invalid query.columns query.columns query.source", func(ctx context.Context, w *limited) error {
		_, err := w.client.ImportContacts(ctx, strings.NewReader("a,b,c\n1,2,3\n"), "text/csv", control.ContactImport{FileImport: control.FileImport{Columns: "x-y:a,consent:b"}})
		return err
	}},
	{"AddBlacklisted", "invalid body.phone body.reason", func(ctx context.Context, w *limited) error {
		_, err := w.client.AddBlacklisted(ctx, long, long, control.Once[puntuale.BlacklistEntry]{})
		return err
	}},
	{"AnswerFromSandbox", "invalid body.phone body.text body.network_id body.network_id header.Idempotency-Key", func(ctx context.Context, w *limited) error {
		_, err := w.client.AnswerFromSandbox(ctx, control.SandboxReply{Session: w.session, Phone: long, Text: strings.Repeat("x", puntuale.MaxReply+1), NetworkID: long + nul, Key: long + nul})
		return sorted(err, "body.phone", "body.text", "body.network_id", "header.Idempotency-Key")
	}},
	{"OpenMedia", "gone", func(ctx context.Context, w *limited) error {
		_, err := w.client.OpenMedia(ctx, puntuale.Reply{})
		return err
	}},
	{"KeepFile", "not_found", func(ctx context.Context, w *limited) error {
		return w.client.KeepFile(ctx, puntuale.IncomingFile{Reply: 1 << 40})
	}},
	{"RemoveBlacklisted", "invalid body.phone", func(ctx context.Context, w *limited) error {
		_, err := w.client.RemoveBlacklisted(ctx, nul)
		return err
	}},
	{"ImportBlacklist", "invalid body", func(ctx context.Context, w *limited) error {
		file := strings.NewReader(strings.Repeat("3331234567\n", control.MaxBlacklistImport+1))
		_, err := w.client.ImportBlacklist(ctx, file, "text/csv", control.FileImport{})
		return err
	}},
	{"Erase", "invalid body.phone", func(ctx context.Context, w *limited) error {
		_, err := w.client.Erase(ctx, long)
		return err
	}},
	{"TryFile", "invalid body.address", func(ctx context.Context, w *limited) error {
		_, err := w.client.TryFile(ctx, "https://x.it/"+long)
		return err
	}},
	{"ClientKeys.Create", "invalid body.name", func(ctx context.Context, w *limited) error {
		_, err := w.accounts.KeysOf(w.client).Create(ctx, long)
		return err
	}},
}

// messageLimits are the limits of calls about messages.
var messageLimits = []limit{
	{"Start", "invalid body", func(ctx context.Context, w *limited) error {
		return w.start(ctx, func(c *control.StartCall) { c.Body = []byte(long) })
	}},
	{"Start", "invalid body.phone query.timezone query.if_running header.Idempotency-Key", func(ctx context.Context, w *limited) error {
		return w.start(ctx, func(c *control.StartCall) { c.Phone, c.Timezone, c.IfRunning, c.Key = long, long, nul, long })
	}},
	{"Start", "invalid body.timezone", func(ctx context.Context, w *limited) error {
		return w.start(ctx, func(c *control.StartCall) { c.BodyZone = "posix/Europe/Rome" })
	}},
	{"Preview", "not_found", func(ctx context.Context, w *limited) error {
		return w.start(ctx, func(c *control.StartCall) { c.Sequence = nul })
	}},
	{"Send", "invalid body body.name body.timezone body.id_sessione header.Idempotency-Key body.template", func(ctx context.Context, w *limited) error {
		return w.send(ctx, control.SingleCall{Body: []byte(long), Name: long, Timezone: "Factory", Session: nul, Key: nul, Template: nul})
	}},
	{"Stop", "invalid body.phone", func(ctx context.Context, w *limited) error {
		_, err := w.client.Stop(ctx, w.sequence, long, control.Reference{})
		return err
	}},
	{"CancelPending", "invalid body.phones", func(ctx context.Context, w *limited) error {
		_, err := w.client.CancelPending(ctx, control.CancelCall{Phones: phones, Location: "body.phones"}, func([]puntuale.CancelledMessage) error { return nil })
		return err
	}},
	{"CancelMessages", "invalid body.id", func(ctx context.Context, w *limited) error {
		_, err := w.client.CancelMessages(ctx, many)
		return err
	}},
	{"Resend", "invalid body.id body.time body.date", func(ctx context.Context, w *limited) error {
		_, err := w.client.Resend(ctx, control.ResendCall{IDs: many, Date: long, Time: nul})
		return err
	}},
	{"ResendUnknown", "invalid body.id", func(ctx context.Context, w *limited) error {
		_, err := w.client.ResendUnknown(ctx, control.UnknownCall{IDs: many})
		return err
	}},
	{"CloseUnknown", "invalid body.id", func(ctx context.Context, w *limited) error {
		_, err := w.client.CloseUnknown(ctx, control.UnknownCall{IDs: many})
		return err
	}},
	{"UnknownMessages", "invalid query.limit", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.UnknownMessages(ctx, request.Page{Limit: "1001"})
		return err
	}},
	{"BlacklistedAmong", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.BlacklistedAmong(ctx, nul, long)
		return err
	}},
	{"Resend", "invalid body.date", func(ctx context.Context, w *limited) error {
		_, err := w.client.Resend(ctx, control.ResendCall{IDs: []string{w.message}, Date: "3000-01-01"})
		return err
	}},
	{"Move", "invalid body.date", func(ctx context.Context, w *limited) error {
		_, err := w.client.Move(ctx, w.message, "3000-01-01", "10:00")
		return err
	}},
	{"MoveTo", "invalid query.at", func(ctx context.Context, w *limited) error {
		_, err := w.client.MoveTo(ctx, w.message, time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC))
		return err
	}},
	{"MoveTo", "invalid query.at", func(ctx context.Context, w *limited) error {
		_, err := w.client.MoveTo(ctx, w.message, never)
		return err
	}},
	{"Restore", "conflict", func(ctx context.Context, w *limited) error {
		_, err := w.client.Restore(ctx, w.message)
		return err
	}},
	{"ContactsOf", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.ContactsOf(ctx, nul, long)
		return err
	}},
	{"NamesOf", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.NamesOf(ctx, nul, long)
		return err
	}},
	{"Recipient", "invalid query.phone", func(_ context.Context, w *limited) error {
		_, err := w.client.Recipient(nul + long)
		return err
	}},
	{"StopRun", "invalid body.phone", func(ctx context.Context, w *limited) error {
		_, err := w.client.StopRun(ctx, nul+long, nul+long)
		return err
	}},
	{"RecipientStatus", "invalid body.phone", func(ctx context.Context, w *limited) error {
		_, err := w.client.RecipientStatus(ctx, w.sequence, nul)
		return err
	}},
	{"Blacklisted", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.Blacklisted(ctx, nul+long)
		return err
	}},
}

// manyValues returns more fields than a contact may have. One of them has an invalid name.
func manyValues() map[string]control.ContactValue {
	values := map[string]control.ContactValue{long: {Text: "x"}}
	for i := range puntuale.MaxContactFields {
		values[fmt.Sprintf("f%d", i)] = control.ContactValue{Text: "x"}
	}
	return values
}

// listLimits are the limits of calls that read lists.
var listLimits = []limit{
	{"Details", "invalid query.message_ids", func(ctx context.Context, w *limited) error {
		_, err := w.client.Details(ctx, many)
		return err
	}},
	{"Messages", "invalid query.limit query.cursor query.state query.origin query.sequence query.phone query.from", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Messages(ctx, control.MessageQuery{State: nul, Origin: nul, Sequence: nul, Phone: long,
			Period: request.Period{Start: []request.Bound{{Name: "from", Text: long}}}, Page: request.Page{Limit: "1001", Cursor: long}})
		return sorted(err, "query.limit", "query.cursor")
	}},
	{"CountMessages", "invalid query.state", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.CountMessages(ctx, control.MessageQuery{State: nul}, math.MaxInt)
		return err
	}},
	{"CountStates", "invalid query.phone query.from", func(ctx context.Context, w *limited) error {
		_, err := w.client.CountStates(ctx, control.MessageQuery{State: nul, Phone: long, Period: request.Period{Start: []request.Bound{{Name: "from", Text: long}}}})
		return err
	}},
	{"Outcomes", "invalid query.cursor", func(ctx context.Context, w *limited) error {
		bound := func(text string) []request.Bound { return []request.Bound{{Name: "x", Text: text}} }
		_, _, err := w.client.Outcomes(ctx, control.OutcomeQuery{Period: request.Period{Start: bound("01/01/0001 00:00"), End: bound("31/12/9999 23:59")}, Cursor: long})
		return err
	}},
	{"Agenda", "", func(ctx context.Context, w *limited) error {
		for _, from := range []puntuale.Date{{Year: math.MaxInt32, Month: 1, Day: 1}, {Year: math.MinInt32, Month: 1, Day: 1}} {
			a, err := w.client.Agenda(ctx, from, math.MaxInt, math.MaxInt)
			if err != nil || len(a.Days) != control.MaxAgendaDays {
				return fmt.Errorf("%d days, %w", len(a.Days), err)
			}
		}
		return nil
	}},
	{"Totals", "", func(ctx context.Context, w *limited) error {
		for _, far := range []int{math.MinInt, math.MaxInt} {
			days, err := w.client.Totals(ctx, far, far)
			if err != nil || len(days) > 801 {
				return fmt.Errorf("%d days, %w", len(days), err)
			}
		}
		return nil
	}},
	{"LastStarted", "", func(ctx context.Context, w *limited) error {
		for _, far := range []int{math.MinInt, math.MaxInt} {
			if found, err := w.client.LastStarted(ctx, far); err != nil || len(found) > 20 {
				return fmt.Errorf("%d sequences, %w", len(found), err)
			}
		}
		return nil
	}},
	{"Chat", "invalid query.phone", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Chat(ctx, w.session, nul, math.MaxInt)
		return err
	}},
	{"Contacts", "invalid query.limit query.cursor query.name query.tag query.phone", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Contacts(ctx, control.ContactQuery{Tag: long, Phone: long, Name: long}, wide)
		return sorted(err, "query.limit", "query.cursor")
	}},
	{"Contacts", "invalid query.phone", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Contacts(ctx, control.ContactQuery{Phone: long + "*"}, request.Page{})
		return err
	}},
	{"CountContacts", "invalid query.name", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.CountContacts(ctx, control.ContactQuery{Name: nul}, math.MaxInt)
		return err
	}},
	{"TagContacts", "invalid body.tag[0] query.name", func(ctx context.Context, w *limited) error {
		_, err := w.client.TagContacts(ctx, control.ContactQuery{Name: nul}, "", long, false)
		return err
	}},
	{"FindBlacklisted", "invalid query.limit query.cursor query.q", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.FindBlacklisted(ctx, long, wide)
		return sorted(err, "query.limit", "query.cursor")
	}},
	{"CountBlacklisted", "invalid query.q", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.CountBlacklisted(ctx, long)
		return err
	}},
	{"Blacklist", saysWide, func(ctx context.Context, w *limited) error { _, _, err := w.client.Blacklist(ctx, wide); return err }},
	{"Audit", saysWide, func(ctx context.Context, w *limited) error { _, _, err := w.client.Audit(ctx, wide); return err }},
	{"SandboxMessages", saysWide, func(ctx context.Context, w *limited) error {
		_, _, err := w.client.SandboxMessages(ctx, wide)
		return err
	}},
	{"Sequences", saysWide + " query.text", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Sequences(ctx, control.SequenceSearch{Text: long, Page: wide})
		return sorted(err, "query.limit", "query.cursor")
	}},
	{"CountSequences", "invalid query.text", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.CountSequences(ctx, long)
		return err
	}},
	{"Sessions", saysWide, func(ctx context.Context, w *limited) error { _, _, err := w.client.Sessions(ctx, wide); return err }},
	{"Templates", saysWide, func(ctx context.Context, w *limited) error { _, _, err := w.client.Templates(ctx, wide); return err }},
	{"Campaigns", saysWide, func(ctx context.Context, w *limited) error { _, _, err := w.client.Campaigns(ctx, wide); return err }},
	{"NetworkTemplates", saysWide, func(ctx context.Context, w *limited) error {
		_, err := w.client.NetworkTemplates(ctx, w.official, wide)
		return err
	}},
}

var wide = request.Page{Limit: "1001", Cursor: long}

const saysWide = "invalid query.limit query.cursor"

// sorted moves the faults at some locations to the front, so that a row need not list all faults in their order.
func sorted(err error, first ...string) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return err
	}
	rank := func(f puntuale.Fault) int {
		if i := slices.Index(first, f.Location); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortStableFunc(e.Faults, func(a, b puntuale.Fault) int { return rank(a) - rank(b) })
	return e
}

// missing returns rows for every verb whose first argument is an id. A text that is not an id is refused with
// not_found.
func (w *limited) missing() (rows []limit) {
	ids := []string{"", nul, long, "-1", "0", "1e3", "99999999999999999999999999"}
	text := reflect.TypeFor[string]()
	for _, on := range []any{w.client, new(w.accounts.KeysOf(w.client)), w.partner, w.accounts.TeamOf(w.client)} {
		kind := reflect.TypeOf(on)
		for i := range kind.NumMethod() {
			m := kind.Method(i)
			if m.Type.NumIn() < 3 || m.Type.In(2) != text || !slices.Contains(verbsWithID, kind.Elem().Name()+"."+m.Name) {
				continue
			}
			for _, id := range ids {
				rows = append(rows, limit{fmt.Sprintf("%s(%.10q)", m.Name, id), "not_found", func(ctx context.Context, w *limited) error {
					in := []reflect.Value{reflect.ValueOf(on), reflect.ValueOf(ctx), reflect.ValueOf(id)}
					for n := 3; n < m.Type.NumIn() && (!m.Type.IsVariadic() || n < m.Type.NumIn()-1); n++ {
						in = append(in, reflect.Zero(m.Type.In(n)))
					}
					out := m.Func.Call(in)
					err, _ := out[len(out)-1].Interface().(error)
					return err
				}})
			}
		}
	}
	return rows
}

// verbsWithID lists the verbs whose first argument is the id of their object.
var verbsWithID = strings.Fields(`Client.BlacklistEntry Client.RemoveBlacklistEntry Client.Session Client.ChangeSession Client.DeleteSession
	Client.SetDefaultPair Client.Sequence Client.ReplaceSequence Client.DeleteSequence Client.RestoreSequence Client.Template Client.ReplaceTemplate
	Client.DeleteTemplate Client.Story Client.MoveTo Client.Restore Client.Pair Client.OfferLinkingPage Client.EndLinkingPage Client.Unlink Client.Reconnect Client.SetKeys Client.SetGateway Client.TestSession
	Client.Contact Client.UpdateContact Client.DeleteContact Client.RecipientsFrom Client.SetAddress Client.ByPartner Client.Campaign Client.CampaignProgress Client.UpdateCampaign Client.AddRecipients Client.PutRecipients Client.MapRecipients Client.RecipientsOf Client.ListRecipients Client.SampleRecipient
	Client.CheckCampaign Client.StartCampaign Client.StartMade Client.PauseCampaign Client.ResumeCampaign Client.CancelCampaign Client.RetryCampaign Client.CampaignBill
	Client.Reply Client.NetworkTemplates Client.NetworkTemplate Client.TemplateRequests Client.TemplateLanguages Client.UnpauseNetworkTemplate Client.DeleteNetworkTemplate Client.AcceptCategory Client.SessionHealth Client.UndoContactChange Client.Chat Client.AwaitSession Client.Devices Client.UnlinkDevice ClientKeys.Rotate ClientKeys.Revoke Client.Stop Client.RecipientStatus Client.BookingWith Client.File Client.DeleteFile Client.SmallPicture
	Partner.Account Partner.ClientOfSession Partner.Plan Partner.ReplacePlan Partner.DeletePlan Partner.ApplyPlan Partner.Row Partner.ChangeClient Partner.DeleteClient Partner.Keys Partner.CreateKey Partner.RotateKey Partner.RevokeKey Partner.TeamOf
	Partner.RotateOwnKey Partner.RevokeOwnKey Team.User Team.Change Team.Delete Team.InviteAgain Team.Uninvite`)

// unlimited lists the verbs that accept no values from outside, or only values that need no limit. The parser limits
// recipients. The packages search and result limit what they search for and count.
var unlimited = strings.Fields(`Client.Account Client.AsOf Client.Before Client.BookingOf Client.BookingsMade Client.CountReplan Client.ErasedReferences Client.KeepAsOf Client.Listed Client.MoveReplan Client.NamedBookings Client.Now Client.ReadTwice Client.Replan Client.ReplanBookings Client.SpendCall Client.StartReplan Client.Uncounted Client.Unchanged Client.Unheld Client.CanTryFiles Client.Confirm Client.ContactTags Client.CountAudit Client.CountBookings Client.CountCampaigns Client.CountConversations Client.Follow Client.ID Client.Pause ClientKeys.List Client.MayCreate Client.NextMessages Client.NumbersIn Client.Pulse
	Client.Settings Client.Addressless Client.UnreadReplies Client.ConfirmOptOut
	Client.Filled Client.OwnPrices Client.ReleaseHeld Client.Restored Client.RunWarnings Client.Today Client.Unwanted Client.Version Partner.CountAudit Partner.CountClientStates Partner.Expiring Partner.Plans Partner.PlansOf Partner.Host Partner.HostProof Partner.ID Partner.OwnKeys Partner.ProveHost Partner.Quotas
	Client.BeginCompare Client.NumberChanges Client.UndoChange Client.BeginLink Client.Holders Client.Known Client.ParseRecipient Client.Spend Client.Stopping Client.Wait Client.CheckFile Client.CheckSentFile Client.FileUsers Client.Files Client.OpenFile Client.UploadFile Client.Day Client.FindContacts Client.FindNamed Client.OutlinesOf Client.ResultMessages Client.Results Partner.Day Partner.Results Partner.ClientNames Partner.Team Team.Users Device.Due Device.EndPush Device.Look Device.Owner Device.Partner Device.Pause Device.PushKey Device.See Device.SessionOf Device.Unlink Device.Wait`)

// TestEveryVerbHasItsLimits finds verbs without a row. For a new verb, add a row to the tables above. If the verb's
// values need no limit, add the verb to unlimited instead.
func TestEveryVerbHasItsLimits(t *testing.T) {
	t.Parallel()
	known := slices.Concat(verbsWithID, unlimited)
	for _, row := range slices.Concat(clientLimits, messageLimits, listLimits, replyLimits) {
		known = append(known, row.verb, "Client."+row.verb, "Device."+row.verb)
	}
	for _, row := range slices.Concat(partnerLimits, peopleLimits) {
		known = append(known, "Partner."+row.verb, row.verb)
	}
	for _, kind := range []reflect.Type{reflect.TypeFor[*control.Client](), reflect.TypeFor[*account.ClientKeys](), reflect.TypeFor[*account.Partner](), reflect.TypeFor[*account.Team](), reflect.TypeFor[*control.Device]()} {
		for i := range kind.NumMethod() {
			if name := kind.Elem().Name() + "." + kind.Method(i).Name; !slices.Contains(known, name) {
				t.Errorf("%s has no row", name)
			}
		}
	}
}
