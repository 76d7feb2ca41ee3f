package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"puntuale"
)

// TestDemoFolder: only an earlier demo's folder is ever removed, and not while it is in use.
func TestDemoFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "demo")
	release, err := freshFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(folder, "left")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := freshFolder(folder); err == nil || !strings.Contains(err.Error(), "a demo is running in") {
		t.Errorf("in use: %v", err)
	}
	release()
	release, err = freshFolder(folder)
	if err != nil {
		t.Fatalf("an earlier demo's: %v", err)
	}
	release()
	if _, err := os.Stat(left); err == nil {
		t.Error("the folder was not made anew")
	}

	foreign := t.TempDir()
	if release, err = freshFolder(foreign); err != nil {
		t.Fatalf("an empty folder: %v", err)
	}
	release()
	foreign = t.TempDir()
	precious := filepath.Join(foreign, "puntuale.db")
	if err := os.WriteFile(precious, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := freshFolder(foreign); err == nil || !strings.Contains(err.Error(), "was not made by a demo") {
		t.Errorf("somebody else's: %v", err)
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "data" {
		t.Errorf("somebody else's file: %q, %v", text, err)
	}
	if _, err := freshFolder(precious); err == nil {
		t.Error("a file was taken for a folder")
	}
}

// TestDemoScreen draws every kind of message without colour.
func TestDemoScreen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	s := newScreen(&out, false, demoZone(), func() time.Time { return now })
	due := puntuale.DueMessage{Phone: "+393331234567"}
	s.message(due, puntuale.Content{Text: "early"}, puntuale.Outcome{Verdict: puntuale.Sent})
	if out.Len() > 0 {
		t.Errorf("a message was shown before its heading: %s", out.String())
	}
	s.start(&demo{messages: 4, skipped: []skipped{{Step: 2, Moment: now.Add(-time.Hour)}}})
	s.message(due, puntuale.Content{Text: strings.Repeat("lungo ", 30)}, puntuale.Outcome{Verdict: puntuale.Sent})
	s.message(due, puntuale.Content{Text: "qui", Latitude: new(45.5), Longitude: new(7.25)}, puntuale.Outcome{Verdict: puntuale.Sent})
	s.message(due, puntuale.Content{Text: "no"}, puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("Numero inesistente")})
	s.message(due, puntuale.Content{MediaURL: "https://x/y.pdf"}, puntuale.Outcome{Verdict: puntuale.Retry, Reason: puntuale.Quoted("Rete occupata"), Next: now.Add(5 * time.Second)})
	s.message(due, puntuale.Content{Template: "saluto"}, puntuale.Outcome{Verdict: puntuale.Uncertain, Next: now.Add(time.Minute)})
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

// TestDemoIgnoresConfiguration: a demo must never meet real data.
func TestDemoIgnoresConfiguration(t *testing.T) {
	t.Parallel()
	term := newTerminal(t, map[string]string{"PUNTUALE_ADDR": "nowhere", "PUNTUALE_DATA": "real", "PUNTUALE_DATABASE": "postgres://real/real"})
	term.file(t, "puntuale.toml", "this is no TOML")
	chosen, err := term.parse([]string{"demo"})
	if err != nil {
		t.Fatal(err)
	}
	if c := chosen.(*demoCommand); c.Addr != demoAddr || c.Data != "puntuale-demo" {
		t.Errorf("%+v", c)
	}
	if code := term.run(context.Background(), []string{"demo", "--addr", "nowhere"}); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
}
