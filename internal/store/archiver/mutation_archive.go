//go:build !mutate_archive

package archiver

// archiveCompares makes the archiver delete a run only if its rows are the same in the file. The build tag
// mutate_archive makes it false. Then a test must fail.
const archiveCompares = true
