package plan

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"puntuale"
)

// DefaultMediaExtensions are the media files that may be sent, by the extension of their name.
var DefaultMediaExtensions = []string{"jpg", "jpeg", "png", "mp4", "3gp", "mp3", "ogg", "aac", "amr", "m4a",
	"pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "txt"}

// content renders the content of a step. It records faults, and with a fault the result is invalid.
func (b *builder) content(i int, step *puntuale.Step) puntuale.Content {
	t := timing{Timing: &step.Timing}
	c := puntuale.Content{Latitude: step.Latitude, Longitude: step.Longitude, Template: step.Template, Resend: step.OnUncertain == puntuale.UncertainResend}
	text, textGood := b.render(i, "text", step.Text, &t)
	if !isBlank(text) {
		c.Text = text
	}
	media, mediaGood := b.render(i, "media", step.Media, &t)
	if c.MediaURL = strings.TrimSpace(media); c.MediaURL != "" {
		name, nameGood := b.render(i, "media_name", step.MediaName, &t)
		c.MediaName = strings.TrimSpace(name)
		mediaGood = mediaGood && nameGood
	}
	if mediaGood && c.MediaURL != "" {
		b.checkMedia(i, step, &c)
	}
	c.Official = b.approved(i, step.Official, &t)
	limit := textLimit(c.MediaURL != "")
	switch {
	case !textGood || !mediaGood:
	case tooLong(c.Text, limit):
		b.stepFault(i, "text", tooLongText(limit))
	case c.Text == "" && c.MediaURL == "" && c.Latitude == nil:
		b.stepFault(i, "", "nothing is left to show: text and media are empty")
	}
	return c
}

// checkMedia records what is wrong with a rendered address or file name, with the field that alone made it.
func (b *builder) checkMedia(i int, step *puntuale.Step, c *puntuale.Content) {
	if message := mediaFault(c.MediaURL, c.MediaName, b.media); message != "" {
		if name := sole(step.Media); name != "" && name != fieldPhone && b.field(name).state == fieldGood {
			b.fieldFault(b.field(name), message, clip(c.MediaURL))
		} else {
			b.stepFault(i, "media", message)
		}
	}
	if tooLong(c.MediaName, puntuale.MaxMediaName) {
		b.stepFault(i, "media_name", tooLongText(puntuale.MaxMediaName))
	}
}

// textLimit is the most characters a message's text may have.
func textLimit(withMedia bool) int {
	if withMedia {
		return puntuale.MaxCaption
	}
	return puntuale.MaxText
}

// mediaFault returns what is wrong with a media file's address, "" when nothing is.
func mediaFault(address, name string, extensions []string) string {
	if tooLong(address, puntuale.MaxURL) {
		return tooLongText(puntuale.MaxURL)
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "must be an address that begins with http:// or https://"
	}
	extension := extensionOf(u.Path)
	if extension == "" {
		extension = extensionOf(name)
	}
	if extension == "" {
		return "neither the address nor media_name has a file name extension; allowed: " + strings.Join(extensions, " ")
	}
	if !slices.Contains(extensions, extension) {
		return "the extension " + clip(extension) + " is not allowed; allowed: " + strings.Join(extensions, " ")
	}
	return ""
}

func extensionOf(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
}
