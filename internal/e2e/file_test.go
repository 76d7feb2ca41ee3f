//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/connector/sendapp/gatewaytest"
)

// TestFilesReachNetworks: Meta gets an uploaded photo once, and then its id in each message. A gateway gets an address at
// which it reads the same bytes, until the file is deleted.
func TestFilesReachNetworks(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		number, gateway := graphtest.NewNumber("101"), gatewaytest.New(t)
		meta := graphtest.New(t, number)
		instance := gateway.Linked(gatewayNumber)
		s := prepare(t, database, "--official-api-url", meta.URL, "--official-rate", "1000", "--gateway-allow", "127.0.0.0/8")
		s.args = append(s.args, "--public-url", s.base)
		s.start()
		who := createTenant(t, s.base, createPartner(t, database), "full", step("ciao", 0, "seconds"))

		var picture bytes.Buffer
		if err := jpeg.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 1500, 1500)), nil); err != nil {
			t.Fatal(err)
		}
		f := uploadFile(t, s.base+"/api/files?name=vetrina.jpg", who.key, picture.Bytes())

		var official, byGateway struct {
			ID, State string
			Webhook   string `json:"webhook_path"`
		}
		must(t, "POST", s.base+"/api/sessions", who.key, map[string]any{
			"name": "ufficiale", "connection_type": "Official", "sandbox": false, "official": json.RawMessage(number.Keys())}).into(t, &official)
		must(t, "POST", s.base+"/api/sessions", who.key, map[string]any{
			"name": "gateway", "connection_type": "Send_app", "sandbox": false, "pace": map[string]any{"per_minute": 0, "jitter": 0},
			"gateway": map[string]any{"base_url": gateway.URL, "access_token": gatewaytest.Token, "instance_id": instance}}).into(t, &byGateway)
		for _, id := range []string{official.ID, byGateway.ID} {
			eventually(t, 30*time.Second, "the number is online", func() bool {
				var session struct{ State string }
				must(t, "GET", s.base+"/api/sessions/"+id, who.key, nil).into(t, &session)
				return session.State == "online"
			})
		}
		for i := range 3 {
			phone := fmt.Sprintf("+39347000000%d", i)
			if status := meta.Deliver(s.base+official.Webhook, number.ID, meta.Wrote(number.ID, phone, time.Now())); status != http.StatusOK {
				t.Fatalf("the webhook answered %d", status)
			}
			must(t, "POST", s.base+"/api/messages", who.key, map[string]any{"phone": phone, "text": "Ecco", "media": f.Media, "id_sessione": official.ID})
			must(t, "POST", s.base+"/api/messages", who.key, map[string]any{"phone": phone, "text": "Ecco", "media": f.Media, "id_sessione": byGateway.ID})
		}
		eventually(t, time.Minute, "all messages arrived", func() bool { return len(meta.Taken()) == 3 && len(gateway.Sent()) == 3 })

		if n := meta.Uploads(); n != 1 {
			t.Errorf("Meta got the file %d times", n)
		}
		for _, m := range meta.Taken() {
			if m.Message.Image == nil {
				t.Fatalf("Meta got %+v", m.Message)
			}
			if got := meta.File(m.Message.Image.ID); got.Type != "image/jpeg" || !bytes.Equal(got.Data, picture.Bytes()) {
				t.Errorf("Meta got %d bytes, %s", len(got.Data), got.Type)
			}
		}
		for _, m := range gateway.Sent() {
			address, err := url.Parse(m.Media)
			if err != nil || !strings.HasPrefix(m.Media, s.base+"/f/") || m.Filename != "vetrina.jpg" {
				t.Fatalf("the gateway got %+v", m)
			}
			status, body := fetchFile(t, address.String())
			if status != http.StatusOK || !bytes.Equal(body, picture.Bytes()) {
				t.Errorf("the gateway reads %d, %d bytes", status, len(body))
			}
			if status, _ := fetchFile(t, strings.Replace(m.Media, f.ID, strings.Repeat("a", 26)+".jpg", 1)); status != http.StatusNotFound {
				t.Errorf("another file at this address: %d", status)
			}
		}
	})
}

type uploadedFile struct{ ID, Media string }

func uploadFile(t *testing.T, address, key string, content []byte) (f uploadedFile) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&f); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%d: %v", answer.StatusCode, err)
	}
	return f
}

func fetchFile(t *testing.T, address string) (status int, body []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Range", "bytes=0-0,2-2,4-4") // is ignored
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, body
}
