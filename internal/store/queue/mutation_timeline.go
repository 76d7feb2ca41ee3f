//go:build !mutate_timeline

package queue

// forgottenIsSetAside makes a failover that may have lost commits quarantine all due messages. The build tag
// mutate_timeline turns this off, to show that the tests notice it.
const forgottenIsSetAside = true
