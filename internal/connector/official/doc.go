// Package official sends through Meta's WhatsApp Cloud API, and takes what Meta tells at webhooks.
//
// A message goes out with one POST, and nothing at Meta knows a repeat: once a byte of it was written, only an answer or
// a webhook says whether it arrived (graph.go). Refusals have codes; the table of what each asks for is in refusal.go.
// What a number may send is counted here, so that limits are kept and not discovered (limit.go): its rate by the
// dispatcher (Traits), the rate for one person, the persons addressed in 24 hours, the window in which free text is
// allowed.
//
// Shapes, codes and limits are those of Meta's documentation as of September 2026.
package official
