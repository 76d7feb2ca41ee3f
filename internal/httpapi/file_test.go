package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const smallPhoto = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA="

// TestFiles: a client uploads a photo, as it is or in a form, and names it in messages, templates, sequences and campaigns.
// What a network would refuse is refused here.
func TestFiles(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a, other := s.newAccount("file@x", "full"), s.newAccount("other@x", "full")
		plain, err := base64.StdEncoding.DecodeString(smallPhoto)
		if err != nil {
			t.Fatal(err)
		}
		photo := string(plain) + "\xff\xd9"
		type file struct {
			ID, Media, Name, Type string
			Bytes                 int
			Width                 int
		}
		var f, same file
		s.must(&f, "POST", "/api/files?name=../foto.exe", a.Key, photo+"<script>", "Content-Type", "text/html")
		if f.Name != "foto.exe.jpg" || f.Type != "image/jpeg" || f.Bytes != len(photo) || f.Width != 1 || f.Media != "file:"+f.ID {
			t.Errorf("%+v", f)
		}
		form := "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"due.png\"\r\n\r\n" + photo + "\r\n--b--\r\n"
		s.must(&same, "POST", "/api/files", a.Key, form, "Content-Type", "multipart/form-data; boundary=b")
		if same.ID != f.ID {
			t.Errorf("the same photo is %+v and %+v", f, same)
		}
		if same.Name != "due.png.jpg" {
			t.Errorf("the second upload is named %q", same.Name) // the older name may say whose photo it was
		}
		for name, body := range map[string]string{
			"a form without its end":     strings.TrimSuffix(form, "\r\n--b--\r\n"),
			"a form with no part":        "x",
			"a form with much before it": "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n" + strings.Repeat("x", 16<<20+64<<10) + "\r\n" + form,
		} {
			if got := s.call("POST", "/api/files", a.Key, body, "Content-Type", "multipart/form-data; boundary=b"); got.status != 400 && got.status != 413 && got.status != 422 {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
		got := s.call("GET", "/api/files/"+f.ID+"/content", a.Key, "")
		if h := got.header; got.body != photo || h.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") || h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%d %q %v", got.status, got.body, h)
		}
		for body, want := range map[string]string{"<svg/>": "file.unknown", "GIF89a": "file.convert", "": "file.empty", photo[:60]: "file.damaged"} {
			if got := s.call("POST", "/api/files", a.Key, body, "Content-Type", "image/jpeg"); got.status != 422 || !strings.Contains(got.body, "body.file") {
				t.Errorf("%s: %d %s", want, got.status, got.body)
			}
		}
		if got := s.call("POST", "/api/files", a.Key, strings.Repeat("x", 16<<20+1)); got.status != 413 {
			t.Errorf("a large file: %d %s", got.status, got.body)
		}

		var sent struct{ ID []json.Number }
		s.must(&sent, "POST", "/api/messages", a.Key, `{"phone":"+393331234567","text":"Ecco","media":"`+f.Media+`"}`)
		if got := s.call("GET", fmt.Sprintf("/api/messages/details?message_ids[]=%s", sent.ID[0]), a.Key, ""); !strings.Contains(got.body, `"media_url":"`+f.Media+`"`) || !strings.Contains(got.body, `"nome_media":"due.png.jpg"`) {
			t.Errorf("the message: %s", got.body)
		}
		s.must(nil, "POST", "/api/templates", a.Key, `{"name":"foto","media":"`+f.Media+`"}`)
		s.must(nil, "POST", "/api/campaigns", a.Key, `{"name":"foto","content":{"text":"x","media":"`+f.Media+`"},"recipients":[{"phone":"+393331234567"}]}`)
		s.newSequence(a.Key, strings.Replace(stepNow, `"text":`, `"media":"`+f.Media+`","text":`, 1))
		s.must(nil, "POST", "/api/automations", a.Key, `{"name":"foto","trigger":{"kind":"hook","map":{"phone":"phone"}},"actions":[{"kind":"send","media":"`+f.Media+`"}]}`)

		for name, media := range map[string]string{"another client's": f.Media, "a missing one": "file:" + strings.Repeat("z", 26) + ".jpg", "no id": "file:x"} {
			for path, body := range map[string]string{
				"/api/messages":  `{"phone":"+393331234567","media":"` + media + `"}`,
				"/api/templates": `{"name":"loro","media":"` + media + `"}`,
				"/api/campaigns": `{"name":"loro","content":{"media":"` + media + `"},"recipients":[{"phone":"+393331234567"}]}`,
				"/api/sequences": `{"name":"loro","steps":[` + strings.Replace(stepNow, `"text":`, `"media":"`+media+`","text":`, 1) + `]}`,
			} {
				if got := s.call("POST", path, other.Key, body); got.status != 422 || !strings.Contains(got.body, "media") {
					t.Errorf("%s at %s: %d %s", name, path, got.status, got.body)
				}
			}
		}
		valued := s.newSequence(a.Key, strings.Replace(stepNow, `"text":`, `"media":"{{foto}}","text":`, 1))
		for value, status := range map[string]int{f.Media: 200, "file:" + strings.Repeat("z", 26) + ".jpg": 422} {
			if got := s.call("POST", fmt.Sprint("/api/start/", valued), a.Key, `{"phone":"+393331234567","foto":"`+value+`"}`); got.status != status || status == 422 && !strings.Contains(got.body, "body.foto") {
				t.Errorf("a value that names %s: %d %s", value, got.status, got.body)
			}
		}
		var booked struct{ ID json.Number }
		s.must(&booked, "POST", "/api/sequences", a.Key, strings.Replace(visit, `"text":`, `"media":"{{foto}}","text":`, 1))
		for value, status := range map[string]int{f.Media: 200, "file:" + strings.Repeat("z", 26) + ".jpg": 422} {
			body := fmt.Sprintf(`{"sequence":"%v","phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30","foto":"%s"}`, booked.ID, value)
			if got := s.call("PUT", "/api/bookings/con-foto", a.Key, body); got.status != status || status == 422 && !strings.Contains(got.body, "body.foto") {
				t.Errorf("a booking's value that names %s: %d %s", value, got.status, got.body)
			}
		}
		if got := s.call("DELETE", "/api/files/"+f.ID, a.Key, ""); got.status != 409 {
			t.Errorf("a file in use was deleted: %d %s", got.status, got.body)
		}
		var unused file
		s.must(&unused, "POST", "/api/files", a.Key, "Ciao")
		s.must(nil, "DELETE", "/api/files/"+unused.ID, a.Key, "")
		if got := s.call("GET", "/api/files/"+unused.ID, a.Key, ""); got.status != 404 {
			t.Errorf("a deleted file: %d", got.status)
		}
	})
}
