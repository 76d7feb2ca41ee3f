package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tree is a commit, written into a folder. A release reads only committed files, so the state of the work tree never
// changes its bytes.
type tree struct {
	folder string
	commit string // all 40 digits
	at     time.Time
}

// checkout writes the files of a commit into a new folder.
func checkout(ctx context.Context, commit, folder string) (*tree, error) {
	shown, err := git(ctx, "log", "-1", "--format=%H %ct", commit)
	if err != nil {
		return nil, err
	}
	hash, text, _ := strings.Cut(strings.TrimSpace(string(shown)), " ")
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the commit's time: %w", err)
	}
	packed, err := git(ctx, "-c", "tar.umask=0022", "archive", "--format=tar", hash)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", folder)
	unpack.Stdin = bytes.NewReader(packed)
	if out, err := unpack.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("unpack %s: %w: %s", commit, err, out)
	}
	return &tree{folder: folder, commit: hash, at: time.Unix(seconds, 0).UTC()}, nil
}

// path returns the path of one of the commit's files.
func (t *tree) path(name string) string { return filepath.Join(t.folder, name) }

// git runs git in the repository around this command's folder.
func git(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = repository()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out, nil
}

// repository returns the folder of the repository: git archive writes only the files below the folder where it runs.
func repository() string {
	for folder := "."; ; folder = filepath.Join(folder, "..") {
		if _, err := os.Stat(filepath.Join(folder, ".git")); err == nil || len(folder) > 60 {
			return folder
		}
	}
}
