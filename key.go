package puntuale

import "time"

// Side says whose key a caller holds.
type Side string

const (
	PartnerSide Side = "partner"
	ClientSide  Side = "client"
	DeviceSide  Side = "device"
)

// MaxPartnerKeys is how many keys of its own a partner may have. Replaced keys do not count.
const MaxPartnerKeys = 20

// KeyHash is the SHA-256 of an API key; the key itself is never stored.
type KeyHash [32]byte

// Key is the stored data of an API key.
type Key struct {
	ID      KeyID
	Name    string
	Prefix  string // its first characters, to recognise it by
	Hash    KeyHash
	Created time.Time
	Expires time.Time // the end of the grace period after a rotation; zero: none
}

// Principal is who a valid key belongs to. With ClientSide and DeviceSide, Client holds the account.
type Principal struct {
	Side    Side
	Partner PartnerID
	Client  Client    // with ClientSide and DeviceSide
	Device  Device    // with DeviceSide
	Key     KeyID     // 0 with DeviceSide
	Expires time.Time // when the key ends; zero: never
}
