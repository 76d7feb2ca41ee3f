package devicecommand

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"puntuale/internal/client"
	"puntuale/internal/clock"
)

const (
	// keepSettled is how long the journal stores the outcome of a message after the device reported the outcome. If the
	// message is taken again in this time, the device reports this outcome.
	keepSettled = 7 * 24 * time.Hour

	// rewriteAfter is how many lines are appended before the journal is rewritten without old entries.
	rewriteAfter = 10_000
)

// Journal stores everything that a crash of the device must not lose, in one file of JSON lines. When a method returns,
// its line is on disk. Journal is not safe for concurrent use. The caller must ensure that only one process at a time
// opens the file.
type Journal struct {
	name     string
	clock    clock.Clock
	file     *os.File
	appended int

	take    string             // the id of the last call that took messages
	open    []entry            // attempts that were begun or reported, and not acknowledged, oldest first
	settled map[string]settled // the reported outcome of each message, except returned messages
}

// entry is a line of the journal: the id of a call that takes messages, or what is known about an attempt. If an
// attempt's entry contains no outcome, the command was begun.
type entry struct {
	At      int64          `json:"at"` // seconds since 1970
	Take    string         `json:"take,omitempty"`
	Message string         `json:"message,omitempty"`
	Attempt string         `json:"attempt,omitempty"`
	Outcome client.Outcome `json:"outcome,omitempty"`
	Detail  string         `json:"detail,omitempty"`
	Known   bool           `json:"acknowledged,omitempty"` // true: the server has received the report
}

type settled struct {
	entry
	known bool
}

// OpenJournal opens a journal, or creates one. It ignores a last line that a crash cut off. Any other damage is an
// error.
func OpenJournal(name string, c clock.Clock) (*Journal, error) {
	j := &Journal{name: name, clock: c, settled: map[string]settled{}}
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	number := 0
	for line := range bytes.Lines(whole) {
		number++
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("the journal %s is damaged in line %d: %w", name, number, err)
		}
		j.apply(e)
	}
	if err := j.rewrite(); err != nil {
		return nil, err
	}
	return j, nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// apply applies a line to the journal's state in memory.
func (j *Journal) apply(e entry) {
	if e.Take != "" {
		j.take = e.Take
		return
	}
	j.open = slices.DeleteFunc(j.open, func(o entry) bool { return o.Attempt == e.Attempt })
	if !e.Known {
		j.open = append(j.open, e)
	}
	switch e.Outcome {
	case "": // the attempt was begun
	case client.Returned:
		delete(j.settled, e.Message)
	default:
		j.settled[e.Message] = settled{entry: e, known: e.Known}
	}
}

// note writes lines to the disk.
func (j *Journal) note(entries ...entry) error {
	var text bytes.Buffer
	for i := range entries {
		entries[i].At = j.clock.Now().Unix()
		if err := json.NewEncoder(&text).Encode(entries[i]); err != nil {
			return err
		}
	}
	_, err := j.file.Write(text.Bytes())
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	for _, e := range entries {
		j.apply(e)
	}
	if j.appended += len(entries); j.appended >= rewriteAfter {
		return j.rewrite()
	}
	return nil
}

// noteTake writes the id of a call that takes messages, before the call.
func (j *Journal) noteTake(id string) error { return j.note(entry{Take: id}) }

// noteBegun writes that the command will start now.
func (j *Journal) noteBegun(h client.HeldMessage) error {
	return j.note(entry{Message: h.Message, Attempt: h.Attempt})
}

// noteReport writes a report before it is sent.
func (j *Journal) noteReport(r client.Report) error {
	return j.note(entry{Message: r.Message, Attempt: r.Attempt, Outcome: r.Outcome, Detail: r.Detail})
}

// noteAcknowledged writes that the server has received reports.
func (j *Journal) noteAcknowledged(reports []client.Report) error {
	var known []entry
	for _, e := range j.open {
		if slices.ContainsFunc(reports, func(r client.Report) bool { return r.Attempt == e.Attempt }) {
			e.Known = true
			known = append(known, e)
		}
	}
	return j.note(known...)
}

// reports returns the oldest reports that the server has not received yet, at most as many as one call may contain.
func (j *Journal) reports() (all []client.Report) {
	for _, e := range j.open {
		if e.Outcome != "" && len(all) < client.MaxReports {
			all = append(all, client.Report{Message: e.Message, Attempt: e.Attempt, Outcome: e.Outcome, Detail: e.Detail})
		}
	}
	return all
}

// begun returns the attempts that were begun and have no outcome.
func (j *Journal) begun() (all []entry) {
	for _, e := range j.open {
		if e.Outcome == "" {
			all = append(all, e)
		}
	}
	return all
}

// knows reports whether an attempt was begun or reported.
func (j *Journal) knows(attempt string) bool {
	return slices.ContainsFunc(j.open, func(e entry) bool { return e.Attempt == attempt })
}

// rewrite replaces the file by a new file without old entries.
func (j *Journal) rewrite() (err error) {
	if j.file != nil {
		_ = j.file.Close() // all lines are already on disk
	}
	f, err := os.CreateTemp(filepath.Dir(j.name), filepath.Base(j.name)+".*") // only the file's owner can read it
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	j.file, j.appended = f, 0
	w := bufio.NewWriter(f)
	to := json.NewEncoder(w) // w stores the first error, and Flush returns it
	if j.take != "" {
		_ = to.Encode(entry{At: j.clock.Now().Unix(), Take: j.take})
	}
	cutoff := j.clock.Now().Add(-keepSettled).Unix()
	for message, s := range j.settled {
		switch {
		case !s.known: // the list open also contains this entry, so the entry is not written here
		case s.At < cutoff:
			delete(j.settled, message)
		default:
			_ = to.Encode(s.entry)
		}
	}
	for _, e := range j.open {
		_ = to.Encode(e)
	}
	err = errors.Join(w.Flush(), f.Sync())
	if err == nil {
		err = os.Rename(f.Name(), j.name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write the journal: %w", err)
	}
	dir, err := os.Open(filepath.Dir(j.name))
	if err == nil {
		if runtime.GOOS != "windows" { // Windows cannot sync a folder
			err = dir.Sync()
		}
		err = errors.Join(err, dir.Close())
	}
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}
