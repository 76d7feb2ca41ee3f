package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/catalogue"

	"puntuale/internal/terminal"
)

// Screen writes the demo's texts to the terminal. Many goroutines may call its methods at once.
type Screen struct {
	w     io.Writer
	color bool
	zone  *time.Location
	now   func() time.Time

	mu    sync.Mutex
	begun bool     // the text before the messages was shown
	early []string // messages that left before the intro was shown
}

// NewScreen returns a screen that has shown nothing yet.
func NewScreen(w io.Writer, color bool, zone *time.Location, now func() time.Time) *Screen {
	return &Screen{w: w, color: color, zone: zone, now: now}
}

// screenWidth is the width at which texts are broken into lines, in characters.
const screenWidth = 92

// styleQuiet is the style of less important text, and styleStrong the style of important text.
const (
	styleQuiet  = "2"
	styleStrong = "1"
	styleSent   = "32"
	styleOther  = "33"
)

func (s *Screen) style(code, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Line prints one line.
func (s *Screen) Line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.w, text)
}

// Intro prints the demo's accounts and links, and the line to paste. If another program uses the default address,
// wanted is this address; otherwise it is "".
func (s *Screen) Intro(d *Story, folder, wanted string) {
	where := d.base
	if wanted != "" && !strings.HasSuffix(d.base, wanted) {
		where += s.style(styleQuiet, "   ("+wanted+" is taken, so a free port was chosen)")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	quiet := func(text string) string { return s.style(styleQuiet, text) }
	fmt.Fprintf(s.w, "\n  %s\n\n", s.style(styleStrong, "Puntuale demo"))
	fmt.Fprintln(s.w, "  A dentist's practice reminds its patients of their appointments. A simulated network takes")
	fmt.Fprintln(s.w, "  the messages: nobody is written to. One message waits for a phone, and for you to send it.")
	fmt.Fprintln(s.w)
	for _, row := range [][2]string{
		{"Open", s.style(styleStrong, d.tickets[clientEmail]) + quiet("   the practice's dashboard, signed in once")},
		{"", d.tickets[partnerEmail] + quiet("   its agency's")},
		{"Phone", d.phone + quiet("   take a message and send it by hand")},
		{"Login", d.base + "/login" + quiet("   "+clientEmail+" or "+partnerEmail+", password: "+password)},
		{"API", where}, {"Data", folder}, {"Key", d.key}, {"Sequence", d.sequenceID + quiet("   Promemoria appuntamento, 5 steps")},
	} {
		fmt.Fprintf(s.w, "  %s  %s\n", quiet(fmt.Sprintf("%-8s", row[0])), row[1])
	}
	fmt.Fprintf(s.w, "\n  %s\n\n", quiet("Start it yourself: paste this into another terminal."))
	for row := range strings.SplitSeq(d.curl(), "\n") {
		fmt.Fprintf(s.w, "  %s\n", row)
	}
	fmt.Fprintf(s.w, "\n  %s\n\n  %s\n", quiet("What reached the simulated network:"), d.received())
}

// Start prints the heading of the messages, and then the messages that have already left.
func (s *Screen) Start(d *Story) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("Started for %s, %s, with an appointment in an hour: %d messages.", patient, firstPhone, d.messages)
	for _, left := range d.skipped {
		text += fmt.Sprintf(" Step %d is left out: its moment, %s, is past.", left.Step+1, left.Moment.In(s.zone).Format("2 January 15:04"))
	}
	text += " The last one waits. Ctrl-C ends the demo."
	fmt.Fprintf(s.w, "\n%s\n\n", s.style(styleQuiet, terminal.Wrap(text, "  ", screenWidth)))
	for _, row := range s.early {
		fmt.Fprintln(s.w, row)
	}
	s.begun, s.early = true, nil
}

// Message prints a message when it leaves, or prints why it failed.
func (s *Screen) Message(m puntuale.DueMessage, c puntuale.Content, o puntuale.Outcome) {
	text := contentText(c)
	if o.Verdict != puntuale.Sent {
		text = s.style(styleOther, verdictText(o, s.zone)) + " · " + text
	}
	mark := s.style(styleSent, "●")
	if o.Verdict != puntuale.Sent {
		mark = s.style(styleOther, "○")
	}
	when := s.now().In(s.zone).Format(time.TimeOnly)
	head := fmt.Sprintf("  %s %s  %s  ", mark, s.style(styleQuiet, when), s.style(styleStrong, m.Phone))
	indent := strings.Repeat(" ", 4+len(when)+2+len(m.Phone)+2)
	row := head + strings.TrimPrefix(terminal.Wrap(text, indent, screenWidth+8), indent)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.early = append(s.early, row)
		return
	}
	fmt.Fprintln(s.w, row)
}

// contentText returns a message as the recipient sees it, on one line.
func contentText(c puntuale.Content) string {
	parts := []string{c.Text}
	if c.MediaURL != "" {
		parts = append(parts, "["+c.MediaURL+"]")
	}
	if c.Latitude != nil && c.Longitude != nil {
		parts = append(parts, "["+strconv.FormatFloat(*c.Latitude, 'f', -1, 64)+", "+strconv.FormatFloat(*c.Longitude, 'f', -1, 64)+"]")
	}
	if c.Template != "" {
		parts = append(parts, "["+c.Template+"]")
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

func verdictText(o puntuale.Outcome, zone *time.Location) string {
	switch o.Verdict {
	case puntuale.Refused:
		return "refused (" + catalogue.Italian.Sentence(o.Reason) + ")"
	case puntuale.Retry:
		return "again at " + o.Next.In(zone).Format(time.TimeOnly) + " (" + catalogue.Italian.Sentence(o.Reason) + ")"
	case puntuale.Uncertain:
		return "no answer; looked at again at " + o.Next.In(zone).Format(time.TimeOnly)
	}
	return o.Verdict.String()
}
