package store_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
	"puntuale/internal/store/transfer"
)

// BenchmarkMove moves a large installation from SQLite to PostgreSQL and back. It reports rows per second, and by how
// much memory grew. PUNTUALE_ROWS is the number of messages (default 10,000). The installation has half as many runs, and
// one entry in the simulated network's ledger for each message:
//
//	PUNTUALE_ROWS=1000000 scripts/with-postgres go test ./internal/store -run - -bench Move -benchtime 1x
func BenchmarkMove(b *testing.B) {
	n := 10_000
	if text := os.Getenv("PUNTUALE_ROWS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		lite, post, back := storetest.SQLite(b), storetest.Postgres(b), storetest.SQLite(b)
		crowd(b, lite, n)
		first, second := filepath.Join(b.TempDir(), "a.gz"), filepath.Join(b.TempDir(), "b.gz")
		measure(b, "export-sqlite", func() int64 { return toFile(b, lite, first) })
		measure(b, "import-postgres", func() int64 { return fromFile(b, post, first) })
		measure(b, "export-postgres", func() int64 { return toFile(b, post, second) })
		measure(b, "import-sqlite", func() int64 { return fromFile(b, back, second) })
		if info, err := os.Stat(first); err == nil {
			b.ReportMetric(float64(info.Size())/1e6, "MB-file")
		}
	}
}

func crowd(b *testing.B, d *storetest.Database, n int) {
	b.Helper()
	w := storetest.NewWorld(b, d)
	c := w.Client(puntuale.AccountFull)
	numbers := fmt.Sprintf("(with recursive n(i) as (select 1 union all select i + 1 from n where i < %d) select i from n)", n)
	for _, statement := range []string{
		`insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request, client_name,
 sequence_name, content) select $1, 1000 + i * 2, $2, $3, '+39333' || (1000000 + i % 300000), 2, 2, 'Mario Rossi', 'Europe/Rome', i,
 cast('{"phone":"+39333' || i || '","nome":"Mario","appuntamento":"20/11/2026 10:30"}' as blob), 'Studio Bianchi', 'Promemoria',
 '[{"text":"Gentile Mario, le ricordiamo l''appuntamento di venerdì 20 novembre alle 10:30."},{"text":"A domani, Mario!"}]'
 from ` + numbers + ` where i % 2 = 0`,
		`insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone, intent, state,
 done_at, outcome) select $1, 1002 + i * 2 + i % 2, $3, 1000 + (i / 2) * 4, $2, i, i, i + 86400000000, i % 2, 2, '+39333' || (1000000 + i % 300000),
 case when i % 10 = 0 then 0 else -1 end, case when i % 10 = 0 then 0 else 1 end, case when i % 10 = 0 then null else i end,
 case when i % 10 = 0 then 0 else 1 end from ` + numbers,
		`insert into sandbox_message (client_id, message_id, connector_id, phone, content, received_at)
 select $1, i + $2 + $3, 'connector-' || i, '+39333' || i, '{"text":"A domani, Mario!"}', i from ` + numbers,
	} {
		if _, err := d.SQL.Exec(statement, c.ID, c.Sequence, c.Session); err != nil {
			b.Fatal(err)
		}
	}
}

func toFile(b *testing.B, d *storetest.Database, name string) int64 {
	b.Helper()
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	h, err := transfer.Export(context.Background(), d.Config, f, transfer.ExportConfig{})
	if err != nil {
		b.Fatal(err)
	}
	return h.Rows()
}

func fromFile(b *testing.B, d *storetest.Database, name string) int64 {
	b.Helper()
	f, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	h, err := transfer.Import(context.Background(), d.Config, f, transfer.ImportConfig{Copy: true})
	if err != nil {
		b.Fatal(err)
	}
	return h.Rows()
}

// measure runs the function do. It reports rows per second, and by how much the memory of the process grew meanwhile
// (only on Linux).
func measure(b *testing.B, what string, do func() int64) {
	b.Helper()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // resets the peak value
	before := memory()
	begun := time.Now()
	rows := do()
	b.ReportMetric(float64(rows)/time.Since(begun).Seconds(), "rows/s-"+what)
	b.ReportMetric(memory()-before, "MB-"+what)
}

// memory returns the peak memory of the process since the last reset, in megabytes.
func memory() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if text, ok := strings.CutPrefix(string(line), "VmHWM:"); ok {
			kilobytes, _ := strconv.ParseFloat(strings.Fields(text)[0], 64)
			return kilobytes / 1000
		}
	}
	return 0
}
