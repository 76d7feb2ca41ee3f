// Package httpkit has what all HTTP interfaces of the product share. It has the request's id, the access log, recovery from panics,
// security headers and the bound on bodies. It has the only table from error codes to statuses, and the RFC 9457 form of errors.
package httpkit
