// Package devicecommand runs "puntuale device run" on the user's machine, as docs/device.md describes. It takes
// messages from a running server, passes each message to a command, and reports the outcome.
//
// A crash at any time neither loses a report nor runs the command twice for one message. The device writes each step to
// the [Journal] before the step itself. Before a call that takes messages, the device writes the call's id. The device
// writes "begun" before the command starts, and a report before it sends the report. After a crash, a message with
// "begun" is reported as unknown, because nobody knows how much of its work the command did.
package devicecommand
