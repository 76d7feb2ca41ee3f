// Package pushtest simulates a push service and its browsers for tests. It is strict: a push fails the test if RFC
// 8030, 8188, 8291 or 8292 forbids it, or if a browser could not decrypt it.
package pushtest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Service is a push service. Many goroutines may call its methods at the same time.
type Service struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	browsers map[string]*Browser // the key is the path of the browser's endpoint
	received []Received
	answer   func(*Browser) (status int, retryAfter string)
}

// Browser is a browser with a subscription.
type Browser struct {
	Endpoint, P256dh, Auth string // the values that the browser gives the application

	key         *ecdh.PrivateKey
	auth        []byte
	application string // the public key of the application whose pushes it accepts
}

// Received is a push that a browser decrypted.
type Received struct {
	Browser *Browser
	Payload string
	TTL     int
	Urgency string
	Topic   string
	Sender  string
}

// New starts a service, which ends with the test.
func New(t testing.TB) *Service {
	s := &Service{t: t, browsers: map[string]*Browser{}}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

// Transport returns a transport that sends every request to the service.
func (s *Service) Transport() http.RoundTripper { return s.Client().Transport }

// Subscribe adds a browser that subscribed with an application's public key.
func (s *Service) Subscribe(application string) *Browser {
	s.t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	b := &Browser{key: key, auth: []byte(rand.Text())[:16], application: application}
	b.P256dh, b.Auth = encode(key.PublicKey().Bytes()), encode(b.auth)
	path := "/send/" + rand.Text()
	b.Endpoint = "https://example.com" + path // the transport sends it to the service; an address needs a name
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browsers[path] = b
	return b
}

// Answer sets the function that answers pushes. With nil, the service accepts all. A refused push does not count as
// received.
func (s *Service) Answer(f func(*Browser) (status int, retryAfter string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// Received lists the accepted pushes so far, oldest first.
func (s *Service) Received() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.browsers[r.URL.Path]
	if b == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	got, err := s.read(b, r)
	if errors.Is(err, errKey) { // as push services do
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if err != nil {
		s.t.Errorf("a push service refuses this push: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if s.answer != nil {
		if status, after := s.answer(b); status != http.StatusCreated {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(status)
			return
		}
	}
	s.received = append(s.received, got)
	w.WriteHeader(http.StatusCreated)
}

func (s *Service) read(b *Browser, r *http.Request) (got Received, err error) {
	got = Received{Browser: b, Urgency: r.Header.Get("Urgency"), Topic: r.Header.Get("Topic")}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return got, err
	}
	ttl, err := strconv.Atoi(r.Header.Get("TTL"))
	switch {
	case r.Method != http.MethodPost:
		return got, fmt.Errorf("the method is %s", r.Method)
	case err != nil || ttl < 0:
		return got, fmt.Errorf("the TTL is %q", r.Header.Get("TTL"))
	case !slices.Contains([]string{"", "very-low", "low", "normal", "high"}, got.Urgency):
		return got, fmt.Errorf("the urgency is %q", got.Urgency)
	case len(got.Topic) > 32:
		return got, fmt.Errorf("the topic is %q", got.Topic)
	case len(body) > 4096:
		return got, fmt.Errorf("the body has %d bytes, 4096 are allowed", len(body))
	case r.Header.Get("Content-Encoding") != "aes128gcm":
		return got, fmt.Errorf("the encoding is %q", r.Header.Get("Content-Encoding"))
	}
	got.TTL = ttl
	if got.Sender, err = checkVAPID(b.application, "https://"+r.Host, r.Header.Get("Authorization")); err != nil {
		return got, err
	}
	plain, err := b.decrypt(body)
	got.Payload = string(plain)
	return got, err
}

var errKey = errors.New("the key is another one")

// checkVAPID checks a push's token (RFC 8292), and returns the token's sub.
func checkVAPID(application, origin, header string) (sender string, err error) {
	parameters, ok := strings.CutPrefix(header, "vapid ")
	token, key, found := strings.Cut(parameters, ", k=")
	token, isToken := strings.CutPrefix(token, "t=")
	parts := strings.Split(token, ".")
	if !ok || !found || !isToken || len(parts) != 3 {
		return "", fmt.Errorf("the authorization is %q", header)
	}
	if key != application {
		return "", fmt.Errorf("%w: %s; the browser subscribed for %s", errKey, key, application)
	}
	var head struct {
		Type      string `json:"typ"`
		Algorithm string `json:"alg"`
	}
	var claims struct {
		Audience string `json:"aud"`
		Expires  int64  `json:"exp"`
		Subject  string `json:"sub"`
	}
	if err := errors.Join(inJSON(parts[0], &head), inJSON(parts[1], &claims), checkSignature(key, parts)); err != nil {
		return "", err
	}
	left := time.Until(time.Unix(claims.Expires, 0))
	switch {
	case head.Type != "JWT" || head.Algorithm != "ES256":
		return "", fmt.Errorf("the token's head is %+v", head)
	case claims.Audience != origin:
		return "", fmt.Errorf("the token is for %s, not for %s", claims.Audience, origin)
	case left <= 0 || left > 24*time.Hour:
		return "", fmt.Errorf("the token ends in %s", left)
	case !strings.HasPrefix(claims.Subject, "mailto:") && !strings.HasPrefix(claims.Subject, "https:"):
		return "", fmt.Errorf("the token's subject is %q", claims.Subject)
	}
	return claims.Subject, nil
}

func checkSignature(key string, parts []string) error {
	point, err := decode(key)
	if err != nil {
		return err
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return err
	}
	signature, err := decode(parts[2])
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if len(signature) != 64 || !ecdsa.Verify(public, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		return errors.New("the token's signature is wrong")
	}
	return nil
}

// decrypt decrypts a push like a browser (RFC 8291): the body is one record of aes128gcm (RFC 8188).
func (b *Browser) decrypt(body []byte) ([]byte, error) {
	if len(body) < 21+65+17 || body[20] != 65 {
		return nil, errors.New("the body has no head")
	}
	salt, size, sender, sealed := body[:16], binary.BigEndian.Uint32(body[16:20]), body[21:86], body[86:]
	if uint32(len(sealed)) > size {
		return nil, errors.New("the body has more than one record")
	}
	public, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		return nil, err
	}
	shared, err := b.key.ECDH(public)
	if err != nil {
		return nil, err
	}
	expand := func(secret, salt []byte, info string, n int) []byte {
		key, keyErr := hkdf.Key(sha256.New, secret, salt, info, n)
		err = errors.Join(err, keyErr)
		return key
	}
	secret := expand(shared, b.auth, "WebPush: info\x00"+string(b.key.PublicKey().Bytes())+string(sender), 32)
	key := expand(secret, salt, "Content-Encoding: aes128gcm\x00", 16)
	nonce := expand(secret, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	padded, err := aead.Open(nil, nonce, sealed, nil)
	if err != nil {
		return nil, err
	}
	plain := bytes.TrimRight(padded, "\x00")
	if len(plain) == 0 || plain[len(plain)-1] != 2 {
		return nil, errors.New("the record has no end")
	}
	return plain[:len(plain)-1], nil
}

func inJSON(part string, target any) error {
	text, err := decode(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, target)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func decode(text string) ([]byte, error) { return base64.RawURLEncoding.DecodeString(text) }
