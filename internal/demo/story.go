// Package demo contains the story of the command puntuale demo: a dentist reminds patients of their appointments. The
// package makes the accounts through the API, as an integrator would. It shows on a terminal which messages leave.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/account"
	"puntuale/internal/outside"
)

// Story is one run of the demo, against a server that has just started.
type Story struct {
	base string    // the server's address
	now  time.Time // in the demo's zone

	key        string // the client's key
	sequenceID string

	tickets map[string]string // links that each sign a user in once; the key is the user's e-mail address
	phone   string            // link that makes a browser the device that takes the waiting message

	messages int       // number of messages in the first run
	skipped  []skipped // steps that the first run left out
}

type skipped struct {
	Step   int       `json:"step"`
	Moment time.Time `json:"moment"`
	Reason string    `json:"reason"`
}

// firstPhone is the recipient of the first run. otherPhone is the recipient in the curl line. No real person gets a
// message.
const (
	partnerEmail = "demo@example.com"
	clientEmail  = "studio@example.com"
	password     = "una frase per la demo"

	firstPhone = "+39 333 123 4567"
	otherPhone = "+39 347 765 4321"
	patient    = "Anna"

	TextByHand = "Buongiorno, qui lo Studio Bianchi: le confermiamo l'appuntamento di domani."
)

// Zone is the zone of new clients.
func Zone() *time.Location {
	zone, err := time.LoadLocation("Europe/Rome")
	if err != nil { // cannot happen, because the zones are embedded
		return time.UTC
	}
	return zone
}

// sequence is the body of the call that creates the sequence: reminders of an appointment. Its steps have two anchors:
// the start, and a date field of the call.
const sequence = `{
  "name": "Promemoria appuntamento",
  "steps": [
    {"text": "Ciao {{nome|gentile paziente}}, il tuo appuntamento è confermato per {{appuntamento:giorno}} alle {{appuntamento:ora}}. A presto!",
     "timing": {"anchor": "start", "offset": {"amount": 0}}},
    {"text": "Ci trovi in Via Roma 1, Torino.", "latitude": 45.0703, "longitude": 7.6869,
     "timing": {"anchor": "start", "offset": {"amount": 3, "unit": "seconds", "direction": "after"}}},
    {"text": "{{nome|Gentile paziente}}, ti ricordiamo l'appuntamento di domani alle {{appuntamento:ora}}.",
     "timing": {"anchor": "appuntamento", "offset": {"amount": 1, "unit": "days", "direction": "before"}, "at": "18:00"}},
    {"text": "Ci vediamo fra un'ora, alle {{appuntamento:ora}}. Per spostare l'appuntamento rispondi a questo messaggio.",
     "timing": {"anchor": "appuntamento", "offset": {"amount": 1, "unit": "hours", "direction": "before"}}},
    {"text": "Grazie della visita, {{nome|gentile paziente}}! Come è andata?",
     "timing": {"anchor": "appuntamento", "offset": {"amount": 2, "unit": "hours", "direction": "after"}}}
  ]
}`

// New returns a story for the server at the address base.
func New(base string, now time.Time) *Story { return &Story{base: base, now: now.In(Zone())} }

// Prepare creates the partner as an operator does, and everything else through the API, as an integrator does.
func (d *Story) Prepare(ctx context.Context, accounts *account.Accounts) error {
	_, partnerKey, err := accounts.CreatePartner(ctx, account.NewPartner{Name: "Agenzia Demo", Email: partnerEmail, Password: password})
	if err != nil {
		return err
	}
	var client struct {
		Key string `json:"api_key"`
	}
	err = d.call(ctx, partnerKey, "/api/client/create", map[string]string{
		"name": "Studio dentistico Bianchi", "email": clientEmail, "password": password, "phone": "+39 011 765 4321",
	}, &client)
	if err != nil {
		return err
	}
	d.key = client.Key
	var made struct {
		ID any `json:"id"`
	}
	if err := d.call(ctx, d.key, "/api/sequences", json.RawMessage(sequence), &made); err != nil {
		return err
	}
	d.sequenceID = fmt.Sprint(made.ID)
	if err := d.addNumbers(ctx); err != nil {
		return err
	}
	return d.invite(ctx, accounts)
}

// addNumbers adds one session of each of the other connection types, and a message that waits for a device. The
// simulated network receives the Official session's messages. The device's message is taken by a person, who may send
// it by hand.
func (d *Story) addNumbers(ctx context.Context) error {
	var official, byHand struct {
		ID string `json:"id"`
	}
	if err := d.call(ctx, d.key, "/api/sessions", map[string]any{"name": "Numero ufficiale", "connection_type": puntuale.Official}, &official); err != nil {
		return err
	}
	body := map[string]any{"name": "Telefono dello studio", "connection_type": puntuale.SendApp, "sandbox": false, "device": struct{}{}}
	if err := d.call(ctx, d.key, "/api/sessions", body, &byHand); err != nil {
		return err
	}
	var offered struct {
		Code string `json:"pairing_code"`
	}
	if err := d.call(ctx, d.key, "/api/sessions/"+byHand.ID+"/pair", struct{}{}, &offered); err != nil {
		return err
	}
	d.phone = d.base + "/phone#code=" + url.QueryEscape(offered.Code)
	return d.call(ctx, d.key, "/api/messages", map[string]string{"phone": otherPhone, "text": TextByHand, "id_sessione": byHand.ID}, &struct{}{})
}

// invite makes addresses that lead a new user directly into a dashboard, without a password.
func (d *Story) invite(ctx context.Context, accounts *account.Accounts) error {
	d.tickets = map[string]string{}
	for _, email := range []string{clientEmail, partnerEmail} {
		people, err := accounts.SignIn(ctx, account.SignIn{Email: email, Password: password})
		if err != nil {
			return err
		}
		ticket, err := accounts.Ticket(ctx, puntuale.UnfinishedTicket, people[0].User().ID)
		if err != nil {
			return err
		}
		d.tickets[email] = d.base + "/ticket?t=" + ticket
	}
	return nil
}

// Start begins the first run. The appointment is in an hour and some seconds. One message leaves at the call, and one
// a few seconds later. The reminder for the day before is already past. The reminder for the hour before is due within
// seconds. The thanks leave after the appointment.
func (d *Story) Start(ctx context.Context) error {
	var started struct {
		ID      []string  `json:"id"`
		Skipped []skipped `json:"skipped"`
	}
	appointment := d.now.Add(time.Hour + 7*time.Second)
	err := d.call(ctx, d.key, "/api/start/"+d.sequenceID, map[string]string{
		"phone": firstPhone, "nome": patient, "appuntamento": appointment.Format(time.RFC3339Nano),
	}, &started)
	if err != nil {
		return err
	}
	d.messages, d.skipped = len(started.ID), started.Skipped
	return nil
}

// curl returns the line to paste. It starts the same sequence for another person, with an appointment in three days.
func (d *Story) curl() string {
	appointment := d.now.AddDate(0, 0, 3).Format("02/01/2006") + " 10:30"
	return fmt.Sprintf(`curl -s %s/api/start/%s \
  -H 'Authorization: Bearer %s' \
  -H 'Content-Type: application/json' \
  -d '{"phone": "%s", "nome": "Luca", "appuntamento": "%s"}'`, d.base, d.sequenceID, d.key, otherPhone, appointment)
}

// received returns a second line to paste. It shows the messages that the simulated network received.
func (d *Story) received() string {
	return fmt.Sprintf(`curl -s %s/api/sandbox/messages -H 'Authorization: Bearer %s'`, d.base, d.key)
}

// call posts a body as JSON and reads the answer.
func (d *Story) call(ctx context.Context, key, path string, body, answer any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the body of %s: %w", path, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.base+path, bytes.NewReader(encoded))
	if err != nil {
		return fmt.Errorf("call %s: %w", path, err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	response, err := (&http.Client{Transport: &http.Transport{Proxy: nil}, Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		return fmt.Errorf("call %s: %w", path, err)
	}
	defer response.Body.Close()
	text, err := outside.Command.Read(ctx, response.Body)
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d: %s", path, response.StatusCode, strings.TrimSpace(string(text)))
	}
	if err := outside.Command.Parse(text, answer); err != nil {
		return fmt.Errorf("decode the answer of %s: %w", path, err)
	}
	return nil
}
