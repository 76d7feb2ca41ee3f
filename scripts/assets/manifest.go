package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// manifestName is the name of the manifest's file. It is in the folder that contains the packages' folders.
const manifestName = "vendored.json"

// manifest lists the packages in a folder.
type manifest struct {
	Packages []pkg `json:"packages"`
}

// pkg is one package. It has its own folder.
type pkg struct {
	Name      string            `json:"package"`
	Version   string            `json:"version"`
	License   string            `json:"license"`
	Integrity string            `json:"integrity"` // the archive's hash, in npm's form
	Files     map[string]string `json:"files"`     // each file's hash, by its path inside the package
}

// home returns the package's folder. If the name has a scope, the folder's name leaves out the @, because go:embed does
// not accept it.
func (p pkg) home(folder string) string {
	return filepath.Join(folder, filepath.FromSlash(strings.TrimPrefix(p.Name, "@")))
}

func readManifest(folder string) (manifest, error) {
	var m manifest
	text, err := os.ReadFile(filepath.Join(folder, manifestName)) //nolint:gosec // in the folder that a developer named
	if err != nil {
		return m, fmt.Errorf("read the manifest: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("read the manifest of %s: %w", folder, err)
	}
	return m, nil
}

func (m manifest) write(folder string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, manifestName), append(text, '\n'), 0o644); err != nil { //nolint:gosec // part of the source
		return fmt.Errorf("write the manifest: %w", err)
	}
	return nil
}

// integrity returns a hash in the form that npm and browsers use.
func integrity(content []byte) string {
	sum := sha512.Sum512(content)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// verify compares every manifest below a folder with the files beside it. It returns the differences: a file that is
// missing, changed, or in no manifest.
func verify(root string) (faults []string, err error) {
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case entry.IsDir() || entry.Name() != manifestName:
			return nil
		}
		found, err := verifyFolder(filepath.Dir(name))
		faults = append(faults, found...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for manifests: %w", err)
	}
	return faults, nil
}

func verifyFolder(folder string) (faults []string, err error) {
	m, err := readManifest(folder)
	if err != nil {
		return nil, err
	}
	report := func(format string, args ...any) { faults = append(faults, folder+": "+fmt.Sprintf(format, args...)) }
	for _, p := range m.Packages {
		if p.Version == "" || p.License == "" || !strings.HasPrefix(p.Integrity, "sha512-") || len(p.Files) == 0 {
			report("%s: the manifest lacks its version, license, hash or files", p.Name)
		}
		committed := os.DirFS(p.home(folder))
		for _, name := range sorted(p.Files) {
			content, err := read(committed, name)
			if err != nil {
				report("%s/%s is missing", p.Name, name)
			} else if integrity(content) != p.Files[name] {
				report("%s/%s is not the file that was published", p.Name, name)
			}
		}
		err := fs.WalkDir(committed, ".", func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && p.Files[strings.TrimSuffix(name, packedEnding)] == "" {
				report("%s is not in the manifest", path.Join(p.Name, name))
			}
			return nil // if the folder is missing, its files were reported already
		})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", p.Name, err)
		}
	}
	return faults, nil
}

// packedEnding ends the names of files that are stored compressed.
const packedEnding = ".gz"

// read returns the content of a file, which may be stored compressed.
func read(folder fs.FS, name string) ([]byte, error) {
	content, err := fs.ReadFile(folder, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return content, err
	}
	packed, missing := folder.Open(name + packedEnding)
	if missing != nil {
		return nil, err
	}
	defer packed.Close() //nolint:errcheck // it is only read
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("unpack a file: %w", err)
	}
	return io.ReadAll(io.LimitReader(z, maxFile))
}

func sorted(files map[string]string) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
