//go:build !nosocket

package socket

import (
	"cmp"
	"context"
	"net/url"
	"path"
	"strings"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"

	"puntuale"
)

// compose makes the message that the recipient sees.
func (n *number) compose(ctx context.Context, cli *whatsmeow.Client, e puntuale.Envelope) (*waE2E.Message, error) {
	c := e.Content
	c.Text = c.Shown() // phones do not show the buttons of a linked device reliably, so each button is a numbered line
	switch {
	case c.Official != nil:
		return nil, final(puntuale.ReasonOnlyOfficial, puntuale.Quoted("official"))
	case c.MediaURL != "":
		f, name, err := n.upload(ctx, cli, e)
		if err != nil {
			return nil, err
		}
		c.MediaName = cmp.Or(c.MediaName, name)
		return f.message(c)
	case c.Latitude != nil && c.Longitude != nil:
		return &waE2E.Message{LocationMessage: &waE2E.LocationMessage{
			DegreesLatitude: proto.Float64(*c.Latitude), DegreesLongitude: proto.Float64(*c.Longitude), Comment: optional(c.Text),
		}}, nil
	default:
		return &waE2E.Message{Conversation: proto.String(c.Text)}, nil
	}
}

// message makes a message with a file that was uploaded to the network.
func (f *file) message(c puntuale.Content) (*waE2E.Message, error) {
	up := &f.response
	switch f.kind {
	case whatsmeow.MediaImage:
		return &waE2E.Message{ImageMessage: &waE2E.ImageMessage{
			URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256,
			FileLength: &up.FileLength, Mimetype: &f.mime, Caption: optional(c.Text), JPEGThumbnail: f.thumbnail,
			Width: wholeNumber(f.width), Height: wholeNumber(f.height),
		}}, nil
	case whatsmeow.MediaVideo:
		return &waE2E.Message{VideoMessage: &waE2E.VideoMessage{
			URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256,
			FileLength: &up.FileLength, Mimetype: &f.mime, Caption: optional(c.Text),
		}}, nil
	case whatsmeow.MediaAudio:
		if c.Text != "" {
			return nil, final(puntuale.ReasonAudioAlone, puntuale.Because(puntuale.ReasonAudioUncaptioned))
		}
		return &waE2E.Message{AudioMessage: &waE2E.AudioMessage{
			URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256,
			FileLength: &up.FileLength, Mimetype: &f.mime, PTT: proto.Bool(f.voice), Seconds: wholeNumber(f.seconds),
		}}, nil
	default:
		name := fileName(c)
		return &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{
			URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256,
			FileLength: &up.FileLength, Mimetype: &f.mime, Caption: optional(c.Text), FileName: &name, Title: &name,
		}}, nil
	}
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func wholeNumber(n int) *uint32 {
	if n <= 0 {
		return nil
	}
	return proto.Uint32(uint32(n))
}

// fileName returns the name of a document: the name that the caller gave, or else the last part of the media's address.
func fileName(c puntuale.Content) string {
	if c.MediaName != "" {
		return c.MediaName
	}
	if u, err := url.Parse(c.MediaURL); err == nil {
		if name := path.Base(u.Path); name != "." && name != "/" && strings.TrimSpace(name) != "" {
			return name
		}
	}
	return "file"
}
