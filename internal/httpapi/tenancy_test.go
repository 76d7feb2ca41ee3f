package httpapi_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	"puntuale/internal/control/account"
)

// tenant is a client that has one thing of each kind.
type tenant struct {
	key, client, session, second, linking, linked, official, gateway, sequence, template, message, keyID, phone string
	posted, device, token, ended, code                                                                          string // these belong to the session with devices
	booking, visits                                                                                             string // a booking's reference, and its sequence
	file, plan                                                                                                  string
	contact, webhook, automation, calendar                                                                      string
	campaign, ready, digest, running                                                                            string // campaigns: one draft, one with a check, and one that is started
}

func newTenant(s *service, email, phone string) tenant {
	return newTenantOf(s, s.partner, email, phone)
}

func newTenantOf(s *service, partner, email, phone string) tenant {
	s.t.Helper()
	var created struct {
		ID      string `json:"id_client"`
		Key     string `json:"api_key"`
		Session string `json:"id_sessione"`
	}
	s.must(&created, "POST", "/api/client/create", partner, `{"name":"x","email":"`+email+`","password":"p","phone":"1"}`)
	c := tenant{key: created.Key, client: created.ID, session: created.Session, phone: phone}
	c.sequence = s.newSequence(c.key, stepLater)
	var made struct{ ID string }
	s.must(&made, "POST", "/api/sessions", c.key, `{"name":"Seconda","connection_type":"Socket"}`)
	c.second = made.ID
	s.must(&made, "POST", "/api/sessions", c.key, `{"name":"Terza","connection_type":"Socket","sandbox":true}`)
	c.linking = made.ID
	s.must(&made, "POST", "/api/sessions", c.key, `{"name":"Quinta","connection_type":"Socket","sandbox":true}`)
	c.linked = made.ID
	s.must(&made, "POST", "/api/sessions", c.key, `{"name":"Quarta","connection_type":"Official","sandbox":false,"official":`+officialKeys+`}`)
	c.official = made.ID
	s.must(&made, "POST", "/api/sessions", c.key, `{"name":"Sesta","connection_type":"Send_app","sandbox":false,"gateway":`+gatewayKeys+`}`)
	c.gateway = made.ID
	s.must(nil, "DELETE", "/api/sessions/"+c.linking+"/pair", c.key, "")
	s.must(&made, "POST", "/api/sessions", c.key, `{"name":"Telefoni","connection_type":"Send_app","sandbox":false,"device":{}}`)
	c.posted = made.ID
	ended := s.linkDevice(c.key, c.posted, "Telefono perso")
	s.must(nil, "POST", "/device/unlink", ended.Token, "")
	linked := s.linkDevice(c.key, c.posted, "Telefono di "+email)
	c.ended, c.token, c.device = ended.Token, linked.Token, linked.Device.ID
	c.code = s.deviceCode(c.key, c.posted)
	s.must(&made, "POST", "/api/templates", c.key, `{"name":"Saluto","text":"Ciao da `+email+`"}`)
	c.template = made.ID
	s.must(&made, "POST", "/api/files?name=nota.txt", c.key, "Ciao da "+email)
	c.file = made.ID
	var keys struct{ Keys []struct{ ID string } }
	s.must(&keys, "GET", "/api/client/"+c.client+"/keys", partner, "")
	c.keyID = keys.Keys[0].ID
	var run started
	s.must(&run, "POST", "/api/start/"+c.sequence, c.key, `{"phone":"`+phone+`","testo":"secret of `+email+`"}`)
	c.message = run.ID[0]
	s.must(&made, "POST", "/api/sequences", c.key, `{"name":"Visita di `+email+`","booking":{"date":"appuntamento"},"steps":[`+strings.Replace(stepLater, "{{testo}}", "{{testo|una visita}}", 1)+`]}`)
	c.visits, c.booking = made.ID, "b-"+c.client
	s.must(nil, "PUT", "/api/bookings/"+c.booking, c.key, `{"sequence":"`+c.visits+`","phone":"`+phone+`","testo":"visit of `+email+`","appuntamento":"2027-01-20 10:00"}`)
	s.sql(fmt.Sprintf("insert into number_change (client_id, id, session_id, mark, old_phone, new_phone, names, at, noted_at, moved) values (%s, 1, %s, 'm', '+393330009999', '%s', '[]', 1, %d, '{}')", c.client, c.session, phone, s.clock.Now().UnixMicro()))
	s.must(&made, "POST", "/api/calendars", c.key, `{"name":"Agenda","url":"https://calendar.example/`+email+`","sequence":"`+c.visits+`"}`)
	c.calendar = made.ID
	for _, text := range []string{
		`update calendar set read_at = 1795166400000000, entries = 2, understood = 1, asked = 5 where id = ` + c.calendar,
		`insert into calendar_entry (client_id, calendar_id, reference, start_at, title, phone, name, digest) values (` + c.client + `, ` + c.calendar + `, '7kukuqrfedlm2f9t@google.com', 1795428000000000, 'Ada, ` + email + `', '` + phone + `', 'Ada', 'd')`,
	} {
		if _, err := s.db.SQL.Exec(text); err != nil {
			s.t.Fatal(err)
		}
	}
	s.must(nil, "POST", "/api/sequences/"+c.visits+"/replan", c.key, "")
	c.contact = s.newContact(c.key, `{"phone":"`+phone+`","name":"`+email+`","tags":["cliente"]}`)
	s.must(&made, "POST", "/api/webhooks", c.key, `{"url":"https://127.0.0.1/hook","description":"`+email+`"}`)
	c.webhook = made.ID
	s.must(&made, "POST", "/api/automations", c.key, `{"name":"`+email+`","trigger":{"kind":"hook","map":{"phone":"phone"}},"actions":[{"kind":"tag","add":["`+email+`"]}]}`)
	c.automation = made.ID
	s.must(nil, "PUT", "/api/sessions/"+c.session+"/chatwoot", c.key, `{"base_url":"https://127.0.0.1","api_access_token":"x","account_id":"3"}`)
	c.campaign = s.newCampaign(c.key, email)
	c.ready = s.newCampaign(c.key, email)
	c.digest = s.checkCampaign(c.key, c.ready)
	c.running = s.newCampaign(c.key, email)
	s.must(nil, "POST", "/api/campaigns/"+c.running+"/start", c.key, `{"digest":"`+s.checkCampaign(c.key, c.running)+`"}`)
	s.must(nil, "POST", "/api/blacklist", c.key, `{"phone":"`+phone+`","reason":"`+email+`"}`)
	s.sql(`delete from client_plan where (select count(*) from client_plan) > 50`) // a partner has a limited number of them
	s.must(&made, "POST", "/api/plans", partner, `{"name":"`+email+`"}`)
	c.plan = made.ID
	return c
}

// newCampaign creates a draft with one recipient.
func (s *service) newCampaign(key, email string) string {
	s.t.Helper()
	var made struct{ ID string }
	s.must(&made, "POST", "/api/campaigns", key, `{"name":"Campagna di `+email+`","content":{"text":"Ciao {{nome}}"},"recipients":[{"phone":"+393339876543","nome":"`+email+`"}]}`)
	return made.ID
}

func (s *service) checkCampaign(key, id string) string {
	s.t.Helper()
	var check struct{ Digest string }
	s.must(&check, "POST", "/api/campaigns/"+id+"/check", key, "")
	return check.Digest
}

const gatewayKeys = `{"base_url":"https://gateway.example.com/api","access_token":"tokcanary"}`

const officialKeys = `{"phone_number_id":"101","access_token":"EAAcanary","app_secret":"appcanary","verify_token":"verifycanary","business_account_id":"55101"}`

// linkedDevice is the answer that a device gets when it is linked.
type linkedDevice struct {
	Token  string `json:"device_token"`
	Device struct{ ID string }
}

// deviceCode requests a one-time code that links a device.
func (s *service) deviceCode(key, session string) string {
	s.t.Helper()
	var offered struct {
		Code string `json:"pairing_code"`
	}
	s.must(&offered, "POST", "/api/sessions/"+session+"/pair", key, `{}`)
	return offered.Code
}

func (s *service) linkDevice(key, session, name string, members ...string) (d linkedDevice) {
	s.t.Helper()
	s.must(&d, "POST", "/device/link", "", `{"code":"`+s.deviceCode(key, session)+`","name":"`+name+`"`+strings.Join(append([]string{""}, members...), ",")+`}`)
	return d
}

// keyFor returns the key that an operation requires.
func (c tenant) keyFor(s *service, path string, partner bool) string {
	switch {
	case partner:
		return s.partner
	case path == "/device/link":
		return ""
	case strings.HasPrefix(path, "/device"):
		return c.token
	}
	return c.key
}

const draftBody = `{"name":"ordine_pronto","language":"it","category":"UTILITY","text":"Il tuo ordine è pronto per il ritiro."}`

// operations contains one valid call of each documented operation. In a path or a body, names such as {session} stand
// for the caller's own things.
var operations = map[string]struct {
	method, path, body string
	partner            bool
	foreign            string // the status if the call names another tenant's thing: "404"; "": the call names no thing
	last               bool   // the call removes things that other operations need
}{
	"createClient":           {"POST", "/api/client/create", `{"name":"x","email":"new@x","password":"p","phone":"1"}`, true, "", false},
	"getClientExpirations":   {"GET", "/api/clients/expiration", `{"client_ids":[{client}]}`, true, "404", false},
	"getClientSnapshot":      {"GET", "/api/client/{client}/snapshot", "", true, "404", false},
	"listClients":            {"GET", "/api/clients", "", true, "", false},
	"changeClient":           {"PATCH", "/api/client/{client}", `{"name":"y"}`, true, "404", false},
	"deleteClient":           {"DELETE", "/api/client/{client}", "", true, "404", true},
	"listPlans":              {"GET", "/api/plans", "", true, "", false},
	"createPlan":             {"POST", "/api/plans", `{"name":"Base","credits":500,"budget":"49.90"}`, true, "", false},
	"getPlan":                {"GET", "/api/plans/{plan}", "", true, "404", false},
	"replacePlan":            {"PUT", "/api/plans/{plan}", `{"name":"y","days":30}`, true, "404", false},
	"applyPlan":              {"POST", "/api/plans/{plan}/apply", "", true, "404", false},
	"deletePlan":             {"DELETE", "/api/plans/{plan}", "", true, "404", true},
	"listKeys":               {"GET", "/api/client/{client}/keys", "", true, "404", false},
	"createKey":              {"POST", "/api/client/{client}/keys", `{"name":"seconda"}`, true, "404", false},
	"rotateKey":              {"POST", "/api/client/{client}/keys/{key}/rotate", `{"grace":3600}`, true, "404", false},
	"revokeKey":              {"DELETE", "/api/client/{client}/keys/{key}", "", true, "404", true},
	"createSequence":         {"POST", "/api/sequences", `{"name":"x","id_sessione":"{session}","steps":[` + stepNow + `]}`, false, "422", false},
	"listSequences":          {"GET", "/api/sequences?limit=10", "", false, "", false},
	"getSequence":            {"GET", "/api/sequences/{sequence}", "", false, "404", false},
	"replaceSequence":        {"PUT", "/api/sequences/{sequence}", `{"name":"x","id_sessione":"{session}","steps":[` + stepLater + `]}`, false, "404", false},
	"deleteSequence":         {"DELETE", "/api/sequences/{sequence}?pending=cancel", "", false, "404", true},
	"putBooking":             {"PUT", "/api/bookings/{booking}", `{"sequence":"{visits}","phone":"+393330000001","testo":"t","appuntamento":"2027-01-21 10:00"}`, false, "422", false},
	"putBookingByQuery":      {"PUT", "/api/bookings?reference={booking}", `{"sequence":"{visits}","phone":"+393330000001","testo":"t","appuntamento":"2027-01-22 10:00"}`, false, "422", false},
	"getBooking":             {"GET", "/api/bookings/{booking}", "", false, "404", false},
	"reconcileBookings":      {"POST", "/api/bookings/reconcile", `{"start":"2027-01-01","end":"2027-01-31","as_of":1,"bookings":[{"reference":"r1","sequence":"{visits}","phone":"+393330000001","testo":"t","appuntamento":"2027-01-21 10:00"}]}`, false, "422", false},
	"importBookings":         {"POST", "/api/bookings/import?sequence={visits}", "reference,phone,testo,appuntamento\nr2,+393330000001,t,2027-01-21 10:00\n", false, "422", false},
	"replanSequence":         {"POST", "/api/sequences/{visits}/replan", `{"dry_run":true}`, false, "404", false},
	"getReplan":              {"GET", "/api/sequences/{visits}/replan", "", false, "404", false},
	"pauseReplan":            {"POST", "/api/sequences/{visits}/replan/pause", "", false, "404", false},
	"resumeReplan":           {"POST", "/api/sequences/{visits}/replan/resume", "", false, "404", false},
	"cancelReplan":           {"POST", "/api/sequences/{visits}/replan/cancel", "", false, "404", true},
	"listBookings":           {"GET", "/api/bookings?limit=10", "", false, "", false},
	"cancelBooking":          {"DELETE", "/api/bookings/{booking}", "", false, "404", false},
	"cancelBookingByQuery":   {"DELETE", "/api/bookings?reference={booking}", "", false, "404", false},
	"startSequence":          {"POST", "/api/start/{sequence}", `{"phone":"+393331234567","testo":"t"}`, false, "404", false},
	"stopSequence":           {"POST", "/api/stop/{sequence}", `{"phone":"+393331234567"}`, false, "404", false},
	"getMessageDetails":      {"GET", "/api/messages/details?message_ids[]={message}", "", false, "200", false},
	"getMessageOutcomes":     {"GET", "/api/messages/statusByPeriod?start=20/11/2026%2010:00&end=20/11/2026%2011:00", "", false, "", false},
	"getResults":             {"GET", "/api/results?by=day", "", false, "", false},
	"listResultPeople":       {"GET", "/api/results/people?is=planned&sequence={sequence}", "", false, "", false},
	"exportResultPeople":     {"GET", "/api/results/people/export?is=planned&sequence={sequence}", "", false, "", false},
	"listMessages":           {"GET", "/api/messages?state=PENDING&origin=SEQUENCE", "", false, "", false},
	"sendMessage":            {"POST", "/api/messages", `{"phone":"+393331234567","text":"x","id_sessione":"{session}"}`, false, "422", false},
	"rescheduleMessages":     {"POST", "/api/messages/reschedule/all", `{"id":["{message}"],"date":"2026-11-21"}`, false, "404", false},
	"listUnknownMessages":    {"GET", "/api/messages/unknown", "", false, "", false},
	"resendUnknownMessages":  {"POST", "/api/messages/unknown/resend", `{"all":true}`, false, "", false},
	"closeUnknownMessages":   {"POST", "/api/messages/unknown/close", `{"id":["{message}"]}`, false, "404", false},
	"releaseHeldMessages":    {"POST", "/api/messages/held/release", "", false, "", false},
	"cancelMessages":         {"POST", "/api/messages/cancel", `{"id":["{message}"]}`, false, "404", false},
	"cancelPendingMessages":  {"POST", "/api/messages/cancel/pending", `{"phones":["+393331234567"]}`, false, "", false},
	"createSession":          {"POST", "/api/sessions", `{"name":"x","connection_type":"Socket"}`, false, "", false},
	"listSessions":           {"GET", "/api/sessions", "", false, "", false},
	"getSession":             {"GET", "/api/sessions/{session}", "", false, "404", false},
	"deleteSession":          {"DELETE", "/api/sessions/{second}?pending=cancel", "", false, "404", true},
	"pairSession":            {"POST", "/api/sessions/{linking}/pair", `{"method":"qr"}`, false, "404", false},
	"unlinkSession":          {"DELETE", "/api/sessions/{linking}/pair", "", false, "404", false},
	"makeLinkingPage":        {"POST", "/api/sessions/{linking}/linking-page", "", false, "404", false},
	"endLinkingPage":         {"DELETE", "/api/sessions/{linking}/linking-page", "", false, "404", false},
	"updateSession":          {"PUT", "/api/sessions/{session}", `{"pace":{"per_minute":10}}`, false, "404", false},
	"reconnectSession":       {"POST", "/api/sessions/{linked}/reconnect", "", false, "404", false},
	"setOfficialKeys":        {"PUT", "/api/sessions/{official}/official", officialKeys, false, "404", false},
	"setGateway":             {"PUT", "/api/sessions/{gateway}/gateway", gatewayKeys, false, "404", false},
	"testSession":            {"POST", "/api/sessions/{official}/test", "", false, "404", false},
	"listNetworkTemplates":   {"GET", "/api/sessions/{official}/templates?limit=10", "", false, "404", false},
	"createNetworkTemplate":  {"POST", "/api/sessions/{official}/templates", draftBody, false, "404", false},
	"lintNetworkTemplate":    {"POST", "/api/sessions/{official}/templates/lint", draftBody, false, "404", false},
	"editNetworkTemplate":    {"PUT", "/api/sessions/{official}/templates/880001", draftBody, false, "404", false},
	"unpauseNetworkTemplate": {"POST", "/api/sessions/{official}/templates/880001/unpause", "", false, "404", false},
	"deleteNetworkTemplate":  {"DELETE", "/api/sessions/{official}/templates/880001", "", false, "404", false},
	"getDefaultSequences":    {"GET", "/api/session/{session}/defaultSequence", "", false, "404", false},
	"setDefaultSequences":    {"PUT", "/api/session/{session}/defaultSequence", `{"start":"{sequence}","stop":""}`, false, "404", false},
	"createTemplate":         {"POST", "/api/templates", `{"name":"Altro","text":"x"}`, false, "", false},
	"listTemplates":          {"GET", "/api/templates", "", false, "", false},
	"getTemplate":            {"GET", "/api/templates/{template}", "", false, "404", false},
	"replaceTemplate":        {"PUT", "/api/templates/{template}", `{"name":"Saluto","text":"y"}`, false, "404", false},
	"deleteTemplate":         {"DELETE", "/api/templates/{template}", "", false, "404", true},
	"listFiles":              {"GET", "/api/files", "", false, "", false},
	"uploadFile":             {"POST", "/api/files?name=avviso.txt", "Chiusi il 24 dicembre.", false, "", false},
	"getFile":                {"GET", "/api/files/{file}", "", false, "404", false},
	"getFileContent":         {"GET", "/api/files/{file}/content", "", false, "404", false},
	"deleteFile":             {"DELETE", "/api/files/{file}", "", false, "404", true},
	"listCampaigns":          {"GET", "/api/campaigns", "", false, "", false},
	"createCampaign":         {"POST", "/api/campaigns", `{"name":"x","id_sessione":"{session}","content":{"text":"y"}}`, false, "422", false},
	"getCampaign":            {"GET", "/api/campaigns/{campaign}", "", false, "404", false},
	"replaceCampaign":        {"PUT", "/api/campaigns/{campaign}", `{"name":"x","content":{"text":"y"}}`, false, "404", false},
	"uploadRecipients":       {"PUT", "/api/campaigns/{campaign}/recipients", "phone\n+393331234567\n", false, "404", false},
	"addRecipients":          {"POST", "/api/campaigns/{campaign}/recipients", `{"recipients":[{"phone":"+393331234567"}]}`, false, "404", false},
	"listRecipients":         {"GET", "/api/campaigns/{campaign}/recipients?state=waiting", "", false, "404", false},
	"mapRecipients":          {"POST", "/api/campaigns/{campaign}/columns", `{"columns":"phone:phone,nome:nome"}`, false, "404", false},
	"checkCampaign":          {"POST", "/api/campaigns/{campaign}/check", "", false, "404", false},
	"listRefused":            {"GET", "/api/campaigns/{campaign}/refused", "", false, "404", false},
	"startCampaign":          {"POST", "/api/campaigns/{ready}/start", `{"digest":"{digest}"}`, false, "404", false},
	"pauseCampaign":          {"POST", "/api/campaigns/{running}/pause", "", false, "404", false},
	"resumeCampaign":         {"POST", "/api/campaigns/{running}/resume", "", false, "404", false},
	"retryCampaign":          {"POST", "/api/campaigns/{running}/retry", "", false, "404", false},
	"cancelCampaign":         {"POST", "/api/campaigns/{campaign}/cancel", "", false, "404", true},
	"addToBlacklist":         {"POST", "/api/blacklist", `{"phone":"+393331234567"}`, false, "", false},
	"search":                 {"GET", "/api/search?text=333+1234567", "", false, "", false},
	"getOwnBudget":           {"GET", "/api/budget", "", false, "", false},
	"getBudget":              {"GET", "/api/client/{client}/budget", "", true, "404", false},
	"setBudget":              {"PUT", "/api/client/{client}/budget", `{"amount":"50.00"}`, true, "404", false},
	"getStatement":           {"GET", "/api/statements/2026-11", "", false, "", false},
	"listBlacklist":          {"GET", "/api/blacklist", "", false, "", false},
	"removeFromBlacklist":    {"DELETE", "/api/blacklist/remove", `{"phone":"+393331234567"}`, false, "", false},
	"addConsent":             {"POST", "/api/contacts/consent", `{"phone":"+393331234567","purpose":"marketing","change":"grant","source":"modulo"}`, false, "", false},
	"listConsent":            {"GET", "/api/contacts/consent?phone=%2B393331234567", "", false, "", false},
	"exportConsent":          {"GET", "/api/contacts/consent/export", "", false, "", false},
	"everythingOf":           {"POST", "/api/contacts/everything", `{"phone":"+393331234567"}`, false, "", false},
	"listReplies":            {"GET", "/api/replies?unread=true", "", false, "", false},
	"getReplyMedia":          {"GET", "/api/replies/{message}/media", "", false, "404", true},
	"readReplies":            {"POST", "/api/replies/read", `{"phone":"+393331234567"}`, false, "", false},
	"getSettings":            {"GET", "/api/settings", "", false, "", false},
	"changeSettings":         {"PATCH", "/api/settings", `{"remember":true,"takeover_hours":6}`, false, "", false},
	"listContacts":           {"GET", "/api/contacts?tag=cliente&limit=10", "", false, "", false},
	"addContact":             {"POST", "/api/contacts", `{"phone":"+393331234567","name":"Nuova","fields":{"punti":1}}`, false, "", false},
	"getContact":             {"GET", "/api/contacts/{contact}", "", false, "404", false},
	"changeContact":          {"PATCH", "/api/contacts/{contact}", `{"fields":{"punti":2}}`, false, "404", false},
	"undoChange":             {"POST", "/api/contacts/{contact}/undo-change", "", false, "404", true},
	"deleteContact":          {"DELETE", "/api/contacts/{contact}", "", false, "404", true},
	"importContacts":         {"PUT", "/api/contacts/import?source=prova", "phone,nome\n+393331234567,Carla\n", false, "", false},
	"importBlacklist":        {"PUT", "/api/blacklist/import", "phone,reason\n+393331234599,prova\n", false, "", false},
	"exportContacts":         {"GET", "/api/contacts/export", "", false, "", false},
	"eraseContact":           {"POST", "/api/contacts/erase", `{"phone":"+393331234567"}`, false, "", false},
	"listAutomations":        {"GET", "/api/automations", "", false, "", false},
	"createAutomation":       {"POST", "/api/automations", `{"name":"Altra","trigger":{"kind":"reply_to","sequence":"{sequence}"},"actions":[{"kind":"send","text":"Grazie"}]}`, false, "422", false},
	"getAutomation":          {"GET", "/api/automations/{automation}", "", false, "404", false},
	"replaceAutomation":      {"PUT", "/api/automations/{automation}", `{"name":"Modulo","trigger":{"kind":"hook","map":{"phone":"phone"}},"actions":[{"kind":"tag","add":["x"]}]}`, false, "404", false},
	"switchAutomation":       {"PATCH", "/api/automations/{automation}", `{"active":false}`, false, "404", false},
	"deleteAutomation":       {"DELETE", "/api/automations/{automation}", "", false, "404", true},
	"rotateHook":             {"POST", "/api/automations/{automation}/rotate", "", false, "404", false},
	"tryAutomation":          {"POST", "/api/automations/{automation}/try", `{"payload":{"phone":"3331234567"}}`, false, "404", false},
	"listFirings":            {"GET", "/api/automations/{automation}/firings?limit=10", "", false, "404", false},
	"linkChatwoot":           {"PUT", "/api/sessions/{session}/chatwoot", `{"base_url":"https://127.0.0.1","api_access_token":"x","account_id":"3"}`, false, "404", false},
	"getChatwoot":            {"GET", "/api/sessions/{session}/chatwoot", "", false, "404", false},
	"unlinkChatwoot":         {"DELETE", "/api/sessions/{session}/chatwoot", "", false, "404", true},
	"listWebhooks":           {"GET", "/api/webhooks", "", false, "", false},
	"listCalendars":          {"GET", "/api/calendars", "", false, "", false},
	"createCalendar":         {"POST", "/api/calendars", `{"name":"Agenda","url":"https://calendar.example/private/basic.ics","sequence":"{visits}"}`, false, "422", false},
	"getCalendar":            {"GET", "/api/calendars/{calendar}", "", false, "404", false},
	"changeCalendar":         {"PATCH", "/api/calendars/{calendar}", `{"name":"Agenda dello studio"}`, false, "404", false},
	"deleteCalendar":         {"DELETE", "/api/calendars/{calendar}", "", false, "404", true},
	"listCalendarEntries":    {"GET", "/api/calendars/{calendar}/entries", "", false, "404", false},
	"readCalendar":           {"POST", "/api/calendars/{calendar}/fetch", "", false, "404", false},
	"startCalendar":          {"POST", "/api/calendars/{calendar}/start", "", false, "404", false},
	"cancelGone":             {"POST", "/api/calendars/{calendar}/cancel-gone", `{"count":5}`, false, "404", false},
	"createWebhook":          {"POST", "/api/webhooks", `{"url":"https://127.0.0.1/other","types":["message.sent"],"id_sessione":"{session}"}`, false, "422", false},
	"getWebhook":             {"GET", "/api/webhooks/{webhook}", "", false, "404", false},
	"changeWebhook":          {"PATCH", "/api/webhooks/{webhook}", `{"description":"x"}`, false, "404", false},
	"deleteWebhook":          {"DELETE", "/api/webhooks/{webhook}", "", false, "404", true},
	"testWebhook":            {"POST", "/api/webhooks/{webhook}/test", "", false, "404", false},
	"rotateWebhook":          {"POST", "/api/webhooks/{webhook}/rotate", "", false, "404", false},
	"listDeliveries":         {"GET", "/api/webhooks/{webhook}/deliveries?state=waiting", "", false, "404", false},
	"getDelivery":            {"GET", "/api/webhooks/{webhook}/deliveries/1", "", false, "404", false},
	"replayDeliveries":       {"POST", "/api/webhooks/{webhook}/replay", `{"failed":true}`, false, "404", false},
	"listEvents":             {"GET", "/api/events?types=message.sent&limit=10", "", false, "", false},
	"listDevices":            {"GET", "/api/sessions/{posted}/devices", "", false, "404", false},
	"unlinkDevice":           {"DELETE", "/api/sessions/{posted}/devices/{device}", "", false, "404", true},
	"linkDevice":             {"POST", "/device/link", `{"code":"{code}","name":"telefono"}`, false, "", false},
	"getDevice":              {"GET", "/device", "", false, "", false},
	"unlinkSelf":             {"POST", "/device/unlink", "", false, "", true},
	"heartbeat":              {"POST", "/device/heartbeat", "", false, "", false},
	"dueForDevice":           {"GET", "/device/due", "", false, "", false},
	"take":                   {"POST", "/device/take", `{"take":"1"}`, false, "", false},
	"renew":                  {"POST", "/device/renew", `{"attempts":["{message}.1"]}`, false, "", false},
	"report":                 {"POST", "/device/report", `{"reports":[{"attempt":"{message}.1","outcome":"sent"}]}`, false, "", false},
	"setPush":                {"PUT", "/device/push", pushTarget, false, "", false},
	"endPush":                {"DELETE", "/device/push", "", false, "", false},
	"answerFromSandbox":      {"POST", "/api/sandbox/replies", `{"phone":"3331234567","text":"ciao","id_sessione":"{linked}"}`, false, "422", false},
	"listSandboxMessages":    {"GET", "/api/sandbox/messages", "", false, "", false},
}

const pushTarget = `{"endpoint":"https://push.example.com/1","p256dh":"BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM","auth":"tBHItJI5svbpez7KI4CCXg"}`

func (c tenant) fill(text string) string {
	return strings.NewReplacer("{booking}", c.booking, "{calendar}", c.calendar, "{visits}", c.visits, "{session}", c.session, "{second}", c.second, "{linking}", c.linking, "{linked}", c.linked, "{official}", c.official, "{gateway}", c.gateway, "{posted}", c.posted, "{device}", c.device, "{code}", c.code, "{contact}", c.contact, "{webhook}", c.webhook, "{automation}", c.automation, "{campaign}", c.campaign, "{ready}", c.ready, "{digest}", c.digest, "{running}", c.running, "{sequence}", c.sequence, "{message}", c.message,
		"{client}", c.client, "{template}", c.template, "{file}", c.file, "{plan}", c.plan, "{key}", c.keyID).Replace(text)
}

// contentTypeOf returns the content type of an operation's body.
func contentTypeOf(id string) string {
	switch id {
	case "uploadRecipients", "importContacts", "importBookings", "importBlacklist":
		return "text/csv"
	case "uploadFile":
		return "application/octet-stream"
	}
	return "application/json"
}

// loadPaths reads the paths of the OpenAPI document.
func loadPaths(t *testing.T) map[string]*openapi3.PathItem {
	t.Helper()
	d, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(d.raw)
	if err != nil {
		t.Fatal(err)
	}
	return doc.Paths.Map()
}

// documented returns the operations in the OpenAPI document.
func documented(t *testing.T) []string {
	t.Helper()
	var ids []string
	for _, item := range loadPaths(t) {
		for _, op := range item.Operations() {
			ids = append(ids, op.OperationID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Every operation answers 200 if it is called as the document describes. The test fails for an operation that has no
// row in operations.
func TestDocumentedCalls(t *testing.T) {
	t.Parallel()
	s := newService(t, options{public: "https://app.example"})
	d, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range documented(t) {
		op, ok := operations[id]
		if !ok {
			t.Errorf("operation %s has no row", id)
			continue
		}
		own := newTenant(s, fmt.Sprintf("own%d@x", i), "+393330000001")
		key := own.keyFor(s, op.path, op.partner)
		r := httptest.NewRequestWithContext(t.Context(), op.method, own.fill(op.path), strings.NewReader(own.fill(op.body)))
		r.Header.Set("Authorization", "Bearer "+key)
		if op.body != "" {
			r.Header.Set("Content-Type", contentTypeOf(id))
		}
		route, params, err := d.router.FindRoute(r)
		if err != nil || route.Operation.OperationID != id {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if err := openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{
			Request: r, PathParams: params, Route: route,
			Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
		}); err != nil {
			t.Errorf("%s: the call is not in the document: %v", id, err)
		}
		r = httptest.NewRequestWithContext(t.Context(), op.method, own.fill(op.path), strings.NewReader(own.fill(op.body)))
		r.Header.Set("Authorization", "Bearer "+key)
		want := 200
		if id == "getReplyMedia" || id == "getDelivery" { // nobody replied and nothing was delivered; other tests cover these operations
			want = 404
		}
		switch id { // the business is not known yet, and has no templates; TestMakeTemplates covers these operations
		case "createNetworkTemplate":
			want = 409
		case "editNetworkTemplate", "unpauseNetworkTemplate", "deleteNetworkTemplate":
			want = 404
		}
		if a := s.send(r); a.status != want {
			t.Errorf("%s: %d %s", id, a.status, a.body)
		}
	}
}

// Each operation is called with every key that must fail: no key, a revoked key, and a key of the wrong kind. The kinds
// are client, partner and device. The operation is also called with a valid key for things of another client or another
// partner. The answer must be byte for byte the same as for things that do not exist. Nothing of the other tenant is
// shown or changed.
func TestKeysAndTenants(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		own, other := newTenant(s, "own@x", "+393330000001"), newTenant(s, "other@x", "+393331234567")
		_, rival, err := s.accounts.CreatePartner(t.Context(), account.NewPartner{Name: "Rivale", Email: "r@x", Password: "una frase lunga 42"})
		if err != nil {
			t.Fatal(err)
		}
		far := newTenantOf(s, rival, "far@x", "+393331234567")
		endedPartner := s.partner
		if s.partner, err = s.accounts.RotateKey(t.Context(), s.partner, 0); err != nil {
			t.Fatal(err)
		}
		var ended struct {
			ID  string
			Key string `json:"api_key"`
		}
		s.must(&ended, "POST", "/api/client/"+own.client+"/keys", s.partner, `{"name":"breve"}`)
		s.must(nil, "DELETE", "/api/client/"+own.client+"/keys/"+ended.ID, s.partner, "")
		const nobody = "999999"
		missing := tenant{plan: nobody, file: strings.Repeat("z", 26) + ".txt", booking: nobody, calendar: nobody, visits: nobody, posted: nobody, device: nobody, session: nobody, second: nobody, linking: nobody, linked: nobody, contact: nobody, webhook: nobody, automation: nobody, campaign: nobody, ready: nobody, running: nobody, official: nobody, gateway: nobody, sequence: nobody, template: nobody, client: nobody, keyID: nobody, message: "9007199254740991"}
		before := everything(s, other.key, s.partner, other.client) + everything(s, far.key, rival, far.client)
		for _, id := range documented(t) {
			op := operations[id]
			right, wrong, revoked, foreign := own.key, s.partner, ended.Key, other
			if op.partner {
				right, wrong, revoked, foreign = s.partner, own.key, endedPartner, far
			}
			if strings.HasPrefix(op.path, "/device") {
				right, wrong, revoked = own.token, own.key, own.ended
			}
			if id == "linkDevice" { // the code in this call replaces a key
				continue
			}
			for why, c := range map[string]struct {
				key    string
				status int
			}{"the other side's key": {wrong, 403}, "no key": {"", 401}, "a revoked key": {revoked, 401}} {
				if c.status == 403 && (strings.HasPrefix(op.path, "/api/webhooks") || id == "search" || id == "getStatement" || id == "getResults" || id == "makeLinkingPage" || id == "endLinkingPage") { // a client's key and a partner's key are both accepted
					continue
				}
				if a := s.call(op.method, own.fill(op.path), c.key, own.fill(op.body)); a.status != c.status {
					t.Errorf("%s with %s: %d %s", id, why, a.status, a.body)
				}
			}
			if op.foreign == "" {
				if a := s.call(op.method, own.fill(op.path), right, own.fill(op.body)); a.status != 200 || strings.Contains(a.body, "far@x") ||
					!op.partner && strings.Contains(a.body, "other@x") {
					t.Errorf("%s: %d %s", id, a.status, a.body)
				}
				continue
			}
			got := s.call(op.method, foreign.fill(op.path), right, foreign.fill(op.body))
			none := s.call(op.method, missing.fill(op.path), right, missing.fill(op.body))
			if id == "getClientExpirations" { // the answer repeats the ids in the request
				got.body = strings.ReplaceAll(got.body, `"value":`+foreign.client, `"value":`+nobody)
			}
			if got.body != none.body || fmt.Sprint(got.status) != op.foreign || none.status != got.status {
				t.Errorf("%s: foreign %d %s\nmissing %d %s", id, got.status, got.body, none.status, none.body)
			}
		}
		// These calls change all messages of the caller, or name another client's number or session in the body. The other
		// tenants' data must not change.
		s.must(nil, "POST", "/api/messages/cancel/pending", own.key, "")
		s.must(nil, "DELETE", "/api/blacklist/remove", own.key, `{"phone":"`+other.phone+`"}`)
		mixed := tenant{sequence: own.sequence, session: other.session}
		if a := s.call("PUT", mixed.fill("/api/sequences/{sequence}"), own.key, mixed.fill(operations["replaceSequence"].body)); a.status != 422 {
			t.Errorf("a foreign session: %d %s", a.status, a.body)
		}
		if after := everything(s, other.key, s.partner, other.client) + everything(s, far.key, rival, far.client); after != before {
			t.Errorf("the others were\n%s\nand are\n%s", before, after)
		}
	})
}

// everything returns all data of a client that the client's key and its partner's key can read.
func everything(s *service, key, partner, client string) string {
	s.t.Helper()
	var all strings.Builder
	for _, path := range []string{"/api/sequences", "/api/sessions", "/api/templates", "/api/blacklist", "/api/sandbox/messages", "/api/messages", "/api/campaigns", "/api/contacts", "/api/webhooks", "/api/files"} {
		all.WriteString(s.must(nil, "GET", path, key, "").body + "\n")
	}
	for _, path := range []string{"/snapshot", "/keys"} {
		all.WriteString(s.must(nil, "GET", "/api/client/"+client+path, partner, "").body + "\n")
	}
	return all.String()
}
