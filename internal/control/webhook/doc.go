// Package webhook executes the requests of clients and partners about their webhooks and deliveries, and of clients
// about their event feed. Like package control, it checks a whole request and then calls the store.
//
// In comments, "Codes:" lists the codes of the errors that a method may return.
package webhook
