package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

const (
	alertsFile    = deployFolder + "/prometheus/alerts.yml"
	alertsTest    = deployFolder + "/prometheus/alerts_test.yml"
	dashboardFile = deployFolder + "/grafana/puntuale.json"
)

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dashboard is the part of a Grafana dashboard that the tests read.
type dashboard struct {
	UID           string
	SchemaVersion int
	Panels        []struct {
		ID         int
		Type       string
		Title      string
		Datasource struct{ UID string }
		Targets    []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Type, Query any }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(readText(t, dashboardFile)), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// expressions returns every expression of the dashboard, and every expression of the alerts by the alert's name.
func expressions(t *testing.T) (shown []string, alerts map[string]string) {
	t.Helper()
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			shown = append(shown, target.Expr)
		}
	}
	alerts = map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^      - alert: (\w+)\n        expr: (.+)$`).FindAllStringSubmatch(readText(t, alertsFile), -1) {
		alerts[m[1]] = m[2]
	}
	return shown, alerts
}

var (
	metricName  = regexp.MustCompile(`\b(?:puntuale|process)_[a-z_]+`)
	metricLabel = regexp.MustCompile(`\b((?:puntuale|process)_[a-z_]+)\{([^}]*)\}`)
	labelName   = regexp.MustCompile(`([a-z_]+)\s*(?:=~|=|!=|!~)`)
)

// TestExpressionsNameFigures lets a server send a message and own a number. Every figure and every label in the alerts
// and in the dashboard must be in this server's /metrics.
func TestExpressionsNameFigures(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	server := start(t, term, "serve", "--data", "data", "--sandbox", "--addr", "127.0.0.1:0", "--backup-to", "backups")
	base := server.logged.waitFor(t, `"url":"(http://[^"]+)"`)
	partner := term.besideServer(t)(t, "", "partner", "create", "--name", "A", "--email", "rossi@example.com", "--password", "una frase lunga", "--json")
	_, body := call(t, "POST", base+"/api/client/create", partner, `{"name": "Studio", "email": "a@b", "password": "x", "phone": "+390212345678"}`)
	key := field(t, body, "api_key")
	if status, body := call(t, "POST", base+"/api/sessions", key, `{"name": "numero", "connection_type": "Socket", "sandbox": false}`); status != 200 {
		t.Fatalf("a session: %d %s", status, body)
	}
	call(t, "POST", base+"/api/sequences", key, `{"name": "s", "steps": [{"text": "ciao", "timing": {"anchor": "start", "offset": {"amount": 0}}}]}`)
	if status, body := call(t, "POST", base+"/api/start/1", key, `{"phone": "+393331234567"}`); status != 200 {
		t.Fatalf("start: %d %s", status, body)
	}
	figures := ""
	eventually(t, "a message left, and the number has a state", func() bool {
		_, figures = answer(t, "GET", base+"/metrics")
		return strings.Contains(figures, `outcome="sent"} 1`) && strings.Contains(figures, "\npuntuale_numbers{") && strings.Contains(figures, "\npuntuale_backlog_messages{")
	})
	shown, alerts := expressions(t)
	if len(alerts) < 15 || len(shown) < 25 {
		t.Fatalf("%d alerts and %d expressions of the dashboard: the files are not read as they are meant", len(alerts), len(shown))
	}
	for _, expr := range alerts {
		shown = append(shown, expr)
	}
	for _, expr := range shown {
		for _, name := range metricName.FindAllString(expr, -1) {
			if !regexp.MustCompile(`(?m)^` + name + `[{ ]`).MatchString(figures) {
				t.Errorf("%s is no figure, in %s", name, expr)
			}
		}
		for _, m := range metricLabel.FindAllStringSubmatch(expr, -1) {
			for _, label := range labelName.FindAllStringSubmatch(m[2], -1) {
				if label[1] != "job" && !regexp.MustCompile(`(?m)^`+m[1]+`\{[^}]*\b`+label[1]+`="`).MatchString(figures) {
					t.Errorf("%s has no label %s, in %s", m[1], label[1], expr)
				}
			}
		}
	}
}

// TestAlertsHaveTests: each alert fires in a test and is silent in the quiet hour, and has a line in the manual.
func TestAlertsHaveTests(t *testing.T) {
	t.Parallel()
	_, alerts := expressions(t)
	tests, manual := readText(t, alertsTest), readText(t, "../../docs/troubleshooting.md")
	for name := range alerts {
		if !strings.Contains(tests, "alertname: "+name+", exp_alerts: []}") || !strings.Contains(tests, "alertname: "+name+"\n        exp_alerts:\n          - exp_labels:") {
			t.Errorf("%s does not have both tests", name)
		}
		if !strings.Contains(manual, "\n| `"+name+"` | ") {
			t.Errorf("docs/troubleshooting.md has no line for %s", name)
		}
	}
	if n := strings.Count(readText(t, alertsFile), "runbook: docs/troubleshooting.md#alerts"); n != len(alerts) {
		t.Errorf("%d runbooks of %d alerts", n, len(alerts))
	}
	if n := strings.Count(readText(t, deployFolder+"/README.md"), fmt.Sprintf("has %d alerts", len(alerts))); n != 1 {
		t.Errorf("deploy/README.md does not say that there are %d alerts", len(alerts))
	}
}

// TestDashboardForm: the dashboard is one that Grafana imports: classic, with a fixed uid, and a data source that people
// choose.
func TestDashboardForm(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	if d.UID != "puntuale" || d.SchemaVersion != 42 || len(d.Templating.List) != 2 || d.Templating.List[0].Type != "datasource" {
		t.Errorf("uid %q, schema %d, variables %v", d.UID, d.SchemaVersion, d.Templating.List)
	}
	seen := map[int]bool{}
	for _, p := range d.Panels {
		if seen[p.ID] || p.Title == "" || p.Type != "row" && (p.Datasource.UID != "${datasource}" || len(p.Targets) == 0) {
			t.Errorf("%+v", p)
		}
		seen[p.ID] = true
	}
}
