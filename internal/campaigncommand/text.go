package campaigncommand

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/client"
)

// refusedWords explain why a check refused recipients.
var refusedWords = map[string]string{
	puntuale.RefusedPhone:       "no valid phone number",
	puntuale.RefusedDuplicate:   "number stands further up in the list",
	puntuale.RefusedMissing:     "a required field is empty",
	puntuale.RefusedField:       "a field cannot be read, such as a date",
	puntuale.RefusedBlacklisted: "in the blacklist",
	puntuale.RefusedNoConsent:   "without consent to marketing",
	puntuale.RefusedRunning:     "the sequence runs for them already",
	puntuale.RefusedPast:        "their moment has passed",
	puntuale.RefusedWindow:      "the 24 hours after their last message are over: send a template",
	puntuale.RefusedErased:      "the person was erased",
	puntuale.RefusedHeldOut:     "in the holdout: gets nothing",
}

// warningWords explain what may be wrong with a message.
var warningWords = map[string]string{
	puntuale.WarnsNoOptOut: "the text does not say how to get no more of them",
	puntuale.WarnsNotShown: "recipients get text instead of the list, the link button or the question",
}

// pausedWords explain why a campaign paused, or ended, by itself.
var pausedWords = map[string]string{
	puntuale.CampaignByCanary:   "more than a third of the first messages failed",
	puntuale.CampaignByCredit:   "the credits ended",
	puntuale.CampaignByAccount:  "the account may not send",
	puntuale.CampaignByNumber:   "the network limits the number",
	puntuale.CampaignByRoom:     "the network's new people of 24 hours are used, and it waits",
	puntuale.CampaignByBudget:   "the budget of the month is used up, and it waits",
	puntuale.CampaignByRestore:  "a backup was restored, and some messages may have left before: look at them first",
	puntuale.CampaignByFailover: "the database failed over, and some messages may have left before: look at them first",
	puntuale.CampaignNoSession:  "its session was deleted",
	puntuale.CampaignNoSequence: "its sequence was deleted",
}

// words returns the text for a code, or the code itself if there is no text.
func words(sentences map[string]string, code string) string {
	return cmp.Or(sentences[code], visible(code))
}

// momentOf formats a time in the machine's time zone.
func momentOf(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.Local().Format("Mon 2 Jan 2006 15:04:05 MST")
}

// maxShown bounds the printed characters of a list's cell.
const maxShown = 28

// short returns the printed part of a cell.
func short(text string) string {
	if text = visible(text); utf8.RuneCountInString(text) > maxShown {
		return string([]rune(text)[:maxShown-1]) + "…"
	}
	return text
}

// visible replaces characters with which a list could control a terminal.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, text)
}

// maxPreview bounds how many of the list's first rows are printed beside each column.
const maxPreview = 3

// writeList prints a list's columns, the fields that they fill, and the first rows.
func writeList(out io.Writer, l client.List) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "The list has %s.\n\n", plural(l.Recipients, "recipient"))
	fmt.Fprint(w, "  COLUMN\tFIELD\tFIRST ROWS\n")
	for i, column := range l.Columns {
		fmt.Fprintf(w, "  %s\t%s", cmp.Or(short(column.Name), fmt.Sprintf("(%d)", i+1)), cmp.Or(visible(column.Field), "-"))
		for _, row := range l.Preview[:min(len(l.Preview), maxPreview)] {
			if i < len(row) {
				fmt.Fprintf(w, "\t%s", short(row[i]))
			}
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, field := range l.Missing {
		fmt.Fprintf(out, "\nNo column fills %s, which the message needs. --columns says which does.\n", visible(field))
	}
	_, err := fmt.Fprintln(out)
	return err
}

// writeCheck prints the result of a check.
func writeCheck(out io.Writer, c client.Check) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	line("valid", "%d of %s", c.Valid, plural(c.Recipients, "recipient"))
	for _, g := range c.Refused {
		line("refused", "%d: %s", g.Count, words(refusedWords, g.Reason))
	}
	line("messages", "%d, the longest has %s", c.Messages, plural(c.Longest, "character"))
	line("credits", "%s", creditsText(c))
	if c.Cost != nil {
		line("cost", "%s", costText(*c.Cost))
	}
	line("first message", "%s", momentOf(c.First))
	line("last message", "%s", momentOf(c.Last))
	if l := c.Limit; l != nil {
		line("limit", "%s", limitText(*l))
	}
	for _, warning := range c.Warnings {
		line("warning", "message %d: %s", warning.Step+1, words(warningWords, warning.Code))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range c.Samples {
		fmt.Fprintf(out, "\n  %s of line %d gets, %s:\n    %s\n", visible(s.Phone), s.Line, momentOf(&s.At), visible(s.Text))
	}
	_, err := fmt.Fprintln(out)
	return err
}

func creditsText(c client.Check) string {
	if c.Left == puntuale.UnlimitedCredits {
		return fmt.Sprintf("%d needed, the account has no limit", c.Needed)
	}
	return fmt.Sprintf("%d needed, %s left; the campaign pauses when they end", c.Needed, visible(c.Left))
}

func costText(c client.Cost) string {
	text := fmt.Sprintf("about %s %s, by the prices of %s", visible(c.Amount), visible(c.Currency), visible(c.Date))
	if c.Unknown > 0 {
		text += fmt.Sprintf("; without %s whose price is not known", plural(c.Unknown, "message"))
	}
	return text
}

func limitText(l client.Limit) string {
	owner, ok := map[string]string{
		"session_per_minute": "the session's pace",
		"session_per_day":    "the session's messages a day",
		"cold_per_minute":    "new people a minute",
		"cold_per_day":       "new people a day",
		"portfolio":          "the network's new people a day",
	}[l.Code]
	if !ok {
		owner = visible(l.Code)
	}
	if l.PerMinute > 0 {
		owner += fmt.Sprintf(": %d", l.PerMinute)
	}
	if l.PerDay > 0 {
		owner += fmt.Sprintf(": %d", l.PerDay)
	}
	if l.Days > 0 {
		owner += ", so that it takes " + plural(l.Days, "day")
	}
	return owner
}

// plural returns a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// countsText returns the progress of a campaign as a text.
func countsText(n client.Counts) string {
	text := fmt.Sprintf("%d fed, %d left, %d completed, %d failed, %d blacklisted", n.Fed, n.Waiting, n.Completed, n.Failed, n.Blacklisted)
	if n.Cancelled > 0 {
		text += fmt.Sprintf(", %d cancelled", n.Cancelled)
	}
	return text
}
