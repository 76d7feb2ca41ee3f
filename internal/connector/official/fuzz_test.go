package official

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/clock"
)

// FuzzDelivery checks what the connector reads from any body of a webhook. Each part must belong to the session's
// client, must not be later than now, and must be storable.
func FuzzDelivery(f *testing.F) {
	f.Add(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":{"metadata":{"phone_number_id":"1"},"statuses":[{"id":"w","status":"failed","timestamp":"1","biz_opaque_callback_data":"a.0.b","errors":[{"code":131026,"title":"\u0000"}]}],"messages":[{"from":"393331234567","timestamp":"99999999999","type":"text"}]}}]}]}`)
	f.Add(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"user_preferences","value":{"metadata":{"phone_number_id":"1"},"user_preferences":[{"wa_id":"1234567","value":"stop"}]}}]}]}`)
	f.Add(`{"object":"whatsapp_business_account","entry":[{"id":"2","time":1,"changes":[{"field":"message_template_status_update","value":{"event":"PAUSED","message_template_id":12,"message_template_name":"n","message_template_language":"en-US","reason":null}}]}]}`)
	f.Add(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":{"metadata":{"phone_number_id":"1"},"contacts":[{"wa_id":"393331234567","user_id":"IT.12"}],"messages":[{"from_user_id":"IT.12","timestamp":"9","type":"text"}]}}]}]}`)
	f.Add(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"smb_message_echoes","value":{"metadata":{"phone_number_id":"1"},"message_echoes":[{"from":"1","to":"393331234567","id":"w\u0000","timestamp":"9","type":"document","document":{"id":"1","filename":"\udc00/..","caption":"\u0000"}}]}}]}]}`)
	f.Add(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":{"metadata":{"phone_number_id":"1"},"messages":[{"from":"393331234567","id":"w","type":"edit","edit":{"message":{"type":"edit"}}},{"from":"393331234567","id":"w","type":"contacts","contacts":[{"name":{"formatted_name":"x"}}]}]}}]}]}`)
	f.Add(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":{"metadata":{"phone_number_id":"1"},"messages":[{"from":"393331234567","id":"w","type":"interactive","interactive":{"type":"button_reply","button_reply":{"id":"\u0000x","title":"y"}},"context":{"from":"1","id":"z\u0000"}},{"from":"393331234567","id":"v","type":"button","button":{"payload":"x","text":"y"},"context":[]}]}}]}]}`)
	f.Add(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":{"metadata":{"phone_number_id":"1"},"messages":[{"from":"393331234567","id":"w\u0000","timestamp":"9","type":"system","system":{"type":"user_changed_number","wa_id":"393331234568","user_id":"IT.12","previous_user_id":"IT.12"}}]}}]}]}`)
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	c := New(Config{Clock: clock.NewFake(now)})
	f.Fuzz(func(t *testing.T, body string) {
		all, _, err := c.read([]byte(body), func(number, account string) ([]origin, error) {
			if number == "1" || account == "2" {
				return []origin{{7, 3, "2"}}, nil
			}
			return nil, nil
		})
		if err != nil || len(all) > 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		if len(all) == 0 {
			return
		}
		told := all[0]
		for _, e := range told.Receipts {
			if e.Client != 3 || e.Session != 7 || e.ID <= 0 || e.Token <= 0 || e.At.After(now) || e.At.IsZero() || e.Detail.String() != storable(e.Detail.String()) || e.Reason.String() != storable(e.Reason.String()) {
				t.Errorf("%+v", e)
			}
		}
		for _, h := range told.Messages {
			if h.Client != 3 || h.Session != 7 || len(h.Phone) < 4 || h.Phone[0] != '+' && !puntuale.IsPersonID(h.Phone) || h.At.After(now) {
				t.Errorf("%+v", h)
			}
			if all := h.Text + h.ID + h.Payload + h.Quoted; !utf8.ValidString(all) || strings.ContainsRune(all, 0) || len(h.Payload) > 256 || len(h.Quoted) > 900 || utf8.RuneCountInString(h.Text) > puntuale.MaxReply || len(h.ID) > 900 {
				t.Errorf("%+v", h)
			}
			if m := h.Media; m != nil && (!utf8.ValidString(m.Type+m.Name) || strings.ContainsAny(m.Name, "\x00/\\") || strings.ContainsRune(m.Type, 0) || !m.Until.After(now)) {
				t.Errorf("%+v", m)
			}
		}
		for _, p := range told.Preferences {
			if p.Client != 3 || p.Session != 7 || p.Phone[0] != '+' && !puntuale.IsPersonID(p.Phone) || p.At.After(now) {
				t.Errorf("%+v", p)
			}
		}
		for _, c := range told.Changes {
			if c.Client != 3 || c.Session != 7 || c.ID == "" || c.ID != storable(c.ID) || c.At.After(now) || len(c.Old) == 0 || len(c.New) == 0 || slices.ContainsFunc(c.Old, func(name string) bool { return slices.Contains(c.New, name) }) {
				t.Errorf("%+v", c)
			}
		}
		for _, n := range told.Templates {
			if n.Client != 3 || n.Account != "2" || n.Name == "" || n.At.After(now) || n.Name != storable(n.Name) || n.Status != puntuale.TemplateStatus(storable(string(n.Status))) || n.Reason != storable(n.Reason) {
				t.Errorf("%+v", n)
			}
		}
	})
}

// FuzzAnswer: an answer with a status other than 200 is never taken for a success.
func FuzzAnswer(f *testing.F) {
	f.Add(400, `{"error":{"code":131026,"message":"x","error_data":{"details":"y"}}}`)
	f.Add(500, `{"error":{}}`)
	f.Add(200, `{"messages":[{"id":"w"}]}`)
	f.Fuzz(func(t *testing.T, status int, text string) {
		var into struct{}
		if err := understand(status, []byte(text), &into); err == nil && status != 200 {
			t.Errorf("%d %q is taken for a success", status, text)
		}
	})
}

// FuzzCallback: readCallback returns the values that callback wrote.
func FuzzCallback(f *testing.F) {
	f.Add(int64(1), 0, int64(1), "a.0.b")
	f.Fuzz(func(t *testing.T, id int64, generation int, token int64, odd string) {
		_, _, _ = readCallback(odd)
		if id <= 0 || token <= 0 || generation < 0 || generation > 1000 {
			return
		}
		e := puntuale.Envelope{ConnectorID: puntuale.ConnectorID(puntuale.MessageID(id), generation), Token: token}
		gotID, gotToken, ok := readCallback(callback(e))
		if !ok || int64(gotID) != id || gotToken != token {
			t.Errorf("%s: %d %d %v", callback(e), gotID, gotToken, ok)
		}
	})
}
