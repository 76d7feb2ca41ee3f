package page

import (
	"fmt"
	"math"
	"net/http"
	"strconv"

	"puntuale"
)

// BrandRoutes are the files of a partner's brand that a browser loads. Their addresses change with the brand, so
// browsers may store the files for ever.
var BrandRoutes = []Route{
	Get("/brand/{partner}/{mark}/style.css", Anyone, 0, sendBrandStyle),
	Get("/brand/{partner}/{mark}/logo", Anyone, 0, sendBrandLogo),
}

func BrandOf(v *Request) (puntuale.Host, error) {
	id, err := puntuale.ParseID[puntuale.PartnerID](v.Path("partner"))
	if err != nil {
		return puntuale.Host{}, ErrNoPage
	}
	h, err := v.Site.Accounts.Brand(v.Ctx(), id)
	if err == nil && h.Brand.Mark != v.Path("mark") {
		err = ErrNoPage
	}
	return h, err
}

func ServeForGood(v *Request, kind string, content []byte) error {
	if err := v.Memory.Take(int64(len(content))); err != nil {
		return err
	}
	v.Pass.LeaveSeat() // the request has no seat while the answer is sent, because the reader may be slow
	v.Answered = true
	h := v.Writer.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(content)))
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	v.Writer.WriteHeader(http.StatusOK)
	_, _ = v.Writer.Write(content) // this fails only if the reader closed the connection or reads too slowly
	return nil
}

func sendBrandStyle(v *Request) error {
	h, err := BrandOf(v)
	if err != nil {
		return err
	}
	return ServeForGood(v, "text/css; charset=utf-8", []byte(brandStyle(h.Brand.Colour)))
}

func sendBrandLogo(v *Request) error {
	h, err := BrandOf(v)
	if err != nil {
		return err
	}
	logo, kind, err := v.Site.Accounts.Logo(v.Ctx(), h.Partner.ID)
	if err == nil && logo == nil {
		err = ErrNoPage
	}
	if err != nil {
		return err
	}
	return ServeForGood(v, kind, logo)
}

// paperColour contains the backgrounds of app.css on which a partner's colour appears. These are the page, a card, and
// both of them with a light tint of the colour.
type paperColour struct {
	Page, card string
	wash       float64 // the amount of the colour in the tint, from 0 to 1
}

var (
	LightPaper = paperColour{"#f5f6f3", "#ffffff", 0.09}
	darkPaper  = paperColour{"#13181c", "#1b2227", 0.13}
)

// legible is the lowest contrast of readable text. It is a little more than the 4.5 of WCAG AA.
const legible = 4.6

// worst returns the lowest contrast between a colour and the backgrounds in p.
func (p paperColour) worst(c RGB) float64 {
	card, washed := ParseColour(p.card), RGB{}
	for i := range c {
		washed[i] = c[i]*p.wash + card[i]*(1-p.wash)
	}
	return min(contrast(c, ParseColour(p.Page)), contrast(c, card), contrast(c, washed))
}

// brandStyle returns a style sheet for a partner's colour. Text in the colour, and text on the colour, must be
// readable. So brandStyle makes the colour darker for light pages, and lighter for dark pages.
func brandStyle(colour string) string {
	light, dark := readable(colour, LightPaper, 0), readable(colour, darkPaper, 1)
	return fmt.Sprintf(":root{--brand:%s;--brand-ink:%s;--brand-dark:%s;--brand-dark-ink:%s}\n", light, InkOn(light), dark, InkOn(dark))
}

type RGB [3]float64 // red, green and blue, each from 0 to 1

func ParseColour(text string) RGB {
	n, err := strconv.ParseUint(text[min(1, len(text)):], 16, 32)
	if err != nil || len(text) != 7 {
		n = 0x0b6e63
	}
	return RGB{float64(n>>16&255) / 255, float64(n>>8&255) / 255, float64(n&255) / 255}
}

func (c RGB) String() string {
	return fmt.Sprintf("#%02x%02x%02x", int(math.Round(c[0]*255)), int(math.Round(c[1]*255)), int(math.Round(c[2]*255)))
}

// luminance returns the relative luminance that WCAG defines.
func (c RGB) luminance() float64 {
	part := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*part(c[0]) + 0.7152*part(c[1]) + 0.0722*part(c[2])
}

func contrast(a, b RGB) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// readable moves a colour towards black (target 0) or white (target 1) until text in the colour is readable on the
// backgrounds.
func readable(colour string, paper paperColour, target float64) string {
	c := ParseColour(colour)
	for range 100 {
		if paper.worst(c) >= legible {
			break
		}
		for i := range c {
			c[i] += (target - c[i]) * 0.05
		}
	}
	return c.String()
}

// InkOn returns white or almost black: the one that has more contrast to the given colour.
func InkOn(colour string) string {
	c := ParseColour(colour)
	if contrast(c, RGB{1, 1, 1}) >= contrast(c, ParseColour("#10181a")) {
		return "#ffffff"
	}
	return "#10181a"
}
