package sendapp

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"rsc.io/qr"
)

// TestCodePictures reads codes as gateways draw them: of several sizes, with and without a frame, as PNG and JPEG.
func TestCodePictures(t *testing.T) {
	secret := strings.Repeat("kT9/xW3bQ7+Zr5MvUe1LpA8sDyHcJfGnKt2oIiRaXuE=,", 4)
	for _, text := range []string{"2@" + secret, "https://wa.me/settings/linked_devices#2@" + secret, "1@kT9"} {
		for level := range qr.H + 1 {
			code, err := qr.Encode(text, level)
			if err != nil {
				t.Fatal(err)
			}
			for _, module := range []int{1, 2, 4, 8} { // pixels
				for _, frame := range []int{0, 1, 4} { // modules
					size := (code.Size + 2*frame) * module
					drawn := image.NewGray(image.Rect(0, 0, size, size))
					for i := range drawn.Pix {
						if !code.Black(i%size/module-frame, i/size/module-frame) {
							drawn.Pix[i] = 0xFF
						}
					}
					for kind, encode := range map[string]func(*bytes.Buffer) error{
						"png":  func(to *bytes.Buffer) error { return png.Encode(to, drawn) },
						"jpeg": func(to *bytes.Buffer) error { return jpeg.Encode(to, drawn, nil) },
					} {
						if kind == "jpeg" && module == 1 {
							continue // JPEG blurs modules of one pixel
						}
						var file bytes.Buffer
						if err := encode(&file); err != nil {
							t.Fatal(err)
						}
						got, err := readCode(fmt.Sprintf("data:image/%s;base64,%s", kind, base64.StdEncoding.EncodeToString(file.Bytes())))
						if err != nil || got != text {
							t.Errorf("%s, level %d, modules of %d pixels, frame of %d: %.20q, %v", kind, level, module, frame, got, err)
						}
					}
				}
			}
		}
	}
}
