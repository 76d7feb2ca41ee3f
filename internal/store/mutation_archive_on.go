//go:build mutate_archive

package store

const archiveCompares = false
