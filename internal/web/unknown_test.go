package web_test

import (
	"fmt"
	"testing"

	"puntuale"
)

// restored makes all messages of the client unknown, as after a restore. It also holds back the client's messages.
func (w *world) restored() {
	w.t.Helper()
	for _, text := range []string{
		`insert into unknown_message (client_id, message_id, since, at) select client_id, id, 1763629200000000, 1763632800000000 from message where client_id = $1`,
		`update message set intent = 4294967297, intent_at = next_at, valid_until = -valid_until, next_at = next_at + 86400000000, detail = 'esito incerto' where client_id = $1`,
		`update client set held_at = 1763632800000000 where id = $1`,
	} {
		_, err := w.sql.ExecContext(w.t.Context(), text, int64(w.client))
		w.must(err)
	}
}

// TestUnknown resumes sending after a restore, closes one of the unknown messages, and resends all others.
func TestUnknown(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		w.everything(w.client)
		w.restored()
		var unknown int
		w.must(w.sql.QueryRowContext(t.Context(), `select count(*) from unknown_message where client_id = $1`, int64(w.client)).Scan(&unknown))
		left := func(n int) string { return fmt.Sprintf(`document.querySelectorAll("tr[data-row]").length === %d`, n) }
		b.signIn(w.clients[puntuale.Staff])
		const notice = `.notice a[href$="/unknown"]`
		b.open(w.pages)
		b.until(`document.querySelector('` + notice + `')`)
		b.open(w.pages + "/unknown")
		b.check("held")
		b.click(`form[action$="/unknown/release"] button`)
		b.until(`!document.querySelector('form[action$="/unknown/release"]') && ` + left(unknown))
		b.open(w.pages)
		b.until(`document.querySelector('` + notice + `')`)
		b.check("home")
		b.open(w.pages + "/unknown")
		b.check("list")
		b.click(`form[action$="/unknown/close"] button`)
		b.until(left(unknown - 1))
		b.click(`a[href$="/unknown/resend"]`)
		b.until(`document.querySelector("main form button.btn-danger")`)
		b.check("ask")
		b.click(`main form button.btn-danger`)
		b.until(`location.pathname.endsWith("/unknown") && ` + left(0))
		b.check("nothing")
	})
}
