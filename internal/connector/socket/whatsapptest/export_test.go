//go:build !nosocket

package whatsapptest

import "go.mau.fi/whatsmeow"

// TrustShipped makes this process's clients trust the root that its program contains, as every other program does.
func TrustShipped() { whatsmeow.WACertPubKey = shipped }
