//go:build !nosocket

package whatsapptest

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/socket"
	"go.mau.fi/whatsmeow/util/gcmutil"
	"go.mau.fi/whatsmeow/util/keys"
	"golang.org/x/crypto/curve25519"
	"google.golang.org/protobuf/proto"
)

// tunnel is the server's end of Noise_XX_25519_AESGCM_SHA256, with the frames after the handshake.
type tunnel struct {
	hash, salt []byte
	key        cipher.AEAD
	counter    uint32

	read, written uint32 // how many frames were read and written
	reader        cipher.AEAD
	writer        cipher.AEAD
}

// frame is a payload with its length before it.
func frame(payload []byte) []byte {
	n := len(payload)
	return append([]byte{byte(n >> 16), byte(n >> 8), byte(n)}, payload...)
}

// hello returns the answer to the client's first frame.
func (t *tunnel) hello(first []byte, own certificates) (answer []byte, ephemeral *keys.KeyPair, err error) {
	var message waWa6.HandshakeMessage
	if err := proto.Unmarshal(first, &message); err != nil {
		return nil, nil, fmt.Errorf("decode the client's hello: %w", err)
	}
	theirs := message.GetClientHello().GetEphemeral()
	if len(theirs) != 32 {
		return nil, nil, errors.New("the client's hello has no key")
	}
	t.hash = []byte(socket.NoiseStartPattern)
	t.salt = t.hash
	if t.key, err = gcmutil.Prepare(t.hash); err != nil {
		return nil, nil, err
	}
	t.mixHash(socket.WAConnHeader)
	t.mixHash(theirs)
	ephemeral = keys.NewKeyPair()
	t.mixHash(ephemeral.Pub[:])
	if err := t.mixKey(ephemeral, theirs); err != nil {
		return nil, nil, err
	}
	static := t.seal(own.static.Pub[:])
	if err := t.mixKey(own.static, theirs); err != nil {
		return nil, nil, err
	}
	answer, err = proto.Marshal(&waWa6.HandshakeMessage{ServerHello: &waWa6.HandshakeMessage_ServerHello{
		Ephemeral: ephemeral.Pub[:], Static: static, Payload: t.seal(own.chain),
	}})
	return answer, ephemeral, err
}

// finish reads the client's second frame. After that the tunnel can encrypt and decrypt.
func (t *tunnel) finish(second []byte, ephemeral *keys.KeyPair) (client [32]byte, payload *waWa6.ClientPayload, err error) {
	var message waWa6.HandshakeMessage
	if err := proto.Unmarshal(second, &message); err != nil {
		return client, nil, fmt.Errorf("decode the client's finish: %w", err)
	}
	static, err := t.open(message.GetClientFinish().GetStatic())
	if err != nil || len(static) != 32 {
		return client, nil, errors.Join(errors.New("the client's key cannot be read"), err)
	}
	if err := t.mixKey(ephemeral, static); err != nil {
		return client, nil, err
	}
	plain, err := t.open(message.GetClientFinish().GetPayload())
	if err != nil {
		return client, nil, fmt.Errorf("the client's payload cannot be read: %w", err)
	}
	payload = &waWa6.ClientPayload{}
	if err := proto.Unmarshal(plain, payload); err != nil {
		return client, nil, fmt.Errorf("decode the client's payload: %w", err)
	}
	first, last, err := t.expand(nil)
	if err != nil {
		return client, nil, err
	}
	if t.reader, err = gcmutil.Prepare(first); err != nil {
		return client, nil, err
	}
	if t.writer, err = gcmutil.Prepare(last); err != nil {
		return client, nil, err
	}
	return [32]byte(static), payload, nil
}

// decrypt decrypts the client's next frame.
func (t *tunnel) decrypt(frame []byte) ([]byte, error) {
	plain, err := t.reader.Open(nil, nonce(t.read), frame, nil)
	t.read++
	return plain, err
}

// encrypt encrypts the next frame to the client.
func (t *tunnel) encrypt(plain []byte) []byte {
	sealed := t.writer.Seal(nil, nonce(t.written), plain, nil)
	t.written++
	return sealed
}

func (t *tunnel) mixHash(data []byte) {
	sum := sha256.Sum256(append(t.hash[:len(t.hash):len(t.hash)], data...))
	t.hash = sum[:]
}

func (t *tunnel) mixKey(own *keys.KeyPair, theirs []byte) error {
	secret, err := curve25519.X25519(own.Priv[:], theirs)
	if err != nil {
		return fmt.Errorf("mix keys: %w", err)
	}
	salt, key, err := t.expand(secret)
	if err != nil {
		return err
	}
	t.salt, t.counter = salt, 0
	t.key, err = gcmutil.Prepare(key)
	return err
}

func (t *tunnel) expand(secret []byte) (first, second []byte, err error) {
	both, err := hkdf.Key(sha256.New, secret, t.salt, "", 64)
	if err != nil {
		return nil, nil, fmt.Errorf("derive keys: %w", err)
	}
	return both[:32], both[32:], nil
}

func (t *tunnel) seal(plain []byte) []byte {
	sealed := t.key.Seal(nil, nonce(t.counter), plain, t.hash)
	t.counter++
	t.mixHash(sealed)
	return sealed
}

func (t *tunnel) open(sealed []byte) ([]byte, error) {
	plain, err := t.key.Open(nil, nonce(t.counter), sealed, t.hash)
	t.counter++
	t.mixHash(sealed)
	return plain, err
}

func nonce(count uint32) []byte {
	iv := make([]byte, 12)
	binary.BigEndian.PutUint32(iv[8:], count)
	return iv
}
