package admission

// Limits are what a server shares between its API, its dashboards and its webhooks. They bound which calls are worked
// on, what memory they take, and how often unknown callers may come. The zero Limits refuse nothing.
type Limits struct {
	Gate           *Gate
	Budget         *MemoryBudget
	UnknownCallers *RateLimiter[CallerKey] // counts by [AddressKey]
}
