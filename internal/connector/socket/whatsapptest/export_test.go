//go:build !nosocket

package whatsapptest

import "go.mau.fi/whatsmeow"

// TrustShipped makes this process's clients trust the library's own root key, as other programs do.
func TrustShipped() { whatsmeow.WACertPubKey = shipped }
