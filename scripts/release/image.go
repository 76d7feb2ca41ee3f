package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is the user and the group of the image, as in deploy/Dockerfile. No file of the image belongs to it, except
// the empty data folder.
const imageUser = 65532

// writeImage writes one file with the images of all platforms. The file is both an OCI layout, for podman, skopeo and
// containerd, and an archive that "docker load" reads.
func (r *release) writeImage(programs []program) error {
	var platforms []mutate.IndexAddendum
	var archives []dockerArchive
	for _, p := range programs {
		image, err := r.image(p)
		if err != nil {
			return err
		}
		size, err := compressedSize(image)
		if err != nil {
			return err
		}
		if size > r.bounds.image {
			return fmt.Errorf("the image for %s has %d bytes, and %d are allowed", p.arch, size, r.bounds.image)
		}
		r.figures = append(r.figures, fmt.Sprintf("image for linux/%s: %s compressed", p.arch, mebibytes(size)))
		archive, err := dockerArchiveOf(image, "puntuale:"+r.version+"-"+p.arch)
		if err != nil {
			return err
		}
		archives = append(archives, archive)
		platforms = append(platforms, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.arch}}})
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), platforms...)
	folder := filepath.Join(r.work, "image")
	path, err := layout.Write(folder, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "docker.io/library/puntuale:" + r.version,
	})); err != nil {
		return err
	}
	manifest, err := json.Marshal(archives)
	if err != nil {
		return err
	}
	if err := path.WriteFile("manifest.json", manifest, 0o644); err != nil {
		return err
	}
	entries, err := layoutEntries(folder)
	if err != nil {
		return err
	}
	_, err = r.writeFile("puntuale_"+r.version+"_image.tar", func(w io.Writer) error { return writeTar(w, entries, r.tree.at) })
	return err
}

// image returns the image of one program: the program, whom to trust over TLS, an empty data folder, and a folder for
// temporary files. It has no shell. Time zones are inside the program.
func (r *release) image(p program) (v1.Image, error) {
	base := []entry{
		{name: "data/", mode: 0o700, owner: imageUser},
		{name: "etc/", mode: 0o755}, {name: "etc/ssl/", mode: 0o755}, {name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: authorities()},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755}, {name: "usr/share/", mode: 0o755}, {name: "usr/share/doc/", mode: 0o755}, {name: "usr/share/doc/puntuale/", mode: 0o755},
	}
	for _, d := range r.documents() {
		d.name = "usr/share/doc/puntuale/" + d.name
		base = append(base, d)
	}
	var layers []mutate.Addendum
	for what, entries := range [][]entry{base, {{name: "puntuale", mode: 0o755, source: p.path}}} {
		var packed bytes.Buffer
		if err := writeTar(&packed, entries, r.tree.at); err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil },
			tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9), tarball.WithCompressedCaching)
		if err != nil {
			return nil, err
		}
		comment := []string{"certificates and documents", "program"}[what]
		layers = append(layers, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.tree.at}, Comment: comment}})
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(image, layers...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", p.arch, v1.Time{Time: r.tree.at}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%[1]d", imageUser), Env: []string{"PUNTUALE_ADDR=:8080", "PUNTUALE_DATA=/data"},
		Entrypoint: []string{"/puntuale"}, Cmd: []string{"serve"}, WorkingDir: "/data",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}}, Volumes: map[string]struct{}{"/data": {}}, StopSignal: "SIGTERM",
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/puntuale", "health"}, Interval: 5 * time.Second, Timeout: 4 * time.Second, StartPeriod: time.Minute, Retries: 3},
		Labels: map[string]string{
			"org.opencontainers.image.title": "Puntuale", "org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.program.commit,
			"org.opencontainers.image.licenses": "GPL-3.0-or-later", "org.opencontainers.image.created": r.tree.at.Format(time.RFC3339),
		},
	}
	return mutate.ConfigFile(image, config)
}

// authorities returns the certificates of the public authorities that browsers trust, as a module of an exact version
// lists them. So the image does not depend on the machine that makes it.
func authorities() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file of certificates cannot express constraints
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return all.Bytes()
}

func compressedSize(image v1.Image) (total int64, err error) {
	layers, err := image.Layers()
	if err != nil {
		return 0, err
	}
	for _, layer := range layers {
		size, err := layer.Size()
		if err != nil {
			return 0, err
		}
		total += size
	}
	return total, nil
}

// dockerArchive is an entry of manifest.json, which "docker load" reads.
type dockerArchive struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func dockerArchiveOf(image v1.Image, tag string) (dockerArchive, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return dockerArchive{}, err
	}
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	a := dockerArchive{Config: blob(manifest.Config.Digest), RepoTags: []string{tag}}
	for _, layer := range manifest.Layers {
		a.Layers = append(a.Layers, blob(layer.Digest))
	}
	return a, nil
}

// layoutEntries returns the files of a folder as entries of an archive.
func layoutEntries(folder string) ([]entry, error) {
	var all []entry
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case e.IsDir():
			all = append(all, entry{name: name + "/", mode: 0o755})
		default:
			all = append(all, entry{name: name, mode: 0o644, source: filepath.Join(folder, name)})
		}
		return nil
	})
	return sorted(all), err
}
