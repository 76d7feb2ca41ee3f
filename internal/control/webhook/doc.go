// Package webhook is what clients and partners may ask about their webhooks and deliveries, and what a client may ask of its
// feed of events. It checks a request as a whole and asks the store, as package control does.
package webhook
