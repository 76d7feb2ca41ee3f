package sealed

import (
	"strings"

	"puntuale"
)

// column is a column with sealed data. The purpose and the place are those with which the vault sealed them.
type column struct {
	table   string
	keys    string   // the primary key: columns, with commas between them
	value   string   // the column
	opens   []string // the purposes that the column contains
	purpose string   // an SQL expression, if there are several; t is the row
	place   string   // an SQL expression
	where   string   // an SQL condition that every row with sealed data meets; "": all rows
	join    string   // further tables of the expressions
}

// The places of sealed data. See SealPlace of [puntuale.SessionID], [puntuale.Calendar] and [puntuale.Webhook].
const (
	ofSession = `'session ' || t.session_id`
	ofHook    = `'hook of ' || t.client_id || ', ' || t.created_at`
	ofWebhook = `'webhook of ' || t.client_id || ', ' || t.created_at`
)

// columns are all columns with sealed data in the store's tables. If you seal something else, add its column here, and
// its purpose to [puntuale.SealPurposes].
var columns = []column{
	{table: "session", keys: "id", value: "keys", opens: []string{puntuale.SealedOfficial, puntuale.SealedGateway},
		purpose: `case t.type when '` + string(puntuale.Official) + `' then '` + puntuale.SealedOfficial + `' else '` + puntuale.SealedGateway + `' end`, place: `'session ' || t.id`},
	{table: "session", keys: "id", value: "code", opens: []string{puntuale.SealedCode}, place: `'session ' || t.id`},
	{table: "command", keys: "id", value: "detail", opens: []string{puntuale.SealedCommand}, place: ofSession},
	{table: "command", keys: "id", value: "answer", opens: []string{puntuale.SealedAnswer}, place: ofSession},
	{table: "calendar", keys: "client_id, id", value: "address", opens: []string{puntuale.SealedCalendar}, place: `'calendar ' || t.client_id || ' ' || t.created_at`},
	{table: "webhook", keys: "id", value: "secret", opens: []string{puntuale.SealedWebhook}, place: ofWebhook},
	{table: "webhook", keys: "id", value: "secret_before", opens: []string{puntuale.SealedWebhook}, place: ofWebhook},
	{table: "automation", keys: "client_id, id", value: "sealed", opens: []string{puntuale.SealedHook}, place: ofHook},
	{table: "device", keys: "client_id, id", value: "push", opens: []string{puntuale.SealedPush}, place: ofSession},
	{table: "login", keys: "id", value: "second", opens: []string{puntuale.SealedSecond}, place: `'user ' || t.id`},
	{table: "mail", keys: "id", value: "sealed", opens: []string{puntuale.SealedReset, puntuale.SealedInvitation}, purpose: ofMail, place: ofMail, where: `t.kind in (1, 2, 3)`}, // see [puntuale.MailKind]
	{table: "visit", keys: "token", value: "data", opens: []string{puntuale.SealedVisit}, place: `t.token`},
	{table: "secret", keys: "name", value: "value", opens: []string{puntuale.SealedPushKey}, place: `t.name`, where: `t.name = '` + puntuale.SealedPushKey + `'`},
	{table: "secret", keys: "name", value: "value", opens: []string{puntuale.SealedCertificate}, place: `substr(t.name, length('` + puntuale.SealedCertificate + ` ') + 1)`,
		where: `t.name like '` + puntuale.SealedCertificate + ` %'`},
	{table: "backup_work", keys: "kind", value: "opener", opens: []string{puntuale.SealedOpener}, place: `t.result::json ->> 'name'`, where: `t.kind = 1`},
}

const ofMail = `case t.kind when 3 then '` + puntuale.SealedInvitation + `' else '` + puntuale.SealedReset + `' end`

// linkedNumbers are the columns with sealed data in the tables of linked numbers. Most of these tables are a library's.
// On SQLite they are in another file.
var linkedNumbers = []column{
	{table: "socket_device", keys: "session_id", value: "keys", opens: []string{puntuale.SealedWhatsApp}, place: ofSession},
	ofNumber("whatsmeow_sessions", "our_jid, their_id", "session"),
	ofNumber("whatsmeow_sender_keys", "our_jid, chat_id, sender_id", "sender_key"),
	ofNumber("whatsmeow_app_state_sync_keys", "jid, key_id", "key_data"),
	ofNumber("whatsmeow_message_secrets", "our_jid, chat_jid, sender_jid, message_id", "key"),
	ofNumber("whatsmeow_privacy_tokens", "our_jid, their_jid", "token"),
	ofNumber("whatsmeow_nct_salt", "our_jid", "salt"),
	ofNumber("whatsmeow_event_buffer", "our_jid, ciphertext_hash", "plaintext"),
	ofNumber("whatsmeow_retry_buffer", "our_jid, chat_jid, message_id", "plaintext"),
}

// ofNumber is a column of the library. The first column of the key names the device.
func ofNumber(table, keys, value string) column {
	jid, _, _ := strings.Cut(keys, ", ")
	return column{table: table, keys: keys, value: value, opens: []string{puntuale.SealedWhatsApp}, place: `'session ' || d.session_id`, join: ` left join socket_device d on d.jid = t.` + jid}
}

// Purposes returns the purposes of all columns.
func Purposes() (all []string) {
	for _, list := range [][]column{columns, linkedNumbers} {
		for _, c := range list {
			all = append(all, c.opens...)
		}
	}
	return all
}
