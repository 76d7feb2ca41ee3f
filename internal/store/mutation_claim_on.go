//go:build mutate_claim

package store

const claimCompares = ""
