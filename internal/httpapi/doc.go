// Package httpapi is the JSON interface for programs. It decodes a call, calls one method of package control, and
// encodes the answer. Each resource has its own file. Package huma does the routing and writes the OpenAPI document.
// This package itself checks keys and bodies, because the product promises more about them than a schema can say. It
// also decides the order of refusals, and which spellings of a call are accepted. The type of a body is what the document
// shows, and what the body is read into (body.go).
package httpapi
