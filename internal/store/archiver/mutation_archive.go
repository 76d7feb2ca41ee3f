//go:build !mutate_archive

package archiver

// archiveCompares makes the archiver delete a run only if its rows are those in the file. The build with the tag mutate_archive shows that
// the tests notice when it does not.
const archiveCompares = true
