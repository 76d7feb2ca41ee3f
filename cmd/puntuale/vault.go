package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/localfile"
)

// openVault opens the vault, which seals secrets with a data key. The data key is in the database, and is itself sealed
// with the master key. The master key is never in the database. The settings name the master key. On SQLite, the master
// key may also be in a file beside the database. The first start makes this file.
func openVault(ctx context.Context, cfg *serverConfig, secrets puntuale.SecretStore) (*auth.Vault, error) {
	master, file, err := masterKey(ctx, cfg, secrets)
	if err != nil {
		return nil, err
	}
	vault, err := auth.OpenVault(ctx, secrets, master)
	switch {
	case errors.Is(err, auth.ErrMasterKey) && master == nil:
		return nil, errors.New("the stored secrets are sealed: give the key that was used before, with PUNTUALE_KEY or --key-file")
	case errors.Is(err, auth.ErrMasterKey):
		return nil, fmt.Errorf("the stored secrets are sealed under another key than that of %s; give the one that was used before", file)
	case err != nil:
		return nil, fmt.Errorf("open the vault: %w", err)
	}
	if master == nil {
		cfg.Logger.Warn("secrets lie in the database beside the key that opens them; set PUNTUALE_KEY or key-file on every server")
	}
	if cfg.Key == "" && localfile.OthersMayRead(file) {
		cfg.Logger.Warn("others than its owner may read the key file; take that away with chmod 600", "file", file)
	}
	return vault, nil
}

// masterKey returns the master key, and the place that it was read from. It returns nil if there is none.
func masterKey(ctx context.Context, cfg *serverConfig, secrets puntuale.SecretStore) (key []byte, from string, err error) {
	own := databaseFile(&cfg.baseSettings, cfg.Data)
	switch {
	case cfg.Key != "":
		return []byte(strings.TrimSpace(cfg.Key)), "PUNTUALE_KEY", nil
	case cfg.KeyFile != "":
		key, err = readKey(cfg.KeyFile)
		return key, cfg.KeyFile, err
	case own == "":
		return nil, "", nil
	}
	own += ".key"
	key, err = readKey(own)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, own, err
	}
	sealed, err := auth.Sealed(ctx, secrets)
	if err != nil {
		return nil, "", fmt.Errorf("look for sealed secrets: %w", err)
	}
	if sealed {
		return nil, "", fmt.Errorf("%s is missing, and the stored secrets are sealed with it; put it back from where the database's backup is, "+
			"or give the key with PUNTUALE_KEY or --key-file", own)
	}
	if err := makeKey(own); err != nil {
		return nil, "", fmt.Errorf("make the key file: %w", err)
	}
	key, err = readKey(own) // another process made the file at the same time
	return key, own, err
}

func readKey(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the key file: %w", err)
	}
	key := bytes.TrimSpace(text)
	if len(key) < auth.MinMasterKey {
		return nil, fmt.Errorf("the key file %s is shorter than %d characters", name, auth.MinMasterKey)
	}
	return key, nil
}

// makeKey makes a key file. It never replaces a file. The file is on disk before anything is sealed with the key. After
// a crash, the file is complete or does not exist.
func makeKey(name string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*") // only its owner can read this file
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(random) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // Windows cannot sync a folder
		return dir.Close()
	}
	return errors.Join(dir.Sync(), dir.Close())
}
