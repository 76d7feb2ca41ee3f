package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the writer of Debian's packages
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the writer of Red Hat's packages
)

const packageDescription = `Sends sequences of WhatsApp messages on time.
A CRM makes one call. The server plans all messages of this call, stores them
on disk, sends each at its due time, and records each outcome. It has an
embedded database and dashboards, and needs no other service.`

// writePackage writes the package of one program. kind is deb or rpm.
func (r *release) writePackage(kind string, p program) error {
	contents, err := r.packageContents(kind, p)
	if err != nil {
		return err
	}
	scripts := r.tree.path("deploy/packages/" + kind)
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "puntuale", Arch: p.arch, Platform: "linux", Version: r.version, VersionSchema: "semver", Release: "1",
		Section: "net", Priority: "optional", Maintainer: "The authors of Puntuale <authors@puntuale.invalid>",
		Description: packageDescription, License: "GPL-3.0-or-later", MTime: r.tree.at, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents: contents,
			Scripts:  nfpm.Scripts{PostInstall: scripts + "/postinst", PreRemove: scripts + "/prerm", PostRemove: scripts + "/postrm"},
			RPM:      nfpm.RPM{BuildHost: "localhost", Summary: "Sends sequences of WhatsApp messages on time", Compression: "gzip:9", Packager: "The authors of Puntuale"},
			Deb:      nfpm.Deb{Compression: "gzip:9"},
		},
	})
	info.Depends = []string{"ca-certificates", "systemd >= 250"}
	if kind == "deb" {
		info.Depends = []string{"ca-certificates", "systemd (>= 250)"}
		info.Release = "" // without it the file's name and the version are the release's own
	}
	packager, err := nfpm.Get(kind)
	if err != nil {
		return err
	}
	_, err = r.writeFile(packager.ConventionalFileName(info), func(w io.Writer) error { return packager.Package(info, w) })
	return err
}

// packageContents returns the files of a package.
func (r *release) packageContents(kind string, p program) (files.Contents, error) {
	unit, err := r.stage("puntuale.service", r.tree.path("deploy/systemd/puntuale.service"), "/usr/local/bin/puntuale", "/usr/bin/puntuale")
	if err != nil {
		return nil, err
	}
	docs := "/usr/share/doc/puntuale/"
	settings := file(r.tree.path("deploy/systemd/puntuale.env"), "/etc/puntuale/puntuale.env", 0o600)
	settings.Type = files.TypeConfigNoReplace
	contents := files.Contents{
		file(p.path, "/usr/bin/puntuale", 0o755),
		file(unit, "/usr/lib/systemd/system/puntuale.service", 0o644),
		file(r.tree.path("deploy/systemd/puntuale.sysusers"), "/usr/lib/sysusers.d/puntuale.conf", 0o644),
		settings,
		ownFolder("/etc/puntuale", 0o750), ownFolder(docs, 0o755), // rpm removes no others
	}
	for _, d := range r.documents() {
		name := d.name
		if kind == "deb" && name == "LICENSE" {
			name = "copyright" // Debian's name
		}
		contents = append(contents, file(d.source, docs+name, 0o644))
	}
	manuals, err := r.manuals()
	for _, m := range manuals {
		if name, folder := strings.CutSuffix(m.name, "/"); folder {
			contents = append(contents, ownFolder(docs+name, 0o755))
		} else {
			contents = append(contents, file(m.source, docs+name, 0o644))
		}
	}
	return contents, err
}

func ownFolder(destination string, mode os.FileMode) *files.Content {
	return &files.Content{Destination: destination, Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: mode, Owner: "root", Group: "root"}}
}

func file(source, destination string, mode os.FileMode) *files.Content {
	return &files.Content{Source: source, Destination: destination, FileInfo: &files.ContentFileInfo{Mode: mode, Owner: "root", Group: "root"}}
}

// stage copies a file into the work folder, with one text replaced. The text must be in the file.
func (r *release) stage(name, source, old, replacement string) (string, error) {
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	if !bytes.Contains(text, []byte(old)) {
		return "", fmt.Errorf("%s does not have %s", source, old)
	}
	target := filepath.Join(r.work, name)
	return target, os.WriteFile(target, []byte(strings.ReplaceAll(string(text), old, replacement)), 0o644)
}
