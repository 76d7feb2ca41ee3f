package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/file"
	"puntuale/internal/plan"
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

// noise returns a picture of more than 5 MB, which no format makes small.
func noise(t *testing.T) string {
	t.Helper()
	p, r := image.NewNRGBA(image.Rect(0, 0, 1350, 1350)), rand.New(rand.NewPCG(1, 2))
	for i := range p.Pix {
		p.Pix[i] = byte(r.Uint32()) | byte(i&3/3*255) // opaque
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&out, p); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// kept stores a sticker as one that a person sent.
func (s *service) kept(a clientAccount) puntuale.FileID {
	s.t.Helper()
	client, _ := idsOf(s.t, a, a.Session)
	tenant, content := s.store.Tenant(client), []byte("RIFF----WEBPVP8 ")
	sum := sha256.Sum256(content)
	f := puntuale.File{ID: puntuale.FileID(strings.Repeat("s", 26) + ".webp"), Name: "sticker.webp", Type: file.Sticker, Hash: sum[:], Size: int64(len(content)), Created: s.clock.Now()}
	_, err := tenant.CreateFile(s.t.Context(), f)
	if err == nil {
		err = tenant.AddFilePart(s.t.Context(), f.ID, 0, content)
	}
	if err == nil {
		f, err = tenant.FinishFile(s.t.Context(), f)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return f.ID
}

// TestNetworksRefuseFiles: what the network of a number refuses is refused at every door where a message gets a file, if the
// number is known there, with the network's limit. The same doors take a file that the network takes.
func TestNetworksRefuseFiles(t *testing.T) {
	t.Parallel()
	databases(t, options{media: append(slices.Clone(plan.DefaultMediaExtensions), "webp")}, func(t *testing.T, s *service) {
		a := s.newAccount("limits@x", "full")
		client, _ := idsOf(t, a, a.Session)
		of, err := s.control.OfNetwork(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		upload := func(name, content string) string {
			var f struct{ Media string }
			s.must(&f, "POST", "/api/files?name="+name, a.Key, content)
			return f.Media
		}
		photo, err := base64.StdEncoding.DecodeString(smallPhoto)
		if err != nil {
			t.Fatal(err)
		}
		small, large, sticker := upload("foto.jpg", string(photo)+"\xff\xd9"), upload("grande.png", noise(t)), "file:"+string(s.kept(a))
		var gateway, linked struct{ ID string }
		s.must(&gateway, "POST", "/api/sessions", a.Key, `{"name":"Gateway","connection_type":"Send_app","sandbox":false,"gateway":{"access_token":"t"}}`)
		s.must(&linked, "POST", "/api/sessions", a.Key, `{"name":"Telefono","connection_type":"Socket","sandbox":false}`)
		official := s.officialSession(a.Key)
		made := 0

		// sent is a file, the number that shall send it, the name of a booking with it, and the template that has it.
		type sent struct{ session, media, name, template string }
		call := func(method, path, body string) string {
			r := s.call(method, path, a.Key, body)
			if r.status < 300 {
				return ""
			}
			return fmt.Sprint(r.status, " ", r.body)
		}
		sequence := func(f sent, body string) string {
			var q struct{ ID string }
			s.must(&q, "POST", "/api/sequences", a.Key, strings.Replace(strings.Replace(body, `"text":`, `"media":"{{foto}}","text":`, 1), "{", `{"id_sessione":"`+f.session+`",`, 1))
			return q.ID
		}
		rule := func(trigger, conditions, content string) string {
			return call("POST", "/api/automations", `{"name":"r","trigger":`+trigger+`,"conditions":`+conditions+`,"actions":[{"kind":"send",`+content+`}]}`)
		}
		const hook = `{"kind":"hook","map":{"phone":"phone"}}`
		byDefault := func(session string) {
			for _, change := range []string{"0 where client_id = $1", "1 where client_id = $1 and id = " + session} {
				if _, err := s.db.SQL.Exec("update session set is_default = "+change, int64(client)); err != nil {
					t.Fatal(err)
				}
			}
		}
		content := func(f sent) string { return `"text":"x","media":"` + f.media + `"` }
		step := func(content string) string {
			return `{` + content + `,"timing":{"anchor":"start","offset":{"amount":0}}}`
		}
		doors := map[string]func(f sent) string{
			"a sequence": func(f sent) string {
				return call("POST", "/api/sequences", `{"name":"s","id_sessione":"`+f.session+`","steps":[`+step(content(f))+`]}`)
			},
			"a sequence with a template": func(f sent) string {
				return call("POST", "/api/sequences", `{"name":"s","id_sessione":"`+f.session+`","steps":[`+step(`"template":"`+f.template+`"`)+`]}`)
			},
			"a message": func(f sent) string {
				return call("POST", "/api/messages", `{"phone":"+393331234567","id_sessione":"`+f.session+`",`+content(f)+`}`)
			},
			"a start": func(f sent) string {
				return call("POST", "/api/start/"+sequence(f, `{"name":"s","steps":[`+stepNow+`]}`), `{"phone":"+393331234567","foto":"`+f.media+`"}`)
			},
			"a booking": func(f sent) string {
				return call("PUT", "/api/bookings/"+f.name, fmt.Sprintf(`{"sequence":"%s","phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30","foto":"%s"}`, sequence(f, visit), f.media))
			},
			"a campaign": func(f sent) string {
				return call("POST", "/api/campaigns", `{"name":"c","id_sessione":"`+f.session+`","content":{`+content(f)+`}}`)
			},
			"the check of a campaign": func(f sent) string {
				var c struct{ ID string }
				s.must(&c, "POST", "/api/campaigns", a.Key, `{"name":"c","sequence":`+sequence(f, `{"name":"s","steps":[`+stepNow+`]}`)+`,"recipients":[{"phone":"+393331234567","foto":"`+f.media+`"}]}`)
				s.must(nil, "POST", "/api/campaigns/"+c.ID+"/check", a.Key, "")
				if refused := s.must(nil, "GET", "/api/campaigns/"+c.ID+"/refused", a.Key, "").body; strings.Contains(refused, "bad_field") {
					return "422 " + refused
				}
				return ""
			},
			"a dry run in the editor": func(f sent) string {
				run, err := of.Rehearse(t.Context(), control.RehearsalCall{Fields: map[string]string{"foto": f.media}, Sequence: control.NewSequence{
					Name: "s", Session: f.session, Steps: []puntuale.Step{{Text: "x", Media: "{{foto}}", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}},
				}})
				if err != nil {
					t.Fatal(err)
				}
				for _, fault := range run.Faults {
					return "422 " + fault.Location + " " + catalogue.Message(puntuale.Because(fault.Code, fault.Args...))
				}
				return ""
			},
			"a dry run with the default number": func(f sent) string {
				byDefault(f.session)
				run, err := of.Rehearse(t.Context(), control.RehearsalCall{Sequence: control.NewSequence{
					Name: "s", Steps: []puntuale.Step{{Text: "x", Media: f.media, Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}},
				}})
				if err != nil {
					t.Fatal(err)
				}
				for _, fault := range run.Faults {
					return "422 " + fault.Location + " " + catalogue.Message(puntuale.Because(fault.Code, fault.Args...))
				}
				return ""
			},
			"a rule for replies to the number": func(f sent) string {
				return rule(`{"kind":"reply","words":["foto"]}`, `{"id_sessione":"`+f.session+`"}`, content(f))
			},
			"a rule with a template": func(f sent) string {
				return rule(`{"kind":"reply","words":["foto"]}`, `{"id_sessione":"`+f.session+`"}`, `"template":"`+f.template+`"`)
			},
			"a rule of a hook": func(f sent) string {
				byDefault(f.session)
				return rule(hook, `{}`, content(f))
			},
		}
		for _, row := range []struct{ what, session, media, says string }{
			{"a small photo at Meta", official, small, ""},
			{"a large photo at Meta", official, large, "5 MB"},
			{"a large photo on a linked phone", linked.ID, large, ""},
			{"a photo at a gateway without an address", gateway.ID, small, "public-url"},
			{"a sticker at Meta", official, sticker, "WebP"},
			{"a sticker on a linked phone", linked.ID, sticker, "WebP"},
		} {
			made++
			f := sent{row.session, row.media, fmt.Sprint("n", made), "Senza"}
			if row.media != sticker { // no template takes it
				f.template = f.name
				s.must(nil, "POST", "/api/templates", a.Key, `{"name":"`+f.name+`",`+content(f)+`}`)
			}
			for door, enter := range doors {
				if row.media == sticker && strings.Contains(door, "template") {
					continue
				}
				if got := enter(f); (got == "") != (row.says == "") || !strings.Contains(got, row.says) || got != "" && !strings.HasPrefix(got, "422") {
					t.Errorf("%s, %s: %s", row.what, door, got)
				}
			}
		}
		for media, says := range map[string]string{small: "", large: "5 MB", sticker: "WebP"} {
			if got := call("POST", "/api/templates", `{"name":"meta`+media[5:8]+`",`+content(sent{media: media})+`,"official":{"name":"promo","language":"it"}}`); (got == "") != (says == "") || !strings.Contains(got, says) {
				t.Errorf("a template of Meta with %s: %s", media, got)
			}
		}
	})
}
