//go:build mutate_archive

package archiver

const archiveCompares = false
