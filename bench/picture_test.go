package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDrawing: the picture is well-formed XML, and has a bar for each target with a measured figure.
func TestDrawing(t *testing.T) {
	var s sheet
	for i, target := range targets {
		s.note(target.figure, perSecond, float64(100*(i%3+1)))
		if target.divisor != "" {
			s.note(target.divisor, perSecond, 50)
		}
	}
	picture := drawing(s.verdicts())
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if bars := strings.Count(picture, "<title>"); bars < len(targets)-2 {
		t.Errorf("%d bars for %d targets", bars, len(targets))
	}
	if name := os.Getenv("PICTURE"); name != "" {
		if err := os.WriteFile(name, []byte(picture), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPages: the bench replaces the text between the lines pageBegin and pageEnd of a page, and nothing else.
func TestPages(t *testing.T) {
	var s sheet
	for _, target := range targets {
		s.note(target.figure, perSecond, 100)
		if target.divisor != "" {
			s.note(target.divisor, perSecond, 50)
		}
	}
	b := &bench{sheet: s}
	folder := filepath.Join(t.TempDir(), "docs")
	was, err := os.ReadFile(filepath.Join("../docs", resultsPage))
	if err := errors.Join(err, os.MkdirAll(folder, 0o700), os.MkdirAll(filepath.Dir(filepath.Join(folder, figuresPage)), 0o700),
		os.WriteFile(filepath.Join(folder, resultsPage), was, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := b.writePages(folder); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(filepath.Join(folder, resultsPage))
	before, rest, _ := strings.Cut(string(was), pageBegin)
	_, after, _ := strings.Cut(rest, pageEnd)
	if !strings.HasPrefix(string(got), before+pageBegin) || !strings.HasSuffix(string(got), pageEnd+after) {
		t.Errorf("%s: what people wrote was changed", resultsPage)
	}
	figures, _ := os.ReadFile(filepath.Join(folder, figuresPage))
	if !strings.Contains(string(got), "| met |") || !strings.Contains(string(figures), "| met |") {
		t.Error("a file has no verdicts")
	}
}

// TestRatio: a ratio divides figures of the same repeat.
func TestRatio(t *testing.T) {
	var s sheet
	for i, pair := range [][2]float64{{10, 5}, {30, 10}, {8, 8}} {
		s.repeat = i
		s.note("a", perSecond, pair[0])
		s.note("b", perSecond, pair[1])
	}
	s.repeat = 3
	s.note("a", perSecond, 1) // in this repeat, b has no value
	median, least, highest, ok := s.ratio("a", "b")
	if !ok || median != 2 || least != 1 || highest != 3 {
		t.Errorf("%v, %v to %v, %v", median, least, highest, ok)
	}
}
