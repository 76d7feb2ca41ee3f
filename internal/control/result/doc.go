// Package result executes requests about results: reports of what became of messages, and the people behind each count.
package result
