// Package push tells people's devices by Web Push (RFC 8030, 8291 and 8292) that messages are due. A push says which session
// has some, and nothing else: no number and no text leaves the service.
package push
