//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// campaign runs the command without a terminal, as a script does.
func (m *mass) campaign(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, append([]string{"campaign", "--server", m.s.base}, args...)...)
	cmd.Env = append(os.Environ(), "PUNTUALE_API_KEY="+m.key)
	return cmd
}

// says runs the command until it ends, checks its exit code, and returns its output.
func (m *mass) says(code int, args ...string) string {
	m.t.Helper()
	out, err := m.campaign(args...).CombinedOutput()
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		m.t.Fatal(err)
	}
	if got != code {
		m.t.Errorf("puntuale campaign %q: exit code %d, not %d: %s", args, got, code, out)
	}
	return string(out)
}

// TestCampaignCommand: the command sends to each recipient of a list once. This is also true if the command is killed
// and run again.
func TestCampaignCommand(t *testing.T) {
	beside(t)
	const recipients = 300
	m := newMass(t, serve(t, t.TempDir()+"/puntuale.db"))
	folder := t.TempDir()
	file, refused := filepath.Join(folder, "clienti.csv"), filepath.Join(folder, "refused.csv")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := func() string {
		var b strings.Builder
		b.WriteString("Telefono;Nome\n")
		for i := range recipients {
			fmt.Fprintf(&b, "%s;Anna %d\n", m.phone(i), i)
		}
		return b.String()
	}

	write("Telefono,Nome\n+393331234567,a,b\n")
	if out := m.says(1, "--file", file, "--text", "x", "--yes"); !strings.Contains(out, "line[2]") {
		t.Errorf("a bad file: %s", out)
	}
	write(list() + "123;Zoe\n")
	if out := m.says(2, "--file", file, "--text", "x"); !strings.Contains(out, "--yes") {
		t.Errorf("without a terminal: %s", out)
	}
	out := m.says(0, "--file", file, "--text", "Ciao {{nome}}", "--refused", refused, "--yes")
	if !strings.Contains(out, "300 of 301 recipients") || !strings.Contains(out, "Ciao Anna 0") || !strings.Contains(out, "300 completed") {
		t.Errorf("a good file: %s", out)
	}
	if rows, err := os.ReadFile(refused); err != nil || !strings.Contains(string(rows), "302,,invalid_phone,123") {
		t.Errorf("refused rows: %q, %v", rows, err)
	}
	m.everybody(recipients)

	m.sent++ // the recipients of the next campaign then have other phone numbers
	write(list())
	var shown bytes.Buffer
	cmd := m.campaign("--file", file, "--text", "Ciao {{nome}}", "--per-minute", "3000", "--yes")
	cmd.Stdout = &shown
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id := ""
	eventually(t, 10*time.Second, "the campaign runs", func() bool {
		var all struct{ Campaigns []campaignState }
		must(t, "GET", m.s.base+"/api/campaigns", m.key, nil).into(t, &all)
		id = all.Campaigns[0].ID
		return all.Campaigns[0].State == "running"
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the process was killed, so this is always an error
	if out := m.says(0, "--id", id); !strings.Contains(out, "300 completed") {
		t.Errorf("run again: %s", out)
	}
	m.everybody(recipients)
}

// everybody checks that the simulated network's ledger has each number of the present list exactly once.
func (m *mass) everybody(recipients int) {
	m.t.Helper()
	times := map[string]int{}
	for _, r := range ledger(m.t, m.s.base, m.key) {
		times[r.Phone]++
	}
	for i := range recipients {
		if n := times[m.phone(i)]; n != 1 {
			m.t.Errorf("recipient %d got %d messages", i, n)
		}
	}
}

// TestCampaignCommandInterrupted: Ctrl-C ends the command, but not the campaign. The command prints how to watch the
// campaign again. It can pause and resume the campaign. It continues to watch while the server restarts. Each recipient
// of the workbook gets one message.
func TestCampaignCommandInterrupted(t *testing.T) {
	beside(t)
	const recipients = 60
	m := newMass(t, serve(t, t.TempDir()+"/puntuale.db"))
	sheet := `<worksheet><sheetData><row r="1"><c t="str"><v>Telefono</v></c></row>`
	for i := range recipients {
		sheet += fmt.Sprintf(`<row r="%d"><c t="str"><v>%s</v></c></row>`, i+2, m.phone(i))
	}
	file := filepath.Join(t.TempDir(), "clienti.xlsx")
	if err := os.WriteFile(file, workbook(t, sheet+`</sheetData></worksheet>`).Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := m.campaign("--file", file, "--text", "Ciao", "--per-minute", "600", "--canary", "0", "--yes")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id := ""
	eventually(t, 20*time.Second, "the campaign runs", func() bool {
		var all struct{ Campaigns []campaignState }
		must(t, "GET", m.s.base+"/api/campaigns", m.key, nil).into(t, &all)
		if len(all.Campaigns) == 0 || all.Campaigns[0].State != "running" {
			return false
		}
		id = all.Campaigns[0].ID
		return true
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	look := "puntuale campaign --id " + id + " --server " + m.s.base + "\n"
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(out.String(), "interrupted; campaign "+id) || !strings.Contains(out.String(), look) {
		t.Errorf("interrupted: %v, %s", err, out.String())
	}
	if out := m.says(0, "--id", id, "--pause"); !strings.Contains(out, "is paused") {
		t.Errorf("--pause: %s", out)
	}
	if out := m.says(0, "--id", id, "--resume"); !strings.Contains(out, "is resuming") && !strings.Contains(out, "is running") {
		t.Errorf("--resume: %s", out)
	}
	shown := &bytes.Buffer{}
	cmd = m.campaign("--id", id)
	cmd.Stdout, cmd.Stderr = shown, shown
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.again()
	if err := cmd.Wait(); err != nil || !strings.Contains(shown.String(), "60 completed") {
		t.Errorf("watched: %v, %s", err, shown.String())
	}
	m.everybody(recipients)
}
