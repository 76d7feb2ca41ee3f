//go:build e2e

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestManual pastes the examples of docs/api.md: those for a shell one after the other, then those of each language
// that is installed. None of them may be refused.
func TestManual(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(t.TempDir(), "puntuale.db")
	s := serve(t, database, "--official-api-url", "http://127.0.0.1:9") // no server answers at this address
	addr := strings.TrimPrefix(s.base, "http://")
	page := strings.NewReplacer(readmeAddr, addr, "partner=pk_…", "partner="+createPartner(t, database)).Replace(string(text))

	out, failure := paste(t, t.TempDir(), examples(page, "sh")+"\necho; echo \"KEY=$key SEQUENCE=$sequence\"\n")
	if failure != nil || strings.Contains(out, `"request_id"`) {
		t.Fatalf("%v:\n%s", failure, out)
	}
	given := regexp.MustCompile(`KEY=(ck_\S+) (SEQUENCE=\d+)`).FindStringSubmatch(out)
	if given == nil {
		t.Fatalf("the examples made no key or no sequence:\n%s", out)
	}
	eventually(t, 10*time.Second, "the network has refused the number that ends in 9901", func() bool {
		a, err := call(http.MethodGet, s.base+"/api/messages?state=FAILED", given[1], nil)
		return err == nil && strings.Contains(string(a.body), "+393331239901")
	})
	for _, language := range []struct{ name, program, file, prints string }{
		{"php", "php", "example.php", "PENDING"},
		{"js", "node", "example.mjs", "PENDING"},
		{"python", "python3", "example.py", "outcomes today"},
	} {
		t.Run(language.name, func(t *testing.T) {
			program, err := exec.LookPath(language.program)
			if err != nil {
				t.Skip(language.program + " is not installed")
			}
			dir := t.TempDir()
			file := filepath.Join(dir, language.file)
			if err := os.WriteFile(file, []byte(examples(page, language.name)), 0o600); err != nil {
				t.Fatal(err)
			}
			out, failure := paste(t, dir, program+" "+language.file, "KEY="+given[1], given[2])
			if failure != nil || !strings.Contains(out, language.prints) {
				t.Errorf("%v:\n%s", failure, out)
			}
		})
	}
}

// examples joins a page's blocks of one language.
func examples(page, language string) string {
	var all strings.Builder
	for _, m := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```\n").FindAllStringSubmatch(page, -1) {
		all.WriteString(m[1] + "\n")
	}
	return all.String()
}
