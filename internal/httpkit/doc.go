// Package httpkit is what every HTTP surface of the product shares: the request's id, the access log, recovery from
// panics, security headers, the bound on bodies, and the one table from error codes to statuses with the RFC 9457 form
// that errors are answered in.
package httpkit
