// Package httpapi is the JSON surface for programs: it decodes a call, asks one verb of control, and encodes the
// answer, a noun a file. Routing and the OpenAPI document are huma's; what huma would decide about a request (keys,
// bodies, order of refusals, leniency) is decided here, because the product promises more than a schema can say.
package httpapi
