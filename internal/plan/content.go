package plan

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"puntuale"
)

// DefaultMediaExtensions contains the file name extensions of media that may be sent.
var DefaultMediaExtensions = []string{"jpg", "jpeg", "png", "mp4", "3gp", "mp3", "ogg", "aac", "amr", "m4a",
	"pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "txt"}

// Codes of the faults in this file.
const (
	faultSequenceExtensionNotAllowed puntuale.ReasonCode = "sequence.extension_not_allowed"
	faultSequenceMediaAddress        puntuale.ReasonCode = "sequence.media_address"
	faultSequenceNoExtension         puntuale.ReasonCode = "sequence.no_extension"
	faultSequenceNothingLeft         puntuale.ReasonCode = "sequence.nothing_left"
)

// content renders the content of a step, and records faults. After a fault, the result must not be used.
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
	c.Official = b.approved(i, step.Official, step.Values, &t)
	if len(step.Buttons) > 0 {
		c.Asks = &puntuale.ButtonSet{Buttons: b.choices(i, step, &t), Line: step.ButtonLine}
	}
	if step.Interactive != nil {
		c.Interactive = b.interactive(i, step, &t)
	}
	b.checkText(i, step, &c, textGood && mediaGood)
	return c
}

// checkText records the faults of a rendered text, and of what cannot stand under it.
func (b *builder) checkText(i int, step *puntuale.Step, c *puntuale.Content, good bool) {
	limit := textLimit(c.MediaURL != "", step, c.Interactive)
	switch {
	case !good:
	case tooLong(c.Text, limit):
		b.stepFault(i, "text", puntuale.FaultLongerThanCharacters, strconv.Itoa(limit))
	case c.Text == "" && c.MediaURL == "" && c.Latitude == nil:
		b.stepFault(i, "", faultSequenceNothingLeft)
	case c.Text == "" && c.Asks != nil:
		b.stepFault(i, "buttons", faultButtonsWithoutText)
	case c.Latitude != nil && c.Asks != nil:
		b.stepFault(i, "buttons", faultButtonsWithLocation)
	case c.Interactive == nil:
	case c.Text == "":
		b.stepFault(i, "interactive", faultInteractiveWithoutText)
	case c.Latitude != nil:
		b.stepFault(i, "interactive", faultInteractiveWithLocation)
	case c.MediaURL != "" && c.Interactive.Link == nil:
		b.stepFault(i, "interactive", faultInteractiveWithMedia)
	}
}

// checkMedia records the fault of a rendered address or file name, if there is one. If the whole text is a single
// field, the fault is at this field.
func (b *builder) checkMedia(i int, step *puntuale.Step, c *puntuale.Content) {
	fault := mediaFault(c.MediaURL, c.MediaName, b.media)
	if fault.IsZero() {
		fault = b.checkUploaded(c)
	}
	if !fault.IsZero() {
		if name := sole(step.Media); name != "" && name != fieldPhone && b.field(name).state == fieldGood {
			b.fieldFault(b.field(name), fault, clip(c.MediaURL))
		} else {
			b.stepReason(i, "media", fault)
		}
	}
	if tooLong(c.MediaName, puntuale.MaxMediaName) {
		b.stepFault(i, "media_name", puntuale.FaultLongerThanCharacters, strconv.Itoa(puntuale.MaxMediaName))
	}
}

// checkUploaded returns why an uploaded file cannot be sent, or zero. The content gets the file's name, unless it has one.
func (b *builder) checkUploaded(c *puntuale.Content) puntuale.Reason {
	id, named := puntuale.UploadedFile(c.MediaURL)
	if !named || b.in.Files == nil {
		return puntuale.Reason{}
	}
	f, there := b.in.Files[id]
	if !there {
		return puntuale.Because(puntuale.FaultFileGone)
	}
	c.MediaName = cmp.Or(c.MediaName, f.Name)
	return f.Refused
}

// textLimit returns how many characters the text of a message may have. x is the interactive part, as far as it is known.
func textLimit(withMedia bool, step *puntuale.Step, x *puntuale.Interactive) int {
	switch {
	case x != nil:
		return interactiveLimit(withMedia, x)
	case len(step.Buttons) > 0:
		return max(0, puntuale.MaxAsking-puntuale.AnswerLength(step.Buttons, step.ButtonLine))
	case withMedia:
		return puntuale.MaxCaption
	}
	return puntuale.MaxText
}

// mediaFault returns the fault of a media file's address or name, or the zero value.
func mediaFault(address, name string, extensions []string) puntuale.Reason {
	if tooLong(address, puntuale.MaxURL) {
		return puntuale.Because(puntuale.FaultLongerThanCharacters, strconv.Itoa(puntuale.MaxURL))
	}
	if id, named := puntuale.UploadedFile(address); named {
		switch extension := extensionOf(string(id)); {
		case id == "":
			return puntuale.Because(faultSequenceMediaAddress)
		case !slices.Contains(extensions, extension):
			return puntuale.Because(faultSequenceExtensionNotAllowed, clip(extension), strings.Join(extensions, " "))
		}
		return puntuale.Reason{}
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || !puntuale.IsPort(u.Port()) {
		return puntuale.Because(faultSequenceMediaAddress)
	}
	extension := extensionOf(u.Path)
	if extension == "" {
		extension = extensionOf(name)
	}
	if extension == "" {
		return puntuale.Because(faultSequenceNoExtension, strings.Join(extensions, " "))
	}
	if !slices.Contains(extensions, extension) {
		return puntuale.Because(faultSequenceExtensionNotAllowed, clip(extension), strings.Join(extensions, " "))
	}
	return puntuale.Reason{}
}

func extensionOf(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
}
