package session

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	_ "image/jpeg" // lets image.Decode read a logo in JPEG
	"image/png"
	"math"
	"puntuale/internal/web/page"
	"slices"
)

// iconSizes are the sizes of the app's icon, in pixels. Browsers offer to install the app only if both sizes exist.
var iconSizes = []int{192, 512}

func isIconSize(size int) bool { return slices.Contains(iconSizes, size) }

// iconMemory returns the most memory, in bytes, that drawing an icon needs.
func iconMemory(logo []byte, size int) int64 {
	config, _, err := image.DecodeConfig(bytes.NewReader(logo))
	if err != nil {
		config = image.Config{}
	}
	return int64(config.Width)*int64(config.Height)*8 + int64(size)*int64(size)*8
}

// drawIcon returns an icon as PNG: a partner's logo on white, or a clock on the partner's colour. The picture stays
// within the middle four fifths, because phones cut icons to circles.
func drawIcon(size int, colour string, logo []byte) []byte {
	icon := image.NewNRGBA(image.Rect(0, 0, size, size))
	picture, _, err := image.Decode(bytes.NewReader(logo))
	if err == nil && !picture.Bounds().Empty() {
		drawLogo(icon, picture)
	} else {
		drawClock(icon, page.ParseColour(cmp.Or(colour, "#0b6e63")))
	}
	var b bytes.Buffer
	_ = png.Encode(&b, icon) // writing to memory cannot fail
	return b.Bytes()
}

// drawLogo draws a picture in the middle of the icon on white, as large as possible. Each pixel of the icon has the
// mean colour of the picture's pixels that it covers.
func drawLogo(icon *image.NRGBA, picture image.Image) {
	side, from := icon.Rect.Dx(), picture.Bounds()
	scale := 0.66 * float64(side) / float64(max(from.Dx(), from.Dy())) // the diagonal of a square logo stays within the circle
	left, top := (float64(side)-float64(from.Dx())*scale)/2, (float64(side)-float64(from.Dy())*scale)/2
	for y := range side {
		for x := range side {
			icon.Set(x, y, mean(picture, (float64(x)-left)/scale, (float64(y)-top)/scale, 1/scale))
		}
	}
}

// mean returns the mean colour of a square of the picture, on white. The square begins at x and y. It contains at least
// one pixel.
func mean(picture image.Image, x, y, side float64) color.Color {
	from := picture.Bounds()
	var r, g, b, n float64
	for v := int(math.Floor(y)); v == int(math.Floor(y)) || float64(v) < y+side; v++ {
		for u := int(math.Floor(x)); u == int(math.Floor(x)) || float64(u) < x+side; u++ {
			n++
			at := image.Pt(from.Min.X+u, from.Min.Y+v)
			if !at.In(from) {
				r, g, b = r+0xffff, g+0xffff, b+0xffff
				continue
			}
			pr, pg, pb, pa := picture.At(at.X, at.Y).RGBA()
			r, g, b = r+float64(pr+0xffff-pa), g+float64(pg+0xffff-pa), b+float64(pb+0xffff-pa)
		}
	}
	return color.NRGBA64{uint16(r / n), uint16(g / n), uint16(b / n), 0xffff}
}

// drawClock draws the product's symbol, a ring and two hands. Its colour is the one with the best contrast to the
// background.
func drawClock(icon *image.NRGBA, ground page.RGB) {
	ink, side := page.ParseColour(page.InkOn(ground.String())), float64(icon.Rect.Dx())
	const thick = 0.03 // half of the width of a stroke, as a fraction of the icon's side
	for y := range icon.Rect.Dy() {
		for x := range icon.Rect.Dx() {
			px, py := (float64(x)+0.5)/side-0.5, (float64(y)+0.5)/side-0.5
			away := math.Abs(math.Hypot(px, py) - 0.27)
			away = min(away, toLine(px, py, 0, -0.16), toLine(px, py, 0.11, 0.08))
			share := max(0, min(1, (thick-away)*side+0.5)) // the edge of a stroke is blurred over one pixel
			var c [3]uint8
			for i := range c {
				c[i] = uint8(math.Round(255 * (ground[i] + (ink[i]-ground[i])*share)))
			}
			icon.SetNRGBA(x, y, color.NRGBA{c[0], c[1], c[2], 255})
		}
	}
}

// toLine returns the distance of a point from the line between the middle and an end point.
func toLine(x, y, endX, endY float64) float64 {
	fraction := max(0, min(1, (x*endX+y*endY)/(endX*endX+endY*endY)))
	return math.Hypot(x-fraction*endX, y-fraction*endY)
}
