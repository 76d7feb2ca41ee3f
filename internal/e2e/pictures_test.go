//go:build e2e && pictures

package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// maxBytes is the largest size of a picture in docs/images, in bytes.
const maxBytes = 150 << 10

// patients are the people in the pictures. Their numbers belong to no real person.
var patients = []string{"Anna Ferrari", "Luca Moretti", "Giulia Conti", "Marco Ricci", "Sara Gallo", "Paolo Greco", "Elena Marini", "Davide Costa",
	"Chiara Fontana", "Matteo Villa", "Francesca Leone", "Andrea Serra", "Martina Longo", "Stefano Riva", "Laura Bassi", "Simone Ferri"}

func patientPhone(i int) string { return fmt.Sprintf("+39333%07d", 4120300+i*137) }

// TestPictures makes the pictures of docs/images ("make pictures"). It fills a sandbox server with the data of a
// dentist's day. Then it opens the pages in Chromium, in English. All pictures are 1280 pixels wide, except one, which
// is 390 pixels wide.
func TestPictures(t *testing.T) {
	folder := os.Getenv("PUNTUALE_PICTURES")
	if folder == "" {
		t.Fatal("PUNTUALE_PICTURES names no folder (make pictures does)")
	}
	database := filepath.Join(t.TempDir(), "puntuale.db")
	s := serve(t, database)
	p := newPractice(t, s.base, createPartner(t, database))
	p.fill()
	b := newBrowser(t)
	b.speak("en")
	b.do(chromedp.EmulateViewport(1280, 860))
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: "light"}, {Name: "prefers-reduced-motion", Value: "reduce"}}}); err != nil {
		t.Fatal(err)
	}
	b.visit(s.base + "/login")
	b.fill("email", p.email, "password", practicePassword)
	b.tap("form [type=submit]")
	b.waitFor(`location.pathname.startsWith("/c/") && document.readyState === "complete"`)
	pages := s.base + strings.Join(strings.SplitN(evaluate[string](b, `location.pathname`), "/", 4)[:3], "/")

	take := func(name string) {
		t.Helper()
		<-time.After(400 * time.Millisecond) // in this time fonts load, and parts of the page are refreshed
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		small := packed(t, picture)
		if len(small) > maxBytes {
			t.Errorf("%s has %d bytes, %d are allowed", name, len(small), maxBytes)
		}
		if err := os.WriteFile(filepath.Join(folder, name+".png"), small, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	b.visit(pages)
	take("today")
	b.visit(pages + "/messages")
	take("messages")
	b.visit(pages + "/sequences/" + p.reminder + "/edit")
	b.waitFor(`document.querySelector("#timeline .bubble-text")`)
	take("sequence")
	b.visit(pages + "/sequences/" + p.reminder + "/start")
	b.fill("phone", patientPhone(40), "fields.nome", "Roberta", "fields.appuntamento", p.day(9)+"T16:30")
	b.tap("[value=preview]")
	b.waitFor(`document.querySelectorAll(".timeline .bubble").length >= 3 && document.querySelector("[value=start]:enabled")`)
	take("start")
	b.do(chromedp.EmulateViewport(390, 844))
	b.visit(pages + "/phone?phone=" + strings.ReplaceAll(patientPhone(0), "+", "%2B"))
	b.waitFor(`document.querySelector(".bubble")`)
	take("phone")
	p.book()
	b.visit(pages + "/phone?phone=" + strings.ReplaceAll(patientPhone(0), "+", "%2B"))
	b.waitFor(`document.querySelector(".handset-buttons")`)
	evaluate[bool](b, `(document.querySelector(".handset").scrollIntoView(), true)`)
	take("question")
	p.answers()
	b.visit(pages + "/bookings?day=" + p.day(2))
	b.waitFor(`document.querySelectorAll(".booking").length === 12`)
	take("appointments-phone")
	b.do(chromedp.EmulateViewport(1280, 860))
	b.visit(pages + "/bookings?day=" + p.day(2))
	b.waitFor(`document.querySelectorAll(".booking").length === 12`)
	take("appointments")
	p.mass()
	b.visit(pages + "/campaigns/" + p.campaign)
	b.waitFor(`parseInt(document.querySelector("#campaign-live .stats")?.innerText.match(/\d+/)?.[0]) >= 40`)
	b.visit(pages + "/campaigns/" + p.campaign) // the list of recipients is refreshed later than the counts, so the page is loaded again
	take("campaign")
}

// packed compresses a picture, with at most 256 colours. The flat surfaces of the pages need no more colours.
func packed(t *testing.T, picture []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	bounds, counts := full.Bounds(), map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return cmp.Compare(counts[b], counts[a]) })
	var palette color.Palette
	for _, c := range colours[:min(256, len(colours))] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	small := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)
			if _, known := nearest[c]; !known {
				nearest[c] = uint8(palette.Index(c))
			}
			small.SetColorIndex(x, y, nearest[c])
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const practicePassword = "una frase lunga 42"

// practice is a dentist's account, with a realistic day.
type practice struct {
	t                  *testing.T
	base, key, email   string
	reminder, campaign string
	rome               *time.Location
}

func newPractice(t *testing.T, base, partner string) *practice {
	t.Helper()
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	p := &practice{t: t, base: base, email: "studio@example.com", rome: rome}
	var made struct {
		Key string `json:"api_key"`
	}
	must(t, "POST", base+"/api/client/create", partner, map[string]any{"name": "Studio dentistico Bianchi", "email": p.email,
		"password": practicePassword, "phone": "011 765 4321", "account_type": "baby"}).into(t, &made)
	p.key = made.Key
	return p
}

// day returns the date of the day that is the given number of days after today, in the format of an HTML date field.
func (p *practice) day(days int) string {
	return time.Now().In(p.rome).AddDate(0, 0, days).Format(time.DateOnly)
}

// sequence makes a sequence and returns its id.
func (p *practice) sequence(name string, steps ...map[string]any) string {
	p.t.Helper()
	var made struct{ ID string }
	must(p.t, "POST", p.base+"/api/sequences", p.key, map[string]any{"name": name, "steps": steps}).into(p.t, &made)
	return made.ID
}

// fill makes sequences, and starts them for the day's patients.
func (p *practice) fill() {
	p.t.Helper()
	before := func(amount int, unit, at string) map[string]any {
		timing := map[string]any{"anchor": "appuntamento", "offset": map[string]any{"amount": amount, "unit": unit, "direction": "before"}}
		if at != "" {
			timing["at"] = at
		}
		return timing
	}
	p.reminder = p.sequence("Promemoria appuntamento",
		step("Ciao {{nome}}, il tuo appuntamento è confermato per {{appuntamento:giorno}} alle {{appuntamento:ora}}. A presto!", 0, ""),
		map[string]any{"text": "{{nome}}, ti ricordiamo l'appuntamento di domani alle {{appuntamento:ora}}. Ci trovi in Via Roma 1.", "timing": before(1, "days", "18:00")},
		map[string]any{"text": "Ci vediamo fra un'ora, alle {{appuntamento:ora}}.", "timing": before(1, "hours", "")},
		map[string]any{"text": "Grazie della visita, {{nome}}! Come è andata?", "timing": map[string]any{"anchor": "appuntamento",
			"offset": map[string]any{"amount": 2, "unit": "hours", "direction": "after"}, "window": map[string]any{"from": "09:00", "to": "20:00", "holidays": "avoid"}}})
	recall := p.sequence("Richiamo igiene",
		step("Buongiorno {{nome}}, sono passati sei mesi dall'ultima igiene. Vuoi fissare un appuntamento?", 1, "days"),
		step("{{nome}}, questa settimana abbiamo ancora posto per l'igiene.", 8, "days"))
	p.sequence("Preventivo", step("Ciao {{nome}}, il tuo preventivo è pronto: ti aspettiamo in studio.", 2, "hours"))

	must(p.t, "POST", p.base+"/api/blacklist", p.key, map[string]any{"phone": patientPhone(5), "reason": "lo ha chiesto"})
	for i, name := range patients {
		first, _, _ := strings.Cut(name, " ")
		body := map[string]any{"phone": patientPhone(i), "nome": first}
		id := recall
		if i < 5 { // these patients have their appointment today
			id = p.reminder
			body["appuntamento"] = time.Now().In(p.rome).Add(time.Duration(i*35+75) * time.Minute).Truncate(15 * time.Minute).Format("2006-01-02 15:04")
		}
		must(p.t, "POST", p.base+"/api/start/"+id, p.key, body)
	}
	for _, single := range [][2]string{
		{patientPhone(12), "Ciao Martina, la fattura 118 è pronta."},
		{"+393334129901", "Ciao Bruno, il referto è pronto."}, // the sandbox refuses this number
		{patientPhone(5), "Ciao Paolo, il referto è pronto."}, // this number is in the blacklist
	} {
		must(p.t, "POST", p.base+"/api/messages", p.key, map[string]any{"phone": single[0], "text": single[1]})
	}
	eventually(p.t, 10*time.Second, "the first messages left", func() bool {
		a, err := call("GET", p.base+"/api/messages?state=FAILED", p.key, nil)
		return err == nil && strings.Contains(string(a.body), "9901")
	})
}

// book makes twelve appointments in two days, and waits until each person was asked to confirm.
func (p *practice) book() {
	p.t.Helper()
	ask := map[string]any{"text": "Ciao {{nome}}, ti aspettiamo {{appuntamento:giorno}} alle {{appuntamento:ora}}. Vieni?", "timing": map[string]any{"anchor": "start", "offset": map[string]any{"amount": 0}},
		"buttons": []any{map[string]any{"label": "Confermo", "does": "confirm"}, map[string]any{"label": "Non posso", "does": "cancel"}, map[string]any{"label": "Chiamatemi", "does": "answer"}}}
	remind := map[string]any{"text": "{{nome}}, a domani alle {{appuntamento:ora}}.", "timing": map[string]any{"anchor": "appuntamento", "at": "18:00", "offset": map[string]any{"amount": 1, "unit": "days", "direction": "before"}}}
	thank := map[string]any{"text": "Grazie, a presto!", "timing": map[string]any{"anchor": "booking.confirmed", "offset": map[string]any{"amount": 0}}}
	var made struct{ ID string }
	must(p.t, "POST", p.base+"/api/sequences", p.key, map[string]any{"name": "Visita", "booking": map[string]any{"date": "appuntamento"}, "steps": []any{ask, remind, thank}}).into(p.t, &made)
	for i, name := range patients[:12] {
		must(p.t, "PUT", fmt.Sprintf("%s/api/bookings/visita-%d", p.base, i), p.key, map[string]any{
			"sequence": made.ID, "phone": patientPhone(i), "nome": name, "appuntamento": fmt.Sprintf("%s %02d:%02d", p.day(2), 9+i/2, i%2*30)})
	}
	eventually(p.t, 10*time.Second, "everybody was asked", func() bool {
		asked := 0
		for _, m := range ledger(p.t, p.base, p.key) {
			if strings.HasSuffix(m.Text, "Vieni?") {
				asked++
			}
		}
		return asked >= 11 // one of them is on the blacklist
	})
}

// answers presses buttons of the questions.
func (p *practice) answers() {
	p.t.Helper()
	for i, label := range map[int]string{0: "Confermo", 1: "Confermo", 2: "Chiamatemi", 3: "Confermo", 6: "Non posso", 7: "Confermo", 8: "Confermo", 10: "Confermo"} {
		must(p.t, "POST", p.base+"/api/sandbox/replies", p.key, map[string]any{"phone": patientPhone(i), "button": label})
	}
}

// mass starts a campaign.
func (p *practice) mass() {
	p.t.Helper()
	recipients := make([]map[string]any, 2400)
	for i := range recipients {
		first, _, _ := strings.Cut(patients[i%len(patients)], " ")
		recipients[i] = map[string]any{"phone": fmt.Sprintf("+39347%07d", 2210400+i*61), "nome": first}
	}
	var made struct{ ID any }
	must(p.t, "POST", p.base+"/api/campaigns?start=true", p.key, map[string]any{"name": "Auguri di Natale", "purpose": "service",
		"content": map[string]any{"text": "Tanti auguri, {{nome}}, da tutto lo studio! Riapriamo il 7 gennaio."}, "pace": map[string]any{"per_minute": 600},
		"recipients": recipients}).into(p.t, &made)
	p.campaign = fmt.Sprint(made.ID)
}
