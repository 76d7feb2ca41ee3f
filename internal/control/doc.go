// Package control is what people and programs may ask of the service, a noun a file. It checks a request as a whole,
// naming every fault at once, asks the planner and the store, and hints at the dispatcher. It knows nothing of HTTP;
// the locations in its faults ("body.phone", "query.timezone", "path.id_sequenza") are names that its callers share.
package control
