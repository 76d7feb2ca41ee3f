// Package archiver moves runs that ended long ago from the database into files (package archive). It removes erased
// persons from these files, and finds archived messages. Only one node at a time has the lease on the archive.
package archiver
