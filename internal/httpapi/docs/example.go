package docs

import "encoding/json"

// bodyExamples are example bodies, by operation. Calls with these bodies succeed. Without these examples, the page
// would make examples from the schemas. Such an example would have every member, even members that exclude each other.
var bodyExamples = map[string]json.RawMessage{
	"addToBlacklist":        []byte(`{"phone": "+39 333 123 4567", "reason": "lo ha chiesto"}`),
	"cancelMessages":        []byte(`{"id": ["27933694591001", "27933694591002"]}`),
	"rescheduleMessages":    []byte(`{"id": ["27933694591001", "27933694591002"]}`),
	"getClientExpirations":  []byte(`{"client_ids": [1, 2]}`),
	"cancelPendingMessages": []byte(`{"phones": ["+39 333 123 4567"]}`),
	"addContact":            []byte(`{"phone": "+39 333 123 4567", "name": "Anna Rossi", "fields": {"nascita": "1990-02-28", "punti": 12}, "tags": ["cliente"]}`),
	"changeContact":         []byte(`{"fields": {"punti": 13}, "add_tags": ["vip"]}`),
	"changeClient":          []byte(`{"expiration_date": "2030-12-31", "daily_api_cap": 2000}`),
	"addRecipients":         []byte(`{"recipients": [{"phone": "+39 333 123 4567", "nome": "Anna"}]}`),
	"closeUnknownMessages":  []byte(`{"all": true}`),
	"resendUnknownMessages": []byte(`{"all": true}`),
	"createAutomation":      automationExample,
	"replaceAutomation":     []byte(`{"name": "Modulo", "trigger": {"kind": "hook", "map": {"phone": "cliente.telefono", "nome": "cliente.nome"}}, "actions": [{"kind": "send", "text": "Ciao {{nome|}}, abbiamo la tua richiesta."}]}`),
	"switchAutomation":      []byte(`{"active": false}`),
	"tryAutomation":         []byte(`{"payload": {"phone": "+39 333 123 4567"}}`),
	"createCampaign":        campaignExample,
	"replaceCampaign":       []byte(`{"name": "Auguri", "content": {"text": "Auguri, {{nome|e a presto}}!"}, "pace": {"per_minute": 300}}`),
	"mapRecipients":         []byte(`{"columns": "phone:phone,nome:nome"}`),
	"retryCampaign":         []byte(`{"uncertain": false}`),
	"startCampaign":         []byte(`{"digest": "0123456789abcdef0123456789abcdef"}`),
	"createClient":          []byte(`{"name": "Studio dentistico Bianchi", "email": "bianchi@example.com", "password": "a good long one", "phone": "+39 011 765 4321", "account_type": "test", "sandbox": true}`),
	"createPlan":            []byte(`{"name": "Base", "credits": 500, "refill_period": "Mensile", "daily_api_cap": 2000, "budget": "49.90", "days": 365, "active_features": ["agenda"], "quotas": {"sessions": 2}}`),
	"replacePlan":           []byte(`{"name": "Base 2027", "credits": 800, "refill_period": "Mensile", "daily_api_cap": 2000, "days": 365, "quotas": {"sessions": 3}}`),
	"createKey":             []byte(`{"name": "CRM"}`),
	"createSequence":        sequenceExample,
	"createSession":         []byte(`{"name": "Banco", "connection_type": "Socket", "sandbox": true}`),
	"createTemplate":        templateExample,
	"linkChatwoot":          []byte(`{"base_url": "https://app.chatwoot.com", "api_access_token": "2qUQhs7VbYzq8vJpTEXe", "account_id": "3"}`),
	"createCalendar":        []byte(`{"name": "Studio", "url": "https://calendar.google.com/calendar/ical/anna%40example.com/private-0a1b/basic.ics", "sequence": "2"}`),
	"changeCalendar":        []byte(`{"name": "Agenda dello studio", "phone_from": ["title", "description"]}`),
	"cancelGone":            []byte(`{"count": 5}`),
	"createWebhook":         []byte(`{"url": "https://crm.example.com/puntuale", "types": ["message.sent", "message.failed", "reply.received"], "description": "CRM"}`),
	"changeWebhook":         []byte(`{"active": false}`),
	"replayDeliveries":      []byte(`{"from": "2026-11-20", "to": "2026-11-21", "failed": true}`),
	"addConsent":            []byte(`{"phone": "+39 333 123 4567", "purpose": "marketing", "change": "grant", "source": "modulo in sede", "words": "Accetto di ricevere offerte"}`),
	"answerFromSandbox":     []byte(`{"phone": "+39 333 123 4567", "text": "Sì, confermo"}`),
	"setBudget":             []byte(`{"amount": "49.90"}`),
	"changeSettings":        []byte(`{"consent": "required", "opt_out_answer": "Non riceverai altri messaggi."}`),
	"everythingOf":          personExample,
	"readReplies":           personExample,
	"eraseContact":          personExample,
	"linkDevice":            []byte(`{"code": "7K2QM-X04RD", "name": "Telefono di Anna"}`),
	"take":                  []byte(`{"take": "5f1c", "max": 10}`),
	"renew":                 []byte(`{"attempts": ["28184039397001.7574511150536826747"]}`),
	"report":                []byte(`{"reports": [{"attempt": "28184039397001.7574511150536826747", "outcome": "sent"}]}`),
	"setPush":               []byte(`{"endpoint": "https://push.example.com/1", "p256dh": "BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM", "auth": "tBHItJI5svbpez7KI4CCXg"}`),
	"pairSession":           []byte(`{"method": "qr"}`),
	"setGateway":            []byte(`{"base_url": "https://app.sendapp.cloud/api", "access_token": "64f0c2a1b7d4e", "instance_id": "65F0A1B2C3D4E"}`),
	"setOfficialKeys":       []byte(`{"phone_number_id": "106540352242922", "access_token": "EAAGm0PX4ZCps", "app_secret": "9b3c5e7f1a2d", "verify_token": "una-parola", "business_account_id": "102290129340398"}`),
	"createNetworkTemplate": draftExample,
	"editNetworkTemplate":   draftExample,
	"lintNetworkTemplate":   draftExample,
	"updateSession":         []byte(`{"pace": {"per_minute": 10, "cold_per_day": 20}}`),
	"removeFromBlacklist":   personExample,
	"replaceSequence":       sequenceExample,
	"putBooking":            []byte(`{"appuntamento":"20/02/2027 15:30","as_of":7}`),
	"reconcileBookings":     []byte(`{"start":"2027-02-01","end":"2027-02-28","as_of":"2027-01-31T02:00:00+01:00","bookings":[{"reference":"4711","sequence":"12","phone":"+39 333 123 4567","nome":"Anna","appuntamento":"20/02/2027 15:30"}]}`),
	"replanSequence":        []byte(`{"dry_run":true}`),
	"putBookingByQuery":     []byte(`{"appuntamento":"20/02/2027 15:30","as_of":7}`),
	"replaceTemplate":       templateExample,
	"rotateKey":             []byte(`{"grace": 3600}`),
	"sendMessage":           []byte(`{"phone": "+39 333 123 4567", "text": "La fattura 118 è pronta."}`),
	"setDefaultSequences":   []byte(`{"start": null, "stop": null}`),
	"startSequence":         []byte(`{"phone": "+39 333 123 4567", "nome": "Anna"}`),
	"stopSequence":          personExample,
}

var draftExample = []byte(`{"name": "ordine_pronto", "language": "it", "category": "UTILITY", "text": "Ciao {{nome}}, il tuo ordine è pronto per il ritiro.", "footer": "Bottega Rossi", "buttons": [{"kind": "url", "text": "Segui l'ordine", "url": "https://bottega.example/o/{{numero}}"}], "examples": {"nome": "Ada", "numero": "17"}}`)

var (
	campaignExample   = json.RawMessage(`{"name": "Auguri", "content": {"text": "Auguri, {{nome|e a presto}}!"}, "recipients": [{"phone": "+39 333 123 4567", "nome": "Anna"}], "pace": {"per_minute": 600}}`)
	automationExample = json.RawMessage(`{"name": "Info", "trigger": {"kind": "reply", "words": ["info"]}, "conditions": {"cooldown_hours": 1}, "actions": [{"kind": "send", "text": "Siamo aperti dalle 9 alle 18."}]}`)
	personExample     = json.RawMessage(`{"phone": "+39 333 123 4567"}`)
	templateExample   = json.RawMessage(`{"name": "Grazie", "text": "Grazie, {{nome|e a presto}}!"}`)
	sequenceExample   = json.RawMessage(`{"name": "Benvenuto", "steps": [` +
		`{"text": "Ciao {{nome|gentile cliente}}!", "timing": {"anchor": "start", "offset": {"amount": 0}}}, ` +
		`{"variants": [{"share": 50, "content": {"text": "Tutto bene?"}}, {"share": 50, "content": {"text": "Com'è andata?"}}], "timing": {"anchor": "start", "offset": {"amount": 2, "unit": "days", "direction": "after"}, "at": "18:00"}}]}`)
)

// ExampleOf returns the example body of an operation, or nil if there is none.
func ExampleOf(operation string) any {
	if example, ok := bodyExamples[operation]; ok {
		return example
	}
	return nil
}
