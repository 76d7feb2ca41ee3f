// Package request parses what callers wrote: recipients, pages of lists, periods and time zones. The API, the pages,
// package control and the packages below it use it. It collects all faults of a request, so that one answer reports
// every fault. It depends neither on package control nor on a store.
package request
