package puntuale

import "time"

// Side says what kind of caller a key belongs to.
type Side string

const (
	PartnerSide Side = "partner"
	ClientSide  Side = "client"
	DeviceSide  Side = "device"
)

// MaxPartnerKeys is how many keys of its own a partner may have. A key that was replaced and is still valid does not
// count.
const MaxPartnerKeys = 20

// KeyHash is the SHA-256 of an API key. The key itself is never stored.
type KeyHash [32]byte

// Key is the stored data of an API key.
type Key struct {
	ID      KeyID
	Name    string
	Prefix  string // first characters of the key, so that people can recognise it
	Hash    KeyHash
	Created time.Time
	Expires time.Time // when a replaced key stops working; zero: the key was not replaced
}

// Principal is the owner of a valid key.
type Principal struct {
	Side    Side
	Partner PartnerID
	Client  Client    // only with ClientSide and DeviceSide
	Device  Device    // only with DeviceSide
	Key     KeyID     // 0 with DeviceSide
	Expires time.Time // when the key stops working; zero: never
}
