// Package official sends through Meta's WhatsApp Cloud API, and takes what Meta reports to our webhooks.
//
// A message goes out with one POST. Meta does not recognise a repeat. Once we wrote a byte of a request, only an answer
// or a webhook can say whether the message arrived (graph.go). Refusals have codes. The table in refusal.go says what
// each code asks for.
//
// The connector counts what a number may send, so that Meta need not refuse messages over its limits. The dispatcher
// keeps the number's rate (Traits). limit.go keeps the others: the rate for one person, the persons addressed in 24
// hours, and the 24-hour window for free text.
//
// Forms, codes and limits follow Meta's documentation of September 2026.
package official
