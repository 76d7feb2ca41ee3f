// Package media fetches the files at callers' media addresses. It fetches them safely, because a caller can write any
// address. It fetches each file only once for each run. Webhooks and links to Chatwoot use its dialer, too.
//
// Every connection is checked when it is made, with the address that is really dialled. Therefore, no spelling of an
// address, no redirect and no later change of DNS can lead into our network. No cookie or credential of ours is sent.
// Duration, rate, size, disk space and the number of simultaneous fetches are all bounded. The content of a file is
// never decoded: no archive is unpacked, and no image is read.
package media
