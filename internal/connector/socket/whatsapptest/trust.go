//go:build !nosocket

package whatsapptest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waCert"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

// root signs the certificates of every Network of this process. whatsmeow has its root in one variable for all clients.
// So the variable is set once, before any test runs.
var root = installRoot()

// shipped is the library's own root key, which is in every built program.
var shipped [32]byte

func installRoot() *keys.KeyPair {
	shipped = whatsmeow.WACertPubKey
	pair := keys.NewKeyPair()
	whatsmeow.WACertPubKey = *pair.Pub
	return pair
}

// PatchRoot copies a built program and replaces the root key in the copy by this process's root key. The copy trusts
// only the networks of this process. PatchRoot fails unless the program contains the library's root key exactly once.
func PatchRoot(program, patched string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	if n := bytes.Count(content, shipped[:]); n != 1 {
		return fmt.Errorf("the root key occurs %d times in %s, want once", n, program)
	}
	content = bytes.Replace(content, shipped[:], root.Pub[:], 1)
	syscall.ForkLock.RLock() // a process that starts meanwhile would inherit the open file, and then the copy cannot run
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(patched, content, 0o700); err != nil {
		return fmt.Errorf("write the patched program: %w", err)
	}
	return nil
}

// certificates are what a network presents in each handshake, with the key that they certify.
type certificates struct {
	static *keys.KeyPair
	chain  []byte
}

func newCertificates() (certificates, error) {
	intermediate, static := keys.NewKeyPair(), keys.NewKeyPair()
	first, err1 := certify(root, 1, whatsmeow.WACertIssuerSerial, intermediate)
	leaf, err2 := certify(intermediate, 2, 1, static)
	chain, err3 := proto.Marshal(&waCert.CertChain{Intermediate: first, Leaf: leaf})
	return certificates{static: static, chain: chain}, errors.Join(err1, err2, err3)
}

func certify(issuerKey *keys.KeyPair, serial, issuer uint32, key *keys.KeyPair) (*waCert.CertChain_NoiseCertificate, error) {
	now := time.Now()
	details, err := proto.Marshal(&waCert.CertChain_NoiseCertificate_Details{
		Serial: proto.Uint32(serial), IssuerSerial: proto.Uint32(issuer), Key: key.Pub[:],
		NotBefore: proto.Uint64(uint64(now.Add(-time.Hour).Unix())), NotAfter: proto.Uint64(uint64(now.AddDate(10, 0, 0).Unix())),
	})
	if err != nil {
		return nil, fmt.Errorf("encode a certificate: %w", err)
	}
	return &waCert.CertChain_NoiseCertificate{Details: details, Signature: sign(issuerKey, details)}, nil
}

func sign(issuerKey *keys.KeyPair, data []byte) []byte {
	signature := ecc.CalculateSignature(ecc.NewDjbECPrivateKey(*issuerKey.Priv), data)
	return signature[:]
}
