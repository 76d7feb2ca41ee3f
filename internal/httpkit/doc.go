// Package httpkit contains the parts that all HTTP interfaces share: the API, the pages, hooks, and the webhooks of
// networks. It gives requests their ids, writes the access log, recovers from panics, sets security headers and bounds
// bodies. It also has the only table from error codes to statuses, and writes errors in the form of RFC 9457.
package httpkit
