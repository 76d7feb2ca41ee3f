package replyfile

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"puntuale"
)

// Kinds of encrypted files. keyNames has the name with which the keys of each kind are derived.
const (
	Image    = "image"
	Video    = "video"
	Audio    = "audio"
	Document = "document"
)

var keyNames = map[string]string{
	Image: "WhatsApp Image Keys", Video: "WhatsApp Video Keys", Audio: "WhatsApp Audio Keys", Document: "WhatsApp Document Keys",
}

// EncryptedFile contains what a message says about a file that WhatsApp stores. Its JSON form is the Ref of a
// [puntuale.ReplyMedia].
type EncryptedFile struct {
	Kind    string `json:"kind"` // stickers have the kind image
	URL     string `json:"url,omitempty"`
	Path    string `json:"path,omitempty"` // the path at WhatsApp's common host; "": the file is at URL
	Key     []byte `json:"key"`
	Hash    []byte `json:"hash,omitempty"`     // SHA-256 of the file
	EncHash []byte `json:"enc_hash,omitempty"` // SHA-256 of the encrypted file
}

// Ref returns the JSON form. It returns nil if the file cannot be opened, because its key or its address is missing.
func (e EncryptedFile) Ref() []byte {
	if len(e.Key) == 0 || e.URL == "" && e.Path == "" {
		return nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // texts and bytes can always be encoded
	}
	return text
}

// Opener opens encrypted files by the Ref of their media. Any node can open them, without the session's connection.
type Opener struct {
	Via    http.RoundTripper
	Folder string // where files are stored while they are open; "": the system's folder for temporary files
}

// host stores the media of all WhatsApp users.
const host = "mmg.whatsapp.net"

// hosts is the suffix of the names of WhatsApp's hosts. No other host gets a request, even if a gateway's report names
// another host.
const hosts = ".whatsapp.net"

var errNoAddress = errors.New("the file has no address at WhatsApp")

// address returns the address of the encrypted file.
func (e EncryptedFile) address() (string, error) {
	address := e.URL
	if e.Path != "" {
		address = "https://" + host + e.Path
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Port() != "" || u.User != nil || !strings.HasSuffix(u.Hostname(), hosts) || e.Path != "" && u.Hostname() != host {
		return "", errNoAddress
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += url.Values{"hash": {base64.URLEncoding.EncodeToString(e.EncHash)}, "mms-type": {e.Kind}, "__wa-mms": {""}}.Encode()
	return u.String(), nil
}

// OpenMedia fetches and decrypts a file. Codes: gone, unavailable, too_large.
func (o Opener) OpenMedia(ctx context.Context, _ puntuale.Session, m puntuale.ReplyMedia, maxBytes int64) (*puntuale.ReplyFile, error) {
	var e EncryptedFile
	if len(m.Ref) == 0 || json.Unmarshal(m.Ref, &e) != nil || keyNames[e.Kind] == "" || len(e.Key) == 0 {
		return nil, IsGone(errors.New("the message did not tell how to fetch the file"))
	}
	address, err := e.address()
	if err != nil {
		return nil, IsGone(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, IsGone(errNoAddress)
	}
	r.Header.Set("Origin", "https://web.whatsapp.com")
	r.Header.Set("Referer", "https://web.whatsapp.com/")
	iv, key, mac, err := e.keys()
	if err != nil {
		return nil, err
	}
	s, err := fetch(o.Via, r, o.Folder, maxBytes+aes.BlockSize+macSize)
	if err != nil {
		return nil, err
	}
	f, err := e.decrypt(s, iv, key, mac, maxBytes)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return f, nil
}

// macSize is how many bytes of an HMAC are at the end of an encrypted file.
const macSize = 10

func (e EncryptedFile) keys() (iv, key, mac []byte, err error) {
	all, err := hkdf.Key(sha256.New, e.Key, nil, keyNames[e.Kind], 112)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("derive the keys of a file: %w", err)
	}
	return all[:16], all[16:48], all[48:80], nil
}

// decrypt checks a fetched file, and returns a reader of the decrypted file, which has at most maxBytes.
func (e EncryptedFile) decrypt(s *spool, iv, key, mac []byte, maxBytes int64) (*puntuale.ReplyFile, error) {
	damaged := func(damage string) error { return Unavailable(errors.New("the file " + damage)) }
	length := s.size - macSize
	if length < aes.BlockSize || length%aes.BlockSize != 0 {
		return nil, damaged("has no whole blocks")
	}
	if len(e.EncHash) > 0 && !hmac.Equal(e.EncHash, s.sum[:]) {
		return nil, damaged("has another hash")
	}
	sum := hmac.New(sha256.New, mac)
	sum.Write(iv)
	if _, err := io.Copy(sum, io.NewSectionReader(s, 0, length)); err != nil {
		return nil, fmt.Errorf("read a reply's file: %w", err)
	}
	tail := make([]byte, macSize)
	if _, err := s.ReadAt(tail, length); err != nil {
		return nil, fmt.Errorf("read a reply's file: %w", err)
	}
	if !hmac.Equal(tail, sum.Sum(nil)[:macSize]) {
		return nil, damaged("was changed")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("decrypt a file: %w", err)
	}
	// The last byte of the decrypted file is the number of bytes of padding at its end.
	last := make([]byte, 2*aes.BlockSize) // two blocks, because decrypting a block needs the block before it
	if length == aes.BlockSize {
		copy(last, iv)
		_, err = s.ReadAt(last[aes.BlockSize:], 0)
	} else {
		_, err = s.ReadAt(last, length-2*aes.BlockSize)
	}
	if err != nil {
		return nil, fmt.Errorf("read a reply's file: %w", err)
	}
	cipher.NewCBCDecrypter(block, last[:aes.BlockSize]).CryptBlocks(last[aes.BlockSize:], last[aes.BlockSize:])
	fill := int64(last[2*aes.BlockSize-1])
	if fill < 1 || fill > aes.BlockSize {
		return nil, damaged("ends in an odd way")
	}
	size := length - fill
	if size > maxBytes {
		return nil, TooLarge()
	}
	plain := func() io.Reader {
		return io.LimitReader(&decryptReader{from: io.NewSectionReader(s, 0, length), mode: cipher.NewCBCDecrypter(block, iv)}, size)
	}
	if len(e.Hash) > 0 {
		sum := sha256.New()
		if _, err := io.Copy(sum, plain()); err != nil {
			return nil, fmt.Errorf("read a reply's file: %w", err)
		}
		if !hmac.Equal(e.Hash, sum.Sum(nil)) {
			return nil, damaged("is not the one that was told")
		}
	}
	return &puntuale.ReplyFile{ReadCloser: decryptedFile{plain(), s}, Size: size}, nil
}

type decryptedFile struct {
	io.Reader
	io.Closer
}

// decryptReader decrypts whole blocks while its caller reads.
type decryptReader struct {
	from io.Reader
	mode cipher.BlockMode
	buf  [32 << 10]byte
	rest []byte // the decrypted part of buf that the caller has not read yet
}

func (d *decryptReader) Read(p []byte) (int, error) {
	if len(d.rest) == 0 {
		n, err := io.ReadFull(d.from, d.buf[:])
		if n == 0 {
			return 0, err
		}
		d.rest = d.buf[:n-n%aes.BlockSize]
		d.mode.CryptBlocks(d.rest, d.rest)
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}
