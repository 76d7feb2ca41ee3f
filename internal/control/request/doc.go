// Package request reads what callers wrote: recipients, pages of lists, periods and time zones. It collects all faults
// of a request, so that one answer names every fault. It uses no verb of package control, and no store.
package request
