// Package doctor looks at what a new operator gets wrong, and says what to do: the public address, the proxy, TLS, the
// clock, disks, backups, the key file, e-mail and the database. It changes nothing.
package doctor
