package admission

// Limits contains the limits that a server's API, dashboards and webhooks share. They bound the calls that are
// executed, the memory of these calls, and the calls of unknown callers. The zero Limits refuse nothing.
type Limits struct {
	Gate           *Gate
	Budget         *MemoryBudget
	UnknownCallers *RateLimiter[CallerKey] // counts the calls of each [AddressKey]
}
