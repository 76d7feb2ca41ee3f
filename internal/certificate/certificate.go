// Package certificate gets certificates for TLS from an authority by ACME (RFC 8555), and renews them. The authority
// proves a host name by a TLS connection to it (the challenge tls-alpn-01), so no other port is needed. Certificates,
// their keys and open challenges are in the database, encrypted. So any server of an installation can answer a challenge
// of another, and all show the same certificate.
package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/outside"
)

// Directory is the address of Let's Encrypt.
const Directory = autocert.DefaultACMEDirectory

// Config says for which names an installation gets certificates, and where from.
type Config struct {
	Hosts     func(context.Context) ([]string, error) // the installation's host names now, in ASCII and small letters
	Secrets   puntuale.SecretStore
	Vault     *auth.Vault
	Directory string // the authority's address
	Email     string // where the authority may write; "": nowhere
	Now       func() time.Time
	Memory    outside.MemoryGrants // who pays for the authority's answers
}

// How long a list of host names is used before it is read again, and how long a call of the authority may take.
const (
	hostsFor = time.Minute
	callFor  = 30 * time.Second
)

// New returns the configuration of a listener. The first connection to a name waits until the certificate is there, at
// most five minutes. A connection to any other name is refused, without a call to the authority. HTTP/2 is not offered,
// because the server's limits count connections, and one connection of HTTP/2 carries many requests.
func New(cfg Config) *tls.Config {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 64 << 10
	names := &hostList{read: cfg.Hosts, now: cfg.Now}
	m := &autocert.Manager{
		Prompt: autocert.AcceptTOS, Email: cfg.Email, HostPolicy: names.policy, Cache: cache{cfg.Secrets, cfg.Vault},
		Client: &acme.Client{DirectoryURL: cfg.Directory, UserAgent: "puntuale", HTTPClient: &http.Client{
			Timeout: callFor, Transport: outside.Authority.Transport(transport, cfg.Memory, 0),
		}},
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: m.GetCertificate, NextProtos: []string{"http/1.1", acme.ALPNProto}}
}

// hostList remembers the installation's host names, so that connections to unknown names cost no query.
type hostList struct {
	read func(context.Context) ([]string, error)
	now  func() time.Time

	mu    sync.Mutex
	names []string
	until time.Time
}

// policy refuses a name that is not the installation's own. If the names cannot be read, the former ones stay.
func (h *hostList) policy(ctx context.Context, host string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.now(); !now.Before(h.until) {
		names, err := h.read(ctx)
		if err != nil && h.names == nil {
			return fmt.Errorf("read the host names: %w", err)
		}
		if err == nil {
			h.names = names
		}
		h.until = now.Add(hostsFor)
	}
	if !slices.Contains(h.names, host) {
		return fmt.Errorf("%q is no host name of this installation", host)
	}
	return nil
}

// cache stores what autocert must not lose, encrypted, among the server's secrets.
type cache struct {
	secrets puntuale.SecretStore
	vault   *auth.Vault
}

// purpose is what the vault encrypts for, and the beginning of the names of the secrets.
const purpose = puntuale.SealedCertificate

// Get returns [autocert.ErrCacheMiss] for what is not there, was deleted, or was encrypted with another key.
func (c cache) Get(ctx context.Context, key string) ([]byte, error) {
	sealed, err := c.secrets.Secret(ctx, purpose+" "+key)
	if err != nil {
		return nil, fmt.Errorf("read a certificate: %w", err)
	}
	if sealed == nil {
		return nil, autocert.ErrCacheMiss
	}
	plain, err := c.vault.Open(purpose, key, sealed)
	if err != nil || len(plain) == 0 {
		return nil, autocert.ErrCacheMiss
	}
	return plain, nil
}

// Put stores the value, whatever another server stores at the same time.
func (c cache) Put(ctx context.Context, key string, value []byte) error {
	sealed := c.vault.Seal(purpose, key, value)
	for range 5 {
		old, err := c.secrets.Secret(ctx, purpose+" "+key)
		if err != nil {
			return fmt.Errorf("read a certificate: %w", err)
		}
		set, err := c.secrets.SetSecret(ctx, purpose+" "+key, old, sealed)
		if err != nil {
			return fmt.Errorf("store a certificate: %w", err)
		}
		if set {
			return nil
		}
	}
	return errors.New("store a certificate: other servers store it again and again")
}

// Delete stores an empty value, because secrets cannot be deleted.
func (c cache) Delete(ctx context.Context, key string) error { return c.Put(ctx, key, nil) }
