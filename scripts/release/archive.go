package main

import (
	"archive/tar"
	"archive/zip"
	"compress/flate"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// entry is a file or a folder of an archive. Every archive of a release is made of entries, so that names, modes, owners
// and times depend only on the commit.
type entry struct {
	name   string // with slashes; folders end with one
	mode   int64
	owner  int // number of the user and of the group
	source string
	text   []byte // the content, if source is ""
}

func (e *entry) content() ([]byte, error) {
	if e.source == "" {
		return e.text, nil
	}
	return os.ReadFile(e.source)
}

// documents returns the files that go with each program: its terms, its parts, and what changed.
func (r *release) documents() []entry {
	var all []entry
	for name, source := range map[string]string{
		"LICENSE": r.tree.path("LICENSE"), "NOTICE": r.tree.path("NOTICE"), "CHANGELOG.md": r.tree.path("CHANGELOG.md"),
		licensesFile: filepath.Join(r.work, licensesFile), componentsFile: filepath.Join(r.work, componentsFile),
	} {
		all = append(all, entry{name: name, mode: 0o644, source: source})
	}
	return sorted(all)
}

// manuals returns the manuals, and the files of deploy/ that they name, in the folders of the sources, so that their links
// hold. The pictures stay out: they would take a fiftieth of an archive.
func (r *release) manuals() ([]entry, error) {
	all := []entry{{name: "README.md", mode: 0o644, source: r.tree.path("README.md")}}
	tree := os.DirFS(r.tree.folder)
	for _, top := range []string{"docs", "deploy"} {
		err := fs.WalkDir(tree, top, func(name string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case name == "docs/images" || name == "deploy/packages":
				return fs.SkipDir
			case e.IsDir():
				all = append(all, entry{name: name + "/", mode: 0o755})
			default:
				all = append(all, entry{name: name, mode: 0o644, source: r.tree.path(name)})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the manuals: %w", err)
		}
	}
	return sorted(all), nil
}

// writeArchive writes the archive of one program: a zip file for Windows, and otherwise a compressed tar file.
func (r *release) writeArchive(p program) error {
	folder := "puntuale-" + r.version + "/"
	entries := []entry{{name: folder, mode: 0o755}, {name: folder + filepath.Base(p.path), mode: 0o755, source: p.path}}
	manuals, err := r.manuals()
	if err != nil {
		return err
	}
	for _, d := range slices.Concat(r.documents(), manuals) {
		d.name = folder + d.name
		entries = append(entries, d)
	}
	name, write := fmt.Sprintf("puntuale_%s_%s_%s.tar.gz", r.version, p.os, p.arch), writeTarGz
	if p.os == "windows" {
		name, write = fmt.Sprintf("puntuale_%s_%s_%s.zip", r.version, p.os, p.arch), writeZip
	}
	size, err := r.writeFile(name, func(w io.Writer) error { return write(w, entries, r.tree.at) })
	if err == nil && p.os == "linux" && p.arch == "amd64" && size > r.bounds.archive {
		err = fmt.Errorf("the archive has %s, and %s are allowed", mebibytes(size), mebibytes(r.bounds.archive))
	}
	return err
}

// writeSource writes the archive of the sources.
func (r *release) writeSource(ctx context.Context) error {
	packed, err := git(ctx, "-c", "tar.umask=0022", "archive", "--format=tar", "--prefix=puntuale-"+r.version+"/", r.tree.commit)
	if err != nil {
		return err
	}
	_, err = r.writeFile(fmt.Sprintf("puntuale_%s_source.tar.gz", r.version), func(w io.Writer) error {
		z := newGzip(w)
		if _, err := z.Write(packed); err != nil {
			return err
		}
		return z.Close()
	})
	return err
}

// writeFile writes one file of the release, and notes its size, which it returns.
func (r *release) writeFile(name string, write func(io.Writer) error) (int64, error) {
	f, err := os.OpenFile(filepath.Join(r.dist, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return 0, fmt.Errorf("write %s: %w", name, err)
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	r.figures = append(r.figures, fmt.Sprintf("%s: %s", name, mebibytes(info.Size())))
	return info.Size(), f.Close()
}

// newGzip returns a compressor that stores neither a name nor a time.
func newGzip(w io.Writer) *gzip.Writer {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		panic(err) // only an unknown level fails
	}
	return z
}

func writeTarGz(w io.Writer, entries []entry, at time.Time) error {
	z := newGzip(w)
	if err := writeTar(z, entries, at); err != nil {
		return err
	}
	return z.Close()
}

func writeTar(w io.Writer, entries []entry, at time.Time) error {
	t := tar.NewWriter(w)
	for i := range entries {
		e := &entries[i]
		header := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if isFolder(e) {
			header.Typeflag = tar.TypeDir
		}
		content, err := e.content()
		if err != nil {
			return err
		}
		header.Size = int64(len(content))
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(content); err != nil {
			return err
		}
	}
	return t.Close()
}

func isFolder(e *entry) bool { return path.Clean(e.name)+"/" == e.name }

func writeZip(w io.Writer, entries []entry, at time.Time) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for i := range entries {
		e := &entries[i]
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		header.SetMode(os.FileMode(e.mode))
		if isFolder(e) {
			header.SetMode(os.ModeDir | os.FileMode(e.mode))
		}
		file, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		content, err := e.content()
		if err != nil {
			return err
		}
		if _, err := file.Write(content); err != nil {
			return err
		}
	}
	return z.Close()
}
