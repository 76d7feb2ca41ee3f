// Package push sends Web Push messages (RFC 8030, 8291 and 8292) to the phones of people who send messages by hand. It
// does so when messages are due. A push contains only the session with due messages. It contains no number and no text.
package push
