// Package request parses what callers wrote: recipients, pages of lists, periods and time zones. Package control and
// the packages below it use it, whether the caller used the API, a page or a command. It collects all faults of a
// request, so that one answer reports every fault. It depends neither on package control nor on a store.
package request
