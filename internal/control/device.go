package control

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control/request"
)

// offer creates a one-time code that links a device to the session. A new code replaces the earlier code. Codes:
// conflict (the session already has the largest allowed number of devices).
func (c *Client) offer(ctx context.Context, s Session) (Session, error) {
	if c.control.vault == nil {
		return Session{}, puntuale.NoLinker()
	}
	code := puntuale.PairingCode{Method: puntuale.PairCode, Text: auth.NewDeviceCode()}
	plain, err := json.Marshal(code)
	if err != nil {
		return Session{}, err
	}
	expiresAt := c.control.clock.Now().Add(puntuale.UnfinishedPairing.Lifetime())
	sealed := c.control.vault.Seal(puntuale.SealedCode, s.ID.SealPlace(), plain)
	if err := c.tenant.OfferDevice(ctx, s.ID, sealed, c.control.codeMark(code.Text), expiresAt); err != nil {
		return Session{}, fmt.Errorf("offer a device's code: %w", err)
	}
	return c.Session(ctx, s.ID.String())
}

// codeMark returns the keyed hash under which a store finds a device code.
func (c *Control) codeMark(code string) string { return c.vault.Mark("code of a device", code) }

// Codes of the faults that this file reports.
const (
	faultCallerDeviceToken puntuale.ReasonCode = "caller.device_token"
	faultDeviceAttempts    puntuale.ReasonCode = "device.attempts"
	faultDeviceNoneTake    puntuale.ReasonCode = "device.none_take"
	faultDeviceNotBase64   puntuale.ReasonCode = "device.not_base64"
	faultDeviceNotHTTPS    puntuale.ReasonCode = "device.not_https"
	faultDeviceReports     puntuale.ReasonCode = "device.reports"
	FaultNotID             puntuale.ReasonCode = "fault.not_id"
)

// ofDevices returns a session that sends through devices. Codes: not_found, conflict (the session sends through a
// connector).
func (c *Client) ofDevices(ctx context.Context, id string) (Session, error) {
	s, err := c.Session(ctx, id)
	if err == nil && !s.ByDevice() {
		err = puntuale.Conflict(faultDeviceNoneTake)
	}
	return s, err
}

// Devices lists the devices of a session, ordered by id. Codes: not_found, conflict (the session sends through a
// connector).
func (c *Client) Devices(ctx context.Context, session string) ([]puntuale.Device, error) {
	s, err := c.ofDevices(ctx, session)
	if err != nil {
		return nil, err
	}
	all, err := c.tenant.Devices(ctx, s.ID)
	if err != nil {
		return nil, fmt.Errorf("list the devices of session %d: %w", s.ID, err)
	}
	return all, nil
}

// UnlinkDevice unlinks a device. The device's token becomes invalid, and the messages that the device holds become
// uncertain. Codes: not_found, conflict (the session sends through a connector).
func (c *Client) UnlinkDevice(ctx context.Context, session, device string) error {
	s, err := c.ofDevices(ctx, session)
	if err != nil {
		return err
	}
	id, err := puntuale.ParseID[puntuale.DeviceID](device)
	if err != nil {
		return puntuale.NotFound(puntuale.NoDevice)
	}
	if err := c.tenant.UnlinkDevices(ctx, s.ID, id, c.control.clock.Now()); err != nil {
		return fmt.Errorf("unlink device %d: %w", id, err)
	}
	c.control.wakeup(s.ID, c.control.clock.Now())
	return nil
}

// NewDevice is a request to link a device.
type NewDevice struct {
	Code     string // as the person typed the code
	Name     string
	Dedupes  bool
	Assisted bool
	Faults   []puntuale.Fault // the faults that the calling package already found in the request
}

// LinkDevice links a device by a one-time code, and returns the token for the device's requests. Codes: invalid,
// not_found (the code was used, or has expired), conflict (the session already has the largest allowed number of
// devices).
func (c *Control) LinkDevice(ctx context.Context, r NewDevice) (puntuale.Device, string, error) {
	f := request.Faults(r.Faults)
	f.Required("body.name", r.Name, puntuale.MaxDeviceName)
	if r.Code == "" && !f.At("body.code") {
		f.Add("body.code", puntuale.FaultRequired, nil)
	}
	if err := f.Err(); err != nil {
		return puntuale.Device{}, "", err
	}
	code, ok := auth.ParseDeviceCode(r.Code)
	if !ok || c.vault == nil {
		return puntuale.Device{}, "", puntuale.NotFound(puntuale.NoCode)
	}
	now := c.clock.Now()
	token, key, err := auth.NewKey(puntuale.DeviceSide, r.Name, now)
	if err != nil {
		return puntuale.Device{}, "", err
	}
	d, err := c.devices.store.LinkDevice(ctx, c.codeMark(code), puntuale.Device{Name: r.Name, Dedupes: r.Dedupes, Assisted: r.Assisted}, key.Hash, now)
	if err != nil {
		return puntuale.Device{}, "", fmt.Errorf("link a device: %w", err)
	}
	c.wakeup(d.Session, time.Time{})
	return d, token, nil
}

// Device is a linked device, found by its token. Its methods reach only the messages of its session.
type Device struct {
	puntuale.Device
	client *Client
}

// Device returns the device that owns the token. Codes: forbidden if the key is not a device's token.
func (c *Caller) Device() (*Device, error) {
	if c.principal.Side != puntuale.DeviceSide {
		return nil, forbidden(faultCallerDeviceToken)
	}
	account := c.principal.Client
	return &Device{c.principal.Device, &Client{control: c.control, account: account, tenant: c.control.tenants.Uncounted(account.ID)}}, nil
}

// Owner returns the id of the client that owns the device's session.
func (d *Device) Owner() puntuale.ClientID { return d.client.ID() }

// Partner returns the partner of that client.
func (d *Device) Partner() puntuale.PartnerID { return d.client.account.Partner }

// SessionOf returns the session of the device.
func (d *Device) SessionOf(ctx context.Context) (Session, error) {
	return d.client.Session(ctx, d.Session.String())
}

// Look returns the slug of the partner whose brand the phone app shows; "": the host name says it, or the partner has none.
func (d *Device) Look(ctx context.Context) (string, error) {
	h, err := d.client.control.tenants.Partner(d.client.account.Partner).Host(ctx)
	if err != nil {
		return "", fmt.Errorf("read the brand of device %d: %w", d.ID, err)
	}
	if h.Brand.Confirmed {
		return "", nil
	}
	return h.Partner.Slug, nil
}

// seenEvery is the shortest time between two stored times of a device's calls.
const seenEvery = time.Minute

// See stores the time of the device's call. If the last stored time is less than seenEvery ago, See stores nothing.
func (d *Device) See(ctx context.Context) error {
	now := d.client.control.clock.Now()
	if now.Sub(d.Seen) < seenEvery {
		return nil
	}
	if err := d.client.tenant.SeenDevice(ctx, d.ID, now); err != nil {
		return fmt.Errorf("note device %d: %w", d.ID, err)
	}
	d.Seen = now
	return nil
}

// Unlink unlinks the device at the device's own request.
func (d *Device) Unlink(ctx context.Context) error {
	now := d.client.control.clock.Now()
	if err := d.client.tenant.UnlinkDevices(ctx, d.Session, d.ID, now); err != nil {
		return fmt.Errorf("unlink device %d: %w", d.ID, err)
	}
	d.client.control.wakeup(d.Session, now)
	return nil
}

// Due lists the messages that the device could take now, in order, and the messages that it already holds. Each list
// has at most 100 entries.
func (d *Device) Due(ctx context.Context) (due, held []HandedMessage, err error) {
	waiting, err := d.client.tenant.Takeable(ctx, d.Session, d.ID, d.client.control.clock.Now(), puntuale.MaxTaken)
	if err != nil {
		return nil, nil, fmt.Errorf("look for what is due: %w", err)
	}
	taken, err := d.client.tenant.HeldBy(ctx, d.Session, d.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("look for what is held: %w", err)
	}
	all, err := d.handed(ctx, slices.Concat(waiting, taken[:min(len(taken), puntuale.MaxTaken)]))
	if err != nil {
		return nil, nil, err
	}
	return all[:len(waiting)], all[len(waiting):], nil
}

// HandedMessage is a message for a device, with the name of its recipient.
type HandedMessage struct {
	puntuale.HeldMessage
	Name string // "": it is not known
}

// handed adds the recipients' names to messages.
func (d *Device) handed(ctx context.Context, all []puntuale.HeldMessage) ([]HandedMessage, error) {
	phones := make([]string, 0, len(all))
	for _, h := range all {
		phones = append(phones, h.Phone)
	}
	slices.Sort(phones)
	names := map[string]string{}
	if phones = slices.Compact(phones); len(phones) > 0 {
		var err error
		if names, err = d.client.tenant.NamesOf(ctx, phones); err != nil {
			return nil, fmt.Errorf("read the names of recipients: %w", err)
		}
	}
	handed := make([]HandedMessage, len(all))
	for i, h := range all {
		if id, _ := puntuale.UploadedFile(h.Content.MediaURL); id != "" {
			h.Content.MediaURL = d.client.control.FileAddress(d.client.account.ID, id)
		}
		handed[i] = HandedMessage{h, names[h.Phone]}
	}
	return handed, nil
}

// TakeCall is a device's request to take messages.
type TakeCall struct {
	ID      string // the device's own id for this request
	Message string // "": the first messages that are due
	Most    *int   // the largest number of messages; nil: 10
	Lease   *int   // how long the device holds the messages, in seconds; nil: two minutes
	Faults  []puntuale.Fault
}

// defaultTaken is how many messages a device gets if its request names no number.
const defaultTaken = 10

// Take begins attempts of due messages. From then on, the device holds these messages. Codes: invalid, conflict (the
// message cannot be taken now), not_found (the device was unlinked in the meantime), unavailable.
func (d *Device) Take(ctx context.Context, r TakeCall) ([]HandedMessage, error) {
	f := request.Faults(r.Faults)
	now := d.client.control.clock.Now()
	take := puntuale.DeviceTake{Device: d.ID, Session: d.Session, ID: r.ID, Most: defaultTaken, Now: now,
		GiveUp: now.Add(d.client.control.devices.uncertainAfter),
		Mark:   d.client.mark}
	if r.ID == "" && !f.At("body.take") {
		f.Add("body.take", puntuale.FaultRequired, nil)
	}
	f.Text("body.take", r.ID, puntuale.MaxTakeID)
	if r.Message != "" {
		id, err := puntuale.ParseID[puntuale.MessageID](r.Message)
		if err != nil {
			f.Add("body.message_id", FaultNotID, r.Message)
		}
		take.Message = id
	}
	if r.Most != nil {
		take.Most = *r.Most
		if r.Message != "" {
			f.Add("body.max", puntuale.FaultNotWith, nil, "message_id")
		} else if take.Most < 1 || take.Most > puntuale.MaxTaken {
			f.Add("body.max", puntuale.FaultMustBeInRange, take.Most, "1", strconv.Itoa(puntuale.MaxTaken))
		}
	}
	take.Until = now.Add(lease(&f, r.Lease))
	if err := f.Err(); err != nil {
		return nil, err
	}
	held, err := d.client.tenant.Take(ctx, take)
	if err != nil {
		return nil, fmt.Errorf("take messages: %w", err)
	}
	return d.handed(ctx, held) // after an error, the device repeats the call and gets the same messages
}

// Pause waits one second before the next check for due messages. It returns false if the request ended, or if the server
// stops.
func (d *Device) Pause(ctx context.Context) bool { return d.client.Pause(ctx, time.Second) }

// lease parses how long a device wants to hold messages.
func lease(f *request.Faults, seconds *int) time.Duration {
	if seconds == nil {
		return puntuale.DefaultLease
	}
	d := time.Duration(*seconds) * time.Second
	if *seconds < int(puntuale.MinLease.Seconds()) || *seconds > int(puntuale.MaxLease.Seconds()) {
		f.Add("body.lease", puntuale.FaultMustBeInSeconds, *seconds, fmt.Sprint(puntuale.MinLease.Seconds()), fmt.Sprint(puntuale.MaxLease.Seconds()))
		return 0
	}
	return d
}

// Attempt returns the id that the API uses for an attempt of a device.
func Attempt(h puntuale.HeldRef) string { return fmt.Sprintf("%d.%d", h.Message, h.Token) }

// parseAttempt parses an id that [Attempt] returned. ok is false for any other text.
func parseAttempt(text string) (h puntuale.HeldRef, ok bool) {
	n, err := fmt.Sscanf(text, "%d.%d", &h.Message, &h.Token)
	return h, err == nil && n == 2 && Attempt(h) == text && h.Token > 0
}

// Renewed is the result of [Device.Renew].
type Renewed struct {
	Attempts []string
	Until    time.Time
	Lost     []string // attempts that the device no longer holds, or that do not exist
}

// Renew extends the time for which the device holds messages. Codes: invalid, not_found (the device was unlinked).
func (d *Device) Renew(ctx context.Context, attempts []string, seconds *int, found ...puntuale.Fault) (Renewed, error) {
	f := request.Faults(found)
	now := d.client.control.clock.Now()
	r := Renewed{Until: now.Add(lease(&f, seconds))}
	if !f.At("body.attempts") && (len(attempts) == 0 || len(attempts) > puntuale.MaxTaken) {
		f.Add("body.attempts", faultDeviceAttempts, nil, strconv.Itoa(puntuale.MaxTaken))
	}
	if err := f.Err(); err != nil {
		return Renewed{}, err
	}
	var requested []puntuale.HeldRef
	for _, text := range attempts {
		if h, ok := parseAttempt(text); ok {
			requested = append(requested, h)
		}
	}
	live, err := d.client.tenant.Renew(ctx, d.Session, d.ID, requested, r.Until, now)
	if err != nil {
		return Renewed{}, fmt.Errorf("renew holds: %w", err)
	}
	still := map[string]bool{}
	for _, h := range live {
		still[Attempt(h)] = true
	}
	for _, text := range attempts {
		if still[text] {
			r.Attempts = append(r.Attempts, text)
		} else {
			r.Lost = append(r.Lost, text)
		}
	}
	return r, nil
}

// Reported is a device's report of one attempt.
type Reported struct {
	Attempt, Outcome, Detail string
}

// maxReportDetail bounds the Detail of a device's report, in characters.
const maxReportDetail = 300

// Report records the outcomes that a device reports. The results have the order of the reports. Codes: invalid.
func (d *Device) Report(ctx context.Context, all []Reported, found ...puntuale.Fault) ([]puntuale.ReportResult, error) {
	f := request.Faults(found)
	if !f.At("body.reports") && (len(all) == 0 || len(all) > puntuale.MaxReported) {
		f.Add("body.reports", faultDeviceReports, nil, strconv.Itoa(puntuale.MaxReported))
	}
	now := d.client.control.clock.Now()
	results := make([]puntuale.ReportResult, len(all))
	var reports []puntuale.DeviceReport
	var index []int
	for i, r := range all {
		at := fmt.Sprintf("body.reports[%d].", i)
		results[i] = puntuale.ReportLate
		f.Text(at+"detail", r.Detail, maxReportDetail)
		report, ok := d.outcome(r, now)
		if !ok && !f.At(at+"outcome") {
			f.Word(at+"outcome", r.Outcome, "sent", "refused", "unknown", "returned")
		}
		if report.HeldRef, ok = parseAttempt(r.Attempt); ok {
			reports, index = append(reports, report), append(index, i)
		}
	}
	if err := f.Err(); err != nil || len(reports) == 0 {
		return results, err
	}
	if err := d.spendDetails(ctx, all, reports); err != nil {
		return nil, err
	}
	recorded, err := d.client.tenant.Report(ctx, d.Session, d.ID, reports, now)
	if err != nil {
		return nil, fmt.Errorf("record reports: %w", err)
	}
	for k, i := range index {
		if results[i] = recorded[k]; recorded[k] == puntuale.ReportRecorded {
			d.client.control.devices.reported(reports[k].Outcome.Verdict.String())
		}
	}
	d.client.control.wakeup(d.Session, now)
	return results, nil
}

// spendDetails counts the bytes of reports. Reports keep messages from being sent twice, so they are never refused. But
// if the client has stored too many bytes today, the texts of reports are left out.
func (d *Device) spendDetails(ctx context.Context, all []Reported, reports []puntuale.DeviceReport) error {
	n := 0
	for _, r := range all {
		n += len(r.Detail)
	}
	if n == 0 {
		return nil
	}
	_, err := d.client.Spend(ctx, int64(n))
	if puntuale.CodeOf(err) != puntuale.CodeRateLimited {
		return err
	}
	for i := range reports {
		reports[i].Outcome.Detail = puntuale.Reason{}
	}
	return nil
}

// These reasons describe what a device declared about a message. {1} is the device's name; in reasonMaybe, {1} is the
// whole declaration.
const (
	reasonDeclared         puntuale.ReasonCode = "device.declared"
	reasonDeclaredByPerson puntuale.ReasonCode = "device.declared_by_person"
	reasonMaybe            puntuale.ReasonCode = "device.maybe"
)

// outcome converts a device's report into an outcome. The outcome's detail says whether the device or a person declared
// it.
func (d *Device) outcome(r Reported, now time.Time) (puntuale.DeviceReport, bool) {
	reporter := reasonDeclared
	if d.Assisted {
		reporter = reasonDeclaredByPerson
	}
	detail := puntuale.Colon(puntuale.Because(reporter, d.Name), puntuale.Quoted(strings.TrimSpace(r.Detail)))
	o := puntuale.Outcome{Detail: detail}
	returned := false
	switch r.Outcome {
	case "sent":
		o.Verdict = puntuale.Sent
	case "refused":
		o.Verdict, o.Reason = puntuale.Refused, puntuale.Because(puntuale.ReasonRefusedByDevice)
	case "unknown":
		o.Verdict, o.Next, o.Detail = puntuale.Uncertain, now.Add(d.client.control.devices.uncertainAfter), puntuale.Because(reasonMaybe, detail.Stored())
	case "returned":
		o.Verdict, o.Next, returned = puntuale.Retry, now, true
	default:
		return puntuale.DeviceReport{}, false
	}
	return puntuale.DeviceReport{Outcome: o, Returned: returned}, true
}

// PushTarget is the address at which a device's browser receives pushes about due messages, with the keys of the
// subscription.
type PushTarget struct {
	Endpoint string `json:"endpoint"`
	P256dh   string `json:"p256dh"` // the browser's public key, base64url
	Auth     string `json:"auth"`   // the subscription's secret, base64url
}

// maxPushEndpoint bounds the address of a push service, in characters.
const maxPushEndpoint = 2048

// checkPush adds a fault for each invalid member of a push subscription. Later, only the safe fetcher sends requests to
// the address.
func checkPush(f *request.Faults, to PushTarget) {
	f.Text("body.endpoint", to.Endpoint, maxPushEndpoint)
	if u, err := url.Parse(to.Endpoint); err != nil || u.Scheme != "https" || !named(u.Hostname()) || u.User != nil || !puntuale.IsPort(u.Port()) {
		f.Add("body.endpoint", faultDeviceNotHTTPS, nil)
	}
	for _, key := range []struct {
		name, text string
		size       int
	}{{"p256dh", to.P256dh, 65}, {"auth", to.Auth, 16}} {
		if raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(key.text, "=")); err != nil || len(raw) != key.size {
			f.Add("body."+key.name, faultDeviceNotBase64, nil, strconv.Itoa(key.size))
		}
	}
}

// named reports whether a host is a full name, such as push.example.com. Push services have names. An IP address in any
// notation, or a name without a dot, such as localhost, can only mean a server inside the operator's network.
func named(host string) bool {
	host = strings.TrimSuffix(host, ".")
	i := strings.LastIndexByte(host, '.')
	last := strings.ToLower(host[i+1:])
	return i > 0 && last != "" && last != "localhost" && (last[0] < '0' || last[0] > '9') && !strings.Contains(host, ":")
}

// PushKey is the installation's public key for Web Push, base64url; "" if the installation sends no pushes.
func (d *Device) PushKey(ctx context.Context) (string, error) {
	read := d.client.control.devices.pushKey
	if read == nil {
		return "", nil
	}
	key, err := read(ctx)
	if err != nil {
		return "", fmt.Errorf("read the key of pushes: %w", err)
	}
	return key, nil
}

// SetPush replaces the address that receives the device's pushes. Codes: invalid, not_found.
func (d *Device) SetPush(ctx context.Context, to PushTarget, found ...puntuale.Fault) error {
	f := request.Faults(found)
	checkPush(&f, to)
	if err := f.Err(); err != nil {
		return err
	}
	plain, err := json.Marshal(to)
	if err != nil {
		return err
	}
	sealed := d.client.control.vault.Seal(puntuale.SealedPush, d.Session.SealPlace(), plain)
	if err := d.client.tenant.KeepPush(ctx, d.ID, sealed); err != nil {
		return fmt.Errorf("store where device %d wants to be told: %w", d.ID, err)
	}
	d.Pushed = true
	return nil
}

// EndPush removes the address that receives the device's pushes. Codes: not_found.
func (d *Device) EndPush(ctx context.Context) error {
	if err := d.client.tenant.KeepPush(ctx, d.ID, nil); err != nil {
		return fmt.Errorf("forget where device %d wants to be told: %w", d.ID, err)
	}
	d.Pushed = false
	return nil
}
