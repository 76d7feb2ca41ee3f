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

// TestRecipientName checks, among other cases, that the name of a single send does not count as the recipient's name.
func TestRecipientName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		origin     puntuale.Origin
		call, want string
	}{
		{puntuale.OriginSequence, `{"nome":" Lucia  Neri ","name":"x"}`, "Lucia Neri"},
		{puntuale.OriginSequence, `{"name":"Lucia"}`, "Lucia"},
		{puntuale.OriginSingle, `{"name":"Avviso di giugno"}`, ""},
		{puntuale.OriginSingle, `{"name":"Avviso di giugno","nome":"Lucia"}`, "Lucia"},
		{puntuale.OriginSequence, `[]`, ""},
	} {
		if got := puntuale.RecipientName(c.origin, []byte(c.call)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.origin, c.call, got, c.want)
		}
	}
}
