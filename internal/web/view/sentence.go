package view

import (
	"context"
	"net/url"
	"path"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/web/language"
)

// reasons are the reasons for which pages have their own texts, with advice. The catalogue contains the texts of all
// other reasons.
var reasons = map[puntuale.ReasonCode]string{
	puntuale.ReasonExpired:       "expired",
	puntuale.ReasonNotLinked:     "not_linked",
	puntuale.ReasonNoCredit:      "no_credit",
	puntuale.ReasonAccountEnded:  "account_ended",
	puntuale.ReasonSuspended:     "suspended",
	puntuale.ReasonHeld:          "held",
	puntuale.ReasonUncertain:     "uncertain",
	puntuale.ReasonUnrecoverable: "unrecoverable",
	puntuale.ReasonBlacklisted:   "blacklisted",
	puntuale.ReasonNoConsent:     "no_consent",
	puntuale.ReasonNumberChanged: "number_changed",
	puntuale.ReasonFailed:        "failed",
	puntuale.ReasonPending:       "pending",
	puntuale.ReasonCompleted:     "completed",
	puntuale.ReasonCancelled:     "cancelled",
	puntuale.ReasonRescheduled:   "rescheduled",
	puntuale.ReasonInterrupted:   "interrupted",
	puntuale.ReasonUnreachable:   "unreachable",
	"sandbox.refused":            "sandbox_refused",
	"sandbox.down":               "sandbox_down",
	"official.too_often":         "too_many",
	"socket.cold_limited":        "cold",
	"socket.cold_pace":           "cold",
	"socket.slow_down":           "slow_down",
}

// Reason returns the reason for a message's state as a sentence in the reader's language.
func Reason(ctx context.Context, reason puntuale.Reason) string {
	if key, ok := reasons[reason.Code]; ok {
		return T(ctx, "reason."+key)
	}
	return Says(ctx, reason)
}

// Remedy returns advice about a failure.
func Remedy(ctx context.Context, reason puntuale.Reason) string {
	switch key := reasons[reason.Code]; key {
	case "expired", "not_linked", "no_credit", "account_ended", "suspended", "uncertain", "blacklisted", "no_consent", "number_changed", "sandbox_refused":
		return T(ctx, "remedy."+key)
	}
	return T(ctx, "remedy.any")
}

// Summary returns a message's content in one line.
func Summary(ctx context.Context, m puntuale.MessageDetail) string {
	switch c := m.Content; {
	case m.Blanked:
		return T(ctx, "message.blanked")
	case strings.TrimSpace(c.Text) != "":
		text := strings.Join(strings.Fields(c.Text), " ")
		if runes := []rune(text); len(runes) > 140 {
			return string(runes[:139]) + "…"
		}
		return text
	case c.MediaURL != "":
		return shownMedia(c)
	case c.Latitude != nil:
		return T(ctx, "message.location")
	case c.Template != "":
		return T(ctx, "message.template", "Name", c.Template)
	}
	return "–"
}

// ShownPhone formats a recipient's number for the reader. For an erased person it returns a text that says so.
func ShownPhone(ctx context.Context, phone string) string {
	if phone == "" {
		return T(ctx, "message.erased")
	}
	return Grouped(phone)
}

// BubbleOf returns a message in the form in which the recipient's phone shows it.
func BubbleOf(m puntuale.MessageDetail) BubbleContent {
	b := ContentBubble(m.Content)
	b.At, b.In = m.LeftAt(), true
	return b
}

func ContentBubble(c puntuale.Content) BubbleContent {
	b := BubbleContent{Text: c.Text, Latitude: c.Latitude, Longitude: c.Longitude, Media: shownMedia(c), MediaKind: MediaKind(c), Address: c.MediaURL, Offer: c.Interactive}
	for _, button := range c.Buttons() {
		b.Buttons = append(b.Buttons, button.Label)
	}
	return b
}

// shownMedia returns the name of a file: the given name, or else the last part of its address.
func shownMedia(c puntuale.Content) string {
	if c.MediaURL == "" || c.MediaName != "" {
		return c.MediaName
	}
	u, err := url.Parse(c.MediaURL)
	if err != nil || path.Base(u.Path) == "." || path.Base(u.Path) == "/" {
		return c.MediaURL
	}
	return path.Base(u.Path)
}

// Picture returns the address at which the dashboard shows an uploaded image, or "" for every other media address.
func Picture(ctx context.Context, media string) string {
	id, _ := puntuale.UploadedFile(strings.TrimSpace(media))
	if base := Base(ctx); id != "" && base != "" && puntuale.MediaKind(string(id)) == "image" {
		return base + "/files/" + string(id)
	}
	return ""
}

// SmallPicture returns the address of the small picture of an image.
func SmallPicture(ctx context.Context, id puntuale.FileID) string {
	return Base(ctx) + "/files/" + string(id) + "/small"
}

// Size writes a number of bytes for the reader.
func Size(l *language.Language, n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return l.T("file.gigabytes", "Whole", n>>30)
	case n >= 1<<20:
		tenths := (n*10 + 1<<19) >> 20
		return l.T("file.megabytes", "Whole", l.Number(tenths/10), "Tenths", tenths%10)
	case n >= 1<<10:
		return l.T("file.kilobytes", "Whole", (n+512)>>10)
	}
	return l.T("file.bytes", "N", n)
}

// BroughtKind returns the kind of a message's content besides its text: image, video, audio, document or location. It
// returns "" if there is only text.
func BroughtKind(m puntuale.MessageDetail) string {
	switch c := m.Content; {
	case m.Blanked:
		return ""
	case c.MediaURL != "":
		return ContentBubble(c).MediaKind
	case c.Latitude != nil:
		return "location"
	}
	return ""
}

func BroughtIcon(kind string) string {
	if kind == "location" {
		return "map-pin"
	}
	return MediaIcon(kind)
}

// Dated formats a time with its day, even if the day is today, such as "gio 20 nov, 10:30".
func Dated(ctx context.Context, t time.Time) string {
	t = t.In(FrameOf(ctx).Zone)
	l, day := FrameOf(ctx).Language, puntuale.DateOf(t)
	text := l.ShortDay(day)
	if day.Year != FrameOf(ctx).Now.In(FrameOf(ctx).Zone).Year() {
		text = l.Day(day)
	}
	return l.ShortWeekday(t.Weekday()) + " " + text + ", " + l.Clock(t)
}

// StateWords returns a message's state in the reader's language, for an exported file.
func StateWords(ctx context.Context, m puntuale.MessageDetail) string {
	if m.Uncertain() {
		return T(ctx, "reason.uncertain")
	}
	return T(ctx, "state."+strings.ToLower(m.State.String()))
}

// MediaKind returns the kind of file that a phone shows: image, video, audio or document.
func MediaKind(c puntuale.Content) string {
	if address, _, _ := strings.Cut(c.MediaURL, "?"); path.Ext(address) != "" {
		return puntuale.MediaKind(address)
	}
	return puntuale.MediaKind(c.MediaName)
}
