// Package httpkit is what every HTTP surface of the product shares. It has the request's id, the access log, recovery
// from panics, security headers and the bound on bodies. It has the one table from error codes to statuses, and the RFC
// 9457 form of errors.
package httpkit
