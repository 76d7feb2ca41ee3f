//go:build !mutate_timeline

package queue

// forgottenIsSetAside makes a failover that may have lost commits quarantine all due messages. The build tag
// mutate_timeline makes it false. Then a test must fail.
const forgottenIsSetAside = true
