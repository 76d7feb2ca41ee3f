//go:build promtool

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPromtool lets Prometheus' own tool check the alerts, run their tests, and parse every expression of the dashboard.
// "make alerts" runs it.
func TestPromtool(t *testing.T) {
	program := os.Getenv("PUNTUALE_TEST_PROMTOOL")
	if program == "" {
		t.Fatal("PUNTUALE_TEST_PROMTOOL is not set; run with scripts/with-promtool")
	}
	run := func(args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		if err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	run("check", "rules", alertsFile)
	run("test", "rules", alertsTest)
	shown, _ := expressions(t)
	rules := "groups:\n  - name: dashboard\n    rules:\n"
	for i, expr := range shown {
		expr = strings.NewReplacer("$__rate_interval", "5m", "$job", "x").Replace(expr)
		rules += fmt.Sprintf("      - record: shown:%d\n        expr: %s\n", i, expr)
	}
	name := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(name, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	run("check", "rules", name)
}
