//go:build e2e

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestDailyBackup starts three servers on one database at once. Only one of them makes the day's backup and rehearses it
// in a scratch database, which is gone afterwards. The backup is restored with all messages. On a phone, the operator's
// page fits and keeps to itself.
func TestDailyBackup(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		first := serve(t, database)
		who := loadTenants(t, first.base, createPartner(t, database), 1)[0]
		sent(t, first.base, who)
		if code := first.terminate(30 * time.Second); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		folder, figures := t.TempDir(), freeAddr(t)
		nodes := []*server{prepare(t, database, "--backup-to", folder, "--metrics-addr", figures)}
		if strings.HasPrefix(database, "postgres") {
			nodes = append(nodes, prepare(t, database, "--backup-to", folder), prepare(t, database, "--backup-to", folder))
		}
		var started sync.WaitGroup
		for _, n := range nodes {
			started.Go(n.start)
		}
		started.Wait()
		logs := func() (all string) {
			for _, n := range nodes {
				text, err := os.ReadFile(n.log)
				if err != nil {
					t.Fatal(err)
				}
				all += string(text)
			}
			return all
		}
		done := regexp.MustCompile(`"job":"rehearsal","result":"[^"]+ was restored into (SQLite|PostgreSQL): [0-9,]+ rows, 1 messages, equal"`)
		eventually(t, time.Minute, "a backup is made and rehearsed", func() bool { return done.MatchString(logs()) })
		if where := done.FindStringSubmatch(logs())[1]; (where == "PostgreSQL") != (len(nodes) > 1) {
			t.Errorf("it was rehearsed in %s", where)
		}
		if n := strings.Count(logs(), `"a backup job begins"`); n != 2 {
			t.Errorf("%d jobs began", n)
		}
		if files, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(files) != 1 {
			t.Errorf("stored: %v, %v", files, err)
		}
		if len(nodes) > 1 {
			if n := number(t, database, "select count(*) from pg_database where datname = current_database() || '_rehearsal'"); n != 0 {
				t.Error("the scratch database is still there")
			}
		}
		operatorPage(t, "http://"+figures)
		to := filepath.Join(t.TempDir(), "puntuale.db")
		command(t, "restore", "--from", folder, "--data", t.TempDir(), "--database", databaseFlag(to))
		if n := number(t, to, "select count(*) from message"); n != 1 {
			t.Errorf("%d messages were restored", n)
		}
	})
}

// operatorPage opens the operator's page on a phone.
func operatorPage(t *testing.T, base string) {
	t.Helper()
	response, err := http.Get(base + "/operator")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the page answers %d", response.StatusCode)
	}
	b := newBrowser(t)
	b.do(chromedp.EmulateViewport(360, 740), chromedp.Navigate(base+"/operator"))
	if width := evaluate[int](b, "document.documentElement.scrollWidth"); width > 360 {
		t.Errorf("on a phone of 360 pixels the page is %d wide", width)
	}
	if size := evaluate[string](b, "getComputedStyle(document.querySelector('.line.fault, h2')).fontSize"); size == "" {
		t.Error("the style was not applied")
	}
	if text := evaluate[string](b, "document.body.innerText"); !strings.Contains(text, "1 messages, equal") || !strings.Contains(text, "Nodes that send") {
		t.Errorf("the page says %q", text)
	}
	b.screenshot("operator")
	b.keepsToItself(base)
}
