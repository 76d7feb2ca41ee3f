//go:build !nosocket

package socket

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"puntuale"
)

// The sender of a message chooses the message's WhatsApp id. The ids of WhatsApp's web clients are idPrefix and nine
// random bytes in hexadecimal. Ids of this package look the same: their nine bytes are message, generation and zeros,
// encrypted with a key of the installation.
//
// So a repeat has the same id although no id is stored, and the id in a receipt leads to the message. Other ids, such
// as ids of messages that a person wrote on the phone, decrypt to values without those zeros.
const (
	idPrefix  = "3EB0"
	idBytes   = 9
	idRounds  = 10
	halfBits  = idBytes * 8 / 2
	halfMask  = 1<<halfBits - 1
	spareBits = 11 // how many bits are zero; the zeros show that this package made the id
	ageBits   = 8  // how many bits the generation has

	// idsAhead is how far ids may be ahead of the clock. A restore raises them by an hour, and clocks may differ.
	idsAhead = 30 * 24 * time.Hour
)

// ids encrypts and decrypts WhatsApp's ids of messages.
type ids struct{ key []byte }

// connectorID returns WhatsApp's id of one generation of a message. The generation is the part of connectorID after the
// dot.
func (c ids) connectorID(m puntuale.MessageID, connectorID string) string {
	_, text, _ := strings.Cut(connectorID, ".")
	generation, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		generation = 0
	}
	// Message and generation are the first 61 of 72 bits.
	high := uint64(m) >> (halfBits - spareBits - ageBits)
	low := (uint64(m)<<ageBits | generation&(1<<ageBits-1)) << spareBits
	left, right := high&halfMask, low&halfMask
	for round := range idRounds {
		left, right = right, left^c.mix(byte(round), right)
	}
	return idPrefix + strings.ToUpper(hex.EncodeToString(pack(left, right)))
}

// message decrypts an id. It returns false if this package did not make the id.
func (c ids) message(id string) (puntuale.MessageID, bool) {
	text, ok := strings.CutPrefix(id, idPrefix)
	raw, err := hex.DecodeString(text)
	if !ok || err != nil || len(raw) != idBytes {
		return 0, false
	}
	left, right := unpack(raw)
	for round := idRounds - 1; round >= 0; round-- {
		left, right = right^c.mix(byte(round), left), left
	}
	if right&(1<<spareBits-1) != 0 {
		return 0, false
	}
	m := left<<(halfBits-spareBits-ageBits) | right>>(spareBits+ageBits)
	return puntuale.MessageID(m), m > 0
}

// made reports whether this package made an id before now. One other id of 2,048 has the zeros, too. Most of these ids
// decrypt to a message that would be newer than now, because message ids grow with the time.
func (c ids) made(id string, now time.Time) bool {
	m, ok := c.message(id)
	return ok && int64(m) <= now.Add(idsAhead).UnixMicro()-puntuale.IDEpoch
}

func (c ids) mix(round byte, half uint64) uint64 {
	sum := hmac.New(sha256.New, c.key)
	sum.Write([]byte{round})
	sum.Write(binary.BigEndian.AppendUint64(nil, half))
	return binary.BigEndian.Uint64(sum.Sum(nil)) & halfMask
}

// pack joins two halves of 36 bits into nine bytes. unpack is its inverse.
func pack(left, right uint64) []byte {
	raw := []byte{byte(left >> 28)}
	return binary.BigEndian.AppendUint64(raw, left<<halfBits|right)
}

func unpack(raw []byte) (left, right uint64) {
	low := binary.BigEndian.Uint64(raw[1:])
	return uint64(raw[0])<<28 | low>>halfBits, low & halfMask
}
