// Package official sends through Meta's WhatsApp Cloud API, and stores what Meta reports to our webhooks.
//
// A message is sent with one POST. Meta does not recognise a repeat of it. Once a byte of the request was written, only
// an answer or a webhook can show whether the message arrived (graph.go). Each refusal has a code. The table in
// refusal.go contains the connector's action for each code.
//
// The connector counts what a number may send, so that Meta need not refuse messages over its limits. The dispatcher
// limits the number's rate (Capabilities). The files limit.go and send.go enforce three other limits. They are the rate
// to one person, the persons addressed in 24 hours, and the 24-hour window for free text.
//
// Forms, codes and limits are from Meta's documentation of September 2026.
package official
