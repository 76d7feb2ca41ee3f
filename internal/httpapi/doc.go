// Package httpapi is the JSON interface for programs. It decodes a call, calls one method of control, and encodes the
// answer. Each noun has a file. Routing and the OpenAPI document are huma's. This package itself decides about keys,
// bodies, the order of refusals and leniency, because the product promises more than a schema can say.
package httpapi
