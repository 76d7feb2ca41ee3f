package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDemoFolder: only the folder of an earlier demo is removed, and not while it is in use.
func TestDemoFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "demo")
	release, err := freshFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(folder, "left")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := freshFolder(folder); err == nil || !strings.Contains(err.Error(), "a demo is running in") {
		t.Errorf("in use: %v", err)
	}
	release()
	release, err = freshFolder(folder)
	if err != nil {
		t.Fatalf("an earlier demo's: %v", err)
	}
	release()
	if _, err := os.Stat(left); err == nil {
		t.Error("the folder was not made anew")
	}

	foreign := t.TempDir()
	if release, err = freshFolder(foreign); err != nil {
		t.Fatalf("an empty folder: %v", err)
	}
	release()
	foreign = t.TempDir()
	precious := filepath.Join(foreign, "puntuale.db")
	if err := os.WriteFile(precious, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := freshFolder(foreign); err == nil || !strings.Contains(err.Error(), "was not made by a demo") {
		t.Errorf("somebody else's: %v", err)
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "data" {
		t.Errorf("somebody else's file: %q, %v", text, err)
	}
	if _, err := freshFolder(precious); err == nil {
		t.Error("a file was taken for a folder")
	}
}

// TestDemoIgnoresConfiguration: a demo must never open real data. Only its address comes from the environment.
func TestDemoIgnoresConfiguration(t *testing.T) {
	t.Parallel()
	term := newConsole(t, map[string]string{"PUNTUALE_ADDR": "127.0.0.1:9999", "PUNTUALE_DATA": "real", "PUNTUALE_DATABASE": "postgres://real/real"})
	term.file(t, "puntuale.toml", "this is no TOML")
	chosen, err := term.parse([]string{"demo"})
	if err != nil {
		t.Fatal(err)
	}
	if c := chosen.(*demoCommand); c.Addr != "127.0.0.1:9999" || c.Data != "puntuale-demo" {
		t.Errorf("%+v", c)
	}
	if code := term.run(context.Background(), []string{"demo", "--addr", "nowhere"}); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
}
