//go:build mutate_claim

package queue

const claimCompares = ""
