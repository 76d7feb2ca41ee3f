// Package metrics contains the figures at /metrics, in Prometheus' format. Callers of this package must measure
// expensive figures in the background, and never during a request for the figures.
package metrics
