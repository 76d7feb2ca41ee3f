package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// workflow is the part of a workflow that the test reads.
type workflow struct {
	On   map[string]any
	Jobs map[string]struct {
		Timeout int `yaml:"timeout-minutes"`
		Steps   []struct {
			Run, Uses string
			With      map[string]any
		}
	}
}

// TestWorkflows: the forges run .ci/run and .ci/nightly, with the whole history, a cache and a bounded time. The files of
// both forges are the same.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	names := func(forge string) (all []string) {
		for _, folder := range []string{"workflows", "ISSUE_TEMPLATE"} {
			found, err := filepath.Glob(filepath.Join("../..", forge, folder, "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range found {
				all = append(all, folder+"/"+filepath.Base(name))
			}
		}
		return all
	}
	want := []string{"workflows/nightly.yml", "workflows/run.yml", "ISSUE_TEMPLATE/bug.yml", "ISSUE_TEMPLATE/idea.yml"}
	for _, forge := range []string{".forgejo", ".github"} {
		if got := names(forge); !slices.Equal(got, want) {
			t.Errorf("%s has %v", forge, got)
		}
	}
	for _, name := range want {
		text, err := os.ReadFile(filepath.Join("../../.forgejo", name))
		if err != nil {
			t.Fatal(err)
		}
		if other, err := os.ReadFile(filepath.Join("../../.github", name)); err != nil || string(other) != string(text) {
			t.Errorf("%s is not the same in both forges: %v", name, err)
		}
		if strings.HasPrefix(name, "ISSUE") {
			var form struct {
				Name, Description string
				Body              []struct{ Type string }
			}
			if err := yaml.Unmarshal(text, &form); err != nil || form.Name == "" || form.Description == "" || len(form.Body) == 0 {
				t.Errorf("%s: %+v, %v", name, form, err)
			}
			continue
		}
		var w workflow
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		script := ".ci/" + strings.TrimSuffix(filepath.Base(name), ".yml")
		if _, err := os.Stat(filepath.Join("../..", script)); err != nil {
			t.Error(err)
		}
		job := w.Jobs[strings.TrimPrefix(script, ".ci/")]
		var runs, history, cache bool
		for _, s := range job.Steps {
			runs = runs || s.Run == script
			history = history || strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["fetch-depth"] == 0
			cache = cache || strings.HasPrefix(s.Uses, "actions/cache@")
		}
		if len(w.On) == 0 || job.Timeout == 0 || !runs || !history || !cache {
			t.Errorf("%s: when %v, minutes %d, runs %s %v, history %v, cache %v", name, w.On, job.Timeout, script, runs, history, cache)
		}
	}
}
