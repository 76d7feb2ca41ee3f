// Package logging creates the server's log: text for people on a terminal, and JSON lines elsewhere. No line contains
// an API key or a password of the database. The package drops lines that would hide other lines: repeated warnings, the
// refusals during an outage, and a part of the access log.
package logging
