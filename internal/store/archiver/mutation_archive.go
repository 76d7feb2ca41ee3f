//go:build !mutate_archive

package archiver

// archiveCompares makes the deletion of an archived run depend on its rows being what the file says. The build with the
// tag mutate_archive shows that the tests notice when it does not.
const archiveCompares = true
