package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"aead.dev/minisign"
)

const (
	sumsFile      = "SHA256SUMS"
	signatureFile = "SHA256SUMS.minisig"
	notesFile     = "NOTES.md"
)

// signer signs the checksums; nil: the release is unsigned.
type signer struct{ key minisign.PrivateKey }

// readSigner reads the key from a file, or from the variable MINISIGN_KEY. The variable MINISIGN_PASSWORD opens a key
// that has a password.
func readSigner(file string, env func(string) string) (*signer, error) {
	text := []byte(env("MINISIGN_KEY"))
	if file != "" {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("read the key: %w", err)
		}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	var key minisign.PrivateKey
	var err error
	if minisign.IsEncrypted(text) {
		key, err = minisign.DecryptKey(env("MINISIGN_PASSWORD"), text)
	} else {
		err = key.UnmarshalText(text)
	}
	if err != nil {
		return nil, fmt.Errorf("open the key (MINISIGN_PASSWORD has its password): %w", err)
	}
	return &signer{key}, nil
}

// public returns the public key, as minisign -P takes it.
func (s *signer) public() string {
	key, ok := s.key.Public().(minisign.PublicKey)
	if !ok {
		return ""
	}
	text, err := key.MarshalText()
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// signDist writes the checksums of all files of the release, and the signature of the checksums.
func signDist(r *release, s *signer) error {
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, entry := range entries { // sorted by name
		sum, err := sumOf(filepath.Join(r.dist, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, entry.Name())
	}
	if err := os.WriteFile(filepath.Join(r.dist, sumsFile), sums.Bytes(), 0o644); err != nil {
		return err
	}
	if s == nil {
		return nil
	}
	reader := minisign.NewReader(&sums)
	if _, err := io.Copy(io.Discard, reader); err != nil {
		return fmt.Errorf("sign the checksums: %w", err)
	}
	signature := reader.SignWithComments(s.key, "puntuale "+r.version, "signature of puntuale "+r.version)
	return os.WriteFile(filepath.Join(r.dist, signatureFile), signature, 0o644)
}

func sumOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
