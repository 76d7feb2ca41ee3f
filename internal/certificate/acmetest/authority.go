// Package acmetest is an authority for tests: a small, strict server of ACME (RFC 8555). It checks signatures and nonces,
// and proves a name by a TLS connection (tls-alpn-01) as a real authority does.
package acmetest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Authority is a running authority. Its fields must not be changed.
type Authority struct {
	URL   string         // of the directory
	Roots *x509.CertPool // trusts the authority's certificates

	t    *testing.T
	dial func() string // the address at which every host name is reached
	key  *ecdsa.PrivateKey
	root *x509.Certificate

	mu       sync.Mutex
	nonces   map[string]bool
	accounts map[string]*ecdsa.PublicKey // by URL
	orders   []*order
}

// order is the order of one certificate, with its only authorization and challenge. All have the same number.
type order struct {
	name, token string
	account     string
	proved      bool
	pem         []byte
}

// New starts an authority. dial returns the address of the server that it connects to instead of port 443 of the name.
func New(t *testing.T, dial func() string) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &Authority{t: t, dial: dial, key: key, nonces: map[string]bool{}, accounts: map[string]*ecdsa.PublicKey{}, Roots: x509.NewCertPool()}
	a.root = a.issue(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "acmetest"}}, nil, &key.PublicKey)
	a.Roots.AddCert(a.root)
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	a.URL = server.URL + "/directory"
	return a
}

// Orders returns the names of all orders, in their order.
func (a *Authority) Orders() (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.orders {
		names = append(names, o.name)
	}
	return names
}

func (a *Authority) issue(template, parent *x509.Certificate, public *ecdsa.PublicKey) *x509.Certificate {
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(90*24*time.Hour)
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, a.key)
	if err != nil {
		a.t.Error(err)
		return nil
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Error(err)
	}
	return made
}

// request is a signed request.
type request struct {
	account string // URL; "": the request makes an account
	jwk     jwk
	payload []byte
}

type jwk struct {
	Crv string `json:"crv"`
	Kty string `json:"kty"`
	X   string `json:"x"`
	Y   string `json:"y"`
}

func (a *Authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	base := "http://" + r.Host
	nonce := rand.Text()
	a.nonces[nonce] = true
	w.Header().Set("Replay-Nonce", nonce)
	switch r.URL.Path {
	case "/directory":
		answer(w, 200, map[string]string{"newNonce": base + "/nonce", "newAccount": base + "/account", "newOrder": base + "/order", "revokeCert": base + "/revoke", "keyChange": base + "/change"})
		return
	case "/nonce":
		return
	}
	q, err := a.read(r, base)
	if err == nil {
		err = a.serve(w, r.URL.Path, base, q)
	}
	if err != nil {
		a.t.Errorf("the authority refuses %s: %v", r.URL.Path, err)
		answer(w, 400, map[string]string{"type": "urn:ietf:params:acme:error:malformed", "detail": err.Error()})
	}
}

// read checks the nonce, the URL and the signature of a request.
func (a *Authority) read(r *http.Request, base string) (q request, err error) {
	var signed struct{ Protected, Payload, Signature string }
	var header struct {
		Alg, Kid, Nonce, URL string
		JWK                  *jwk
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<20)).Decode(&signed); err != nil {
		return q, err
	}
	if err := json.Unmarshal(unbase(signed.Protected), &header); err != nil {
		return q, err
	}
	if !a.nonces[header.Nonce] || header.URL != base+r.URL.Path || header.Alg != "ES256" || r.Header.Get("Content-Type") != "application/jose+json" {
		return q, fmt.Errorf("the header %+v is wrong", header)
	}
	delete(a.nonces, header.Nonce)
	public := a.accounts[header.Kid]
	if header.JWK != nil {
		q.jwk = *header.JWK
		var err error
		if public, err = ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, unbase(q.jwk.X), unbase(q.jwk.Y))); err != nil {
			return q, err
		}
	}
	signature := unbase(signed.Signature)
	sum := sha256.Sum256([]byte(signed.Protected + "." + signed.Payload))
	if public == nil || len(signature) != 64 || !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		return q, fmt.Errorf("the signature is wrong")
	}
	q.account, q.payload = header.Kid, unbase(signed.Payload)
	if q.account == "" { // an account's URL has the fingerprint of its key
		q.account = base + "/account/" + q.jwk.thumbprint()
		a.accounts[q.account] = public
	}
	return q, nil
}

func (k jwk) thumbprint() string {
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":%q,"kty":%q,"x":%q,"y":%q}`, k.Crv, k.Kty, k.X, k.Y))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func (a *Authority) serve(w http.ResponseWriter, path, base string, q request) error {
	switch path {
	case "/account":
		w.Header().Set("Location", q.account)
		return answer(w, 201, map[string]string{"status": "valid"})
	case "/order":
		var wanted struct{ Identifiers []struct{ Value string } }
		if err := json.Unmarshal(q.payload, &wanted); err != nil || len(wanted.Identifiers) != 1 {
			return fmt.Errorf("an order of %s: %w", q.payload, err)
		}
		a.orders = append(a.orders, &order{name: wanted.Identifiers[0].Value, token: rand.Text(), account: q.account})
		n := len(a.orders) - 1
		w.Header().Set("Location", fmt.Sprintf("%s/order/%d", base, n))
		return answer(w, 201, a.orders[n].shown(base, n))
	}
	var what string
	var n int
	if _, err := fmt.Sscanf(strings.ReplaceAll(path, "/", " "), "%s %d", &what, &n); err != nil || n >= len(a.orders) || a.orders[n].account != q.account {
		return fmt.Errorf("%s is nothing of this account: %w", path, err)
	}
	o := a.orders[n]
	challenge := map[string]string{"type": "tls-alpn-01", "url": fmt.Sprintf("%s/challenge/%d", base, n), "token": o.token, "status": "pending"}
	switch what {
	case "challenge":
		o.proved = a.proves(o)
		return answer(w, 200, challenge)
	case "authorization":
		status := map[bool]string{true: "valid", false: "pending"}[o.proved]
		challenge["status"] = status
		return answer(w, 200, map[string]any{"status": status, "identifier": map[string]string{"type": "dns", "value": o.name}, "challenges": []any{challenge}})
	case "finalize":
		var sent struct{ CSR string }
		if err := json.Unmarshal(q.payload, &sent); err != nil {
			return err
		}
		csr, err := x509.ParseCertificateRequest(unbase(sent.CSR))
		if err != nil || csr.CheckSignature() != nil || !o.proved || len(csr.DNSNames) != 1 || csr.DNSNames[0] != o.name {
			return fmt.Errorf("the request for %s: %w", o.name, err)
		}
		made := a.issue(&x509.Certificate{DNSNames: csr.DNSNames, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, a.root, csr.PublicKey.(*ecdsa.PublicKey))
		o.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Raw})
		return answer(w, 200, o.shown(base, n))
	case "order":
		return answer(w, 200, o.shown(base, n))
	case "certificate":
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_, err := w.Write(o.pem)
		return err
	}
	return fmt.Errorf("%s is unknown", path)
}

func (o *order) shown(base string, n int) map[string]any {
	shown := map[string]any{
		"status": "pending", "identifiers": []map[string]string{{"type": "dns", "value": o.name}},
		"authorizations": []string{fmt.Sprintf("%s/authorization/%d", base, n)}, "finalize": fmt.Sprintf("%s/finalize/%d", base, n),
	}
	if o.proved {
		shown["status"] = "ready"
	}
	if o.pem != nil {
		shown["status"], shown["certificate"] = "valid", fmt.Sprintf("%s/certificate/%d", base, n)
	}
	return shown
}

// proves connects to the host name as RFC 8737 says: the certificate must contain the hash of the token and of the
// account's key.
func (a *Authority) proves(o *order) bool {
	config := &tls.Config{ServerName: o.name, NextProtos: []string{"acme-tls/1"}, InsecureSkipVerify: true}
	conn, err := tls.Dial("tcp", a.dial(), config)
	if err != nil {
		a.t.Errorf("the authority cannot connect to %s: %v", o.name, err)
		return false
	}
	defer conn.Close()
	shown := conn.ConnectionState()
	want := sha256.Sum256([]byte(o.token + "." + o.account[strings.LastIndex(o.account, "/")+1:]))
	for _, extension := range shown.PeerCertificates[0].Extensions {
		var got []byte
		if extension.Id.Equal(asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 31}) && extension.Critical {
			_, err := asn1.Unmarshal(extension.Value, &got)
			return err == nil && bytes.Equal(got, want[:]) && shown.NegotiatedProtocol == "acme-tls/1"
		}
	}
	return false
}

func unbase(text string) []byte {
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return plain
}

func answer(w http.ResponseWriter, status int, value any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(value)
}
