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
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/datakey"
	"puntuale/internal/localfile"
	"puntuale/internal/push"
	"puntuale/internal/store"
)

// openVault opens the vault, which seals secrets with a data key. The data key is in the database, and is itself sealed
// with the master key. The master key is never in the database. The settings name the master key. On SQLite, the master
// key may also be in a file beside the database. The first start makes this file.
func (s *server) openVault(ctx context.Context, cfg *serverConfig) (*auth.Vault, error) {
	master, file, err := masterKey(ctx, cfg, s.store)
	if err != nil {
		return nil, err
	}
	vault, err := auth.OpenVault(ctx, s.store, master)
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
	return vault, s.followKeys(ctx, cfg, vault)
}

// keyLease is how long after its last report a server counts as one that may seal secrets.
const keyLease = 30 * time.Second

// followKeys lets this server take part in a replacement of the data key. It reports the server before it reads the keys
// once more: so a replacement waits for this server, or this server sees what the replacement changed.
func (s *server) followKeys(ctx context.Context, cfg *serverConfig, vault *auth.Vault) error {
	vault.Follow(s.store, cfg.Clock, func(ctx context.Context) ([]byte, error) {
		key, _, err := masterKey(ctx, cfg, s.store)
		return key, err
	})
	s.keyReader = rand.Text() + " " + release() + " " + strings.Join(cfg.Roles, ",") // [serversShown] reads it
	if err := s.store.ReportKeys(ctx, s.keyReader, vault.Version(), keyLease); err != nil {
		return fmt.Errorf("report this server: %w", err)
	}
	return s.readKeys(ctx, vault)
}

// readKeys reads the keys again, and reports which ones this server has.
func (s *server) readKeys(ctx context.Context, vault *auth.Vault) error {
	before := vault.Version()
	err := vault.ReadAgain(ctx)
	if errors.Is(err, auth.ErrMasterKey) {
		err = fmt.Errorf("the data key is being replaced, and the second key was replaced since this server started: restart it with the present one: %w", err)
	}
	if now := vault.Version(); now != before {
		s.logger.Info("the data keys changed, and were read again", "version", now)
	}
	if report := s.store.ReportKeys(ctx, s.keyReader, vault.Version(), keyLease); report != nil {
		err = errors.Join(err, fmt.Errorf("report this server: %w", report))
	}
	return err
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
	return syncFolder(filepath.Dir(name))
}

// keySecondCommand replaces the second key, which seals the data key. Servers may run meanwhile.
type keySecondCommand struct {
	baseSettings `embed:""`
	keySettings  `embed:""`

	NewKeyFile string `local:"" placeholder:"FILE" help:"A file with the new key: at least 32 random characters. Without it the command makes a key, and puts it in place of the present key file."`
}

func (c *keySecondCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so no key to replace", fresh)
	}
	if c.KeyFile != "" {
		c.KeyFile = p.path(c.KeyFile)
	}
	return p.withStore(ctx, &c.baseSettings, func(opened *store.Store) error {
		cfg := &serverConfig{serveSettings: serveSettings{baseSettings: c.baseSettings, keySettings: c.keySettings}}
		old, file, err := masterKey(ctx, cfg, opened)
		if err != nil {
			return err
		}
		if c.NewKeyFile != "" {
			return c.take(ctx, p, opened, old)
		}
		if old == nil || c.Key != "" {
			return errors.New("the present key is in no file, so the command cannot replace it there; make a key with openssl rand -base64 32, and name its file with --new-key-file")
		}
		return c.replace(ctx, p, opened, file)
	})
}

// take replaces the key with one that the operator made.
func (c *keySecondCommand) take(ctx context.Context, p *program, opened *store.Store, old []byte) error {
	name := p.path(c.NewKeyFile)
	key, err := readKey(name)
	if err != nil {
		return err
	}
	if bytes.Equal(key, old) {
		return fmt.Errorf("%s has the present key", name)
	}
	if err := auth.Rewrap(ctx, opened, old, key); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "The secrets are sealed under the key of %s.\nRunning servers go on. Give every server this key before its next start, with --key-file or PUNTUALE_KEY.\n%s", name, keepFormer)
	return err
}

// keepFormer tells the operator why the former key is still needed.
const keepFormer = "Keep the former key as long as you keep backups or exports that were made before and do not have it in them.\n"

// replace makes a key and puts it in the place of the present key file. The new key is on disk before the data key is
// wrapped with it. If the command was killed in between, the next call continues.
func (c *keySecondCommand) replace(ctx context.Context, p *program, opened *store.Store, file string) error {
	next, former := file+".new", file+".former-"+p.clock.Now().Format("20060102T150405Z")
	if err := makeKey(next); err != nil { // it keeps the file of a command that was killed
		return fmt.Errorf("make the new key: %w", err)
	}
	key, err := readKey(next)
	if err != nil {
		return err
	}
	old, err := readKey(file)
	if err != nil {
		return err
	}
	if err := auth.Rewrap(ctx, opened, old, key); err != nil {
		if _, sealed := auth.OpenVault(ctx, opened, key); !errors.Is(err, auth.ErrMasterKey) || sealed != nil {
			return errors.Join(err, os.Remove(next))
		}
		// The killed command had wrapped the data key already, and only the files are left.
	}
	if err := os.Link(file, former); err != nil {
		return fmt.Errorf("keep the former key: %w; the present key is in %s", err, next)
	}
	if err := os.Rename(next, file); err != nil {
		return fmt.Errorf("put the new key in place: %w; it is in %s", err, next)
	}
	if err := syncFolder(filepath.Dir(file)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "The secrets are sealed under a new key, which is in %s.\nRunning servers go on. If other servers have a copy of this file, replace it before their next start.\nThe former key is in %s. %s", file, former, keepFormer)
	return err
}

// keyDataCommand replaces the data key, and seals all secrets with the new one. Servers may run meanwhile.
type keyDataCommand struct {
	baseSettings `embed:""`
	keySettings  `embed:""`
}

func (c *keyDataCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so no key to replace", fresh)
	}
	if c.KeyFile != "" {
		c.KeyFile = p.path(c.KeyFile)
	}
	return p.withStore(ctx, &c.baseSettings, func(opened *store.Store) error {
		master, _, err := masterKey(ctx, &serverConfig{serveSettings: serveSettings{baseSettings: c.baseSettings, keySettings: c.keySettings}}, opened)
		if err != nil {
			return err
		}
		var last datakey.Progress
		done, err := datakey.Replace(ctx, datakey.Config{Store: opened, Master: master, Clock: p.clock, Settle: datakey.Settle, Report: func(now datakey.Progress) {
			if now == last {
				return
			}
			if last = now; now.Waits > 0 {
				fmt.Fprintf(p.stderr, "waiting for %d servers to read the keys\n", now.Waits)
			} else {
				fmt.Fprintf(p.stderr, "%d values sealed again\n", now.Sealed)
			}
		}})
		switch {
		case errors.Is(err, datakey.ErrFormerServers):
			return fmt.Errorf("%w; upgrade or stop them, then call this again: what is sealed can be read everywhere until then", err)
		case errors.Is(err, datakey.ErrServersWait):
			return fmt.Errorf("%w; their logs say why. If the second key was replaced after they started, restart them with the present one. "+
				"Then call this again: what is sealed can be read everywhere until then", err)
		case errors.Is(err, auth.ErrMasterKey):
			return fmt.Errorf("%w: give the present second key; if it has just been replaced, call this again", err)
		case err != nil:
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "A new data key seals everything, and the former one is gone from the database.\nBackups and exports from before contain the former key. Make a new backup, and delete those whose second key others may have.\n")
		if err == nil && done.Lost > 0 {
			_, err = fmt.Fprintf(p.stdout, "%d values could be opened neither before nor now. They stay as they are.\n", done.Lost)
		}
		return err
	})
}

// keyPushCommand replaces the key that signs pushes to phones. Servers may run meanwhile.
type keyPushCommand struct {
	baseSettings `embed:""`
	keySettings  `embed:""`
}

func (c *keyPushCommand) Run(ctx context.Context, p *program) error {
	return p.withVault(ctx, &c.baseSettings, &c.keySettings, func(opened *store.Store, vault *auth.Vault) error {
		key, err := push.ReplaceKey(ctx, opened, vault)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "Pushes are signed with a new key; its public part is %s.\nRunning servers use it within a minute. A phone gets pushes under the former key until its app starts the next time.\n", key.Public())
		return err
	})
}

// withVault opens the store and the vault for one command of an operator. Servers may run meanwhile.
func (p *program) withVault(ctx context.Context, s *baseSettings, keys *keySettings, verb func(*store.Store, *auth.Vault) error) error {
	if fresh := newFile(s, p.path(s.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so no key to replace", fresh)
	}
	if keys.KeyFile != "" {
		keys.KeyFile = p.path(keys.KeyFile)
	}
	return p.withStore(ctx, s, func(opened *store.Store) error {
		master, _, err := masterKey(ctx, &serverConfig{serveSettings: serveSettings{baseSettings: *s, keySettings: *keys}}, opened)
		if err != nil {
			return err
		}
		vault, err := auth.OpenVault(ctx, opened, master)
		if err != nil {
			return err
		}
		return verb(opened, vault)
	})
}

func syncFolder(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // Windows cannot sync a folder
		return dir.Close()
	}
	return errors.Join(dir.Sync(), dir.Close())
}
