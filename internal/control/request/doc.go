// Package request reads what callers wrote: recipients, pages of lists, periods and time zones. It collects all that is wrong with a
// request, so that one answer names every fault. It knows no verb and no store.
package request
