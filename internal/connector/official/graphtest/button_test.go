package graphtest

import (
	"strings"
	"testing"
)

// TestInteractiveLimits: the peer takes interactive messages up to Meta's limits, and refuses what is beyond them.
func TestInteractiveLimits(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("è", n) }
	row := func(id, title, text string) string {
		return `{"id":"` + id + `","title":"` + title + `","description":"` + text + `"}`
	}
	list := func(body, button, sections string) string {
		return `"list","body":{"text":"` + body + `"},"action":{"button":"` + button + `","sections":[` + sections + `]}`
	}
	link := func(label, url string) string {
		return `"cta_url","body":{"text":"x"},"action":{"name":"cta_url","parameters":{"display_text":"` + label + `","url":"` + url + `"}}`
	}
	one := `{"rows":[` + row("1", "a", "b") + `]}`
	var rows []string
	for i := range 11 {
		rows = append(rows, row(string(rune('a'+i)), "x", "y"))
	}
	for part, want := range map[string]bool{
		list(long(4096), long(20), `{"title":"`+long(24)+`","rows":[`+row(long(200), long(24), long(72))+`]}`): true,
		list("x", "a", `{"rows":[`+strings.Join(rows[:10], ",")+`]}`):                                          true,
		list("x", "a", `{"rows":[`+strings.Join(rows, ",")+`]}`):                                               false,
		list(long(4097), "a", one): false,
		list("x", long(21), one):   false,
		list("x", "", one):         false,
		list("x", "a", one+`,{"title":"b","rows":[`+row("2", "a", "b")+`]}`):               false,
		list("x", "a", `{"title":"`+long(25)+`","rows":[`+row("1", "a", "b")+`]}`):         false,
		list("x", "a", `{"rows":[`+row("1", long(25), "b")+`]}`):                           false,
		list("x", "a", `{"rows":[`+row("1", "a", long(73))+`]}`):                           false,
		list("x", "a", `{"rows":[`+row(long(201), "a", "b")+`]}`):                          false,
		list("x", "a", `{"rows":[`+row("1", "a", "b")+","+row("1", "c", "d")+`]}`):         false,
		link(long(20), "https://e.com/a?b=c"):                                              true,
		link(long(21), "https://e.com"):                                                    false,
		link("a", "http://e.com"):                                                          false,
		link("a", "https://e.com/a b"):                                                     false,
		`"location_request_message","body":{"text":"x"},"action":{"name":"send_location"}`: true,
		`"location_request_message","header":{"type":"image","image":{"id":"1"}},"body":{"text":"x"},"action":{"name":"send_location"}`: false,
		`"location_request_message","body":{"text":"` + long(1025) + `"},"action":{"name":"send_location"}`:                             false,
		`"request_contact_info","body":{"text":"x"},"action":{"name":"request_contact_info"}`:                                           true,
		`"contact_request","body":{"text":"x"},"action":{"name":"contact_request"}`:                                                     false,
		`"request_contact_info","body":{"text":"x"},"action":{"name":"request_contact_info","button":"a"}`:                              false,
	} {
		_, err := readMessage([]byte(`{"messaging_product":"whatsapp","recipient_type":"individual","to":"+393331234567","biz_opaque_callback_data":"x","type":"interactive","interactive":{"type":` + part + `}}`))
		if (err == nil) != want {
			t.Errorf("%.200s: %v", part, err)
		}
	}
}
