package puntuale_test

import (
	"testing"

	"puntuale"
)

func TestMediaKind(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"foto.JPG": "image", "https://example.com/a.mp3/b.png?c=d.mp4": "image", "https://example.com/giro.mp4?x": "video", "voce.ogg": "audio", "nota.m4a": "audio",
		"offerta.pdf": "document", "https://example.com/scarica?file=a.mp3": "document", "": "document",
	} {
		if got := puntuale.MediaKind(name); got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
	}
}
