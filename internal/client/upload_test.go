package client_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"puntuale/internal/client"
	"puntuale/internal/clock"
)

const (
	list   = "Telefono;Nome\n3331234567;Anna\n"
	upload = "PUT /api/campaigns/7/recipients?columns=phone%3ATelefono " + "Telefono;Nome\n3331234567;Anna"
)

// The client repeats an upload if the answer is lost, comes too late, or contains a Retry-After. Each time it sends the
// whole list.
func TestUpload(t *testing.T) {
	t.Parallel()
	c, _, p := meet(t, answer{call: upload, status: cut}, answer{call: upload, status: slow}, answer{call: upload, status: 503, after: "2"},
		answer{call: upload, status: 409, body: `{"code":"busy"}`}, answer{call: upload, body: `{"recipients":1}`})
	var told int64
	put, err := c.UploadList(t.Context(), "7", client.File{From: strings.NewReader(list), Size: int64(len(list))}, "phone:Telefono", func(sent int64) { told = sent })
	if err != nil || put.Recipients != 1 || told != int64(len(list)) || len(p.ledger) != 5 {
		t.Errorf("%+v, %v; told of %d bytes; calls %q", put, err, told, p.ledger)
	}
}

// If the client cannot read its file, or the file becomes shorter during the upload, the client does not repeat the
// upload. The server never accepts a part of a list as the whole list.
func TestUploadOfBadFile(t *testing.T) {
	t.Parallel()
	for want, from := range map[string]io.ReaderAt{errTorn.Error(): torn{}, "became shorter": strings.NewReader(list)} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err == nil {
					t.Error("the server takes a part for the whole")
				}
				panic(http.ErrAbortHandler)
			}))
			t.Cleanup(server.Close)
			j := &jump{Clock: clock.System()}
			c := client.New(server.URL, theKey, j)
			lost := false
			c.Lost = func(error, int, time.Duration) { lost = true }
			_, err := c.UploadList(t.Context(), "7", client.File{From: from, Size: int64(2 * len(list))}, "", func(int64) {})
			if err == nil || !strings.Contains(err.Error(), want) || lost || j.slept != 0 {
				t.Errorf("%v; lost: %v; waited %v", err, lost, j.slept)
			}
		})
	}
}

var errTorn = errors.New("the disk is torn")

// torn is a file whose reads and writes fail.
type torn struct{}

func (torn) ReadAt([]byte, int64) (int, error) { return 0, errTorn }

func (torn) Write([]byte) (int, error) { return 0, errTorn }

// If the client cannot write the refused rows, it does not repeat the call.
func TestRefusedRowsWithoutPlace(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() (io.Writer, error){
		"open":  func() (io.Writer, error) { return nil, errTorn },
		"write": func() (io.Writer, error) { return torn{}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var answers []answer
			if name == "write" {
				answers = []answer{{call: "GET /api/campaigns/7/refused", body: "line,phone\n"}}
			}
			c, j, _ := meet(t, answers...)
			if err := c.RefusedRows(t.Context(), "7", open); !errors.Is(err, errTorn) || j.slept != 0 {
				t.Errorf("%v after %v", err, j.slept)
			}
		})
	}
}

// If the answer with the refused rows is too late, the client repeats the call.
func TestRefusedRowsLate(t *testing.T) {
	t.Parallel()
	get := "GET /api/campaigns/7/refused"
	c, _, _ := meet(t, answer{call: get, status: slow}, answer{call: get, body: "line,phone\n"})
	var file bytes.Buffer
	if err := c.RefusedRows(t.Context(), "7", func() (io.Writer, error) { file.Reset(); return &file, nil }); err != nil || file.String() != "line,phone\n" {
		t.Errorf("%q, %v", file.String(), err)
	}
}

// The client repeats a call whose answer is too late, and reports how long it waited.
func TestSlowAnswer(t *testing.T) {
	t.Parallel()
	c, _, _ := meet(t, answer{call: startCall, status: slow}, answer{call: startCall, body: running})
	var lost []error
	c.Lost = func(err error, _ int, _ time.Duration) { lost = append(lost, err) }
	if started, err := c.StartCampaign(t.Context(), "7", "abc"); err != nil || started.State != "running" {
		t.Errorf("%+v, %v", started, err)
	}
	if len(lost) != 2 || lost[0] == nil || !strings.Contains(lost[0].Error(), "nothing came within 1m0s") || lost[1] != nil {
		t.Errorf("told %v", lost)
	}
}
