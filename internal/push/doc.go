// Package push sends Web Push messages (RFC 8030, 8291 and 8292) to people's devices when messages are due. A push
// contains only the session with due messages. It contains no number and no text.
package push
