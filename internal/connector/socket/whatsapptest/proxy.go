//go:build !nosocket

package whatsapptest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Proxy is an HTTPS proxy, with a certificate authority of its own. Its tunnels lead to the network. Tests of built
// programs use it.
type Proxy struct {
	URL      string // the proxy's address
	CertFile string // the file with the authority's certificate, in PEM form

	n       *Network
	config  *tls.Config
	arrived chan net.Conn
	tunnels map[string]int // number of tunnels, by host; guarded by n.mu
}

// Proxy starts a proxy that ends with the network. A tunnel to an unknown host is refused and fails the test.
func (n *Network) Proxy() *Proxy {
	n.t.Helper()
	p := &Proxy{n: n, CertFile: filepath.Join(n.t.TempDir(), "authority.pem"), arrived: make(chan net.Conn), tunnels: map[string]int{}}
	if err := p.certify(); err != nil {
		n.t.Fatalf("make a certificate authority: %v", err)
	}
	listener, err := new(net.ListenConfig).Listen(n.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatalf("listen: %v", err)
	}
	p.URL = "http://" + listener.Addr().String()
	front := &http.Server{Handler: http.HandlerFunc(p.connect), ReadHeaderTimeout: time.Minute, ErrorLog: quiet}
	n.open.Go(func() { _ = front.Serve(listener) })
	n.open.Go(func() { _ = n.server.Serve(&tunnelEnds{p}) })
	context.AfterFunc(n.ctx, func() { _ = front.Close() })
	return p
}

// Env returns environment variables for a program. They send the program's HTTPS through the proxy, and make the
// program trust the network. They also replace proxy settings from the test's own environment.
func (p *Proxy) Env() []string {
	return []string{
		"HTTPS_PROXY=" + p.URL, "https_proxy=" + p.URL, "HTTP_PROXY=", "http_proxy=", "NO_PROXY=", "no_proxy=",
		"SSL_CERT_FILE=" + p.CertFile, "SSL_CERT_DIR=" + filepath.Join(filepath.Dir(p.CertFile), "none"),
	}
}

// Tunnels returns the number of tunnels so far, by host, including refused ones.
func (p *Proxy) Tunnels() map[string]int {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	return maps.Clone(p.tunnels)
}

// connect opens a tunnel and decrypts its TLS.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	host, port, err := net.SplitHostPort(r.Host)
	known := r.Method == http.MethodConnect && err == nil && port == "443" && slices.Contains([]string{Host, MediaHost}, host)
	p.n.mu.Lock()
	p.tunnels[host]++
	if !known {
		p.n.misunderstood("%s %s at the proxy", r.Method, r.Host)
	}
	refused := p.n.closed || p.n.refusing
	p.n.mu.Unlock()
	if !known || refused {
		http.Error(w, "no such host", http.StatusBadGateway)
		return
	}
	hijacker, can := w.(http.Hijacker)
	if !can {
		http.Error(w, "not HTTP/1.1", http.StatusHTTPVersionNotSupported)
		return
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		conn.Close()
		return
	}
	select {
	case p.arrived <- tls.Server(conn, p.config):
	case <-p.n.ctx.Done():
		conn.Close()
	}
}

// tunnelEnds is a listener. Its connections are the decrypted tunnels.
type tunnelEnds struct{ p *Proxy }

func (t *tunnelEnds) Accept() (net.Conn, error) {
	select {
	case conn := <-t.p.arrived:
		return conn, nil
	case <-t.p.n.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (t *tunnelEnds) Close() error   { return nil }
func (t *tunnelEnds) Addr() net.Addr { return &net.TCPAddr{} }

// certify makes the certificate authority, and the certificate for the hosts.
func (p *Proxy) certify() error {
	key, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	leafKey, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "loopback WhatsApp"}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: Host}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		DNSNames: []string{Host, MediaHost}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	own, err1 := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
	shown, err2 := x509.CreateCertificate(rand.Reader, leaf, authority, &leafKey.PublicKey, key)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	p.config = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{shown}, PrivateKey: leafKey}}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	return os.WriteFile(p.CertFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own}), 0o600)
}
