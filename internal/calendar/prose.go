package calendar

import (
	"html"
	"regexp"
	"strings"
)

// prose returns the text of a description or a location without markup, without links, and without what conference
// programs wrote into it. They write numbers that are nobody's.
func prose(text string) string {
	return withoutConference(withoutLinks(withoutMarkup(text)))
}

var (
	tag     = regexp.MustCompile(`(?s)<(/?)([A-Za-z][A-Za-z0-9]*)([^<>]*)>|<!--.*?-->`)
	target  = regexp.MustCompile(`(?i)href\s*=\s*["']?\s*([^"'\s>]+)`)
	address = regexp.MustCompile(`(?i)\bhttps?://[^\s<>"|]+`)
	invites = regexp.MustCompile(`(?i)^(?:https?://)?(?:wa\.me/|(?:api|web)\.whatsapp\.com/send/?\?(?:.*&)?phone=)\+?(\d{7,15})`)
)

// percent decodes what a number in a link may contain.
var percent = strings.NewReplacer("%2b", "+", "%20", " ", "%2c", ",", "%23", "#", "%3b", ";")

// withoutMarkup returns the text of HTML. Programs write HTML into descriptions without saying so. A link to a number
// leaves its number.
func withoutMarkup(text string) string {
	text = tag.ReplaceAllStringFunc(text, func(found string) string {
		m := tag.FindStringSubmatch(found)
		switch strings.ToLower(m[2]) {
		case "br", "p", "div", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4", "hr":
			return "\n"
		case "td", "th":
			return " "
		case "a":
			link := target.FindStringSubmatch(m[3])
			if link == nil {
				return ""
			}
			to := html.UnescapeString(link[1])
			if number, isPhone := strings.CutPrefix(strings.ToLower(to), "tel:"); isPhone {
				return " tel:" + percent.Replace(number) + " | "
			}
			if invites.MatchString(to) {
				return " " + to + " "
			}
		}
		return ""
	})
	return html.UnescapeString(text)
}

// withoutLinks removes addresses, whose digits are no numbers. The address of a WhatsApp chat is one.
func withoutLinks(text string) string {
	return address.ReplaceAllStringFunc(text, func(link string) string {
		if m := invites.FindStringSubmatch(link); m != nil {
			return " +" + m[1] + " "
		}
		return " "
	})
}

var (
	googleLine = regexp.MustCompile(`-::~:~::~`)
	ruler      = regexp.MustCompile(`^[_\s]{10,}$`)
	conference = regexp.MustCompile(`(?i)\b(?:meet|hangouts?|zoom|teams|webex|gotomeeting|skype|jitsi|whereby|conference|videoconferenza|videochiamata|dial[ -]?in|` +
		`dial by|join|partecipa(?:re)?|collegati|pin|passcode|access code|codice di accesso|id riunione|meeting id|id conferenza|conference id|` +
		`one tap|call in|toll(?:[ -]free)?|webinar)\b|\bid\s*:`)
	oneTap = regexp.MustCompile(`\d\s*(?:,+|;+|[pPwWxX])\s*\d+\s*#|\d\s*,,|\d#`)
	listed = regexp.MustCompile(`(?i)dial by|one tap|call in|dial[ -]?in|by phone|per telefono|via telefono|tramite telefono|telefonicamente|in base alla (?:tua|propria) posizione`)
	number = regexp.MustCompile(`^[\s•*\-–]*[(+\d]`)
)

// withoutConference removes the lines of conference programs: Google's block between two lines of "-::~:~::~", blocks
// between two rulers, lines with their words, one-tap numbers, and the lists of numbers that follow such a line.
func withoutConference(text string) string {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		if googleLine.MatchString(lines[i]) {
			i = blank(lines, i, googleLine)
		}
	}
	for i := 0; i < len(lines); i++ {
		if ruler.MatchString(lines[i]) && speaksOfConference(lines[i+1:]) {
			i = blank(lines, i, ruler)
		}
	}
	list := false
	for i, line := range lines {
		about := conference.MatchString(line) || oneTap.MatchString(line)
		switch {
		case listed.MatchString(line) && about:
			list = true
		case strings.TrimSpace(line) != "" && !about && !number.MatchString(line):
			list = false
		}
		if about || list {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

// blank empties the lines from one to the next that matches the pattern, or to the end. It returns the last one.
func blank(lines []string, from int, until *regexp.Regexp) int {
	lines[from] = ""
	for i := from + 1; i < len(lines); i++ {
		last := until.MatchString(lines[i])
		if lines[i] = ""; last {
			return i
		}
	}
	return len(lines)
}

// speaksOfConference reports whether the lines up to the next ruler have a word of conferences.
func speaksOfConference(lines []string) bool {
	for _, line := range lines {
		if ruler.MatchString(line) {
			return false
		}
		if conference.MatchString(line) {
			return true
		}
	}
	return false
}
