// Package deviceclient is the client's half of docs/device.md. It links a program as a device, takes messages, gives each to a command, and
// reports the outcome.
//
// A crash at any moment neither loses a report nor runs the command twice for one message. The device writes each step
// into the [Journal] before it acts. It writes the id of a take before the call, "begun" before the command starts, and
// a report before it sends it. After a crash, a message with "begun" is reported unknown, because nobody knows how far
// the command came.
package deviceclient
