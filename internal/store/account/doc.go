// Package account stores who uses the service: partners, their clients with limits and keys, and the users who sign in.
// It also stores what users did (audit entries) and the totals of each day. It knows nothing about messages and
// sessions.
package account
