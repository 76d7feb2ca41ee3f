package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/httpapi/docs"
	"puntuale/internal/httpkit"
)

// registerDevices registers the calls of a client about a session's devices, and the calls of the devices themselves.
// See docs/device.md.
func registerDevices(a *api) {
	const all = "/api/sessions/{id}/devices"
	client(a, operation{id: "listDevices", method: http.MethodGet, path: all, strict: true,
		summary: "List the devices that take a session's messages", refusals: []int{http.StatusNotFound, http.StatusConflict}}, listDevices)
	client(a, operation{id: "unlinkDevice", method: http.MethodDelete, path: all + "/{device}", prevents: true,
		summary:     "Unlink a device, such as a lost phone",
		description: "What it holds becomes uncertain.", refusals: []int{http.StatusNotFound, http.StatusConflict}}, unlinkDevice)

	registerLink(a)
	device(a, operation{id: "getDevice", method: http.MethodGet, path: "/device", strict: true, summary: "Get the device itself"}, getDevice)
	device(a, operation{id: "unlinkSelf", method: http.MethodPost, path: "/device/unlink",
		summary: "Unlink the device itself"}, unlinkSelf)
	device(a, operation{id: "heartbeat", method: http.MethodPost, path: "/device/heartbeat",
		summary: "Say that the device is there"}, getDevice)
	device(a, operation{id: "dueForDevice", method: http.MethodGet, path: "/device/due", strict: true,
		summary:     "List what the device could take now, and what it holds",
		description: "Claims nothing."}, dueForDevice)
	device(a, operation{id: "take", method: http.MethodPost, path: "/device/take", body: takeBody{},
		summary:     "Take messages that are due",
		description: "The device holds them until it reports what became of them.", refusals: []int{http.StatusNotFound, http.StatusConflict}}, withBody(take))
	device(a, operation{id: "renew", method: http.MethodPost, path: "/device/renew", body: renewBody{},
		summary: "Hold messages for longer", refusals: []int{http.StatusNotFound}}, withBody(renew))
	device(a, operation{id: "report", method: http.MethodPost, path: "/device/report", body: reportBody{},
		summary: "Say what became of messages"}, withBody(report))
	device(a, operation{id: "setPush", method: http.MethodPut, path: "/device/push", body: pushBody{},
		summary: "Be told of due messages by Web Push", refusals: []int{http.StatusNotFound}}, withBody(setPush))
	device(a, operation{id: "endPush", method: http.MethodDelete, path: "/device/push",
		summary: "Be told no more", refusals: []int{http.StatusNotFound}}, endPush)
}

// device registers a call that requires a device's token.
func device[I, T any](a *api, op operation, verb func(context.Context, *control.Device, *call, *I) (T, error)) {
	register(a, puntuale.DeviceSide, op, func(ctx context.Context, c *call, in *I) (T, error) {
		if err := c.device.See(ctx); err != nil {
			var none T
			return none, err
		}
		return verb(ctx, c.device, c, in)
	})
}

type LinkedDevice struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Dedupes  bool   `json:"dedupes" doc:"It sends one message once, however often it takes it"`
	Assisted bool   `json:"assisted" doc:"A person declares what became of each message"`
	Push     bool   `json:"push" doc:"It is told of due messages by Web Push"`
	Linked   string `json:"linked_at" format:"date-time"`
	Seen     string `json:"seen_at" format:"date-time" doc:"When it last called, to about a minute"`
}

func linkedOf(d puntuale.Device) LinkedDevice {
	return LinkedDevice{ID: puntuale.MessageID(d.ID).String(), Name: d.Name, Dedupes: d.Dedupes, Assisted: d.Assisted, Push: d.Pushed, Linked: stamp(d.Linked), Seen: stamp(d.Seen)}
}

type listedDevice struct {
	LinkedDevice
	Held int `json:"held" doc:"Messages that it took and has not reported"`
}

type devicesAnswer struct {
	Devices []listedDevice `json:"devices"`
}

func listDevices(ctx context.Context, c *control.Client, _ *call, p *oneInput) (devicesAnswer, error) {
	all, err := c.Devices(ctx, p.ID)
	if err != nil {
		return devicesAnswer{}, err
	}
	return devicesAnswer{each(all, func(d puntuale.Device) listedDevice { return listedDevice{linkedOf(d), d.Held} })}, nil
}

type oneDeviceInput struct {
	ID     string `path:"id" doc:"ID of the session"`
	Device string `path:"device" doc:"ID of the device"`
}

func unlinkDevice(ctx context.Context, c *control.Client, _ *call, p *oneDeviceInput) (messageAnswer, error) {
	if err := c.UnlinkDevice(ctx, p.ID, p.Device); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"Dispositivo scollegato"}, nil
}

// linkBody documents the body of the call that links a device.
type linkBody struct {
	Code     string `json:"code" minLength:"1" maxLength:"40" doc:"The one-time code of the session; case, spaces and hyphens do not matter"`
	Name     string `json:"name" minLength:"1" maxLength:"100" doc:"To tell the device from others"`
	Dedupes  bool   `json:"dedupes,omitempty" doc:"The device promises to send one message once, however often it takes it"`
	Assisted bool   `json:"assisted,omitempty" doc:"A person declares what became of each message"`
}

type linkAnswer struct {
	Token  string       `json:"device_token" doc:"Shown once; every other call takes it as Authorization: Bearer"`
	Device LinkedDevice `json:"device"`
}

// registerLink registers the only call without a key: a code in the body replaces the key. Each try counts as a call of
// an unknown caller.
func registerLink(a *api) {
	op := operation{id: "linkDevice", method: http.MethodPost, path: "/device/link", body: linkBody{}, summary: "Link a device by a one-time code",
		description: "Needs no key: the code stands for it. The answer shows the device's token, once.",
		refusals:    []int{http.StatusNotFound, http.StatusConflict}}
	huma.Register(a.API, huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Summary: op.summary, Description: op.description, Tags: []string{docs.SubjectOf(op.path)},
		Security: []map[string][]string{}, Responses: a.responses(op), Middlewares: huma.Middlewares{a.enterUnknownCaller(op)},
	}, func(ctx context.Context, _ *struct{}) (*answer, error) {
		c := callOf(ctx)
		body, err := linkDevice(ctx, a.control, c)
		c.pass.LeaveSeat()
		if err != nil {
			return nil, a.problem(ctx, err)
		}
		return &answer{a.written(body)}, nil
	})
	a.documentAnswer(op, reflect.TypeFor[linkAnswer]())
	a.documentBody(a.documented(op), op)
	documentExample(a.documented(op))
}

// enterUnknownCaller admits a call without a key.
func (a *api) enterUnknownCaller(op operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		httpkit.Annotate(r.Context(), slog.String("operation", op.id))
		caller := httpkit.UnknownCaller(r)
		if err := a.admits.UnknownCallers.Take(caller); err != nil {
			httpkit.Quieten(r.Context())
			a.refuse(w, r, err)
			return
		}
		pass, patient, err := a.admits.Gate.Enter(r.Context(), caller, op.priority())
		if err != nil {
			a.turnAway(w, r, err)
			return
		}
		defer pass.Leave()
		c := &call{pass: pass, account: a.admits.Budget.Open(caller), header: w.Header()}
		defer c.account.Close()
		if patient, err = a.read(patient, w, r, c, op, map[string]bool{}); err != nil {
			a.refuseRead(patient, w, r, c, err)
			return
		}
		next(huma.WithContext(ctx, context.WithValue(patient, callKey{}, c)))
	}
}

func linkDevice(ctx context.Context, c *control.Control, in *call) (linkAnswer, error) {
	body, err := decode[linkBody](in, httpkit.MaxValues)
	if err != nil {
		return linkAnswer{}, err
	}
	d, token, err := c.LinkDevice(ctx, control.NewDevice{Code: body.Code, Name: body.Name, Dedupes: body.Dedupes, Assisted: body.Assisted, Faults: in.refused})
	if err != nil {
		return linkAnswer{}, err
	}
	return linkAnswer{token, linkedOf(d)}, nil
}

type deviceSession struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type deviceAnswer struct {
	LinkedDevice
	Session deviceSession `json:"session" doc:"Whose messages it takes"`
	Look    string        `json:"brand,omitempty" doc:"The slug of the partner whose brand the phone app shows; absent where its host name says it"`
	PushKey string        `json:"push_key,omitempty" doc:"The server's key for Web Push (VAPID), base64url; absent where the server tells nobody"`
}

func deviceOf(ctx context.Context, d *control.Device) (deviceAnswer, error) {
	s, err := d.SessionOf(ctx)
	if err != nil {
		return deviceAnswer{}, err
	}
	look, err := d.Look(ctx)
	if err != nil {
		return deviceAnswer{}, err
	}
	key, err := d.PushKey(ctx)
	if err != nil {
		return deviceAnswer{}, err
	}
	return deviceAnswer{linkedOf(d.Device), deviceSession{s.ID.String(), s.Name}, look, key}, nil
}

func getDevice(ctx context.Context, d *control.Device, _ *call, _ *struct{}) (deviceAnswer, error) {
	return deviceOf(ctx, d)
}

func unlinkSelf(ctx context.Context, d *control.Device, _ *call, _ *struct{}) (messageAnswer, error) {
	if err := d.Unlink(ctx); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"Dispositivo scollegato"}, nil
}

type DeviceMessage struct {
	ID        string   `json:"message_id"`
	Phone     string   `json:"phone" doc:"A number with its country, +39…, or the id of a group"`
	Name      string   `json:"name,omitempty" doc:"The recipient's name, if it is known"`
	Text      string   `json:"text,omitempty"`
	MediaURL  string   `json:"media_url,omitempty" format:"uri"`
	MediaName string   `json:"media_name,omitempty"`
	Latitude  *float64 `json:"latitude,omitempty"`
	Longitude *float64 `json:"longitude,omitempty"`
	Due       string   `json:"due_at" format:"date-time"`
	Valid     string   `json:"valid_until" format:"date-time"`
}

type heldMessage struct {
	DeviceMessage
	Attempt string `json:"attempt" doc:"What the report names"`
	Until   string `json:"lease_until" format:"date-time" doc:"Without a report by then the message is uncertain"`
}

func messageForDevice(h control.HandedMessage) DeviceMessage {
	return DeviceMessage{ID: h.ID.String(), Phone: h.Phone, Name: h.Name, Text: h.Content.Shown(), MediaURL: h.Content.MediaURL, MediaName: control.MediaName(h.Content),
		Latitude: h.Content.Latitude, Longitude: h.Content.Longitude, Due: stamp(h.Due), Valid: stamp(h.ValidUntil)}
}

func heldOf(h control.HandedMessage) heldMessage {
	return heldMessage{messageForDevice(h), control.Attempt(puntuale.HeldRef{Message: h.ID, Token: h.Intent}), stamp(h.Until)}
}

type dueAnswer struct {
	Messages []DeviceMessage `json:"messages" doc:"In the order in which they are handed out"`
	Held     []heldMessage   `json:"held" doc:"Taken by this device and not reported"`
}

func dueForDevice(ctx context.Context, d *control.Device, _ *call, _ *struct{}) (dueAnswer, error) {
	due, held, err := d.Due(ctx)
	if err != nil {
		return dueAnswer{}, err
	}
	return dueAnswer{each(due, messageForDevice), each(held, heldOf)}, nil
}

// takeBody documents the body of the call that takes messages.
type takeBody struct {
	Take    string `json:"take" minLength:"1" maxLength:"64" doc:"The device's own id of this call; repeated, it gives the same messages as far as they are still held"`
	Message string `json:"message_id,omitempty" read:"id" doc:"This one only"`
	Max     *int   `json:"max,omitempty" minimum:"1" maximum:"100" default:"10"`
	Lease   *int   `json:"lease,omitempty" minimum:"10" maximum:"3600" default:"120" doc:"Seconds that the device holds the messages"`
	Wait    int    `json:"wait,omitempty" minimum:"0" maximum:"30" doc:"Seconds to wait for the first message"`
}

// maxWait is the longest time, in seconds, that a call waits for messages.
const maxWait = 30

type takeAnswer struct {
	Messages []heldMessage `json:"messages"`
}

// take gives a device messages to send. If there are none, take checks once a second, until the wait that the device
// chose has passed. While it waits, the call has no seat.
func take(ctx context.Context, d *control.Device, in *call, _ *struct{}, body *takeBody) (takeAnswer, error) {
	requested, wait := control.TakeCall{ID: body.Take, Message: body.Message, Most: body.Max, Lease: body.Lease, Faults: in.refused}, body.Wait
	if wait < 0 || wait > maxWait {
		requested.Faults = append(requested.Faults, puntuale.Because(puntuale.FaultMustBeInSeconds, "0", "30").At("body.wait", wait))
	}
	held, err := d.Take(ctx, requested)
	if err == nil && len(held) == 0 && wait > 0 {
		leave, err := d.Wait()
		if err != nil {
			return takeAnswer{}, err
		}
		defer leave()
	}
	for ; err == nil && len(held) == 0 && wait > 0; wait-- {
		in.pass.LeaveSeat()
		if !d.Pause(ctx) {
			break
		}
		if ctx, err = in.pass.Return(ctx); err == nil {
			held, err = d.Take(ctx, requested)
		}
	}
	if err != nil {
		return takeAnswer{}, err
	}
	return takeAnswer{each(held, heldOf)}, nil
}

// renewBody documents the body of the call that extends a device's hold on messages.
type renewBody struct {
	Attempts []string `json:"attempts" minItems:"1" maxItems:"100"`
	Lease    *int     `json:"lease,omitempty" minimum:"10" maximum:"3600" default:"120" doc:"Seconds from now"`
}

type renewedMessage struct {
	Attempt string `json:"attempt"`
	Until   string `json:"lease_until" format:"date-time"`
}

type renewAnswer struct {
	Messages []renewedMessage `json:"messages"`
	Lost     []string         `json:"lost" doc:"Their hold was over"`
}

func renew(ctx context.Context, d *control.Device, in *call, _ *struct{}, body *renewBody) (renewAnswer, error) {
	r, err := d.Renew(ctx, body.Attempts, body.Lease, in.refused...)
	if err != nil {
		return renewAnswer{}, err
	}
	holdUntil := stamp(r.Until)
	return renewAnswer{each(r.Attempts, func(attempt string) renewedMessage { return renewedMessage{attempt, holdUntil} }), each(r.Lost, func(s string) string { return s })}, nil
}

type oneReport struct {
	Attempt string `json:"attempt"`
	Outcome string `json:"outcome" enum:"sent,refused,unknown,returned" doc:"unknown: it may have left; returned: nobody saw it, it is due again at once"`
	Detail  string `json:"detail,omitempty" maxLength:"300" doc:"In the device's words"`
}

// reportBody documents the body of the call that reports outcomes.
type reportBody struct {
	Reports []oneReport `json:"reports" minItems:"1" maxItems:"100"`
}

type reportResult struct {
	Attempt string `json:"attempt"`
	Result  string `json:"result" enum:"recorded,known,late" doc:"known: it was reported before; late: it was decided otherwise meanwhile, or there is no such attempt"`
}

type reportAnswer struct {
	Results []reportResult `json:"results"`
}

func report(ctx context.Context, d *control.Device, in *call, _ *struct{}, body *reportBody) (reportAnswer, error) {
	all := each(body.Reports, func(r oneReport) control.Reported { return control.Reported(r) })
	results, err := d.Report(ctx, all, in.refused...)
	if err != nil {
		return reportAnswer{}, err
	}
	a := reportAnswer{Results: make([]reportResult, len(all))}
	for i, r := range results {
		a.Results[i] = reportResult{all[i].Attempt, string(r)}
	}
	return a, nil
}

// pushBody documents the body of the call that subscribes a device to pushes.
type pushBody struct {
	Endpoint string `json:"endpoint" format:"uri" maxLength:"2048" doc:"Of the browser's push service"`
	P256dh   string `json:"p256dh" doc:"The browser's public key, base64url"`
	Auth     string `json:"auth" doc:"Its secret, base64url"`
}

func setPush(ctx context.Context, d *control.Device, in *call, _ *struct{}, body *pushBody) (deviceAnswer, error) {
	if err := d.SetPush(ctx, control.PushTarget(*body), in.refused...); err != nil {
		return deviceAnswer{}, err
	}
	return deviceOf(ctx, d)
}

func endPush(ctx context.Context, d *control.Device, _ *call, _ *struct{}) (deviceAnswer, error) {
	if err := d.EndPush(ctx); err != nil {
		return deviceAnswer{}, err
	}
	return deviceOf(ctx, d)
}
