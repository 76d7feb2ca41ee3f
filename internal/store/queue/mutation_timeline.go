//go:build !mutate_timeline

package queue

// forgottenIsSetAside makes a failover that may have lost commits set aside all due messages. The build with the tag mutate_timeline shows
// that the tests notice when it does not.
const forgottenIsSetAside = true
