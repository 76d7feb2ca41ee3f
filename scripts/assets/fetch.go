package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile is the largest unpacked size of one file in an archive, in bytes.
const maxFile = 64 << 20

// refresh downloads every package of a manifest again. The hashes must be equal to those in the manifest.
func refresh(folder string) error {
	m, err := readManifest(folder)
	if err != nil {
		return err
	}
	for _, p := range m.Packages {
		archive, err := download(p.Name + "@" + p.Version)
		if err != nil {
			return err
		}
		if got := integrity(archive); got != p.Integrity {
			return fmt.Errorf("%s %s is published as %s, the manifest has %s", p.Name, p.Version, got, p.Integrity)
		}
		files, err := unpack(archive)
		if err != nil {
			return err
		}
		for name, want := range p.Files {
			if integrity(files[name]) != want {
				return fmt.Errorf("%s/%s is not what the manifest has", p.Name, name)
			}
		}
		if err := p.store(folder, files); err != nil {
			return err
		}
	}
	return nil
}

// replace puts a version of a package into the manifest. If names is empty, it uses the file names of the previous
// version.
func replace(folder, spec string, names []string) error {
	at := strings.LastIndex(spec, "@")
	if at < 1 {
		return fmt.Errorf("%q is not NAME@VERSION", spec)
	}
	p := pkg{Name: spec[:at], Version: spec[at+1:], Files: map[string]string{}}
	m, err := readManifest(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	old := slices.IndexFunc(m.Packages, func(o pkg) bool { return o.Name == p.Name })
	if len(names) == 0 && old >= 0 {
		names = sorted(m.Packages[old].Files)
	}
	if len(names) == 0 {
		return fmt.Errorf("%s is new: name its files", p.Name)
	}
	archive, err := download(spec)
	if err != nil {
		return err
	}
	files, err := unpack(archive)
	if err != nil {
		return err
	}
	p.Integrity = integrity(archive)
	for _, name := range names {
		content, ok := files[name]
		if !ok {
			return fmt.Errorf("%s has no file %s", spec, name)
		}
		p.Files[name] = integrity(content)
	}
	var about struct{ License string }
	if err := json.Unmarshal(files["package.json"], &about); err != nil {
		return fmt.Errorf("read the package's own description: %w", err)
	}
	p.License = about.License
	if old >= 0 {
		m.Packages[old] = p
	} else {
		m.Packages = append(m.Packages, p)
	}
	if err := p.store(folder, files); err != nil {
		return err
	}
	return m.write(folder)
}

// packedFrom is the size, in bytes, above which a file is stored compressed, because it becomes a part of the program.
const packedFrom = 128 << 10

func pack(content []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid, so this cannot fail
	_, _ = z.Write(content)                               // writing to memory cannot fail
	_ = z.Close()
	return b.Bytes()
}

// store replaces the package's folder by a new one with only the files of the manifest.
func (p pkg) store(folder string, files map[string][]byte) error {
	if !filepath.IsLocal(p.Name) {
		return fmt.Errorf("%q is no name of a package", p.Name)
	}
	home := p.home(folder)
	if err := os.RemoveAll(home); err != nil {
		return fmt.Errorf("remove the old files of %s: %w", p.Name, err)
	}
	for name := range p.Files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%s: the path %q leads elsewhere", p.Name, name)
		}
		file := filepath.Join(home, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(file), 0o755) //nolint:gosec // part of the source
		content := files[name]
		if len(content) > packedFrom {
			file, content = file+packedEnding, pack(content)
		}
		if err == nil {
			err = os.WriteFile(file, content, 0o644) //nolint:gosec // part of the source
		}
		if err != nil {
			return fmt.Errorf("store %s: %w", p.Name, err)
		}
	}
	return nil
}

// download gets a package's archive with npm. It neither installs nor runs the package.
func download(spec string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "assets-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	//nolint:gosec,noctx // the name is a developer's own, and an interrupt reaches npm by itself
	cmd := exec.Command("npm", "pack", spec, "--ignore-scripts", "--silent", "--pack-destination", dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("npm pack %s: %w", spec, err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("npm pack %s left %d archives", spec, len(found))
	}
	archive, err := os.ReadFile(found[0])
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	return archive, nil
}

// unpack returns an archive's files by path. The paths leave out the folder that contains all files.
func unpack(archive []byte) (map[string][]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	files := map[string][]byte{}
	for t := tar.NewReader(z); ; {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		_, name, inside := strings.Cut(header.Name, "/")
		if header.Typeflag != tar.TypeReg || !inside {
			continue
		}
		content, err := io.ReadAll(io.LimitReader(t, maxFile+1))
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", name, err)
		}
		if len(content) > maxFile {
			return nil, fmt.Errorf("unpack %s: it is larger than %d bytes", name, maxFile)
		}
		files[name] = content
	}
}
