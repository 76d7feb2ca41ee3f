// Package archiver moves the runs of months that are over from the database into files (package archive). It forgets
// erased persons there, and finds archived messages again. One node at a time has the lease on the archive.
package archiver
