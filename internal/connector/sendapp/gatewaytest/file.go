package gatewaytest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
)

// Keep encrypts a file as WhatsApp does, and serves it as WhatsApp's host would. It returns the member for the file in
// a message. keys is the name with which the file's keys are derived, such as "WhatsApp Image Keys".
func (p *Peer) Keep(keys string, body []byte, more map[string]any) map[string]any {
	p.t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	all, err := hkdf.Key(sha256.New, key, nil, keys, 112)
	if err != nil {
		p.t.Fatal(err)
	}
	block, err := aes.NewCipher(all[16:48])
	if err != nil {
		p.t.Fatal(err)
	}
	fill := aes.BlockSize - len(body)%aes.BlockSize
	sealed := append(bytes.Clone(body), bytes.Repeat([]byte{byte(fill)}, fill)...)
	cipher.NewCBCEncrypter(block, all[:16]).CryptBlocks(sealed, sealed)
	mac := hmac.New(sha256.New, all[48:80])
	mac.Write(all[:16])
	mac.Write(sealed)
	sealed = mac.Sum(sealed)[:len(sealed)+10]
	hash, encHash := sha256.Sum256(body), sha256.Sum256(sealed)
	path := "/v/t62.7118-24/" + hex.EncodeToString(encHash[:8]) + "?ccb=11-4"
	p.locked(func() { p.files["https://mmg.whatsapp.net"+path] = sealed })
	member := map[string]any{
		"url": "https://mmg.whatsapp.net" + path, "directPath": path, "mediaKey": key, "fileSha256": hash[:], "fileEncSha256": encHash[:],
		"fileLength": strconv.Itoa(len(body)),
	}
	for name, value := range more {
		member[name] = value
	}
	return member
}

// Forget removes all files from WhatsApp's host.
func (p *Peer) Forget() { p.locked(func() { clear(p.files) }) }

// RoundTrip answers like WhatsApp's host for files.
func (p *Peer) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	if !q.Has("hash") || !q.Has("mms-type") || r.Header.Get("Origin") == "" || r.Header.Get("Authorization") != "" {
		p.fault("a file is asked for by %s", r.URL.RawQuery)
	}
	at := *r.URL
	at.RawQuery = "ccb=" + q.Get("ccb")
	status := http.StatusOK
	sealed, ok := p.files[at.String()]
	if !ok {
		status = http.StatusGone
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(sealed)), ContentLength: int64(len(sealed)), Request: r}, nil
}
