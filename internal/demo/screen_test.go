package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"puntuale"
)

// TestScreen draws every kind of message without colour.
func TestScreen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	s := NewScreen(&out, false, Zone(), func() time.Time { return now })
	due := puntuale.DueMessage{Phone: "+393331234567"}
	s.Message(due, puntuale.Content{Text: "early"}, puntuale.Outcome{Verdict: puntuale.Sent})
	if out.Len() > 0 {
		t.Errorf("a message was shown before its heading: %s", out.String())
	}
	s.Start(&Story{messages: 4, skipped: []skipped{{Step: 2, Moment: now.Add(-time.Hour)}}})
	s.Message(due, puntuale.Content{Text: strings.Repeat("lungo ", 30)}, puntuale.Outcome{Verdict: puntuale.Sent})
	s.Message(due, puntuale.Content{Text: "qui", Latitude: new(45.5), Longitude: new(7.25)}, puntuale.Outcome{Verdict: puntuale.Sent})
	s.Message(due, puntuale.Content{Text: "no"}, puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("Numero inesistente")})
	s.Message(due, puntuale.Content{MediaURL: "https://x/y.pdf"}, puntuale.Outcome{Verdict: puntuale.Retry, Reason: puntuale.Quoted("Rete occupata"), Next: now.Add(5 * time.Second)})
	s.Message(due, puntuale.Content{Template: "saluto"}, puntuale.Outcome{Verdict: puntuale.Uncertain, Next: now.Add(time.Minute)})
	for _, want := range []string{
		"4 messages", "Step 3 is\n  left out: its moment, 20 November 09:00, is past.",
		"\n  ● 10:00:00  +393331234567  early\n",
		"\n                             lungo",
		"qui [45.5, 7.25]",
		"○ 10:00:00  +393331234567  refused (Numero inesistente) · no",
		"again at 10:00:05 (Rete occupata) · [https://x/y.pdf]",
		"no answer; looked at again at 10:01:00 · [saluto]",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing from:\n%s", want, out.String())
		}
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		if strings.HasSuffix(line, " ") || len([]rune(line)) > screenWidth+8 {
			t.Errorf("line %q", line)
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("colour without a terminal")
	}
}
