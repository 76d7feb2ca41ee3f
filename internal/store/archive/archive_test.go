package archive_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"puntuale/internal/store/archive"
)

var columns = []archive.Column{{Name: "id", Kind: archive.Integer}, {Name: "at", Kind: archive.Real}, {Name: "name", Kind: archive.Text}, {Name: "body", Kind: archive.Bytes},
	{Name: "last", Kind: archive.Boolean}}

var rows = [][]any{
	{int64(1), 45.5, "Rossi", []byte{0, 255, '"'}, true},
	{int64(math.MinInt64), nil, "a\"b\\c\n\x01\u2028,]<&", []byte{}, false},
	{int64(math.MaxInt64), 1e-300, "", nil, nil},
	{nil, -0.1, strings.Repeat("lungo ", 1<<18), []byte("x"), true},
}

// written makes a file with two tables. The second table is empty.
func written(t testing.TB, rows [][]any) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := archive.NewWriter(&file, archive.Header{Schema: 7, Program: "test", Database: "sqlite", At: time.Unix(1, 0).UTC(), Tables: []archive.Table{
		{Name: "client", Columns: columns, Rows: int64(len(rows))}, {Name: "event", Columns: columns[:1]},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range [][][]any{rows, nil} {
		if err := w.Begin(); err != nil {
			t.Fatal(err)
		}
		for _, row := range of {
			if err := w.Row(row); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// read reads a file to its end.
func read(file []byte) (all [][]any, err error) {
	r, err := archive.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	for {
		t, found, err := r.Next()
		if err != nil {
			return all, err
		}
		if !found {
			return all, r.Close()
		}
		for {
			row := make([]any, len(t.Columns))
			if found, err := r.Row(row); err != nil {
				return all, err
			} else if !found {
				break
			}
			all = append(all, row)
		}
	}
}

func TestRowsComeBack(t *testing.T) {
	t.Parallel()
	all, err := read(written(t, rows))
	if err != nil || !reflect.DeepEqual(all, rows) {
		t.Errorf("%.200v, %v", all, err)
	}
}

// plain returns the text in a file. packed makes a file from a text.
func plain(t *testing.T, file []byte) string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var file bytes.Buffer
	zip := gzip.NewWriter(&file)
	if _, err := io.WriteString(zip, text); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestDamagedFiles checks that the error about a damaged file says what is damaged.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	whole := written(t, rows[:3])
	text := plain(t, whole)
	lines := strings.SplitAfter(text, "\n") // the lines are: header, begin, 3 rows, end, begin, end, last
	flip := bytes.Clone(whole)
	flip[len(flip)-6] ^= 1 // damages the checksum of gzip itself
	swapped := strings.Join([]string{lines[0], lines[1], lines[3], lines[2]}, "") + strings.Join(lines[4:], "")
	tables := strings.Join(append(append([]string{lines[0]}, lines[6:8]...), append(lines[1:6:6], lines[8:]...)...), "")
	for name, c := range map[string]struct {
		file []byte
		is   error
		says string
	}{
		"nothing":           {nil, archive.ErrForeign, ""},
		"no gzip":           {[]byte("SQLite format 3\x00, and more"), archive.ErrForeign, "gzip"},
		"another file":      {packed(t, "{}\n"), archive.ErrForeign, "no header"},
		"a newer form":      {packed(t, strings.Replace(text, `"version":1`, `"version":2`, 1)), archive.ErrNewer, "version 2"},
		"cut":               {whole[:len(whole)-40], archive.ErrDamaged, "cut short"},
		"cut between lines": {packed(t, strings.Join(lines[:8], "")), archive.ErrDamaged, "cut short"},
		"gzip's sum":        {flip, archive.ErrDamaged, "compressed"},
		"a row is missing":  {packed(t, strings.Replace(text, lines[3], "", 1)), archive.ErrDamaged, "client has 2 rows, and should have 3"},
		"a row twice":       {packed(t, strings.Replace(text, lines[3], lines[3]+lines[3], 1)), archive.ErrDamaged, "client has 4 rows"},
		"a value changed":   {packed(t, strings.Replace(text, "Rossi", "Rosso", 1)), archive.ErrDamaged, "digest of table client"},
		"no array":          {packed(t, strings.Replace(text, `"Rossi",`, "", 1)), archive.ErrDamaged, "row 1 of table client"},
		"rows swapped":      {packed(t, swapped), archive.ErrDamaged, "SHA-256"},
		"tables swapped":    {packed(t, tables), archive.ErrDamaged, "table client should begin"},
		"more at the end":   {packed(t, text+"{}\n"), archive.ErrDamaged, "follows its end"},
		"the header":        {packed(t, strings.Replace(text, `"program":"test"`, `"program":"tost"`, 1)), archive.ErrDamaged, "SHA-256"},
	} {
		if _, err := read(c.file); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDigest checks that the digest depends on everything except the order of the rows.
func TestDigest(t *testing.T) {
	t.Parallel()
	sum := func(lines ...string) string {
		var d archive.Digest
		for _, line := range lines {
			d.Add([]byte(line))
		}
		return d.String()
	}
	if sum("a", "b", "c") != sum("c", "a", "b") {
		t.Error("it depends on the order")
	}
	// This is the SHA-256 of "abc".
	if got := sum("abc"); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("of one line: %s", got)
	}
	if sum("a", "b") == sum("a", "b", "b") || sum("a", "b") == sum("ab") || sum() == sum("") {
		t.Error("different rows have one digest")
	}
}

// FuzzRow reads a row, writes it, and reads it again. Both reads must give the same row. No input may cause a panic.
func FuzzRow(f *testing.F) {
	f.Add(`[1,45.5,"Rossi","AP8i"]`)
	f.Add(`[null,null,"a\"b\\\u000a",""]`)
	f.Fuzz(func(t *testing.T, row string) {
		header, _, _ := strings.Cut(plain(t, written(t, nil)), "\n")
		file := packed(t, strings.Replace(header, `"rows":0`, `"rows":1`, 1)+"\n{\"table\":\"client\"}\n"+row+"\n")
		r, err := archive.NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		values := make([]any, len(columns))
		if found, err := r.Row(values); err != nil || !found {
			return
		}
		if again, err := read(written(t, [][]any{values})); err != nil || !reflect.DeepEqual(again[0], values) {
			t.Errorf("%q: %v, %v, %v", row, values, again, err)
		}
	})
}

// TestEndlessLine checks that a reader stops at a line that never ends. An import must not trust the lengths in a file.
func TestEndlessLine(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	zip, err := gzip.NewWriterLevel(&file, gzip.HuffmanOnly) // gzip's fastest level
	if err != nil {
		t.Fatal(err)
	}
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for range 34 {
		if _, err := zip.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.NewReader(&file); !errors.Is(err, archive.ErrDamaged) {
		t.Errorf("%v", err)
	}
}
